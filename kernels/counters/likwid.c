/*
 * likwid.c - counters by LIKWID's marker interface, one region around the timed part of each thread.
 *
 * Spellings (groups/NAME.txt, dialect likwid): EVENT, which gets the next free general counter (PMC0, PMC1,
 * ...), or EVENT:COUNTER for a fixed one (INSTR_RETIRED_ANY:FIXC0).
 *
 * Two ways in. By itself the backend hands LIKWID its events in the environment (LIKWID_EVENTS,
 * LIKWID_THREADS, ...) as likwid-perfctr would, with direct access to /dev/cpu/N/msr. Inside `likwid-perfctr
 * -m` it takes the event set that likwid-perfctr was given, and fills what columns that has. LIKWID counts
 * CPUs, not threads: it needs pinned workers, one a CPU. The access daemon is not used: where it does not
 * answer, LIKWID ends the process.
 */
#include "counters.h"

#include <likwid-marker.h>
#include <likwid.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define REGION         "ak_timed"
#define PMC_MAX        8 /* general counters of the CPUs in groups/ */
#define EVENT_TEXT_MAX 4096

/* index[i] is event i's place in LIKWID's event set, or -1. */
static struct {
    size_t n;
    int index[COUNTER_EVENTS_MAX];
    char why[COUNTER_EVENTS_MAX][COUNTER_REASON_MAX];
    char text[EVENT_TEXT_MAX]; /* LIKWID_EVENTS */
    struct likwid_thread {
        uint64_t started_ns, stopped_ns;
        bool counted;
    } * thread;
    size_t thread_bytes;
} state;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* likwid-perfctr -m is around us. */
static bool inside_perfctr(void)
{
    return getenv("LIKWID_FILEPATH") != NULL && getenv("LIKWID_EVENTS") != NULL &&
           getenv("LIKWID_MODE") != NULL;
}

/* The harness has looked at LIKWID_MODE and /dev/cpu/0/msr before it loaded this module
 * (counters_hopeless.h). */
static bool likwid_available(char why[COUNTER_REASON_MAX])
{
    if (!inside_perfctr() && topology_init() != 0) {
        snprintf(why, COUNTER_REASON_MAX, "LIKWID does not know this processor's topology");
        return false;
    }
    return true;
}

/* The caller's events as one LIKWID event text; those beyond the general counters are refused. */
static void compose_events(const char *const *events)
{
    unsigned pmc = 0;
    size_t used = 0;
    for (size_t i = 0; i < state.n; i++) {
        bool fixed = strchr(events[i], ':') != NULL;
        if (!fixed && pmc == PMC_MAX) {
            snprintf(state.why[i], COUNTER_REASON_MAX,
                     "no general counter is left; AK_COUNTERS_SET picks another set of columns");
            continue;
        }
        char counter[16] = "";
        if (!fixed)
            snprintf(counter, sizeof counter, ":PMC%u", pmc++);
        int n =
            snprintf(state.text + used, EVENT_TEXT_MAX - used, "%s%s%s", used ? "," : "", events[i], counter);
        used += n > 0 && (size_t)n < EVENT_TEXT_MAX - used ? (size_t)n : 0;
    }
    state.text[used] = '\0';
}

static void set_environment(void)
{
    char cpus[EVENT_TEXT_MAX] = "";
    cpu_set_t allowed;
    size_t used = 0;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int c = 0; c < CPU_SETSIZE && used < sizeof cpus - 8; c++)
        if (CPU_ISSET(c, &allowed))
            used += (size_t)snprintf(cpus + used, sizeof cpus - used, "%s%d", used ? "," : "", c);
    setenv("LIKWID_EVENTS", state.text, 1);
    setenv("LIKWID_THREADS", cpus, 1);
    setenv("LIKWID_FILEPATH", "/dev/null", 1);
    setenv("LIKWID_MODE", "0", 1);
}

