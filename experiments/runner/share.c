#include "share.h"
#include "symbols.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TEXT_MAX ((size_t)1 << 30) /* of perf script: some hours of one thread */
#define TRIAL_MS 20000
#define ODD_MAX                                                                                              \
    0.01 /* samples that cannot be placed, lines that cannot be read, records lost, over all samples */
#define KERNEL_ADDRESS ((uint64_t)1 << 63)
#define LINE_MAX_BYTES 8192
#define FAMILY_MAX     1000 /* generations: an end to a search in a text that may be broken */

/* ---- where malloc is in a C library ---- */

/* What malloc.o of glibc exports. */
static const char *const malloc_names[] = {
    "malloc",
    "free",
    "calloc",
    "realloc",
    "cfree",
    "memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "posix_memalign",
    "free_sized",
    "malloc_trim",
    "malloc_stats",
    "malloc_info",
    "malloc_usable_size",
    "malloc_get_state",
    "mallinfo",
    "mallinfo2",
    "mallopt",
    "malloc_set_state",
    "__libc_malloc",
    "__libc_free",
    "__libc_calloc",
    "__libc_realloc",
    "free_aligned_sized",
    "__libc_memalign",
    "__libc_valloc",
    "__libc_pvalloc",
    "__libc_mallinfo",
    "__libc_mallopt",
    "__posix_memalign",
    "__default_morecore",
};

static bool is_malloc_name(const char *name)
{
    for (size_t i = 0; i < sizeof malloc_names / sizeof *malloc_names; i++)
        if (strcmp(malloc_names[i], name) == 0)
            return true;
    return false;
}

static int by_start(const void *x, const void *y)
{
    const struct symbol *a = x, *b = y;
    return a->start != b->start ? (a->start < b->start ? -1 : 1) : 0;
}

/* Of several names at one address, one of malloc's decides. */
static bool is_malloc_at(const struct symbols *s, size_t i)
{
    for (size_t j = i; j < s->count && s->symbol[j].start == s->symbol[i].start; j++)
        if (is_malloc_name(s->symbol[j].name))
            return true;
    for (size_t j = i; j-- > 0 && s->symbol[j].start == s->symbol[i].start;)
        if (is_malloc_name(s->symbol[j].name))
            return true;
    return false;
}

/* From the end of the last exported function before malloc's, past those that have no name, to the end of malloc's last. */
static bool malloc_span(struct symbols *s, uint64_t *from, uint64_t *to)
{
    size_t at = 0, exported = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->symbol[i].exported)
            s->symbol[exported++] = s->symbol[i];
    s->count = exported;
    if (s->count)
        qsort(s->symbol, s->count, sizeof *s->symbol, by_start);
    while (at < s->count && strcmp(s->symbol[at].name, "malloc") != 0)
        at++;
    if (at == s->count)
        return false;
    size_t low = at, high = at;
    while (low > 0 && is_malloc_at(s, low - 1))
        low--;
    while (high + 1 < s->count && is_malloc_at(s, high + 1))
        high++;
    *from = low > 0 ? s->symbol[low - 1].start + s->symbol[low - 1].size : s->symbol[low].start;
    *to = s->symbol[high].start + s->symbol[high].size;
    return true;
}

bool share_libc_malloc(struct arena *a, const char *path, uint64_t *from, uint64_t *to, const char **why)
{
    struct symbols s;
    if (!symbols_read(a, path, &s, why))
        return false;
    bool found = malloc_span(&s, from, to);
    if (!found)
        *why = "it exports no malloc";
    return found;
}

/* ---- what perf script prints ---- */

/* A C library that was loaded. */
struct libc {
    const char *path;
    struct symbols symbols; /* its segments are used: where a place in the file belongs */
    uint64_t from, to;      /* malloc.o */
    const char *why;        /* why that is not known; NULL: it is */
};

/* Where a process has its code. Newer ones come after older ones. */
struct mapping {
    uint64_t pid, start, length, offset;
    struct libc *libc;
};

struct birth {
    uint64_t pid, parent;
};

struct reader {
    struct arena *arena;
    const struct share_scope *scope;
    struct libc **libc;
    size_t libcs;
    struct mapping *mapping;
    size_t mappings;
    struct birth *birth;
    size_t births;
    bool object_loaded;
    uint64_t asked; /* the pid that was last asked for, and whether it counts */
    bool answer;
    uint64_t unplaced, unread, lost;
    struct share *share;
    char line[LINE_MAX_BYTES];
};

