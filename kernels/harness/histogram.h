/*
 * histogram.h - a log-linear latency histogram: each octave is cut into 128 equal buckets, so a bucket is at most
 * 1/128 = 0.78 % wide relative to its lower bound; values below 128 have a bucket each. Adding costs a count of
 * leading zeros, a shift and an increment. (The layout is that of HdrHistogram, G. Tene; written anew.)
 *
 * Owner: one thread a histogram while it records; merged by the main thread after the workers parked.
 */
#ifndef AK_HISTOGRAM_H
#define AK_HISTOGRAM_H

#include <stdint.h>

#define HIST_BITS    7u
#define HIST_SUB     (1u << HIST_BITS)
#define HIST_OCTAVES 36u /* up to 2^36 ticks: more than 20 s; larger values go into the last bucket */
#define HIST_BUCKETS (HIST_SUB * (HIST_OCTAVES - HIST_BITS + 1))

struct hist {
    uint64_t samples, sum, max;
    uint32_t bucket[HIST_BUCKETS];
};

static inline uint32_t hist_index(uint64_t value)
{
    if (value < HIST_SUB)
        return (uint32_t)value;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - HIST_BITS;
    uint32_t index = (shift << HIST_BITS) + (uint32_t)(value >> shift);
    return index < HIST_BUCKETS ? index : HIST_BUCKETS - 1;
}

static inline void hist_add(struct hist *h, uint64_t value)
{
    h->bucket[hist_index(value)]++;
    h->samples++;
    h->sum += value;
    if (value > h->max)
        h->max = value;
}

/* Bounds of a bucket in the unit of the values: [lower, upper). */
void hist_bounds(uint32_t index, uint64_t *lower, uint64_t *upper);
void hist_merge(struct hist *into, const struct hist *from);
/* The value at quantile q in (0, 1): the middle of the bucket that holds the sample of rank ceil(q * samples),
 * never above the maximum. Undefined for an empty histogram. */
double hist_quantile(const struct hist *h, double q);

#endif
