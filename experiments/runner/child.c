#include "child.h"
#include "../launcher/launch.h"
#include "orphans.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define LAUNCHER_GRACE_MS 10000 /* ak-launch enforces the timeout; ak steps in only if that one hangs */
#define READ_BYTES        65536
#define LINE_TIMEOUT_MS   20000 /* of a program asked for a line */
#define LINE_BYTES_MAX    65536
#define DRAIN_MS          1000 /* for pipes that somebody still holds after the report */
#define FILE_FLAGS        (O_WRONLY | O_CREAT | O_APPEND)

volatile sig_atomic_t child_interrupts;

static void count_interrupt(int signal_number)
{
    (void)signal_number;
    child_interrupts = child_interrupts + 1;
}

void child_watch_interrupts(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = count_interrupt}, before; /* no SA_RESTART: poll must wake */
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

/* The three pipes that ak reads. */
enum { OUT, ERR, REPORT, PIPES };

static void close_pipe(int fd[2])
{
    for (int i = 0; i < 2; i++) {
        if (fd[i] >= 0)
            close(fd[i]);
        fd[i] = -1;
    }
}

/* Start ak-launch with its ends of the pipes; its own process group keeps a terminal's Ctrl-C from it. */
static bool spawn_launcher(const char *launcher, const struct child_request *r, int (*pipes)[2], pid_t *pid,
                           struct fault *f)
{
    size_t count = 0;
    while (r->argv[count])
        count++;
    char parent[24], report[24], timeout[24];
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    snprintf(report, sizeof report, "%d", pipes[REPORT][1]);
    snprintf(timeout, sizeof timeout, "%llu", (unsigned long long)r->timeout_ms);
    const char **argv = calloc(count + 7, sizeof *argv);
    if (!argv)
        return fault_set(f, AK_ENVIRONMENT, "out of memory");
    const char *head[] = {
        launcher, parent, report, timeout, r->directory ? r->directory : "", r->preload ? r->preload : ""};
    memcpy(argv, head, sizeof head);
    memcpy(argv + 6, r->argv, count * sizeof *argv);

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, r->in ? r->in : "/dev/null", O_RDONLY, 0);
    if (r->out_file)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, r->out_file, FILE_FLAGS, 0600);
    else
        posix_spawn_file_actions_adddup2(&actions, pipes[OUT][1], STDOUT_FILENO);
    if (r->err_file)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, r->err_file, FILE_FLAGS, 0600);
    else
        posix_spawn_file_actions_adddup2(&actions, pipes[ERR][1], STDERR_FILENO);
    /* dup2 onto itself clears close-on-exec (POSIX) */
    posix_spawn_file_actions_adddup2(&actions, pipes[REPORT][1], pipes[REPORT][1]);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    int before = r->fixed_addresses ? personality(0xffffffff) : -1; /* asks; it is inherited */
    if (before != -1)
        personality((unsigned)before | ADDR_NO_RANDOMIZE);
    /* argv is const in all but C's type system */
    int error = posix_spawn(pid, launcher, &actions, &attributes, (char *const *)(uintptr_t)argv, r->env);
    if (before != -1)
        personality((unsigned)before);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    free(argv);
    if (error)
        return fault_set(f, AK_ENVIRONMENT, "%s cannot be started: %s", launcher, strerror(error));
    return true;
}

/* Keep the last CHILD_ERR_KEPT bytes: the reason of a death stands at the end. */
static void keep_tail(struct buffer *b, const char *bytes, size_t length)
{
    buffer_add(b, bytes, length);
    if (b->length > 4 * CHILD_ERR_KEPT) {
        memmove(b->data, b->data + b->length - CHILD_ERR_KEPT, CHILD_ERR_KEPT + 1);
        b->length = CHILD_ERR_KEPT;
    }
}

static void end_from_report(struct child_outcome *o, const struct launch_report *report)
{
    static const enum child_end ends[] = {
        [LAUNCH_EXITED] = CHILD_EXITED,       [LAUNCH_SIGNALLED] = CHILD_SIGNALLED,
        [LAUNCH_TIMED_OUT] = CHILD_TIMED_OUT, [LAUNCH_STOPPED] = CHILD_STOPPED,
        [LAUNCH_NO_EXEC] = CHILD_NO_EXEC,
    };
    if (report->magic != LAUNCH_MAGIC || report->end < 0 || report->end > LAUNCH_NO_EXEC)
        return;
    o->end = ends[report->end];
    o->code = report->code;
    o->wall_ns = report->wall_ns;
    o->user_us = report->user_us;
    o->system_us = report->system_us;
    o->maxrss_bytes = report->maxrss_bytes;
    o->minor_faults = report->minor_faults;
    o->major_faults = report->major_faults;
    o->voluntary_switches = report->voluntary_switches;
    o->involuntary_switches = report->involuntary_switches;
    o->pid = report->pid;
}

