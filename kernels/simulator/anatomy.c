/* anatomy.c - see anatomy.h. */
#include "anatomy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "code.h"
#include "pool.h"

#define CODE_BYTES_MAX 15        /* of an instruction */
#define STEPS_MAX      8192      /* of a path that are kept; the rest is counted */
#define PATHS_MAX      64        /* different ones of a call; the rest are calls, and no path's */
#define LINES_MAX      256       /* of a call; the rest is not counted */
#define STACK_BYTES    (1 << 20) /* what is below the return address by no more than that is on the stack */
#define HASH_START     UINT64_C(0xcbf29ce484222325) /* FNV-1a, an instruction at a time */
#define HASH_PRIME     UINT64_C(0x100000001b3)

struct anatomy_code {
    uint64_t address;
    uint8_t size, bytes[CODE_BYTES_MAX];
    bool atomic, thread_local_, branch, call;
    uint8_t mark; /* enum sim_watched, or 0 */
};

enum did { DID_LOAD = 1, DID_STORE = 2, DID_ATOMIC = 4 };

struct step {
    const struct anatomy_code *code;
    uint32_t did;
};

struct lines {
    uint32_t count;
    uint64_t line[LINES_MAX];
};

struct path {
    uint64_t hash;
    uint32_t taken, length;
    uint32_t steps; /* kept */
    struct step *step;
    uint32_t stack_lines;
    uint32_t with_lines[LINES_MAX + 1]; /* calls, by the number of lines that they touched */
};

struct watched {
    uint32_t calls, paths;
    uint64_t executed;
    struct path path[PATHS_MAX];
};

/* Where the watched thread is. */
enum place {
    OUTSIDE, /* of any call that matters */
    MARKED,  /* the next call is watched */
    CALLING, /* it is being made */
    INSIDE,
};

static struct {
    bool on;
    FILE *file;
    struct pool codes;
    bool has_thread, in_region;
    unsigned thread; /* the first that came to its region; it stays the one */
    enum place place;
    /* of the call that it is in */
    unsigned mark;
    uint64_t back;  /* where it returns to */
    uint64_t stack; /* where that stands on the stack */
    uint64_t hash;
    uint32_t length, steps;
    struct step step[STEPS_MAX];
    struct lines lines, stack_lines;
    /* of all calls */
    struct watched watched[SIM_WATCHED_MAX + 1];
} anatomy;

static const char *const watched_name[] = {[SIM_MALLOC] = "malloc", [SIM_FREE] = "free"};

bool anatomy_open(const char *file)
{
    pool_open(&anatomy.codes, sizeof(struct anatomy_code));
    anatomy.file = fopen(file, "we");
    anatomy.on = anatomy.file != NULL;
    return anatomy.on;
}

bool anatomy_watches(void)
{
    return anatomy.on;
}

struct anatomy_code *anatomy_code(uint64_t address, const uint8_t *bytes, size_t size)
{
    struct anatomy_code *code = pool_get(&anatomy.codes);
    *code = (struct anatomy_code){.address = address,
                                  .size = (uint8_t)size,
                                  .atomic = code_is_atomic(bytes, size),
                                  .thread_local_ = code_is_thread_local(bytes, size),
                                  .branch = code_is_branch(bytes, size),
                                  .call = code_is_call(bytes, size),
                                  .mark = (uint8_t)code_mark(bytes, size)};
    memcpy(code->bytes, bytes, size < CODE_BYTES_MAX ? size : CODE_BYTES_MAX);
    return code;
}

bool anatomy_is_atomic(const struct anatomy_code *code)
{
    return code->atomic;
}

/* ---- lines ---- */

static void lines_add(struct lines *lines, uint64_t address, unsigned size)
{
    for (uint64_t at = address / MACHINE_LINE; at <= (address + size - 1) / MACHINE_LINE; at++) {
        uint32_t i = 0;
        while (i < lines->count && lines->line[i] != at)
            i++;
        if (i == lines->count && i < LINES_MAX)
            lines->line[lines->count++] = at;
    }
}

