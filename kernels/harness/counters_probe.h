/*
 * counters_probe.h - try a counter backend where it can do no harm: in a child process with a deadline.
 *
 * Counter libraries exit, abort, wait for daemons or write to the terminal. The child loads the backend,
 * counts a piece of work that provokes every hardware event (flushed lines, more pages than a TLB holds, a
 * line passed between CPUs), and reports which events opened and which moved.
 */
#ifndef AK_COUNTERS_PROBE_H
#define AK_COUNTERS_PROBE_H

#include "counters.h"

#define PROBE_DEADLINE_MS 8000 /* AK_COUNTERS_DEADLINE_MS overrides it */

struct probe_report {
    bool     can;    /* loaded, available and prepared */
    uint32_t opened; /* bit i: event i has no reason against it */
    uint32_t moved;  /* bit i: event i read above 0 */
    char     why[COUNTER_REASON_MAX]; /* where !can */
};

/* Probe the module at `path` with n events. The work is done where one of `hardware` (bit i: event i) opens.
 * Main thread. */
void counters_probe(const char *path, const char *const *events, size_t n, uint32_t hardware,
                    struct probe_report *);

/* dlopen a module and find its `counter_backend`. NULL with `why`; *handle is for dlclose. */
const struct counter_backend *counters_load(const char *path, void **handle, char why[COUNTER_REASON_MAX]);

#endif
