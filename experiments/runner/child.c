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

volatile sig_atomic_t child_interrupts;

static void count_interrupt(int signal_number)
{
    (void)signal_number;
    child_interrupts = child_interrupts + 1;
}

void child_watch_interrupts(void)
{
    struct sigaction action = {.sa_handler = count_interrupt}; /* no SA_RESTART: poll must wake */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
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
static bool spawn_launcher(const char *launcher, const struct child_request *r, int pipes[PIPES][2],
                           pid_t *pid, struct fault *f)
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
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipes[OUT][1], STDOUT_FILENO);
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
}

bool child_run(const char *launcher, const struct child_request *r, struct child_outcome *o, struct fault *f)
{
    *o = (struct child_outcome){.end = CHILD_LOST};
    int pipes[PIPES][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    pid_t pid = -1;
    for (int i = 0; i < PIPES; i++)
        if (pipe2(pipes[i], O_CLOEXEC) != 0) {
            fault_set(f, AK_ENVIRONMENT, "no pipe: %s", strerror(errno));
            goto failed;
        }
    if (!spawn_launcher(launcher, r, pipes, &pid, f))
        goto failed;
    struct pollfd watch[PIPES];
    for (int i = 0; i < PIPES; i++) {
        close(pipes[i][1]);
        pipes[i][1] = -1;
        watch[i] = (struct pollfd){pipes[i][0], POLLIN, 0};
    }

    struct launch_report report = {0};
    size_t reported = 0;
    bool overflow = false, asked = false;
    const uint64_t start = now_ms();
    uint64_t deadline = r->timeout_ms ? start + r->timeout_ms + LAUNCHER_GRACE_MS : UINT64_MAX;
    int open_pipes = PIPES;
    while (open_pipes > 0) {
        uint64_t now = now_ms();
        if (now >= deadline)
            break;
        if (!asked && (overflow || (r->interrupts_max && child_interrupts >= r->interrupts_max))) {
            kill(pid, SIGTERM);
            asked = true;
            deadline = now + LAUNCHER_GRACE_MS;
        }
        uint64_t wait =
            deadline - now < 1000 ? deadline - now : 1000; /* wakes for a signal that came before poll */
        if (poll(watch, PIPES, (int)wait) < 0)
            continue; /* EINTR: look at the interrupts */
        for (int i = 0; i < PIPES; i++) {
            if (!watch[i].revents)
                continue;
            static char bytes[READ_BYTES]; /* ak has one thread; its stack may be small */
            ssize_t got = read(watch[i].fd, bytes, sizeof bytes);
            if (got < 0 && (errno == EINTR || errno == EAGAIN))
                continue;
            if (got <= 0) {
                watch[i].fd = -1; /* poll passes over it */
                open_pipes--;
                if (i == REPORT && now_ms() + DRAIN_MS < deadline)
                    deadline = now_ms() + DRAIN_MS;
            } else if (i == REPORT && reported + (size_t)got <= sizeof report) {
                memcpy((char *)&report + reported, bytes, (size_t)got);
                reported += (size_t)got;
            } else if (i == ERR) {
                keep_tail(&o->err, bytes, (size_t)got);
            } else if (i == OUT && !overflow) {
                overflow = o->out.length + (size_t)got > r->out_max;
                if (!overflow)
                    buffer_add(&o->out, bytes, (size_t)got);
            }
        }
    }
    if (reported < sizeof report)
        kill(pid, SIGKILL); /* the kernel follows by its parent-death signal */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    orphans_end();
    if (reported == sizeof report)
        end_from_report(o, &report);
    else if (asked)
        o->end = CHILD_STOPPED; /* it was asked before it could listen */
    if (overflow)
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
        close_pipe(pipes[i]);
    if (r->interrupts_max != 1 || o->end != CHILD_STOPPED || !child_interrupts)
        return true;
    child_outcome_free(o); /* what it would have said is not known: no word about it is true */
    return fault_set(f, AK_FAILED, "interrupted");
failed:
    for (int i = 0; i < PIPES; i++)
        close_pipe(pipes[i]);
    return false;
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
    const char *path = getenv("PATH"), *home = getenv("HOME");
    struct words env = {0};
    words_add(a, &env, arena_printf(a, "PATH=%s", path ? path : "/usr/bin:/bin"));
    words_add(a, &env, arena_printf(a, "HOME=%s", home ? home : "/"));
    words_add(a, &env, "LANG=C");
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
