/*
 * calls.h - the system calls of the simulated program that the simulated machine has to know of: threads that wait for
 * each other, memory that comes, goes and is bound to nodes, the core that a thread wants, and what the program says to
 * the machine itself (protocol.h).
 *
 * A plugin sees a call before and after the kernel does, and can neither skip it nor change its result.
 *   A thread that would sleep in a futex sleeps here instead. When it is woken the kernel is asked after all, and must not
 *   let it sleep: if the word still has the value that it waits for, it is changed for the length of the call, which then
 *   fails with EAGAIN. To a program that is a wait that ended early, and it looks again.
 *   Times are simulated. When that of a wait or a sleep has come, the time that the kernel is told is changed to none for the
 *   length of the call, which then ends as one whose time is over.
 *   Calls that QEMU does not know (mbind) or the host refuses (the affinity to a core that it lacks) fail, and yet hold.
 */
#ifndef AK_SIM_CALLS_H
#define AK_SIM_CALLS_H

#include "mode.h"

void calls_init(const struct machine *machine, const struct mode *mode, const struct sim_hello *hello);

void calls_before(unsigned thread, int64_t number, const uint64_t argument[6]);
void calls_after(unsigned thread, int64_t number, int64_t result);

/* QEMU has made a thread, on behalf of the caller's if there is one; and its thread ends. */
void calls_born(unsigned thread);
void calls_died(unsigned thread);

#endif
