#include "listing.h"
#include "child.h"
#include "symbols.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBJDUMP_TIMEOUT_MS 60000
#define OBJDUMP_BYTES_MAX  ((size_t)16 << 20)
#define LINE_BYTES_MAX     8192
#define BYTES_TEXT_MAX     31 /* of an instruction in hexadecimal */

/* ---- the simulator's file ---- */

static bool take_line(struct arena *a, const char *line, const char *wanted, struct listing *l)
{
    char call[16], bytes[BYTES_TEXT_MAX + 1], what[16];
    unsigned step;
    uint64_t address, offset;
    int object = 0;
    if (sscanf(line, "%15s %u %" SCNx64 " %31s %15s %" SCNx64 " %n", call, &step, &address, bytes, what,
               &offset, &object) != 6 ||
        !object)
        return false;
    if (strcmp(call, wanted) != 0)
        return true;
    bool is_file = line[object] == '/';
    l->instruction = arena_grow(a, l->instruction, l->count, sizeof *l->instruction);
    l->instruction[l->count++] = (struct instruction){
        .bytes = arena_strdup(a, bytes),
        .load = strchr(what, 'l'),
        .store = strchr(what, 's'),
        .atomic = strchr(what, 'a'),
        .thread_local_ = strchr(what, 't'),
        .branch = strchr(what, 'b'),
        .object = is_file ? arena_strndup(a, line + object, strcspn(line + object, "\n")) : "",
        .offset = offset,
        .address = address,
        .function = "",
        .text = "",
    };
    return true;
}

bool listing_read(struct arena *a, const char *file, const char *call, struct listing *l, struct fault *f)
{
    char line[LINE_BYTES_MAX];
    unsigned number = 0;
    bool good = true;
    *l = (struct listing){0};
    FILE *from = fopen(file, "re");
    if (!from)
        return fault_set(f, AK_ENVIRONMENT, "%s: %s", file, strerror(errno));
    while (good && fgets(line, sizeof line, from)) {
        number++;
        good = take_line(a, line, call, l) || fault_at(f, file, number, "no line of the simulator's");
    }
    fclose(from);
    return good;
}

/* ---- objdump ---- */

/* A file that instructions are of. */
struct object {
    const char *path;
    struct symbols symbols;
};