struct child {
    const struct child_request *request;
    struct child_outcome *outcome;
    pid_t pid; /* of ak-launch */
    int pipes[PIPES][2];
    struct pollfd watch[PIPES];
    int open_pipes;
    struct launch_report report;
    size_t reported; /* bytes of it */
    bool overflow, asked;
    uint64_t deadline;
};

static unsigned running; /* orphans are ended only while no child is meant to run */

struct child *child_start(const char *launcher, const struct child_request *r, struct child_outcome *o,
                          struct fault *f)
{
    *o = (struct child_outcome){.end = CHILD_LOST};
    struct child *c = malloc(sizeof *c);
    if (!c) {
        fault_set(f, AK_ENVIRONMENT, "out of memory");
        return NULL;
    }
    *c = (struct child){.request = r, .outcome = o, .pid = -1, .pipes = {{-1, -1}, {-1, -1}, {-1, -1}}};
    for (int i = 0; i < PIPES; i++)
        if (pipe2(c->pipes[i], O_CLOEXEC) != 0) {
            fault_set(f, AK_ENVIRONMENT, "no pipe: %s", strerror(errno));
            goto failed;
        }
    if (!spawn_launcher(launcher, r, c->pipes, &c->pid, f))
        goto failed;
    for (int i = 0; i < PIPES; i++) {
        close(c->pipes[i][1]);
        c->pipes[i][1] = -1;
        c->watch[i] = (struct pollfd){c->pipes[i][0], POLLIN, 0};
    }
    c->open_pipes = PIPES;
    c->deadline = r->timeout_ms ? now_ms() + r->timeout_ms + LAUNCHER_GRACE_MS : UINT64_MAX;
    running++;
    return c;
failed:
    for (int i = 0; i < PIPES; i++)
        close_pipe(c->pipes[i]);
    free(c);
    return NULL;
}

/* Ask ak-launch to end everything, once. */
static void ask(struct child *c)
{
    if (c->asked)
        return;
    kill(c->pid, SIGTERM);
    c->asked = true;
    c->deadline = now_ms() + LAUNCHER_GRACE_MS;
}

/* What one of the pipes has. */
static void take(struct child *c, int i)
{
    static char bytes[READ_BYTES]; /* ak has one thread; its stack may be small */
    const struct child_request *r = c->request;
    struct child_outcome *o = c->outcome;
    ssize_t got = read(c->watch[i].fd, bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        c->watch[i].fd = -1; /* poll passes over it */
        c->open_pipes--;
        if (i == REPORT && now_ms() + DRAIN_MS < c->deadline)
            c->deadline = now_ms() + DRAIN_MS;
    } else if (i == REPORT && c->reported + (size_t)got <= sizeof c->report) {
        memcpy((char *)&c->report + c->reported, bytes, (size_t)got);
        c->reported += (size_t)got;
    } else if (i == ERR) {
        keep_tail(&o->err, bytes, (size_t)got);
    } else if (i == OUT && !c->overflow && !r->out_dropped) {
        c->overflow = o->out.length + (size_t)got > r->out_max;
        if (!c->overflow)
            buffer_add(&o->out, bytes, (size_t)got);
    }
}

bool child_wait(struct child *c, uint64_t ms)
{
    const uint64_t start = now_ms(), until = ms < UINT64_MAX - start ? start + ms : UINT64_MAX;
    while (c->open_pipes > 0) {
        const struct child_request *r = c->request;
        uint64_t now = now_ms();
        if (now >= c->deadline)
            return true;
        if (c->overflow || (r->interrupts_max && child_interrupts >= r->interrupts_max))
            ask(c);
        uint64_t end = c->deadline < until ? c->deadline : until;
        uint64_t left = end > now ? end - now : 0;
        /* a second at most: wakes for a signal that came before poll */
        int ready = poll(c->watch, PIPES, left < 1000 ? (int)left : 1000);
        for (int i = 0; ready > 0 && i < PIPES; i++) /* below 0, EINTR: look at the interrupts */
            if (c->watch[i].revents)
                take(c, i);
        if (c->open_pipes > 0 && now_ms() >= until)
            return false;
    }
    return true;
}

bool child_signal(struct child *c, int signal_number)
{
    return sigqueue(c->pid, SIGUSR1, (union sigval){.sival_int = signal_number}) == 0;
}

int child_pid(const struct child *c)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)c->pid, (int)c->pid);
    FILE *children = fopen(path, "re");
    if (children && fscanf(children, "%d", &pid) != 1)
        pid = 0;
    if (children)
        fclose(children);
    return pid;
}

