/*
 * compare_stats.h - ratios of paired launches: their median, its interval, and how many more launches would tell.
 *
 * A pair is one round: one launch under an allocator and one under the default, close in time. Its log ratio is
 * taken; the estimate is the median of them, the interval that of order statistics (the sign test turned around) at
 * 95 %, which holds however the times are distributed. Fewer than six pairs have none: six are the fewest whose
 * extremes reach 95 %.
 */
#ifndef AK_COMPARE_STATS_H
#define AK_COMPARE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RATIO_CONFIDENCE 0.95
#define RATIO_METHOD     "median of paired ratios, exact order statistics"
#define PAIRS_LEAST      6
#define PAIRS_TRIMMED    9 /* below it the interval reaches from the least ratio to the greatest */

struct ratio {
    size_t pairs;
    double value;     /* NAN without a pair */
    double low, high; /* NAN where there are too few pairs */
    double spread;    /* standard deviation of the log ratios; NAN below two pairs */
};

/* Median of the finite ones; NAN where there is none. Sorts `value`. */
double median_of(double *value, size_t count);

/* By round; a round counts where both are finite and above 0. */
struct ratio ratio_of(const double *mine, const double *base, size_t rounds);

/* How many more pairs until the interval leaves out `bound` (a ratio), if the estimate and the spread stay as they are:
 * the interval of a median of n normal values is about 1.96 * 1.2533 * spread / sqrt(n) to either side. At least as
 * many as the first interval takes; UINT64_MAX where nobody would wait for so many. */
#define PAIRS_MOST 10000
uint64_t ratio_pairs_needed(const struct ratio *, double bound);

#endif