static bool skip_char(const char **at, char c)
{
    bool there = **at == c;
    *at += there;
    return there;
}

static bool skip_text(const char **at, const char *text)
{
    size_t length = strlen(text);
    bool there = strncmp(*at, text, length) == 0;
    *at += there ? length : 0;
    return there;
}

static void skip_blanks(const char **at)
{
    *at += strspn(*at, " \t");
}

/* Digits alone: strtoull would take a sign and blanks. */
static bool take_number(const char **at, int base, uint64_t *number)
{
    char *end;
    if (!isxdigit((unsigned char)**at))
        return false;
    errno = 0;
    *number = strtoull(*at, &end, base);
    bool good = end > *at && errno == 0;
    *at = end;
    return good;
}

/* "seconds.nanoseconds:" */
static bool take_time(const char **at, uint64_t *ns)
{
    uint64_t seconds, rest;
    const char *point;
    return take_number(at, 10, &seconds) && (point = *at) && skip_char(at, '.') &&
           take_number(at, 10, &rest) && *at - point == 10 && skip_char(at, ':') &&
           !__builtin_mul_overflow(seconds, 1000000000u, ns) && !__builtin_add_overflow(*ns, rest, ns);
}

static bool is_libc(const char *path)
{
    const char *name = path_name(path);
    return strncmp(name, "libc.so.", 8) == 0 ||
           (strncmp(name, "libc-", 5) == 0 && isdigit((unsigned char)name[5]));
}

/* A file of the allocator: by its path, or, since another path may lead to it, by a name that its own begins with. */
static bool is_object(const struct share_scope *scope, const char *path)
{
    for (size_t i = 0; i < scope->objects.count; i++) {
        const char *object = path_name(scope->objects.word[i]), *name = path_name(path);
        size_t length = strlen(object);
        if (length && strncmp(object, name, length) == 0 && (!name[length] || name[length] == '.'))
            return true;
    }
    return false;
}

static struct libc *libc_of(struct reader *r, const char *path)
{
    for (size_t i = 0; i < r->libcs; i++)
        if (strcmp(r->libc[i]->path, path) == 0)
            return r->libc[i];
    struct libc *new = arena_alloc(r->arena, sizeof *new);
    new->path = arena_strdup(r->arena, path);
    if (symbols_read(r->arena, path, &new->symbols, &new->why) &&
        !malloc_span(&new->symbols, &new->from, &new->to))
        new->why = "it exports no malloc";
    r->libc = arena_grow(r->arena, r->libc, r->libcs, sizeof(struct libc *));
    return r->libc[r->libcs++] = new;
}

static bool parent_of(const struct reader *r, uint64_t pid, uint64_t *parent)
{
    for (size_t i = r->births; i-- > 0;)
        if (r->birth[i].pid == pid) {
            *parent = r->birth[i].parent;
            return true;
        }
    return false;
}

static bool is_asked_for(const struct share_scope *s, uint64_t pid)
{
    for (size_t i = 0; i < s->pids; i++)
        if (s->pid[i] == pid)
            return true;
    return s->pids == 0;
}

static bool counts(struct reader *r, uint64_t pid)
{
    const struct share_scope *s = r->scope;
    if (!s->children)
        return is_asked_for(s, pid);
    if (pid != r->asked) {
        r->asked = pid;
        for (int i = 0; i < FAMILY_MAX && !is_asked_for(s, pid) && parent_of(r, pid, &pid); i++)
            ;
        r->answer = is_asked_for(s, pid);
    }
    return r->answer;
}

/* The newest mapping of a process, or of the one that it was forked from, that has the address. */
static const struct mapping *mapping_of(const struct reader *r, uint64_t pid, uint64_t address)
{
    for (int generation = 0; generation < FAMILY_MAX; generation++) {
        for (size_t i = r->mappings; i-- > 0;) {
            const struct mapping *m = &r->mapping[i];
            if (m->pid == pid && address >= m->start && address - m->start < m->length)
                return m;
        }
        if (!parent_of(r, pid, &pid))
            break;
    }
    return NULL;
}

