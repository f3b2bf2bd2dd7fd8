/* counters_probe.c - a backend's trial in a child process. See counters_probe.h. */
#include "counters_probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROBE_PAGES        8192u /* above every second-level TLB listed in groups/ (at most 4096 entries) */
#define PROBE_PAGE         4096u
#define PROBE_STRIDE       2731u /* odd: visits every page once; far: nothing prefetches */
#define PROBE_ROUNDS       400u /* hand-overs of a line between two CPUs */
#define PROBE_PARTNERS     5u
#define SPINS_BEFORE_YIELD 2000u

const struct counter_backend *counters_load(const char *path, void **handle, char why[COUNTER_REASON_MAX])
{
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*handle == NULL) {
        const char *error = dlerror();
        snprintf(why, COUNTER_REASON_MAX, "%s", error ? error : "cannot be loaded");
        return NULL;
    }
    const struct counter_backend *backend = dlsym(*handle, "counter_backend");
    if (backend == NULL) {
        snprintf(why, COUNTER_REASON_MAX, "%s is no counter backend (it has no `counter_backend`)", path);
        dlclose(*handle);
        *handle = NULL;
    }
    return backend;
}

/* ---- the provoking work ---- */

static void flush_line(void *line)
{
#if defined(__x86_64__)
    __builtin_ia32_clflush(line);
#elif defined(__aarch64__)
    __asm__ volatile("dc civac, %0" : : "r"(line) : "memory");
#else
    (void)line;
#endif
}

/* Misses in every cache and every TLB level: touch, flush, then load one line of each page in a far order. */
static void walk_pages(void)
{
    size_t bytes = (size_t)PROBE_PAGES * PROBE_PAGE;
    volatile char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return;
    madvise((void *)pages, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PROBE_PAGES; i++) {
        volatile char *line = pages + i * PROBE_PAGE + i % 64 * 64;
        *line = 1;
        flush_line((void *)line);
    }
    for (size_t i = 0; i < PROBE_PAGES; i++) {
        size_t page = i * PROBE_STRIDE % PROBE_PAGES;
        (void)pages[page * PROBE_PAGE + page % 64 * 64];
    }
    munmap((void *)pages, bytes);
}

/* A line that two CPUs modify in turn: even values belong to the counting thread, odd ones to its partner. */
static _Alignas(128) _Atomic unsigned ball;

struct partner {
    int cpu;
};

static void pin_to(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void play(unsigned parity)
{
    for (unsigned round = 0; round < PROBE_ROUNDS; round++) {
        for (unsigned spins = 0; (atomic_load(&ball) & 1) != parity; spins++)
            if (spins > SPINS_BEFORE_YIELD)
                sched_yield();
        atomic_fetch_add(&ball, 1);
    }
}

static void *partner_main(void *arg)
{
    pin_to(((struct partner *)arg)->cpu);
    play(1);
    return NULL;
}

/* Pass the line to and fro with CPUs near and far, so that some pair crosses a cache, some a socket. */
static void pass_lines(const int *cpu, unsigned cpus)
{
    const unsigned candidate[PROBE_PARTNERS] = {1, cpus / 4, cpus / 2, cpus / 2 + cpus / 4, cpus - 1};
    unsigned last = 0;
    for (unsigned i = 0; i < PROBE_PARTNERS; i++) {
        if (candidate[i] <= last || candidate[i] >= cpus)
            continue;
        last = candidate[i];
        struct partner partner = {.cpu = cpu[last]};
        pthread_t thread;
        if (pthread_create(&thread, NULL, partner_main, &partner) != 0)
            return;
        play(0);
        pthread_join(thread, NULL);
    }
}

/* The CPUs that this process may use, in order; their number. */
static unsigned allowed_cpus(int cpu[CPU_SETSIZE])
{
    cpu_set_t set;
    unsigned n = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &set))
            cpu[n++] = c;
    return n;
}

/* ---- the child ---- */

static void count_work(const struct counter_backend *b, size_t n, struct probe_report *report)
{
    static int cpu[CPU_SETSIZE];
    struct counter_reading readings[COUNTER_EVENTS_MAX];
    unsigned cpus = allowed_cpus(cpu);
    char why[COUNTER_REASON_MAX];
    if (cpus > 0)
        pin_to(cpu[0]);
    if (b->open(0, why) != 0)
        return;
    memset(readings, 0, sizeof readings);
    b->start(0);
    walk_pages();
    if (cpus > 1)
        pass_lines(cpu, cpus);
    b->stop(0);
    b->read(0, readings);
    b->close(0);
    for (size_t i = 0; i < n; i++)
        if (readings[i].valid && readings[i].value > 0)
            report->moved |= UINT32_C(1) << i;
}

static void child(const char *path, const char *const *events, size_t n, uint32_t hardware, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0)
        for (int fd = 0; fd < 3; fd++)
            dup2(null, fd);
    struct probe_report report = {.can = false};
    void *handle = NULL;
    const struct counter_backend *b = counters_load(path, &handle, report.why);
    if (b != NULL && b->available(report.why) && b->prepare(events, n, 1, report.why) == 0) {
        report.can = true;
        for (size_t i = 0; i < n; i++)
            if (b->reason(i) == NULL)
                report.opened |= UINT32_C(1) << i;
            else if (report.why[0] == '\0')
                snprintf(report.why, sizeof report.why, "%s", b->reason(i));
        if ((report.opened & hardware) != 0)
            count_work(b, n, &report);
    }
    ssize_t written = write(out, &report, sizeof report);
    _exit(written == (ssize_t)sizeof report ? 0 : 1);
}

/* ---- the parent ---- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t deadline_ms(void)
{
    const char *text = getenv("AK_COUNTERS_DEADLINE_MS");
    long ms = text != NULL ? strtol(text, NULL, 10) : 0;
    return ms > 0 ? ms : PROBE_DEADLINE_MS;
}

/* True once the whole report came; false at the deadline or when the child ended without one. */
static bool await_report(int in, struct probe_report *report, bool *late)
{
    size_t got = 0;
    int64_t deadline = now_ms() + deadline_ms();
    *late = false;
    while (got < sizeof *report) {
        int64_t left = deadline - now_ms();
        struct pollfd p = {.fd = in, .events = POLLIN};
        int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0) {
            *late = true;
            return false;
        }
        ssize_t n = read(in, (char *)report + got, sizeof *report - got);
        if (n <= 0)
            return false;
        got += (size_t)n;
    }
    return true;
}

void counters_probe(const char *path, const char *const *events, size_t n, uint32_t hardware,
                    struct probe_report *report)
{
    int ends[2];
    *report = (struct probe_report){.can = false};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        snprintf(report->why, sizeof report->why, "no pipe for the probe: %s", strerror(errno));
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(path, events, n, hardware, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        snprintf(report->why, sizeof report->why, "no child process for the probe: %s", strerror(errno));
        close(ends[0]);
        return;
    }
    bool late = false, answered = await_report(ends[0], report, &late);
    close(ends[0]);
    if (!answered)
        kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (answered)
        return;
    *report = (struct probe_report){.can = false};
    if (late)
        snprintf(report->why, sizeof report->why, "gave no answer within %.1f s",
                 (double)deadline_ms() / 1000);
    else if (WIFSIGNALED(status))
        snprintf(report->why, sizeof report->why, "died of signal %d (%s) while it was tried",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(report->why, sizeof report->why, "ended the process with exit code %d while it was tried",
                 WEXITSTATUS(status));
}
