/*
 * turns.h - who runs: of all threads of the simulated program exactly one at a time, in an order of our own.
 *
 * Every thread has a clock, and of those that can run the one with the smallest runs next; of equals, that with the
 * smallest number. What a clock counts is the mode's matter: turns (weave.h) or cycles (timed.h).
 *
 * A thread is
 *   ABSENT     not there
 *   READY      it can run; the one that `turns.running` names does, all others sleep in turns_join or turns_yield
 *   WAITING    until another one wakes it: emulated futexes
 *   OUTSIDE    in a system call that may block in the kernel; it joins again when that returns, in an order that is
 *              not ours: counted in `stirred` when another thread could have run meanwhile
 * What is READY or WAITING changes only by who runs, so the order is the same in every run. The lock is for OUTSIDE.
 */
#ifndef AK_SIM_TURNS_H
#define AK_SIM_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#define TURNS_MAX 1024 /* threads at a time */

/* Turns begin: from here on only `me`, the caller, runs, at clock 0. `advance`, or NULL, is called by the thread that
 * runs whenever the smallest clock of all has grown. */
void turns_begin(unsigned me, void (*advance)(void));

extern bool turns_have_begun; /* set by the thread that all others descend from or wait for */
static inline bool turns_begun(void)
{
    return turns_have_begun;
}

/* A thread that the caller has created; it will find its first turn in turns_join. */
void turns_add(unsigned thread, uint64_t clock);

/* The first thing that a new thread does; returns when it is its turn. */
void turns_join(unsigned me);
bool turns_joined(unsigned me);

/* The clock of a thread is now at `clock`; returns when no other that can run is before it. */
void turns_yield(unsigned me, uint64_t clock);

/* The smallest clock of another thread that can run; UINT64_MAX if none can. */
uint64_t turns_rival(unsigned me);

/* The thread whose turn it is. */
unsigned turns_running(void);

/* The smallest clock of all, and that of a thread as of its last turn. */
uint64_t turns_now(void);
uint64_t turns_clock(unsigned thread);

/* Ends the turns of a thread for good. `gone` is a word that the system sets to zero when the thread is no longer there,
 * or NULL: nobody runs before it has done so. */
void turns_leave(unsigned me, const volatile uint32_t *gone);

/* Waits for a turns_wake of `key`, one that shares a bit with `mask`. False when all threads wait, and this one
 * may give up (`timed`): then its time has come. */
bool turns_wait(unsigned me, uint64_t clock, uint64_t key, uint32_t mask, bool timed);

/* Wakes up to `most` threads that wait for `key`, those first that came first; none runs before `clock`. */
unsigned turns_wake(uint64_t clock, uint64_t key, uint32_t mask, unsigned most);

/* Around a system call that may block. */
void turns_go_outside(unsigned me, uint64_t clock);
void turns_come_back(unsigned me);

/* Times that the order was not ours. */
uint32_t turns_stirred(void);

#endif