/* "pid/tid: [0xSTART(0xLENGTH) @ 0xOFFSET ...]: r-xp PATH" */
static bool take_mapping(struct reader *r, const char *at)
{
    struct mapping m = {0};
    uint64_t tid;
    if (!take_number(&at, 10, &m.pid) || !skip_char(&at, '/') || !take_number(&at, 10, &tid) ||
        !skip_text(&at, ": [0x") || !take_number(&at, 16, &m.start) || !skip_text(&at, "(0x") ||
        !take_number(&at, 16, &m.length) || !skip_text(&at, ") @ ") || !take_number(&at, 0, &m.offset))
        return false;
    at = strstr(at, "]: ");
    if (!at || !(at = strchr(at + 3, ' ')))
        return false;
    const char *path = at + 1;
    r->object_loaded |= is_object(r->scope, path);
    if (!is_libc(path))
        return true;
    m.libc = libc_of(r, path);
    r->mapping = arena_grow(r->arena, r->mapping, r->mappings, sizeof m);
    r->mapping[r->mappings++] = m;
    return true;
}

/* "(pid:tid):(parent:tid)" */
static bool take_birth(struct reader *r, const char *at)
{
    struct birth b;
    uint64_t tid;
    if (!skip_char(&at, '(') || !take_number(&at, 10, &b.pid) || !skip_char(&at, ':') ||
        !take_number(&at, 10, &tid) || !skip_text(&at, "):(") || !take_number(&at, 10, &b.parent) ||
        !skip_char(&at, ':'))
        return false;
    if (b.pid == b.parent)
        return true; /* a thread */
    r->birth = arena_grow(r->arena, r->birth, r->births, sizeof b);
    r->birth[r->births++] = b;
    r->asked = 0;
    return true;
}

static void place(struct reader *r, uint64_t pid, uint64_t ip, const char *object)
{
    uint64_t address;
    r->share->samples++;
    if (ip >= KERNEL_ADDRESS) {
        r->share->in_kernel++;
    } else if (is_object(r->scope, object)) {
        r->share->in_malloc++;
    } else if (is_libc(object)) {
        const struct mapping *m = mapping_of(r, pid, ip);
        r->share->in_libc++;
        if (!m || (!m->libc->why && !symbols_address(&m->libc->symbols, ip - m->start + m->offset, &address)))
            r->unplaced++;
        else if (!m->libc->why)
            r->share->in_malloc += address >= m->libc->from && address < m->libc->to;
    }
}

/* "IP (OBJECT)" */
static bool take_sample(struct reader *r, uint64_t pid, uint64_t ns, const char *at)
{
    uint64_t ip;
    if (!take_number(&at, 16, &ip))
        return false;
    skip_blanks(&at);
    size_t length = strlen(r->line);
    if (at[0] != '(' || r->line[length - 1] != ')')
        return false;
    r->line[length - 1] = '\0';
    if (ns >= r->scope->from_ns && (!r->scope->to_ns || ns <= r->scope->to_ns) && counts(r, pid))
        place(r, pid, ip, at + 1);
    return true;
}

/* "PID/TID SECONDS.NANOSECONDS: what" */
static bool take_line(struct reader *r)
{
    const char *at = r->line;
    uint64_t pid, tid, ns, lost;
    skip_blanks(&at);
    if (!*at)
        return true;
    if (!take_number(&at, 10, &pid) || !skip_char(&at, '/') || !take_number(&at, 10, &tid))
        return false;
    skip_blanks(&at);
    if (!take_time(&at, &ns))
        return false;
    skip_blanks(&at);
    if (skip_text(&at, "PERF_RECORD_MMAP2 ") || skip_text(&at, "PERF_RECORD_MMAP "))
        return take_mapping(r, at);
    if (skip_text(&at, "PERF_RECORD_FORK"))
        return take_birth(r, at);
    if (skip_text(&at, "PERF_RECORD_LOST lost ")) {
        r->lost += take_number(&at, 10, &lost) ? lost : 1;
        return true;
    }
    return skip_text(&at, "PERF_RECORD_") || take_sample(r, pid, ns, at);
}

static const char *libc_trouble(struct arena *a, const struct reader *r)
{
    for (size_t i = 0; i < r->libcs; i++)
        if (r->libc[i]->why)
            return arena_printf(a, "where malloc is in %s is not known: %s", r->libc[i]->path,
                                r->libc[i]->why);
    return NULL;
}

