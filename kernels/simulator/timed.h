/*
 * timed.h - the mode that goes by simulated time: the core with the smallest local clock runs next.
 *
 * A clock counts cycles: one an instruction, and what memory costs beyond a hit of the first level. Every access goes to
 * the model at once. A thread goes on, while no other is before it, and beyond that
 *   - until an access that other threads may have to do with: before an atomic instruction, after one that got a line
 *     from another core's cache, at a PAUSE or a system call of futexes
 *   - or for `slack` cycles at most
 * The smaller the slack, the closer the order is to that of the clocks, and the slower the simulation.
 *
 * What a thread did ahead of the others, in the slack or before it met an instruction that orders it, they see too early.
 * So each line remembers when it was last stored to, and who gets it from another core goes on from there: no data is
 * read before it was written.
 *
 * Waiting takes time: who is woken goes on at the time of who wakes it. So a lock is contended when others want it
 * while it is held, and a spin loop spins for as long as the lock's holder takes.
 */
#ifndef AK_SIM_TIMED_H
#define AK_SIM_TIMED_H

#include "mode.h"
#include "turns.h"

struct timed_thread {
    uint64_t clock;   /* without the instructions since `counted` */
    uint64_t counted; /* instructions of all threads when the turn began */
    uint64_t limit;   /* clock of the next other thread: beyond it this one is late */
    uint32_t core;
    uint32_t
        account; /* the thread for which instructions are counted: itself, or in whose region it was made */
    bool counting;
    uint64_t started;              /* the region */
    uint64_t cycles, instructions; /* of all regions */
    uint64_t first, last;          /* clock at which the first region began, and the last one ended */
    uint64_t random;               /* of the seed and the thread */
};

/* When a line was last stored to; a line that comes to the same place overwrites it. */
#define TIMED_STAMPS (1 << 16)
struct timed_stamp {
    uint64_t line, clock;
};

extern struct timed_stamp timed_stamp[TIMED_STAMPS];
extern struct timed_thread timed_thread[TURNS_MAX];
extern struct mode_setting timed_setting;

/* Lets those run that are before the thread; returns at its next turn. */
void timed_turn_over(unsigned thread);

/* A random number, by the seed: xorshift. */
static inline uint64_t timed_draw(struct timed_thread *t)
{
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return t->random;
}

static inline uint64_t timed_clock(const struct timed_thread *t)
{
    return t->clock + (*timed_setting.instructions - t->counted);
}

/* Up to a sixteenth of the latency more or less, by the seed. Without it threads that wait for one another run in step, and
 * who gets a lock hangs on a cycle more or less anywhere. */
static inline int32_t timed_jitter(struct timed_thread *t, uint32_t latency)
{
    uint32_t most = latency / 16;
    return (int32_t)(timed_draw(t) % (2 * most + 1)) - (int32_t)most;
}

static inline void timed_not_before(struct timed_thread *t, uint64_t clock)
{
    uint64_t now = timed_clock(t);
    t->clock += now < clock ? clock - now : 0;
}

/* Before an atomic instruction. */
static inline void timed_meet(unsigned thread)
{
    if (timed_clock(&timed_thread[thread]) > timed_thread[thread].limit)
        timed_turn_over(thread);
}

static inline void timed_access(unsigned thread, enum model_kind kind, unsigned shift, uint64_t address)
{
    struct timed_thread *t = &timed_thread[thread];
    uint32_t latency = model_access(timed_setting.model, t->core, address, 1u << shift, kind);
    bool met = latency >= timed_setting.machine.cache_local; /* a hit of the L3 costs less */
    if (latency > timed_setting.machine.l1.latency) {
        latency += timed_jitter(t, latency);
        t->clock += latency - timed_setting.machine.l1.latency;
    }
    uint64_t line = address / MACHINE_LINE;
    struct timed_stamp *stamp = &timed_stamp[line % TIMED_STAMPS];
    if (latency > timed_setting.machine.l1.latency && stamp->line == line)
        timed_not_before(t, stamp->clock + latency);
    uint64_t clock = timed_clock(t);
    if (kind != MODEL_LOAD)
        *stamp = (struct timed_stamp){line, clock};
    if (__builtin_expect(clock > t->limit && (met || clock - t->limit > timed_setting.quantum), 0))
        timed_turn_over(thread);
}

#endif
