/*
 * cells.h - what a run knows of each cell's launches, to tell which of those to come are needed (stopping.h).
 */
#ifndef AK_CELLS_H
#define AK_CELLS_H

#include "fault.h"
#include "plan.h"
#include "result.h"

#include <stdbool.h>
#include <stddef.h>

struct cells {
    const struct plan *plan;
    size_t *first; /* cell of a block's first member, by block */
    size_t count;
    double *ns_per_op; /* by cell and repetition; NAN: no time */
};

/* Learn from the folder's runs.csv; without a rule there is nothing to learn. */
bool cells_open(struct arena *, struct cells *, const struct plan *, const char *folder, struct fault *);
/* A launch that was kept. */
void cells_take(struct cells *, const struct planned *, const struct result *);
/* Whether a planned launch is still needed; all of lower repetitions are done or were not needed. */
bool cells_need(const struct cells *, const struct planned *);
/* Cells whose last interval was narrow enough, of those that are compared: all but the kernel null's. */
size_t cells_narrow(const struct cells *, size_t *compared);
/* The width of each other one, a line a cell, `most` of them. */
void cells_print_wide(const struct cells *, size_t most);

#endif
