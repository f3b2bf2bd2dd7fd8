/*
 * trace.h - the file of a recorded program's allocation events: docs/traces.md has its bytes.
 *
 * A trace is written once, from its first byte to its last, and read through a mapping. trace_open checks all of it, so
 * that nothing read later can be wrong: every checksum, every event, that each object is taken at most once and by an event
 * that can come after the one that made it. Nothing here calls malloc: the replay reads traces in a process whose heap is
 * under test.
 */
#ifndef AK_TRACE_H
#define AK_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "event.h"

#define TRACE_VERSION     1
#define TRACE_UNIT_NS     16        /* unit of the times in an event */
#define TRACE_THREADS_MAX 65535
#define TRACE_BLOCK_MAX   (1u << 20) /* payload of a block of events */
#define TRACE_NOBODY      UINT32_MAX
#define TRACE_SIZE_MAX    (1ull << 57) /* of a block: no process has more addresses */
#define TRACE_TIME_MAX    (UINT64_MAX / TRACE_UNIT_NS) /* of an event, in units: later ones are no number of ns */

struct trace_thread {
    uint64_t events, objects;  /* events: with marks; objects: made, inherited ones too */
    uint32_t born_by;          /* TRACE_NOBODY: the first one, or nobody saw it start */
    uint64_t born_at;          /* after so many events of that thread */
    uint64_t first_block;      /* reading: offset of its first block, 0: none */
};

struct trace_facts {
    uint64_t pid, parent, started_unix_ns, duration_ns;
    uint64_t calls;            /* events that are calls */
    uint64_t unseen;           /* calls that a signal handler made in the middle of another one: not in the trace */
    uint32_t threads;
    char command[1024];        /* words with a blank between; cut */
    char served[512];          /* the object that served malloc while it was recorded */
    char end[128];             /* how the process ended, in words */
};

struct trace_fault {
    bool environment;          /* the file cannot be had; else what it holds is wrong */
    char text[320];            /* "at byte 1234: ..." */
};

/* ---- writing ---- */

struct trace_writer {
    FILE *file;
    uint64_t blocks;
    struct trace_fault *fault;
};

/* Begin with the facts and one entry a thread. Everything returns false with the fault once something failed; the file is
 * the caller's to close and remove. */
bool trace_begin(struct trace_writer *, FILE *, const struct trace_facts *, const struct trace_thread *,
                 struct trace_fault *);
/* A block of whole events of one thread, at most TRACE_BLOCK_MAX bytes; blocks of a thread in their order. `time`: of the
 * last event before it, in units since the recording began; `made`: objects made before it. */
bool trace_events(struct trace_writer *, uint32_t thread, uint64_t time, uint64_t made, uint64_t events,
                  const unsigned char *bytes, size_t length);
bool trace_end(struct trace_writer *);

/* ---- reading ---- */

struct trace {
    struct trace_facts facts;
    struct trace_thread *thread;
    const unsigned char *data;
    size_t size;
};

bool trace_open(struct trace *, const char *path, struct trace_fault *);
void trace_close(struct trace *);

/* Where a thread is in its events. */
struct trace_cursor {
    uint32_t thread;
    uint64_t block;            /* offset of the block at hand */
    const unsigned char *at, *end, *last; /* of what is to be read in it; last: where the event before began */
    uint64_t time, made, events; /* of what was read: time in units, objects made, events */
};

/* Every event of all threads, by time, in an order that the program itself could have had: each thread's in its own
 * order, no object taken before it was made, none of a thread before its birth or after a join of it. Where clocks of
 * CPUs disagree with that, an event's time is that of what it waited for; `time` never falls. The visitor returns false to
 * stop. False where it did. */
typedef bool trace_visit(void *user, const struct trace_cursor *, const struct event *, uint64_t time);
bool trace_walk(const struct trace *, trace_visit *, void *user);

#endif
