/*
 * latency.h - how long marked calls take on the clock of timed mode (SIM_CALL_BEGINS in protocol.h): all that the core
 * does between the two marks, and what it waits for there, in cycles.
 *
 * Keeping this costs the program nothing: the marks are not counted, and the histograms lie outside of its memory. One
 * for all threads, since one runs at a time.
 */
#ifndef AK_SIM_LATENCY_H
#define AK_SIM_LATENCY_H

#include "protocol.h"

/* The thread is at a mark: SIM_BEGINS, or SIM_ENDS + enum sim_timed. `ahead` instructions after it are on the clock
 * already. */
void latency_mark(unsigned thread, unsigned mark, uint64_t ahead);

void latency_answer(struct hist call[SIM_TIMED_CALLS]);

#endif