static int by_address(const void *a, const void *b)
{
    const struct instruction *x = *(const struct instruction *const *)a,
                             *y = *(const struct instruction *const *)b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static uint64_t end_of(const struct instruction *i)
{
    return i->address + strlen(i->bytes) / 2;
}

/* What it says without the comment at the end and without the symbol behind an address, which is the nearest one before
 * it and often another function's. */
static const char *plain(struct arena *a, char *text)
{
    text[strcspn(text, "#")] = '\0';
    char *symbol = strstr(text, " <");
    if (symbol)
        *symbol = '\0';
    text_one_line(text);
    return arena_strdup(a, text);
}

/* "   98ef0:\t48 85 ff             \ttest   %rdi,%rdi": give it to all steps that executed this address. */
static bool take_decoded(struct arena *a, char *line, struct instruction **sorted, size_t count,
                         const char *path, struct fault *f)
{
    char *end, bytes[BYTES_TEXT_MAX + 1] = "";
    uint64_t address = strtoull(line, &end, 16);
    char *code = end[0] == ':' && end[1] == '\t' ? end + 2 : NULL, *text = code ? strchr(code, '\t') : NULL;
    if (!text)
        return true; /* a headline */
    for (size_t n = 0; code < text && n < BYTES_TEXT_MAX; code++)
        if (*code != ' ')
            bytes[n++] = *code;
    const char *words = NULL;
    for (size_t i = 0; i < count; i++) {
        if (sorted[i]->address != address)
            continue;
        if (strcmp(sorted[i]->bytes, bytes) != 0)
            return fault_set(f, AK_FAILED, "%s: at %" PRIx64 " it has %s, and %s was executed", path, address,
                             bytes, sorted[i]->bytes);
        words = words ? words : plain(a, text + 1);
        sorted[i]->text = words;
    }
    return true;
}

/* Instructions that follow each other in the file. */
static bool decode_stretch(struct arena *a, const char *launcher, const char *objdump, const char *path,
                           struct instruction **sorted, size_t count, struct fault *f)
{
    const char *argv[] = {objdump,
                          "--disassemble",
                          "--wide",
                          "--show-raw-insn",
                          arena_printf(a, "--start-address=0x%" PRIx64, sorted[0]->address),
                          arena_printf(a, "--stop-address=0x%" PRIx64, end_of(sorted[count - 1])),
                          path,
                          NULL};
    struct words set = {0};
    struct child_request request = {.argv = argv,
                                    .env = child_environment_with(a, &set),
                                    .timeout_ms = OBJDUMP_TIMEOUT_MS,
                                    .out_max = OBJDUMP_BYTES_MAX,
                                    .interrupts_max = 1};
    struct child_outcome outcome;
    if (!child_run(launcher, &request, &outcome, f))
        return false;
    bool good = outcome.end == CHILD_EXITED && outcome.code == 0;
    if (!good)
        fault_set(f, AK_ENVIRONMENT, "%s of %s: %s: %s", objdump, path, child_end_words(a, &outcome),
                  text_last_line(a, outcome.err.data, 300));
    char *next, *line = outcome.out.data;
    for (; good && line && *line; line = next) {
        size_t length = strcspn(line, "\n");
        next = line + length + (line[length] == '\n');
        line[length] = '\0';
        good = take_decoded(a, line, sorted, count, path, f);
    }
    for (size_t i = 0; good && i < count; i++)
        if (!*sorted[i]->text)
            good = fault_set(f, AK_FAILED, "%s: %s says nothing of %" PRIx64 ", which was executed", path,
                             objdump, sorted[i]->address);
    child_outcome_free(&outcome);
    return good;
}

/* ---- the whole ---- */

/* Addresses as the file has them, and the functions. */
static bool place(struct arena *a, struct object *o, const char *call, struct instruction **sorted,
                  size_t count, struct fault *f)
{
    const char *why;
    if (!symbols_read(a, o->path, &o->symbols, &why))
        return fault_set(f, AK_ENVIRONMENT, "%s: %s", o->path, why);
    for (size_t i = 0; i < count; i++) {
        if (!symbols_address(&o->symbols, sorted[i]->offset, &sorted[i]->address))
            return fault_set(f, AK_FAILED,
                             "%s: nothing is loaded from its byte %" PRIu64 ", yet it was executed", o->path,
                             sorted[i]->offset);
        const struct symbol *symbol = symbols_find(&o->symbols, sorted[i]->address, call);
        sorted[i]->function = symbol ? symbol->name : "";
        sorted[i]->into = symbol ? sorted[i]->address - symbol->start : 0;
    }
    return true;
}

static bool decode_object(struct arena *a, const char *launcher, const char *objdump, const char *call,
                          const char *path, struct listing *l, struct fault *f)
{
    struct object object = {.path = path};
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are what is sorted */
    struct instruction **sorted = arena_alloc(a, l->count * sizeof *sorted);
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->instruction[i].object, path) == 0)
            sorted[count++] = &l->instruction[i];
    if (!place(a, &object, call, sorted, count, f))
        return false;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression) */
    qsort(sorted, count, sizeof *sorted, by_address);
    for (size_t first = 0, i = 1; i <= count; i++) {
        if (i < count &&
            (sorted[i]->address == sorted[i - 1]->address || sorted[i]->address == end_of(sorted[i - 1])))
            continue;
        if (!decode_stretch(a, launcher, objdump, path, sorted + first, i - first, f))
            return false;
        first = i;
    }
    return true;
}

bool listing_decode(struct arena *a, const char *launcher, const char *objdump, const char *call,
                    struct listing *l, struct fault *f)
{
    struct words done = {0};
    for (size_t i = 0; i < l->count; i++) {
        const char *path = l->instruction[i].object;
        if (!*path || words_have(&done, path))
            continue;
        if (!decode_object(a, launcher, objdump, call, path, l, f))
            return false;
        words_add(a, &done, path);
    }
    return true;
}
