/*
 * readings.h - what makes a raw count a number, and what makes it nothing.
 */
#ifndef AK_READINGS_H
#define AK_READINGS_H

#include "counters.h"

/* A count may miss the hardware for this share of its time (start and stop take effect one after the other)
 * before it is called multiplexed. */
#define READING_TOLERANCE 0.01

/* True if one thread's reading stands as counted. Else `why` says what is wrong with it: invalid, negative,
 * never on the hardware, multiplexed, or (for `certain` events, which any code makes happen) a silent zero.
 * */
bool reading_stands(const struct counter_reading *, bool certain, char why[COUNTER_REASON_MAX]);

#endif
