#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "accounting.h"
#include "kernel.h"
#include "memory.h"
#include "windows.h"

#define STEAL_MOST       0.05 /* of the machine's CPU time; the analysis calls a launch noisy from here, too */
#define FOREIGN_MOST     0.10
#define INVOLUNTARY_MOST 2.0  /* times the calmest window's */
#define INVOLUNTARY_FEW  0.05 /* a request: fewer disturb nothing, whatever other windows have */
#define TICKS_LEAST      100  /* of a window, over all CPUs: then a share of 0.05 is five of them */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* user nice system idle iowait irq softirq steal */
static void machine_read(struct mark *m)
{
    enum { IDLE = 3, IOWAIT = 4, STEAL = 7, FIELDS = 8 };
    char text[256];

    if (proc_read("/proc/stat", text, sizeof text) <= 0 || strncmp(text, "cpu ", 4) != 0)
        return;
    char *at = text + 4;
    for (unsigned i = 0; i < FIELDS; i++) {
        uint64_t ticks = strtoull(at, &at, 10);
        m->ticks += ticks;
        m->busy += i == IDLE || i == IOWAIT || i == STEAL ? 0 : ticks;
        m->steal = ticks;
    }
}

/* CPU time of a process of one thread, exact to the slice it is in; -1: it is gone, or cannot be read. */
static int64_t process_ns(pid_t pid)
{
    char path[64], text[128];
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    return proc_read(path, text, sizeof text) > 0 ? (int64_t)strtoll(text, NULL, 10) : -1;
}

/* Server processes of PostgreSQL come with connections, which are there before the first mark. */
static int64_t family_read(const struct family *f)
{
    char path[64], text[16384];
    int64_t load = process_ns(f->load), first = process_ns(f->postmaster), sum = load + first;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)f->postmaster, (int)f->postmaster);
    if (load < 0 || first < 0 || proc_read(path, text, sizeof text) <= 0)
        return -1;
    for (char *at = text, *end; *at != '\0'; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        int64_t ns = end > at ? process_ns(pid) : 0;
        sum += ns > 0 ? ns : 0;
        if (end == at)
            break;
    }
    return sum;
}

struct mark mark_now(const struct family *f)
{
    struct mark m = {0};
    int64_t family = family_read(f);
    struct thread_account own = account_of_process();

    machine_read(&m);
    m.cpu_ns = own.user_ns + own.sys_ns;
    m.involuntary = own.involuntary;
    m.family_ns = family < 0 ? -1 : family + own.cpu_ns;
    m.ns = now_ns();
    return m;
}

/* ---- what they came to ---- */

/* A value, or why there is none. */
struct figure {
    double value;
    const char *why;
};

static struct figure machine_share(const struct window *w, double ticks)
{
    uint64_t all = w->to.ticks - w->from.ticks;
    if (w->from.ticks == 0)
        return (struct figure){0, "/proc/stat cannot be read"};
    if (all < TICKS_LEAST)
        return (struct figure){0, "the window has too few clock ticks of /proc/stat"};
    return (struct figure){ticks / (double)all, NULL};
}

/* What ran on the machine less what ran of ours. Ticks are sampled: it may come out a little below zero. */
static struct figure foreign_share(const struct window *w)
{
    double tick_ns = 1e9 / (double)sysconf(_SC_CLK_TCK),
           ours = (double)(w->to.family_ns - w->from.family_ns) / tick_ns;

    if (w->from.family_ns < 0 || w->to.family_ns < 0)
        return (struct figure){
            0,
            "the CPU time of the launch's programs cannot be read (CONFIG_SCHED_INFO, CONFIG_PROC_CHILDREN)"};
    return machine_share(w, (double)(w->to.busy - w->from.busy) - ours);
}

static double switches(const struct window *w)
{
    return (double)(w->to.involuntary - w->from.involuntary) / (double)w->requests;
}

static double switches_least(const struct window *w, unsigned windows)
{
    double least = switches(w);
    for (unsigned i = 1; i < windows; i++)
        least = switches(&w[i]) < least ? switches(&w[i]) : least;
    return least;
}

static void put(unsigned number, const char *name, const char *unit, struct figure f)
{
    char metric[48];
    snprintf(metric, sizeof metric, "window%u_%s", number, name);
    ak_metric(metric, unit, f.value, f.why);
}

void windows_report(const struct window *window, unsigned windows)
{
    double least = switches_least(window, windows);

    for (unsigned i = 0; i < windows; i++) {
        const struct window *w = &window[i];
        struct figure steal = machine_share(w, (double)(w->to.steal - w->from.steal)),
                      foreign = foreign_share(w);
        double often = switches(w);
        bool calm = often <= INVOLUNTARY_FEW || often <= INVOLUNTARY_MOST * least;
        bool disturbed = !calm || (steal.why == NULL && steal.value > STEAL_MOST) ||
                         (foreign.why == NULL && foreign.value > FOREIGN_MOST);
        const char *unknown = steal.why ? steal.why : foreign.why; /* calm by what is known is not enough */
        put(i + 1, "ops_per_s", "1/s",
            (struct figure){(double)w->requests * 1e9 / (double)(w->to.ns - w->from.ns), NULL});
        put(i + 1, "cpu_ns_per_op", "ns",
            (struct figure){(double)(w->to.cpu_ns - w->from.cpu_ns) / (double)w->requests, NULL});
        put(i + 1, "steal_ratio", "0..1", steal);
        put(i + 1, "foreign_ratio", "0..1", foreign);
        put(i + 1, "involuntary_per_op", "1/op", (struct figure){often, NULL});
        put(i + 1, "disturbed", "", (struct figure){disturbed, disturbed ? NULL : unknown});
    }
}