static void unset_environment(void)
{
    static const char *const names[] = {"LIKWID_EVENTS", "LIKWID_THREADS", "LIKWID_FILEPATH", "LIKWID_MODE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

/* Find each event in the set that LIKWID took. */
static void find_events(const char *const *events)
{
    int group = perfmon_getNumberOfGroups() > 0 ? perfmon_getIdOfActiveGroup() : -1;
    int n = group >= 0 ? perfmon_getNumberOfEvents(group) : 0;
    for (size_t i = 0; i < state.n; i++) {
        size_t length = strcspn(events[i], ":");
        for (int k = 0; k < n; k++) {
            const char *name = perfmon_getEventName(group, k);
            if (name != NULL && strlen(name) == length && strncmp(name, events[i], length) == 0)
                state.index[i] = k;
        }
        if (state.index[i] < 0 && state.why[i][0] == '\0')
            snprintf(state.why[i], COUNTER_REASON_MAX,
                     "not in the event set that LIKWID counts (unknown on this CPU, or not "
                     "asked of likwid-perfctr)");
    }
}

static int likwid_prepare(const char *const *events, size_t n, unsigned threads, char why[COUNTER_REASON_MAX])
{
    if (n > COUNTER_EVENTS_MAX) {
        snprintf(why, COUNTER_REASON_MAX, "more than %d events", COUNTER_EVENTS_MAX);
        return -1;
    }
    if (state.thread != NULL)
        munmap(state.thread, state.thread_bytes);
    memset(&state, 0, sizeof state);
    state.n = n;
    for (size_t i = 0; i < n; i++)
        state.index[i] = -1;
    state.thread_bytes = threads * sizeof *state.thread;
    void *memory = mmap(NULL, state.thread_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        snprintf(why, COUNTER_REASON_MAX, "no memory for %u threads", threads);
        return -1;
    }
    state.thread = memory;
    bool own = !inside_perfctr();
    if (own) {
        compose_events(events);
        set_environment();
    }
    LIKWID_MARKER_INIT;
    if (own)
        unset_environment();
    find_events(events);
    return 0;
}

static int likwid_open(unsigned thread, char why[COUNTER_REASON_MAX])
{
    state.thread[thread].counted = false;
    LIKWID_MARKER_THREADINIT;
    if (LIKWID_MARKER_REGISTER(REGION) == 0)
        return 0;
    snprintf(why, COUNTER_REASON_MAX,
             "LIKWID took no region for this thread: is its CPU among those it counts?");
    return -1;
}

static void likwid_start(unsigned thread)
{
    state.thread[thread].started_ns = now_ns();
    state.thread[thread].counted = LIKWID_MARKER_START(REGION) == 0;
}

static void likwid_stop(unsigned thread)
{
    struct likwid_thread *t = &state.thread[thread];
    t->counted = LIKWID_MARKER_STOP(REGION) == 0 && t->counted;
    t->stopped_ns = now_ns();
}

static void likwid_read(unsigned thread, struct counter_reading *readings)
{
    const struct likwid_thread *t = &state.thread[thread];
    double value[COUNTER_EVENTS_MAX * 2] = {0}, seconds = 0;
    int events = COUNTER_EVENTS_MAX * 2, calls = 0;
    LIKWID_MARKER_GET(REGION, &events, value, &seconds, &calls);
    for (size_t i = 0; i < state.n; i++) {
        int k = state.index[i];
        readings[i] = (struct counter_reading){.valid = t->counted && calls == 1 && k >= 0 && k < events};
        if (!readings[i].valid)
            continue;
        readings[i].value = value[k] < 0 ? UINT64_MAX : (uint64_t)value[k];
        readings[i].enabled_ns = readings[i].running_ns = t->stopped_ns - t->started_ns;
    }
}

static void likwid_close(unsigned thread)
{
    (void)thread; /* LIKWID_MARKER_CLOSE ends it for all threads: left to the process's end */
}

static const char *likwid_reason(size_t event)
{
    return state.index[event] < 0 ? state.why[event] : NULL;
}

extern const struct counter_backend counter_backend;
const struct counter_backend counter_backend = {
    .name = "likwid",
    .dialect = "likwid",
    .available = likwid_available,
    .prepare = likwid_prepare,
    .open = likwid_open,
    .start = likwid_start,
    .stop = likwid_stop,
    .read = likwid_read,
    .close = likwid_close,
    .reason = likwid_reason,
};
