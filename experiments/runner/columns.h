/*
 * columns.h - the columns of runs.csv, in their order (experiments/schema.md says what they mean), and of
 * the side files. The one list that the runner writes by and `ak verify` checks by.
 */
#ifndef AK_COLUMNS_H
#define AK_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

enum column_type {
    COLUMN_TEXT,
    COLUMN_COUNT,  /* a whole number from 0 */
    COLUMN_SIGNED, /* a whole number */
    COLUMN_NS,     /* three decimals */
    COLUMN_RATE,   /* three decimals */
    COLUMN_RATIO,  /* 0..1, six decimals */
    COLUMN_LOAD,   /* two decimals */
};

enum column_role {
    ROLE_RUNNER,   /* the runner writes it */
    ROLE_PLANNED,  /* the plan knows it, the kernel confirms it; stays in rows that are not ok */
    ROLE_SERVED,   /* what served malloc; stays in rows of a wrong allocator, where it tells which */
    ROLE_MEASURED, /* the kernel measured it; empty in rows that are not ok */
};

struct column {
    const char *name;
    enum column_type type;
    enum column_role role;
    const char *unit; /* as experiments/schema.md has it */
};

#define COLUMNS_MAX 96
extern const struct column columns[];
extern const size_t column_count;

/* Position of a column of runs.csv, or -1. */
int column_find(const char *name);

/* Whether a text that is not empty is what the column's type may hold: decimal digits, in range, no exponent. */
bool column_fits(const struct column *, const char *text);
/* Decimal digits, with a point or a sign where these may be. */
bool text_is_number(const char *text, bool may_be_negative, bool decimals);

/* What a counter backend counts, hardware events first. Where these are empty, counters_reason says why. */
#define COUNTED_COLUMNS  13
#define HARDWARE_COLUMNS 10
extern const char *const counted_columns[COUNTED_COLUMNS];
bool column_is_counted(const char *name);

/* The side files: name and header. */
enum side { SIDE_HIST, SIDE_TIMELINE, SIDE_METRICS, SIDE_MATRIX, SIDES };
struct side_file {
    const char *file, *header;
    size_t columns;
};
extern const struct side_file side_files[SIDES];

enum status {
    STATUS_OK,
    STATUS_CRASH,
    STATUS_TIMEOUT,
    STATUS_OOM,
    STATUS_WRONG_ALLOCATOR,
    STATUS_VERIFY_FAILED,
    STATUS_SKIPPED,
    STATUS_ERROR,
    STATUSES
};
extern const char *const status_names[STATUSES];
/* STATUSES if it is none. */
enum status status_find(const char *name);

#endif
