#include <math.h>

#include "histogram.h"

_Static_assert(HIST_SUB >= 100, "a bucket is at most 1 % wide");

void hist_bounds(uint32_t index, uint64_t *lower, uint64_t *upper)
{
    unsigned shift = index < 2 * HIST_SUB ? 0 : (index >> HIST_BITS) - 1;
    uint64_t mantissa = index - ((uint64_t)shift << HIST_BITS);
    *lower = mantissa << shift;
    *upper = (mantissa + 1) << shift;
}

void hist_merge(struct hist *into, const struct hist *from)
{
    for (uint32_t i = 0; i < HIST_BUCKETS; i++)
        into->bucket[i] += from->bucket[i];
    into->samples += from->samples;
    into->sum += from->sum;
    if (from->max > into->max)
        into->max = from->max;
}

double hist_quantile(const struct hist *h, double q)
{
    uint64_t rank = (uint64_t)ceil(q * (double)h->samples), seen = 0;
    uint32_t i = 0;

    while (i + 1 < HIST_BUCKETS && (seen += h->bucket[i]) < rank)
        i++;
    uint64_t lower, upper;
    hist_bounds(i, &lower, &upper);
    double middle = (double)lower + (double)(upper - 1 - lower) / 2.0;
    return middle < (double)h->max ? middle : (double)h->max;
}
