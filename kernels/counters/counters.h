/*
 * counters.h - hardware counters behind one interface.
 *
 * A backend is one file in kernels/counters/, built as build/counters/<name>.so and loaded by the harness
 * only when chosen: a library like PAPI allocates while it is loaded, and must not stir the heap of a run
 * that does not use it. It exports one `const struct counter_backend counter_backend`.
 *
 * Which raw events make up a column is data: kernels/counters/groups/NAME.txt, one file a micro-architecture
 * family. The harness picks the file, hands the backend the event names of its own dialect, and computes the
 * columns from the counts by the file's formulas.
 *
 * Counts are per thread and scoped: open on the worker thread before its baseline, start and stop right
 * around the timed region of the throughput pass, read after it. Nothing is allocated between start and stop.
 */
#ifndef AK_COUNTERS_H
#define AK_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTER_EVENTS_MAX 32
#define COUNTER_REASON_MAX 512

/* What a counter may fill: columns of runs.csv, in their order there, then rows of metrics.csv. */
enum counter_column {
    COUNTER_CYCLES, COUNTER_INSTRUCTIONS, COUNTER_L1D_ACCESS, COUNTER_L1D_MISS, COUNTER_L3_ACCESS,
    COUNTER_L3_MISS, COUNTER_HITM_LOCAL, COUNTER_HITM_REMOTE, COUNTER_DTLB_MISS, COUNTER_MIGRATIONS,
    COUNTER_NATIVE, /* from here on the simulated machine's alone: elsewhere they are not even asked for */
    COUNTER_SIM_TRUE_SHARING = COUNTER_NATIVE, COUNTER_SIM_FALSE_SHARING, COUNTER_SIM_INVALIDATIONS,
    COUNTER_SIM_CROSS_NODE, COUNTER_SIM_DRAM_LOCAL, COUNTER_SIM_DRAM_REMOTE,
    COUNTER_METRICS, /* from here on in metrics.csv */
    COUNTER_SIM_UPGRADES = COUNTER_METRICS, COUNTER_SIM_ZEROED, COUNTER_SIM_STIRRED,
    COUNTER_COLUMNS
};

/* One raw event of one thread after stop. `valid` is false where the event could not be opened, read
 * negative or never ran; `value` is then meaningless and the column stays empty. */
struct counter_reading {
    uint64_t value;      /* as counted, not scaled */
    uint64_t enabled_ns; /* time the event was asked for */
    uint64_t running_ns; /* time it was on the hardware; below enabled_ns: multiplexed */
    bool     valid;
};

struct counter_backend {
    const char *name;    /* papi, likwid, perf, sim, none */
    const char *dialect; /* prefix of its events in groups/NAME.txt */
    /* True if the backend can count at all on this machine as this user; else fills `why` with what is
     * missing and what would help, in words. Main thread, before any worker starts. */
    bool (*available)(char why[COUNTER_REASON_MAX]);
    /* Prepare to count `events` (n <= COUNTER_EVENTS_MAX) on every worker. 0, or -1 with `why`.
     * An event that is unknown here is not an error: its readings are invalid, and reason(i) says why. */
    int (*prepare)(const char *const *events, size_t n, unsigned threads, char why[COUNTER_REASON_MAX]);
    /* On the worker itself. open returns 0 or -1 with `why`. start and stop cost as little as they can. */
    int  (*open)(unsigned thread, char why[COUNTER_REASON_MAX]);
    void (*start)(unsigned thread);
    void (*stop)(unsigned thread);
    void (*read)(unsigned thread, struct counter_reading *readings); /* n of them */
    void (*close)(unsigned thread);
    const char *(*reason)(size_t event); /* why event i is invalid; NULL where it counts */
};

/* ---- the harness's side: kernels/harness/counters.c ---- */

/* What a launch's counters came to, summed over threads. */
struct counter_result {
    const char *backend;                 /* what counted; "none" where nothing could */
    char        reason[COUNTER_REASON_MAX]; /* why, where columns are empty; "" if all are there */
    double      value[COUNTER_COLUMNS];
    bool        have[COUNTER_COLUMNS];
    const char *meaning[COUNTER_COLUMNS]; /* what it counts here: demand or prefetch, core or complex */
    char        column_reason[COUNTER_COLUMNS][COUNTER_REASON_MAX];
    uint64_t    enabled_ns, running_ns;  /* summed over threads; both 0 where nothing counted, or without a clock */
    unsigned    columns;                 /* of enum counter_column, those that this backend is asked for */
};

/* Choose and prepare a backend by name: auto, papi, likwid, perf, sim or none. `auto` takes the first that
 * can fill at least one hardware column (papi, likwid, perf), else perf for its software events, else none,
 * and keeps every refusal as the reason. sim is not tried beforehand and its counts are taken as they are: a 0 of a
 * model is a 0. 0, or minus the exit code with `why`: -2 for an unknown name or a
 * malformed groups file (FILE:LINE: what was expected), -3 for a backend demanded by name that cannot count
 * here. Main thread, before the baseline: it loads libraries and probes them in a child process. */
int  counters_choose(const char *name, unsigned threads, char why[COUNTER_REASON_MAX]);
void counters_none(const char *reason); /* instead: nothing counts, and the result gives that reason */
int  counters_open(unsigned thread); /* 0, or -1: its counts are lost, and the result says why */
void counters_start(unsigned thread);
void counters_stop(unsigned thread);
void counters_collect(unsigned thread); /* on the worker, after stop: adds to the result under a lock */
void counters_close(unsigned thread);
const struct counter_result *counters_result(void); /* after every worker collected */

/* For `ak list counters` and `ak doctor`: calls visit once a backend built or known, with why it cannot count
 * (a backend that can may still carry a limit there, such as "software events only"; else ""). Each is probed
 * in a child process, since a broken library must not end the caller. Of sim it says only whether it is built: whether
 * a program can be started in the simulated machine is its starter's knowledge. */
void counters_survey(void (*visit)(const char *name, const char *what, bool can, const char *why, void *user),
                     void *user);

extern const char *const counter_column_name[COUNTER_COLUMNS]; /* as in runs.csv or metrics.csv */

#endif
