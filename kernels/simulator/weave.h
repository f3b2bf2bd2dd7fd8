/*
 * weave.h - what each thread did in its turn, and how the turns of a round become one order of accesses.
 *
 * Threads run one after another, for some hundred accesses each, and log what they do. At the end of a round the logs
 * are played to the model side by side, one access of each in turn, as if the threads had run at once. So two threads
 * that write to one line meet there at every access, and not only when a turn ends.
 *
 * The model has a thread of its own, which plays one round while the program runs the next.
 *
 * What this cannot show: a lock that is taken and let go within a turn is never contended.
 */
#ifndef AK_SIM_WEAVE_H
#define AK_SIM_WEAVE_H

#include "model.h"

/* An entry of a log: an address in the lower 48 bits, above it log2 of the size (3 bits) and the kind. */
enum entry_kind {
    ENTRY_LOAD = MODEL_LOAD,
    ENTRY_STORE = MODEL_STORE,
    ENTRY_ATOMIC = MODEL_ATOMIC,
    ENTRY_START,  /* of the timed region */
    ENTRY_STOP,
    ENTRY_CORE,   /* the thread moves to the core that the address names */
    ENTRY_FORGET, /* the next entry is a number of bytes */
    ENTRY_BIND,   /* so are the next two: bytes, and a mask of nodes */
};
#define ENTRY_SHIFT_AT 48
#define ENTRY_KIND_AT  51
#define ENTRY_ADDRESS  ((1ull << ENTRY_SHIFT_AT) - 1)

struct weave_log {
    uint64_t *entry;
    uint32_t count;
    uint32_t limit;      /* the turn ends when `count` reaches it */
    uint64_t *other;     /* a second buffer: one is filled while the other one is played */
    uint64_t random;     /* state of the generator of turn lengths */
    uint32_t core;       /* of the model's side: where the thread is, as of what has been played */
};

/* Turns of about `quantum` entries. */
void weave_init(struct model *model, uint32_t quantum, uint64_t seed);

/* Before the first turn: the model's thread starts, on any CPU but `cpu` if there is another. */
void weave_start(unsigned cpu);

extern struct weave_log weave_logs[];
static inline struct weave_log *weave_log(unsigned thread)
{
    return &weave_logs[thread];
}

/* A new thread on a core. */
void weave_add(unsigned thread, unsigned core);

/* A turn starts: how long it is, is random, since turns of one length run in step with loops of the program. */
void weave_turn(unsigned thread);

/* The turn lengths of a thread start again from the seed. */
void weave_reseed(unsigned thread);

/* A round ends: the logs of all threads go to the model, and are empty. */
void weave_round(void);

/* What the core of a thread has counted, up to the last round. */
const struct model_counts *weave_counts(unsigned thread);

static inline bool weave_full(const struct weave_log *log)
{
    return log->count >= log->limit;
}

static inline void weave_put(struct weave_log *log, enum entry_kind kind, unsigned shift, uint64_t address)
{
    log->entry[log->count++] =
        (address & ENTRY_ADDRESS) | (uint64_t)shift << ENTRY_SHIFT_AT | (uint64_t)kind << ENTRY_KIND_AT;
}

#endif
