/*
 * seal.h - from what recorded processes left (recorder/spool.h) to traces (trace/trace.h).
 */
#ifndef AK_SEAL_H
#define AK_SEAL_H

#include "arena.h"
#include "fault.h"
#include "trace.h"

#include <stdbool.h>
#include <stdint.h>

/* Two readings of the recorder's counter beside the clock tell its rate. */
struct seal_clock {
    uint64_t tick, ns;
};
struct seal_clock seal_clock_now(void);

/* One process image of a recording. */
struct recorded {
    const char *file;                         /* of the spool */
    struct trace_facts facts;                 /* command, served, threads, calls; times only after sealing */
    uint64_t started_tick, last_tick, events; /* events: with marks; last_tick: of the last one, as in them */
    struct trace_thread *thread;
    bool own;       /* the program brings its own malloc: nothing is in it */
    uint32_t ended; /* as spool.h has it */
};

struct recording {
    struct recorded *process; /* in the order in which they began */
    size_t count;
    int error; /* of the first failure; 0: none */
    int failed_pid;
    const char *what;
};
/* What lies in the folder. False where it cannot be read. */
bool recording_read(struct arena *, const char *folder, struct recording *, struct fault *);

/* Write the trace of one process image; `end` says how it ended. A file that is there is replaced once the new one is whole;
 * after a failure there is neither a new file nor part of one. False with AK_ENVIRONMENT, or as output_open. */
bool recorded_seal(struct arena *, struct recorded *, const char *end, const struct seal_clock *from,
                   const struct seal_clock *to, const char *path, struct fault *);

#endif
