#include "compare_launch.h"
#include "../witness/witness.h"
#include "child.h"
#include "compare_witness.h"
#include "cputime.h"
#include "meta.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STAGE_NAME "ak-compare-" /* then the process's id: tells whose it is */
#define STACK_GRAIN                                                                                          \
    4096 /* strings of a new process are padded to a multiple: they shift its stack, and with it speed */
#define LOG_BYTES_MAX ((size_t)256 << 20)
#define SAID_BYTES    2000 /* of stderr, kept of a launch that failed */
#define SAID_LINES    5
#define READY_POLL_MS 50
#define NOBODY_MS     2000       /* for --ready before the start; one that waits by itself shows nobody */
#define READY_MS      60000      /* a server has so long to be ready, and */
#define STOP_MS       20000      /* so long to end once it was told */
#define PROFILE_NS    400000000u /* of CPU time: a shorter command is profiled several times in a row */
#define PROFILE_MOST  40u
#define PROFILE_WALL  3000000000u /* and no longer than this, but for one launch */
#define REACH_LEAST   0.10        /* below: the allocator did not reach the command, and no number is used */

extern char **environ;

/* ---- the stage ---- */

static const char *const files[] = {"witness.log", "server.out", "server.err", "load.err"};

static const char *in_folder(struct arena *a, const struct stage *s, const char *name)
{
    return arena_printf(a, "%s/%s", s->folder, name);
}

const char *stage_loadable(struct arena *a, const struct stage *s, const char *library, struct fault *f)
{
    if (!strpbrk(library, ": \t\n"))
        return library;
    const char *real = path_real(a, library);
    for (unsigned i = 0; real && i < 1000; i++) {
        const char *name = in_folder(a, s, arena_printf(a, "library-%u.so", i));
        if (symlink(real, name) == 0)
            return name;
        if (errno != EEXIST)
            break;
    }
    fault_set(f, AK_ENVIRONMENT, "%s: no link to %s can be made: %s", s->folder, library, strerror(errno));
    return NULL;
}

/* Where temporary files go, in a form that LD_PRELOAD can carry. */
static const char *stages(void)
{
    const char *where = getenv("TMPDIR");
    return where && *where == '/' && !strpbrk(where, ": \t\n") ? where : "/tmp";
}

/* A folder without folders in it, if it is this user's own. */
static void remove_stage(const char *path)
{
    struct stat st;
    const struct dirent *entry;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() ? fdopendir(fd) : NULL;
    if (!folder && fd >= 0)
        close(fd);
    if (!folder)
        return;
    while ((entry = readdir(folder)))
        unlinkat(fd, entry->d_name, 0);
    closedir(folder);
    rmdir(path);
}

/* Those of comparisons that were killed. */
static void sweep_stages(const char *where)
{
    struct arena a = {0};
    DIR *all = opendir(where);
    const struct dirent *entry;
    while (all && (entry = readdir(all))) {
        if (strncmp(entry->d_name, STAGE_NAME, strlen(STAGE_NAME)) != 0)
            continue;
        char *end;
        const long pid = strtol(entry->d_name + strlen(STAGE_NAME), &end, 10);
        if (pid > 0 && pid <= INT32_MAX && *end == '-' && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
            remove_stage(arena_printf(&a, "%s/%s", where, entry->d_name));
    }
    if (all)
        closedir(all);
    arena_free(&a);
}

bool stage_open(struct arena *a, const struct paths *paths, const struct comparison *c, struct stage *s,
                struct fault *f)
{
    *s = (struct stage){.paths = paths, .comparison = c};
    const char *where = stages();
    sweep_stages(where);
    char *folder = arena_printf(a, "%s/" STAGE_NAME "%d-XXXXXX", where, (int)getpid());
    if (!mkdtemp(folder))
        return fault_set(f, AK_ENVIRONMENT, "%s: no temporary folder: %s (TMPDIR names another place)", where,
                         strerror(errno));
    s->folder = folder;
    chmod(folder, 0711); /* a server that gives up its rights goes on writing to the log */
    const char *library = arena_printf(a, "%s/" WITNESS_LIBRARY, paths->libraries);
    if (!path_is_file(library))
        return fault_set(f, AK_ENVIRONMENT, "%s is not there: build it with make", library);
    s->witness = stage_loadable(a, s, library, f);
    s->profiler.why = "--no-profile";
    return s->witness && (c->options.no_profile || profiler_find(a, paths->launcher, &s->profiler, f));
}

void stage_close(struct stage *s)
{
    if (s->folder)
        remove_stage(s->folder);
    s->folder = NULL;
}

/* Every file anew; those that a server with fewer rights may write are open to all. */
static bool clear_files(struct arena *a, const struct stage *s, struct fault *f)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *path = in_folder(a, s, files[i]);
        unlink(path);
        const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0)
            return fault_set(f, AK_ENVIRONMENT, "%s: %s", path, strerror(errno));
        fchmod(fd, 0666);
        close(fd);
    }
    return true;
}

