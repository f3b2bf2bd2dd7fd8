/*
 * weave.h - the mode that is fast: what each thread did in its turn is logged, and the logs are woven into one order.
 *
 * Threads run one after another, each for a turn of about `quantum` accesses, and log what they do. When all had their
 * turn, which is a round, the logs are played to the model side by side, one access of each in turn, as if the threads
 * had run at once. So two threads that write to one line meet there at every access, and not only when a turn ends. The
 * model has a thread of its own, which plays one round while the program runs the next.
 *
 * The clock of turns.h counts rounds. The seed decides how long the turns of a round are, and which log is first.
 *
 * What this cannot show: a lock that is taken and let go within a turn is never contended.
 */
#ifndef AK_SIM_WEAVE_H
#define AK_SIM_WEAVE_H

#include "mode.h"
#include "turns.h"

/* An entry of a log: an address in the lower 48 bits, above it log2 of the size (3 bits) and the kind. */
enum entry_kind {
    ENTRY_LOAD = MODEL_LOAD,
    ENTRY_STORE = MODEL_STORE,
    ENTRY_ATOMIC = MODEL_ATOMIC,
    ENTRY_START,  /* of the timed region */
    ENTRY_STOP,
    ENTRY_BORN,   /* a new thread is on the core that the address names */
    ENTRY_MOVE,   /* it moves to such a core */
    ENTRY_FORGET, /* the next entry is a number of bytes */
    ENTRY_BIND,   /* so are the next two: bytes, and a mask of nodes */
};
#define ENTRY_SHIFT_AT 48
#define ENTRY_KIND_AT  51
#define ENTRY_ADDRESS  ((1ull << ENTRY_SHIFT_AT) - 1)

struct weave_log {
    uint64_t *entry;
    uint32_t count;
    uint32_t limit;  /* the turn ends when `count` reaches it */
    uint64_t *other; /* a second buffer: one is filled while the other one is played */
    uint32_t core;   /* the model's: where the thread is, as of what has been played */
    bool counted;    /* the model's, too: it had a timed region, or is in one */
    uint32_t account; /* the thread for which instructions are counted: itself, or in whose region it was made */
    bool counting;   /* the program's: in its timed region */
    uint64_t start, instructions; /* of the turn; those of the regions */
};

extern struct weave_log weave_log[TURNS_MAX];

/* The turn is over; returns at the next one. */
void weave_turn_over(unsigned thread);

static inline void weave_put(struct weave_log *log, enum entry_kind kind, unsigned shift, uint64_t address)
{
    log->entry[log->count++] =
        (address & ENTRY_ADDRESS) | (uint64_t)shift << ENTRY_SHIFT_AT | (uint64_t)kind << ENTRY_KIND_AT;
}

static inline void weave_access(unsigned thread, enum model_kind kind, unsigned shift, uint64_t address)
{
    struct weave_log *log = &weave_log[thread];
    if (__builtin_expect(log->count >= log->limit, 0))
        weave_turn_over(thread);
    weave_put(log, (enum entry_kind)kind, shift, address);
}

#endif
