/*
 * stopping.h - launches of a cell until its interval is narrow enough (ak run --ci-width).
 *
 * The cell's ns per op is looked at after numbers of repetitions that the plan fixes beforehand: the most allowed, and down
 * from it each two thirds of the next. At each look the interval of its median is that of order statistics (the
 * sign test turned around) at 1 - 0.05 / looks: so that all looks together miss no more often than one interval at 95 %
 * may, whichever look the cell ends at (Bonferroni). It ends where the interval's width is at most the wanted share of
 * the median, or where no launch has a time by then; at the last look in any case. The kernel null is compared with nothing,
 * so its times do not count: it ends at the first look.
 *
 * Every decision follows from the rows alone, so that --resume goes on as the run would have, and `ak verify` can tell
 * rows that are missing from rows that were not needed. R gives the intervals of such a run at the same level.
 */
#ifndef AK_STOPPING_H
#define AK_STOPPING_H

#include "fault.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STOPPING_LOOKS_MAX 32
#define STOPPING_LEAST     8 /* repetitions before the first look */

struct stopping {
    double width;      /* of the interval, as a share of the median; 0: no rule, every repetition is run */
    double confidence; /* of the interval at each look */
    uint64_t look[STOPPING_LOOKS_MAX]; /* after how many repetitions */
    size_t looks;
};

/* Looks from `least` repetitions on (later where that gives no interval) up to `most`. False where there is no room for
 * one look. */
bool stopping_plan(struct stopping *, double width, uint64_t least, uint64_t most);
/* The last repetition of a cell. `ns_per_op` by repetition, from 1 at [0], `known` of them; NAN: no time. */
uint64_t stopping_last(const struct stopping *, const double *ns_per_op, uint64_t known);
/* Width of the interval of the median as a share of it, INFINITY where there are too few or no finite numbers. */
double stopping_width(const struct stopping *, const double *ns_per_op, uint64_t known);
/* The interval of the median of sorted numbers at a level; false where they are too few. */
bool order_interval(const double *sorted, size_t count, double confidence, double *low, double *high);

/* As meta.json has it: {rule, width, looks, confidence, at}; null without a rule. */
json_t *stopping_json(const struct stopping *);
/* False where it is neither null nor such. */
bool stopping_read(const json_t *, struct stopping *);

/* What a row of runs.csv tells: wall_ns / ops of one that is ok, else NAN, as of null. Texts, "" where empty. */
double stopping_value(const char *kernel, const char *status, const char *wall_ns, const char *ops);

#endif