/* The last `most` bytes of a file. */
static char *file_tail(struct arena *a, const char *path, size_t most, size_t *length)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    *length = 0;
    if (fd < 0 || fstat(fd, &st) != 0) {
        if (fd >= 0)
            close(fd);
        return arena_strdup(a, "");
    }
    const size_t size = (size_t)st.st_size < most ? (size_t)st.st_size : most;
    char *text = arena_alloc(a, size + 1);
    ssize_t got;
    while (*length < size &&
           (got = pread(fd, text + *length, size - *length, st.st_size - (off_t)(size - *length))) > 0)
        *length += (size_t)got;
    close(fd);
    return text;
}

/* ---- the environment ---- */

static bool has_name(const char *variable, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

/* A search path of the allocator's comes before the user's. */
static const char *merged(struct arena *a, const char *setting)
{
    const char *users = getenv("LD_LIBRARY_PATH");
    return has_name(setting, "LD_LIBRARY_PATH") && users && *users ? arena_printf(a, "%s:%s", setting, users)
                                                                   : setting;
}

/* The user's environment with the settings in place of what has their names, and one variable more that makes up for
 * lengths. The stack moves by another step each round, the same for all: no allocator keeps a lucky place. */
static char **environment(struct arena *a, const struct words *set, const char *preload, uint64_t round,
                          const char *const *argv, uint64_t *bytes)
{
    struct words env = {0};
    for (char **variable = environ; *variable; variable++) {
        bool replaced = has_name(*variable, "LD_PRELOAD") || has_name(*variable, "AK_PAD") ||
                        has_name(*variable, WITNESS_VARIABLE);
        for (size_t i = 0; i < set->count; i++)
            replaced |= has_name(*variable, arena_strndup(a, set->word[i], strcspn(set->word[i], "=")));
        if (!replaced)
            words_add(a, &env, *variable);
    }
    for (size_t i = 0; i < set->count; i++)
        words_add(a, &env, merged(a, set->word[i]));
    *bytes = strlen("LD_PRELOAD=") + strlen(preload) + strlen("AK_PAD=") + 2;
    for (size_t i = 0; i < env.count; i++)
        *bytes += strlen(env.word[i]) + 1;
    for (; *argv; argv++)
        *bytes += strlen(*argv) + 1;
    const uint64_t pad = STACK_GRAIN - *bytes % STACK_GRAIN + hash_mix(round + 1) % (STACK_GRAIN / 16) * 16;
    char *padding = arena_alloc(a, strlen("AK_PAD=") + pad + 1);
    memcpy(padding, "AK_PAD=", strlen("AK_PAD="));
    memset(padding + strlen("AK_PAD="), '.', pad);
    words_add(a, &env, padding);
    words_add(a, &env, NULL);
    *bytes += pad;
    return (char **)(uintptr_t)env.word;
}

/* The user's own environment, for the poll and the load. */
static char **own_environment(void)
{
    return environ;
}

static const char *preload_list(struct arena *a, const struct stage *s, const struct contender *c)
{
    const char *users = getenv("LD_PRELOAD");
    return arena_printf(a, "%s%s%s%s%s", s->witness, *c->preload ? ":" : "", c->preload,
                        users && *users ? ":" : "", users ? users : "");
}

/* ---- what became of it ---- */

static void fail(struct arena *a, struct compare_launch *l, enum compare_status status, const char *said,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
static void fail(struct arena *a, struct compare_launch *l, enum compare_status status, const char *said,
                 const char *format, ...)
{
    if (l->status != COMPARE_OK)
        return; /* the cause is told, not its consequences */
    struct buffer text = {0};
    va_list args;
    char words[FAULT_TEXT_MAX];
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    l->status = status;
    l->detail = text_clean(a, words);
    /* the last lines, each in a form that a terminal takes */
    const char *end = said + strlen(said), *from = end;
    for (int lines = 0; from > said && lines <= SAID_LINES; from--)
        lines += from[-1] == '\n' && from != end;
    from += from > said || (from < end && *from == '\n');
    while (from < end) {
        const size_t length = strcspn(from, "\n");
        buffer_addf(&text, "%s\n", text_clean(a, arena_strndup(a, from, length)));
        from += length + (from[length] == '\n');
    }
    l->said = text.length ? arena_strdup(a, text.data) : "";
    buffer_free(&text);
}

static void take_numbers(struct compare_launch *l, const struct child_outcome *o)
{
    l->exit_code = o->end == CHILD_EXITED ? o->code : -1;
    l->signal = o->end == CHILD_SIGNALLED ? o->code : 0;
    l->wall_ns = o->wall_ns;
    l->user_ns = o->user_us * 1000u;
    l->system_ns = o->system_us * 1000u;
    l->rss_peak_bytes = o->maxrss_bytes;
    l->minor_faults = o->minor_faults;
    l->major_faults = o->major_faults;
    l->voluntary_switches = o->voluntary_switches;
    l->involuntary_switches = o->involuntary_switches;
}

/* Who served, by the witness. */
static void take_testimony(struct arena *a, const struct stage *s, struct compare_launch *l,
                           const struct contender *c, const struct tree *tree)
{
    size_t length;
    const char *log = file_tail(a, in_folder(a, s, "witness.log"), LOG_BYTES_MAX, &length);
    struct testimony testimony;
    struct reach reach;
    const bool any = l->contender == 0; /* the default: whatever serves it */
    testimony_read(a, log, length, &testimony);
    testimony_judge(a, &testimony, tree, any ? NULL : c->real, c->build_id, &reach);
    l->processes = reach.processes;
    l->served = reach.served;
    l->reach = reach.share;
    l->object = reach.object;
    l->build_id = reach.build_id;
    l->other = reach.other;
    if (!reach.processes)
        fail(a, l, COMPARE_NOT_SERVED, "",
             "no process of it loaded what was preloaded: it clears the environment, or becomes a static or "
             "privileged program");
    else if (!reach.served && reach.main_lost && reach.main_seen)
        fail(a, l, COMPARE_NOT_SERVED, "",
             "%s became a program that did not load what was preloaded%s%s: its environment was cleared, or "
             "it is "
             "static or privileged",
             reach.main_seen, reach.main_became ? ", " : "", reach.main_became ? reach.main_became : "");
    else if (!reach.served && reach.other)
        fail(a, l, COMPARE_NOT_SERVED, "", "%s did not serve it: %s", c->name, reach.other);
    else if (!reach.served)
        fail(a, l, COMPARE_NOT_SERVED, "",
             "no process of it that told which allocator it had is known to have kept it");
    else if (reach.share < REACH_LEAST)
        fail(a, l, COMPARE_NOT_SERVED, "",
             "%s reached only about %.0f %% of its CPU time%s%s: the rest is of %s",
             any ? "what was preloaded" : c->name, reach.share * 100,
             reach.main_lost && reach.main_seen ? ", since it became a program without it after " : "",
             reach.main_lost && reach.main_seen ? reach.main_seen : "",
             reach.other ? reach.other : "processes that are static, privileged or without this environment");
    if (any && reach.object && reach.program && l->status == COMPARE_OK &&
        strcmp(path_real(a, reach.program) ? path_real(a, reach.program) : "", reach.object) == 0)
        fail(a, l, COMPARE_NOT_SERVED, "", "%s brings its own malloc, which comes before every library's",
             reach.program);
}

/* ---- a command that ends by itself ---- */

static void judge_end(struct arena *a, struct compare_launch *l, const struct child_outcome *o,
                      const char *said)
{
    if (o->end == CHILD_TIMED_OUT)
        fail(a, l, COMPARE_TIMEOUT, said, "it ran past --timeout");
    else if (o->end != CHILD_EXITED || o->code != 0)
        fail(a, l, COMPARE_FAILED, said, "%s", child_end_words(a, o));
}

static bool run_command(struct arena *a, const struct stage *s, struct compare_launch *l,
                        const struct contender *c, const struct child_request *r, struct fault *f)
{
    struct child_outcome o;
    if (!child_run(s->paths->launcher, r, &o, f))
        return false;
    take_numbers(l, &o);
    judge_end(a, l, &o, o.err.data);
    if (l->status == COMPARE_OK && l->kind != KIND_PROFILED) {
        const struct tree tree = {
            .main_pid = o.pid, .cpu_us = o.user_us + o.system_us, .largest_bytes = o.maxrss_bytes};
        take_testimony(a, s, l, c, &tree);
    }
    child_outcome_free(&o);
    return true;
}

/* ---- a server ---- */

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

/* A line of the user's for the shell, to its end. */
static bool run_line(struct arena *a, const struct stage *s, const char *line, uint64_t timeout_ms,
                     struct child_outcome *o, struct fault *f)
{
    const char **argv = arena_alloc(a, 4 * sizeof *argv);
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = line;
    const struct child_request r = {.argv = argv,
                                    .env = own_environment(),
                                    .preload = getenv("LD_PRELOAD"),
                                    .timeout_ms = timeout_ms,
                                    .out_dropped = true,
                                    .interrupts_max = 1};
    return child_run(s->paths->launcher, &r, o, f);
}

/* --timeout shortens the limits that are here anyway. */
static uint64_t at_most(const struct stage *s, uint64_t ms)
{
    const uint64_t timeout = s->comparison->options.timeout_ms;
    return timeout && timeout < ms ? timeout : ms;
}

/* Who answers before the server was started answers in its place. Told at the first launch, it is the end. */
static bool nobody_answers(struct arena *a, const struct stage *s, struct compare_launch *l, struct fault *f)
{
    struct child_outcome o;
    if (!run_line(a, s, s->comparison->options.ready, at_most(s, NOBODY_MS), &o, f))
        return false;
    const bool answers = o.end == CHILD_EXITED && o.code == 0;
    child_outcome_free(&o);
    if (answers && !s->comparison->launches)
        return fault_set(
            f, AK_ENVIRONMENT,
            "compare: --ready succeeds before the server is started, so another one would answer: "
            "end that one, or give a --ready that only this server can answer");
    if (answers)
        fail(a, l, COMPARE_FAILED, "",
             "--ready succeeded before the server was started: another one answers");
    return true;
}

/* Poll until it is ready, or has ended, or took too long; false with a fault. */
static bool await_ready(struct arena *a, const struct stage *s, struct compare_launch *l,
                        struct child *server, struct fault *f)
{
    const char *said = in_folder(a, s, "server.err");
    const uint64_t most = at_most(s, READY_MS), until = now_ms() + most;
    size_t length;
    for (;;) {
        struct child_outcome o;
        if (child_wait(server, READY_POLL_MS)) {
            fail(a, l, COMPARE_FAILED, file_tail(a, said, SAID_BYTES, &length),
                 "the server ended before it was ready");
            return true;
        }
        const uint64_t now = now_ms();
        if (!run_line(a, s, s->comparison->options.ready, now < until ? until - now : 1, &o, f))
            return false;
        const bool ready = o.end == CHILD_EXITED && o.code == 0;
        const char *why = child_end_words(a, &o);
        const char *tail = arena_strdup(a, o.err.data);
        child_outcome_free(&o);
        if (ready)
            break;
        if (now_ms() >= until) {
            fail(a, l, COMPARE_TIMEOUT, tail,
                 "the server was not ready after %" PRIu64 " s: the last --ready: %s", most / 1000, why);
            return true;
        }
    }
    if (child_wait(server, 0)) /* something else answered in its place */
        fail(a, l, COMPARE_FAILED, file_tail(a, said, SAID_BYTES, &length),
             "the server has ended, but --ready succeeds: is another one running?");
    return true;
}

/* What /proc says that a process runs, or NULL. */
static const char *running_program(struct arena *a, int pid)
{
    return pid ? path_real(a, arena_printf(a, "/proc/%d/exe", pid)) : NULL;
}

/* The first process that told of itself: under a profiler the launcher's child is the profiler. */
static int first_witness(struct arena *a, const struct stage *s)
{
    size_t length;
    struct testimony t;
    const char *log = file_tail(a, in_folder(a, s, "witness.log"), LOG_BYTES_MAX, &length);
    testimony_read(a, log, length, &t);
    return t.processes ? t.process[0].pid : 0;
}

/* Tell it to stop and wait; it is killed where it does not. */
static bool stop_server(struct arena *a, const struct stage *s, struct compare_launch *l,
                        struct child *server, bool *killed)
{
    const int signal_number = s->comparison->options.stop_signal;
    const int pid = l->kind == KIND_PROFILED ? first_witness(a, s) : 0;
    if (pid)
        kill(pid, signal_number);
    else
        child_signal(server, signal_number);
    *killed = !child_wait(server, STOP_MS);
    if (*killed)
        fail(a, l, COMPARE_TIMEOUT, "", "the server did not end within %d s of signal %d (%s)",
             STOP_MS / 1000, signal_number, strsignal(signal_number));
    return true;
}

static bool run_server(struct arena *a, const struct stage *s, struct compare_launch *l,
                       const struct contender *c, struct child_request *r, struct fault *f)
{
    const struct compare_options *options = &s->comparison->options;
    struct child_outcome o, load = {.end = CHILD_LOST};
    const char *program = NULL;
    bool killed = true, driven = false, idle = false;
    size_t length;
    r->out_file = in_folder(a, s, "server.out");
    r->err_file = in_folder(a, s, "server.err");
    r->timeout_ms = 0; /* --timeout is the load's, and --ready's */
    if (!nobody_answers(a, s, l, f))
        return false;
    if (l->status != COMPARE_OK)
        return true;
    struct child *server = child_start(s->paths->launcher, r, &o, f);
    if (!server)
        return false;
    bool good = await_ready(a, s, l, server, f);
    const int pid = l->kind == KIND_PROFILED ? 0 : child_pid(server); /* not the profiler's */
    if (good && l->status == COMPARE_OK) {
        const uint64_t before = cputime_of_tree(pid);
        good = run_line(a, s, options->load, options->timeout_ms, &load, f);
        driven = good;
        idle = before && cputime_of_tree(pid) == before;
    }
    if (good && l->status == COMPARE_OK) {
        if (load.end == CHILD_TIMED_OUT)
            fail(a, l, COMPARE_TIMEOUT, load.err.data, "the load ran past --timeout");
        else if (load.end != CHILD_EXITED || load.code != 0)
            fail(a, l, COMPARE_FAILED, load.err.data, "the load: %s", child_end_words(a, &load));
        if (child_wait(server, 0))
            fail(a, l, COMPARE_FAILED, file_tail(a, r->err_file, SAID_BYTES, &length),
                 "the server ended under the load");
        if (idle)
            fail(a, l, COMPARE_FAILED, "",
                 "the server took no CPU time at all under the load: the load drives something else");
        program = running_program(a, pid);
    }
    if (good)
        stop_server(a, s, l, server, &killed);
    struct fault later = {0};
    const bool finished = child_finish(server, killed || !good, good ? f : &later);
    if (finished && good) {
        const int stop = options->stop_signal;
        take_numbers(l, &o);
        l->wall_ns = load.wall_ns;
        if (l->kind != KIND_PROFILED && !(o.end == CHILD_EXITED && (o.code == 0 || o.code == 128 + stop)) &&
            !(o.end == CHILD_SIGNALLED && o.code == stop))
            fail(a, l, COMPARE_FAILED, file_tail(a, r->err_file, SAID_BYTES, &length), "the server: %s",
                 child_end_words(a, &o));
        if (l->status == COMPARE_OK && l->kind != KIND_PROFILED) {
            const struct tree tree = {.main_pid = o.pid,
                                      .main_killed = o.end == CHILD_SIGNALLED,
                                      .main_program = program,
                                      .cpu_us = o.user_us + o.system_us,
                                      .largest_bytes = o.maxrss_bytes};
            take_testimony(a, s, l, c, &tree);
        }
    }
    if (finished)
        child_outcome_free(&o);
    if (driven)
        child_outcome_free(&load);
    return good && finished;
}

/* ---- a launch ---- */

/* Short commands run several times under the profiler, in a loop of the shell, or there were too few samples. */
static const char *const *repeated(struct arena *a, const struct comparison *cmp, const char *const *argv)
{
    const uint64_t cpu = cmp->launch[0].user_ns + cmp->launch[0].system_ns + 1;
    const uint64_t room = PROFILE_WALL / (cmp->launch[0].wall_ns + 1) + 1;
    uint64_t times = PROFILE_NS / cpu + 1;
    times = times < room ? times : room;
    times = times < PROFILE_MOST ? times : PROFILE_MOST;
    struct words loop = {0};
    if (times == 1 || cmp->options.load)
        return argv;
    words_add(a, &loop, "/bin/sh");
    words_add(a, &loop, "-c");
    words_add(a, &loop,
              "n=$1 in=$2; shift 2; while [ $n -gt 0 ]; do \"$@\" < \"$in\" || exit; n=$((n - 1)); done");
    words_add(a, &loop, "sh");
    words_add(a, &loop, arena_printf(a, "%" PRIu64, times));
    words_add(a, &loop, cmp->options.in ? cmp->options.in : "/dev/null");
    for (; *argv; argv++)
        words_add(a, &loop, *argv);
    words_add(a, &loop, NULL);
    return loop.word;
}

bool compare_launch(struct arena *a, const struct stage *s, struct compare_launch *l,
                    struct contender *profiled, struct fault *f)
{
    const struct comparison *cmp = s->comparison;
    const struct contender *c = &cmp->contender[l->contender];
    struct words argv = {0}, set = {0};
    l->started_at = time_stamp(a);
    l->status = COMPARE_OK;
    l->detail = l->said = "";
    l->exit_code = -1;
    if (!clear_files(a, s, f))
        return false;
    words_add(a, &argv, cmp->target.path);
    for (char *const *word = cmp->options.command + 1; *word; word++)
        words_add(a, &argv, *word);
    words_add(a, &argv, NULL);
    for (size_t i = 0; i < c->env.count; i++)
        words_add(a, &set, c->env.word[i]);
    words_add(a, &set, arena_printf(a, WITNESS_VARIABLE "=%s", in_folder(a, s, "witness.log")));
    const char *preload = preload_list(a, s, c);
    struct child_request r = {.argv = argv.word,
                              .env = environment(a, &set, preload, l->round, argv.word, &l->env_bytes),
                              .preload = preload,
                              .in = cmp->options.in,
                              .out_dropped = true,
                              .timeout_ms = cmp->options.timeout_ms,
                              .interrupts_max = 1};
    struct profile profile = {.fd = -1};
    if (profiled)
        r.argv = repeated(a, cmp, r.argv);
    if (profiled && !profile_begin(a, &s->profiler, &r, &profile, &profiled->no_share))
        return true;
    l->launched = true;
    bool good = cmp->options.load ? run_server(a, s, l, c, &r, f) : run_command(a, s, l, c, &r, f);
    if (good && profiled && l->status == COMPARE_OK) {
        struct share_scope scope = {.user_ns = (double)l->user_ns, .system_ns = (double)l->system_ns};
        if (l->contender > 0 || strcmp(path_name(c->real), "libc.so.6") != 0)
            words_add(a, &scope.objects, c->real);
        for (size_t i = 0; i < c->parts.count; i++)
            words_add(a, &scope.objects, c->parts.word[i]);
        good = profile_share(a, s->paths->launcher, &s->profiler, &profile, &scope, &profiled->share, f);
        profiled->no_share = good ? profiled->share.why : NULL;
    } else if (profiled) {
        profiled->no_share = arena_printf(a, "the profiled launch: %s", *l->detail ? l->detail : "stopped");
    }
    profile_free(&profile);
    return good;
}