bool child_finish(struct child *c, bool end_it, struct fault *f)
{
    const struct child_request *r = c->request;
    struct child_outcome *o = c->outcome;
    if (end_it)
        ask(c);
    child_wait(c, UINT64_MAX);
    if (c->reported < sizeof c->report)
        kill(c->pid, SIGKILL); /* the kernel follows by its parent-death signal */
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (--running == 0)
        orphans_end();
    if (c->reported == sizeof c->report)
        end_from_report(o, &c->report);
    else if (c->asked)
        o->end = CHILD_STOPPED; /* it was asked before it could listen */
    if (c->overflow)
        o->end = CHILD_OVERFLOW;
    if (o->err.length > CHILD_ERR_KEPT) {
        memmove(o->err.data, o->err.data + o->err.length - CHILD_ERR_KEPT, CHILD_ERR_KEPT + 1);
        o->err.length = CHILD_ERR_KEPT;
    }
    if (!o->out.data)
        buffer_add(&o->out, "", 0);
    if (!o->err.data)
        buffer_add(&o->err, "", 0);
    for (int i = 0; i < PIPES; i++)
        close_pipe(c->pipes[i]);
    free(c);
    if (r->interrupts_max != 1 || o->end != CHILD_STOPPED || !child_interrupts)
        return true;
    child_outcome_free(o); /* what it would have said is not known: no word about it is true */
    return fault_set(f, AK_FAILED, "interrupted");
}

bool child_run(const char *launcher, const struct child_request *r, struct child_outcome *o, struct fault *f)
{
    struct child *c = child_start(launcher, r, o, f);
    return c && child_finish(c, false, f);
}

void child_outcome_free(struct child_outcome *o)
{
    buffer_free(&o->out);
    buffer_free(&o->err);
}

char *child_line(struct arena *a, const char *launcher, const char *const *argv)
{
    struct words kept = {0};
    struct child_request request = {.argv = argv,
                                    .env = child_environment(a, &kept),
                                    .timeout_ms = LINE_TIMEOUT_MS,
                                    .out_max = LINE_BYTES_MAX,
                                    .interrupts_max = 1};
    struct child_outcome outcome;
    struct fault ignored = {0};
    if (!child_run(launcher, &request, &outcome, &ignored))
        return NULL;
    const char *text = outcome.out.length ? outcome.out.data : outcome.err.data;
    char *line = arena_strndup(a, text, strcspn(text, "\n"));
    bool well = outcome.end == CHILD_EXITED && outcome.code == 0;
    text_one_line(line);
    child_outcome_free(&outcome);
    return well ? line : NULL;
}

const char *child_end_words(struct arena *a, const struct child_outcome *o)
{
    switch (o->end) {
    case CHILD_EXITED:
        return arena_printf(a, "exit status %d", o->code);
    case CHILD_SIGNALLED:
        return arena_printf(a, "signal %d (%s)", o->code, strsignal(o->code));
    case CHILD_TIMED_OUT:
        return "timed out";
    case CHILD_STOPPED:
        return "stopped";
    case CHILD_OVERFLOW:
        return "printed too much";
    case CHILD_NO_EXEC:
        return arena_printf(a, "cannot be started: %s", strerror(o->code));
    case CHILD_LOST:
        break;
    }
    return "ak-launch ended without a report";
}

/* Variables that pass: they tune allocators, the loader, hwloc or sanitizers. Recorded in meta.json. */
static const char *const kept_prefixes[] = {
    "MALLOC_",        "MIMALLOC_",        "TCMALLOC_",       "TBB_MALLOC_",
    "TLFL_",          "JEMALLOC_",        "GLIBC_TUNABLES=", "LD_LIBRARY_PATH=",
    "HWLOC_",         "AK_COUNTERS_SET=", "AK_SIM",          "ASAN_OPTIONS=",
    "UBSAN_OPTIONS=", "LSAN_OPTIONS=",    "TSAN_OPTIONS=",   "PAPI_",
};

char **child_environment(struct arena *a, struct words *kept)
{
    const char *path = getenv("PATH"), *home = getenv("HOME"), *temporary = getenv("TMPDIR");
    struct words env = {0};
    words_add(a, &env, arena_printf(a, "PATH=%s", path ? path : "/usr/bin:/bin"));
    words_add(a, &env, arena_printf(a, "HOME=%s", home ? home : "/"));
    words_add(a, &env, "LANG=C");
    if (temporary) /* where services of kernels have their folders */
        words_add(a, &env, arena_printf(a, "TMPDIR=%s", temporary));
    for (char **variable = environ; *variable; variable++)
        for (size_t i = 0; i < sizeof kept_prefixes / sizeof *kept_prefixes; i++)
            if (strncmp(*variable, kept_prefixes[i], strlen(kept_prefixes[i])) == 0) {
                words_add(a, &env, *variable);
                words_add(a, kept, *variable);
            }
    words_add(a, &env, NULL);
    return (char **)(uintptr_t)env.word;
}

static bool same_name(const char *x, const char *y)
{
    size_t length = strcspn(x, "=");
    return strncmp(x, y, length + 1) == 0;
}

char **child_environment_with(struct arena *a, const struct words *set)
{
    struct words kept = {0}, env = {0};
    for (char **variable = child_environment(a, &kept); *variable; variable++) {
        bool replaced = false;
        for (size_t i = 0; i < set->count; i++)
            replaced |= same_name(set->word[i], *variable);
        if (!replaced)
            words_add(a, &env, *variable);
    }
    for (size_t i = 0; i < set->count; i++)
        words_add(a, &env, set->word[i]);
    words_add(a, &env, NULL);
    return (char **)(uintptr_t)env.word;
}