/* Why no share can be had from this text at all. */
static const char *text_trouble(struct arena *a, const struct reader *r)
{
    double odd = ODD_MAX * (double)r->share->samples;
    if ((double)r->unread > odd)
        return arena_printf(a, "%" PRIu64 " lines of perf script are not understood", r->unread);
    if ((double)r->lost > odd)
        return arena_printf(a, "perf lost %" PRIu64 " records", r->lost);
    return NULL;
}

static const char *malloc_trouble(struct arena *a, const struct reader *r)
{
    const char *why = text_trouble(a, r);
    if (why)
        return why;
    if (r->scope->objects.count && !r->object_loaded)
        return arena_printf(a, "%s was not loaded", r->scope->objects.word[0]);
    if (!r->scope->objects.count && !r->libcs)
        return "no C library was loaded: where malloc is in a static program is not known";
    if ((double)r->unplaced > ODD_MAX * (double)r->share->samples)
        return arena_printf(
            a, "of %" PRIu64 " samples in the C library it is not known in which function they are",
            r->unplaced);
    return libc_trouble(a, r);
}

void share_from_text(struct arena *a, const char *text, size_t length, const struct profiler *profiler,
                     const struct share_scope *scope, struct share *share)
{
    static struct reader r; /* ak has one thread; its stack may be small */
    r = (struct reader){.arena = a, .scope = scope, .share = share};
    *share = (struct share){.malloc_share = NAN, .libc_share = NAN};
    for (const char *at = text, *end = text + length; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t line = (size_t)((stop ? stop : end) - at);
        bool whole = line < sizeof r.line && !memchr(at, '\0', line);
        if (whole) {
            memcpy(r.line, at, line);
            r.line[line] = '\0';
        }
        r.unread += !whole || !take_line(&r);
        at += line + 1;
    }
    double all = (double)share->samples;
    if (!profiler->sees_kernel && scope->user_ns > 0)
        all *= (scope->user_ns + scope->system_ns) / scope->user_ns;
    share->user_only = !profiler->sees_kernel && !(scope->user_ns > 0);
    if (share->samples < SHARE_SAMPLES_MIN) {
        share->why = share->libc_why =
            arena_printf(a, "%" PRIu64 " samples, fewer than %d: too little CPU time was used",
                         share->samples, SHARE_SAMPLES_MIN);
        return;
    }
    share->why = malloc_trouble(a, &r);
    share->libc_why = text_trouble(a, &r);
    if (!share->libc_why && !r.libcs)
        share->libc_why = "no C library was loaded";
    if (!share->why)
        share->malloc_share = (double)share->in_malloc / all;
    if (!share->libc_why)
        share->libc_share = (double)share->in_libc / all;
}

/* ---- take samples ---- */

/* Asks for a cpu-clock of this thread, with the kernel's part or without. 0, or the errno. */
static int clock_refused(bool kernel)
{
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE,
                                    .size = sizeof event,
                                    .config = PERF_COUNT_SW_CPU_CLOCK,
                                    .disabled = 1,
                                    .exclude_kernel = !kernel,
                                    .exclude_hv = 1};
    long fd = syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return errno;
    close((int)fd);
    return 0;
}

static char **perf_environment(struct arena *a)
{
    struct words set = {0};
    words_add(a, &set, "PERF_CONFIG=/dev/null"); /* a user's own settings change what is recorded */
    return child_environment_with(a, &set);
}

/* perf's temporary data need no name in a file system: they go with the process that holds them. */
static bool profile_open(struct arena *a, struct profile *p, const char **why)
{
    p->fd = memfd_create("ak-profile", MFD_CLOEXEC);
    if (p->fd < 0)
        *why = arena_printf(a, "no memory for samples: %s", strerror(errno));
    else
        p->path = arena_printf(a, "/proc/%d/fd/%d", (int)getpid(), p->fd);
    return p->fd >= 0;
}

