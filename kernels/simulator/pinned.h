/*
 * pinned.h - what a simulated program may ask that would differ from run to run: the time, random numbers, which CPU it
 * is on and how many there are. The kernel answers first, and its answer in memory is then replaced.
 */
#ifndef AK_SIM_PINNED_H
#define AK_SIM_PINNED_H

#include <time.h>

#include "machine.h"

void pinned_init(const struct machine *machine, uint64_t seed);

/* The simulated time that a clock of the program has shown; 0: of a time before its start. */
uint64_t pinned_ns(const struct timespec *shown);

/* A system call with these arguments has returned `result`, in a thread on `core` at the simulated time `now_ns`. */
void pinned_answer(int64_t number, const uint64_t argument[6], int64_t result, unsigned core, uint64_t now_ns);

#endif
