/*
 * verify.h - a results folder that is re-checked from its files alone.
 *
 *   cmd_verify.c    the folder, its tables, the order of checks
 *   verify_plan.c   plan.csv, sweep.ini and meta.json against each other, and runs.csv against the plan
 *   verify_sides.c  the side files: lines well-formed, once, of rows that are there
 *   verify_row.c    one row: types, within itself, against its side rows and meta.json
 */
#ifndef AK_VERIFY_H
#define AK_VERIFY_H

#include "arena.h"
#include "columns.h"
#include "csv.h"
#include "fault.h"
#include "text.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The quantiles of runs.csv that hist.csv can tell again. */
struct quantile {
    const char *column;
    double q;       /* 1: the largest sample */
    double samples; /* needed: 100 beyond it */
};
#define QUANTILES 6
extern const struct quantile quantiles[QUANTILES];

/* What the side files hold of one row. */
#define HIST_CALLS 7
#define SIM_MALLOC 5 /* of them */

struct row_sides {
    uint64_t samples
        [HIST_CALLS]; /* of hist.csv, by call (malloc, free, touch, pair, realloc, sim_malloc, sim_free) */
    struct bounds {
        double lower, upper;
    } quantile[QUANTILES], mean;            /* of malloc, as the buckets tell */
    uint64_t rss_max, live_max, usable_max; /* of timeline.csv */
    uint64_t high_water;                    /* rss_high_water_bytes of metrics.csv; 0: not told */
    uint64_t lines[SIDES];
    bool reason[COLUMNS_MAX]; /* metrics.csv says why this column is empty */
    bool no_latency;          /* the plan asks for no latency pass, or the kernel has nothing to time */
};

struct verify {
    struct arena arena;
    const char *folder;
    const char *part;   /* run_id of the run at hand of a merged folder; NULL: the folder is of one run */
    struct words parts; /* all of them */
    json_t *meta;
    struct csv_table plan, runs;
    struct row_sides *sides;  /* by row of runs */
    size_t *by_id;            /* rows of runs, sorted by row_id */
    size_t found;             /* violations */
    size_t rows, ok, planned; /* of all runs */
};

/* Where a file of the folder lies; meta.json, plan.csv and sweep.ini of a merged one lie with their run. */
const char *verify_path(struct verify *, const char *file);

/* Tell one, at a line of a file of the folder (0: the file as a whole). */
void violation(struct verify *, const char *file, unsigned line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Tell one that reading a file came to; the fault is done with. */
void violation_fault(struct verify *, struct fault *);

/* A field of runs.csv by its column; "" where there is none. */
const char *row_field(const struct csv_row *, const char *column);
/* Position in `runs` of the row with this id, or NULL. */
const size_t *verify_find(const struct verify *, const char *row_id);

void verify_meta(struct verify *);
void verify_plan(struct verify *);
void verify_side(struct verify *, enum side);
/* Row `i` of runs.csv; after the side files. */
void verify_row(struct verify *, size_t i);

#endif
