/*
 * turns.h - who runs: of all threads of the simulated program exactly one at a time, in an order of our own.
 *
 * Every thread has a clock, and of those that can run the one with the smallest runs next; of equals, that with the
 * smallest number. What a clock counts is the mode's matter: turns (weave.h) or cycles (timed.h).
 *
 * A thread is
 *   ABSENT     not there
 *   READY      it can run; `turns_runner` does, all others sleep in turns_join or turns_yield
 *   WAITING    until another one wakes it, or until its clock has come to the end that it set: emulated futexes, sleeps
 *   OUTSIDE    in a system call that may block in the kernel; it joins again when that returns, in an order that is
 *              not ours: counted in `stirred` when another thread could have run meanwhile
 * What is READY or WAITING changes only by who runs, so the order is the same in every run. The lock is for OUTSIDE.
 *
 * A fork stops all threads at the end of a few instructions (QEMU's start_exclusive), and those that sleep between two
 * of them for want of their turn never get there. So for the length of the call they are let through: turns are off,
 * they go on unseen until QEMU stops them, and are astray until their turn comes. Counted in `stirred`, too.
 */
#ifndef AK_SIM_TURNS_H
#define AK_SIM_TURNS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TURNS_MAX   1024 /* threads at a time */
#define TURNS_NEVER UINT64_MAX

/* Turns begin: from here on only `me`, the caller, runs, at clock 0. `advance`, or NULL, is called by the thread that
 * runs whenever the smallest clock of all has grown. */
void turns_begin(unsigned me, void (*advance)(void));

extern bool turns_have_begun; /* set by the thread that all others descend from or wait for */
static inline bool turns_begun(void)
{
    return turns_have_begun;
}

/* The thread that runs, having joined or got its turn. Whoever else comes by a hook has to pass it by, or to join. */
extern _Atomic uint32_t turns_runner;
static inline unsigned turns_running(void)
{
    return atomic_load_explicit(&turns_runner, memory_order_relaxed);
}

/* A thread that the caller has created; it will find its first turn in turns_join. */
void turns_add(unsigned thread, uint64_t clock);

/* The first thing that a new thread does; returns when it is its turn. */
void turns_join(unsigned me);
/* It has to join before it does anything else: it is new, or was let through. */
bool turns_astray(unsigned me);

/* The clock of a thread is now at `clock`; returns when no other that can run is before it. */
void turns_yield(unsigned me, uint64_t clock);

/* The smallest clock of another thread that can run, by then at least; TURNS_NEVER if none can. */
uint64_t turns_rival(unsigned me);

/* The smallest clock of all, and that of a thread as of its last turn. */
uint64_t turns_now(void);
uint64_t turns_clock(unsigned thread);

/* Ends the turns of a thread for good. `gone` is a word that the system sets to zero when the thread is no longer there,
 * or NULL: nobody runs before it has done so. */
void turns_leave(unsigned me, const volatile uint32_t *gone);

/* Waits for a turns_wake of `key`, one that shares a bit with `mask`. False when the smallest clock of all came to
 * `end` (TURNS_NEVER: there is none) before that: the thread goes on at that time. */
bool turns_wait(unsigned me, uint64_t clock, uint64_t key, uint32_t mask, uint64_t end);

/* Wakes up to `most` threads that wait for `key`, those first that came first; none runs before `clock`. */
unsigned turns_wake(uint64_t clock, uint64_t key, uint32_t mask, unsigned most);

/* Around a system call that may block. */
void turns_go_outside(unsigned me, uint64_t clock);
void turns_come_back(unsigned me);

/* Around a fork by the thread that runs. Those are let through for which `between`, a thread's own affair, says that
 * they are between two instructions. After it, in the parent; in the child, in which no other thread is. */
void turns_fork(unsigned me, bool (*between)(unsigned thread));
void turns_forked(unsigned me, bool child);

/* Times that the order was not ours. */
uint32_t turns_stirred(void);

#endif
