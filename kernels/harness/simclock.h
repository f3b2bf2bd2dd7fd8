/*
 * simclock.h - the clock of the simulated machine, in timed mode: how long calls took on it, and how long a pass.
 *
 * Calls are marked (simulator/protocol.h) and the machine itself keeps what they took, so every one of a pass is timed:
 * that costs no simulated time and no access to memory. Between the marks is the call as its caller sees it, with the
 * instruction `call`; an empty function, timed the same way, is the floor of what can be seen.
 */
#ifndef AK_SIMCLOCK_H
#define AK_SIMCLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "simulator/protocol.h"

struct simclock {
    bool   there;         /* false in weave mode and outside the simulated machine */
    double ns_per_cycle;
    struct sim_times times; /* after simclock_read */
};

extern struct simclock simclock;

/* After the back end has begun. */
void simclock_find(void);
/* Times empty calls, and fetches all times. Main thread, after the workers. */
void simclock_read(void);

/* What serves, timed; calloc and aligned_alloc count as malloc. */
void *marked_malloc(size_t size);
void  marked_free(void *block);
void *marked_calloc(size_t count, size_t size);
void *marked_aligned_alloc(size_t align, size_t size);

#endif