/* The lines of the instructions of a path. */
static uint32_t code_lines(const struct path *path)
{
    static struct lines lines;
    lines.count = 0;
    for (uint32_t i = 0; i < path->steps; i++)
        lines_add(&lines, path->step[i].code->address, path->step[i].code->size);
    return lines.count;
}

/* ---- paths ---- */

static void call_begin(void)
{
    anatomy.hash = HASH_START;
    anatomy.length = anatomy.steps = 0;
    anatomy.lines.count = anatomy.stack_lines.count = 0;
}

static void step_add(const struct anatomy_code *code)
{
    anatomy.hash = (anatomy.hash ^ code->address) * HASH_PRIME;
    anatomy.length++;
    if (anatomy.steps < STEPS_MAX)
        anatomy.step[anatomy.steps++] = (struct step){.code = code};
}

/* The path of the call that has ended, new or not; NULL where there are too many. */
static struct path *path_find(struct watched *watched)
{
    for (uint32_t i = 0; i < watched->paths; i++)
        if (watched->path[i].hash == anatomy.hash && watched->path[i].length == anatomy.length)
            return &watched->path[i];
    if (watched->paths == PATHS_MAX)
        return NULL;
    struct path *path = &watched->path[watched->paths++];
    *path = (struct path){.hash = anatomy.hash,
                          .length = anatomy.length,
                          .steps = anatomy.steps,
                          .step = memory_need(anatomy.steps * sizeof *path->step),
                          .stack_lines = anatomy.stack_lines.count};
    memcpy(path->step, anatomy.step, anatomy.steps * sizeof *path->step);
    return path;
}

static void call_end(void)
{
    struct watched *watched = &anatomy.watched[anatomy.mark];
    watched->calls++;
    watched->executed += anatomy.length;
    struct path *path = path_find(watched);
    if (path == NULL)
        return;
    path->taken++;
    path->with_lines[anatomy.lines.count]++;
}

/* The path that most calls took; of equals the shortest. NULL: none. */
static const struct path *path_fast(const struct watched *watched)
{
    const struct path *fast = NULL;
    for (uint32_t i = 0; i < watched->paths; i++) {
        const struct path *path = &watched->path[i];
        if (fast == NULL || path->taken > fast->taken ||
            (path->taken == fast->taken && path->length < fast->length))
            fast = path;
    }
    return fast;
}

/* ---- what the thread does ---- */

void anatomy_region(unsigned thread, bool start)
{
    if (anatomy.has_thread && anatomy.thread != thread)
        return;
    anatomy.has_thread = true;
    anatomy.thread = thread;
    anatomy.in_region = start;
    anatomy.place = OUTSIDE;
}

static bool is_watched(unsigned thread)
{
    return anatomy.in_region && anatomy.thread == thread;
}

void anatomy_execute(unsigned thread, const struct anatomy_code *code)
{
    if (!is_watched(thread))
        return;
    if (anatomy.place == CALLING) {
        call_begin();
        anatomy.place = INSIDE;
    }
    if (anatomy.place == INSIDE && code->address != anatomy.back) {
        step_add(code);
        return;
    }
    if (anatomy.place == INSIDE) {
        call_end();
        anatomy.place = OUTSIDE;
    }
    if (code->mark != 0) {
        anatomy.mark = code->mark;
        anatomy.place = MARKED;
    } else if (anatomy.place == MARKED && code->call) {
        anatomy.back = code->address + code->size;
        anatomy.place = CALLING;
    }
}

void anatomy_access(unsigned thread, const struct anatomy_code *code, enum model_kind kind, uint64_t address,
                    unsigned size)
{
    if (!is_watched(thread))
        return;
    if (anatomy.place == CALLING && kind == MODEL_STORE)
        anatomy.stack = address;
    if (anatomy.place != INSIDE)
        return;
    uint64_t below = anatomy.stack + sizeof anatomy.back - address;
    lines_add(below - 1 < STACK_BYTES ? &anatomy.stack_lines : &anatomy.lines, address, size);
    struct step *step = anatomy.steps > 0 ? &anatomy.step[anatomy.steps - 1] : NULL;
    if (step != NULL && step->code == code)
        step->did |= kind == MODEL_ATOMIC ? DID_ATOMIC : kind == MODEL_STORE ? DID_STORE : DID_LOAD;
}