void profile_free(struct profile *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

/* The command gets back the very environment that it was to have: perf sets variables of its own. */
bool profile_begin(struct arena *a, const struct profiler *profiler, struct child_request *request,
                   struct profile *profile, const char **why)
{
    struct words argv = {0};
    *profile = (struct profile){.fd = -1};
    if (strchr(request->argv[0], '=')) {
        *why = arena_printf(a, "%s: a path with '=' cannot be profiled", request->argv[0]);
        return false;
    }
    if (!profile_open(a, profile, why))
        return false;
    const char *const record[] = {profiler->perf,
                                  "record",
                                  "--quiet",
                                  "--event",
                                  profiler->sees_kernel ? "cpu-clock" : "cpu-clock:u",
                                  "--freq",
                                  arena_printf(a, "%d", SHARE_RATE),
                                  "--clockid",
                                  "CLOCK_MONOTONIC",
                                  "--no-buildid",
                                  "--no-buildid-cache",
                                  "--no-bpf-event",
                                  "--output",
                                  profile->path,
                                  "--",
                                  profiler->env,
                                  "-i"};
    for (size_t i = 0; i < sizeof record / sizeof *record; i++)
        words_add(a, &argv, record[i]);
    for (char *const *variable = request->env; *variable; variable++)
        if (strncmp(*variable, "LD_PRELOAD=", 11) != 0)
            words_add(a, &argv, *variable);
    words_add(a, &argv, arena_printf(a, "LD_PRELOAD=%s", request->preload ? request->preload : ""));
    for (size_t i = 0; request->argv[i]; i++)
        words_add(a, &argv, request->argv[i]);
    words_add(a, &argv, NULL);
    request->argv = argv.word;
    request->env = perf_environment(a);
    request->preload = NULL;
    return true;
}

bool profile_share(struct arena *a, const char *launcher, const struct profiler *profiler,
                   const struct profile *profile, const struct share_scope *scope, struct share *share,
                   struct fault *f)
{
    const char *const argv[] = {profiler->perf,
                                "script",
                                "--ns",
                                "-F",
                                "pid,tid,time,ip,dso",
                                "--show-mmap-events",
                                "--show-task-events",
                                "--show-lost-events",
                                "--input",
                                profile->path,
                                NULL};
    struct child_request request = {
        .argv = argv, .env = perf_environment(a), .out_max = TEXT_MAX, .interrupts_max = 2};
    struct child_outcome outcome;
    *share = (struct share){.malloc_share = NAN, .libc_share = NAN};
    if (!child_run(launcher, &request, &outcome, f))
        return false;
    if (outcome.end == CHILD_EXITED && outcome.code == 0)
        share_from_text(a, outcome.out.data, outcome.out.length, profiler, scope, share);
    else
        share->why = share->libc_why = arena_printf(a, "perf script: %s: %s", child_end_words(a, &outcome),
                                                    text_last_line(a, outcome.err.data, TEXT_CLEAN_MAX));
    child_outcome_free(&outcome);
    return true;
}

/* perf may be there and not run: one made for another kernel, or a container that forbids it. */
static bool try_perf(struct arena *a, const char *launcher, struct profiler *p, struct fault *f)
{
    const char *const argv[] = {p->env, NULL};
    struct child_request request = {.argv = argv,
                                    .env = perf_environment(a),
                                    .timeout_ms = TRIAL_MS,
                                    .out_max = TEXT_MAX,
                                    .interrupts_max = 1};
    struct child_outcome outcome;
    struct profile profile;
    if (!profile_begin(a, p, &request, &profile, &p->why))
        return true;
    bool started = child_run(launcher, &request, &outcome, f);
    profile_free(&profile);
    if (!started)
        return false;
    if (outcome.end != CHILD_EXITED || outcome.code != 0)
        p->why = arena_printf(a, "perf record: %s: %s", child_end_words(a, &outcome),
                              text_last_line(a, outcome.err.data, TEXT_CLEAN_MAX));
    child_outcome_free(&outcome);
    return true;
}

bool profiler_find(struct arena *a, const char *launcher, struct profiler *p, struct fault *f)
{
    *p = (struct profiler){.perf = program_find(a, "perf"), .env = program_find(a, "env")};
    int refused = clock_refused(false);
    p->sees_kernel = !refused && clock_refused(true) == 0;
    if (!p->perf)
        p->why = "perf is not on PATH: apt install linux-perf";
    else if (!p->env)
        p->why = "env is not on PATH: apt install coreutils";
    else if (refused == EACCES || refused == EPERM)
        p->why = "the kernel allows this user no samples: as root, sysctl kernel.perf_event_paranoid=2, or "
                 "run as root";
    else if (refused)
        p->why = arena_printf(a, "the kernel has no cpu-clock: %s", strerror(refused));
    if (p->why)
        return true;
    p->perf = path_absolute(a, p->perf);
    p->env = path_absolute(a, p->env);
    return try_perf(a, launcher, p, f);
}
