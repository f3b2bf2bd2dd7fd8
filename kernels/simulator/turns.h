/*
 * turns.h - who runs: of all threads of the simulated program exactly one at a time, in an order of our own.
 *
 * A round gives every thread that can run one turn, in the order of their numbers. At the end of a round the caller's
 * hook is called, by the thread whose turn was the last. A turn ends when its thread says so (turns_yield), waits for
 * another one (turns_wait), or ends.
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

/* Turns begin: from here on only `me`, the caller, runs. `round` is called at the end of each round. */
void turns_begin(unsigned me, void (*round)(void));
extern bool turns_have_begun; /* set by the thread that all others descend from or wait for */
static inline bool turns_begun(void)
{
    return turns_have_begun;
}

/* A thread that `me` has created; it will find its first turn in turns_join. */
void turns_add(unsigned thread);

/* The first thing that a new thread does; returns when it is its turn. */
void turns_join(unsigned me);
bool turns_joined(unsigned me);

/* Ends the turn; returns at the next one. */
void turns_yield(unsigned me);

/* Ends the turn of a thread for good. `gone` is a word that the system sets to zero when the thread is no longer there,
 * or NULL: nobody runs before it has done so. */
void turns_leave(unsigned me, const volatile uint32_t *gone);

/* Waits for a turns_wake of `key`, one that shares a bit with `mask`. False when all threads wait, and this one
 * may give up (`timed`): then its time has come. */
bool turns_wait(unsigned me, uint64_t key, uint32_t mask, bool timed);

/* Wakes up to `most` threads that wait for `key`, those first that came first. */
unsigned turns_wake(uint64_t key, uint32_t mask, unsigned most);

/* Around a system call that may block. */
void turns_go_outside(unsigned me);
void turns_come_back(unsigned me);

/* Times that the order was not ours. */
uint32_t turns_stirred(void);

#endif