/* ---- the answer ---- */

/* The file that an address is mapped from by `maps`, the text of /proc/self/maps, and where in it. False: none. */
static bool file_of(const char *maps, uint64_t address, char object[static 4096], uint64_t *offset)
{
    for (const char *line = maps; *line != '\0'; line = strchr(line, '\n') + 1) {
        uint64_t start, end, at;
        int name = 0;
        if (strchr(line, '\n') == NULL)
            break;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &start, &end, &at, &name) ==
                3 &&
            start <= address && address < end && line[name] == '/') {
            snprintf(object, 4096, "%.*s", (int)strcspn(line + name, "\n"), line + name);
            *offset = address - start + at;
            return true;
        }
    }
    return false;
}

/* In pages of its own: it is needed once or twice in a process. */
static const char *maps_read(void)
{
    enum { MAPS_BYTES = 1 << 20 };
    static char *text;
    FILE *file = fopen("/proc/self/maps", "re");
    if (text == NULL)
        text = memory_need(MAPS_BYTES);
    size_t length = file != NULL ? fread(text, 1, MAPS_BYTES - 1, file) : 0;
    text[length] = '\0';
    if (file != NULL)
        fclose(file);
    return text;
}

static void path_write(unsigned mark, const struct path *path)
{
    const char *maps = maps_read();
    for (uint32_t i = 0; i < path->steps; i++) {
        const struct step *step = &path->step[i];
        const struct anatomy_code *code = step->code;
        char object[4096] = "-", bytes[2 * CODE_BYTES_MAX + 1] = "", what[8] = "";
        uint64_t offset = 0;
        file_of(maps, code->address, object, &offset);
        for (unsigned b = 0; b < code->size && b < CODE_BYTES_MAX; b++)
            snprintf(bytes + 2 * b, 3, "%02x", code->bytes[b]);
        snprintf(what, sizeof what, "%s%s%s%s%s", step->did & DID_LOAD ? "l" : "",
                 step->did & DID_STORE ? "s" : "", step->did & DID_ATOMIC ? "a" : "",
                 code->thread_local_ ? "t" : "", code->branch ? "b" : "");
        fprintf(anatomy.file, "%s %u %" PRIx64 " %s %s %" PRIx64 " %s\n", watched_name[mark], i + 1,
                code->address, bytes, *what != '\0' ? what : "-", offset, object);
    }
    fflush(anatomy.file);
}

void anatomy_answer(struct sim_path *answer)
{
    if (!anatomy.on || answer->watched < 1 || answer->watched > SIM_WATCHED_MAX)
        return;
    const struct watched *watched = &anatomy.watched[answer->watched];
    const struct path *path = path_fast(watched);
    *answer = (struct sim_path){.watched = answer->watched,
                                .calls = watched->calls,
                                .paths = watched->paths,
                                .executed = watched->executed};
    if (path == NULL)
        return;
    answer->taken = path->taken;
    answer->instructions = path->length;
    answer->stack_lines = path->stack_lines;
    answer->code_lines = code_lines(path);
    for (uint32_t i = 0; i < path->steps; i++) {
        const struct step *step = &path->step[i];
        answer->loads += (step->did & DID_LOAD) != 0;
        answer->stores += (step->did & DID_STORE) != 0;
        answer->atomics += (step->did & DID_ATOMIC) != 0;
        answer->thread_locals += step->code->thread_local_;
        answer->branches += step->code->branch;
    }
    for (uint32_t lines = 0; lines <= LINES_MAX; lines++)
        if (path->with_lines[lines] > path->with_lines[answer->lines])
            answer->lines = lines;
    path_write(answer->watched, path);
}
