/*
 * launches.h - the launches of a results folder one by one, each with its lines of a side file.
 *
 * Memory grows by some bytes a launch, not with the files. A merged folder (merged.h) holds launches of several runs,
 * whose row_ids may be the same: there run_id tells them apart, in the side files by a last column of that name.
 */
#ifndef AK_LAUNCHES_H
#define AK_LAUNCHES_H

#include "arena.h"
#include "columns.h"
#include "csvstream.h"
#include "fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct launches {
    struct csv_stream runs;
    bool merged;
    int at[COLUMNS_MAX]; /* where runs.csv has a column of the contract; -1: an older ak's folder lacks it */
    const char **column; /* all that it has */
    size_t columns;
    struct words run_ids; /* of meta.json */
    uint64_t *key;        /* of the rows, sorted */
    size_t rows;
};

/* Where the lines of launches begin in a side file. */
struct side_lines {
    struct csv_stream stream;
    enum side side;
    bool merged;
    struct side_group {
        uint64_t key;
        off_t at;
        unsigned line;
        unsigned lines;
    } * group; /* sorted by key */
    size_t groups;
    size_t left; /* lines of the group at hand that were not read */
};

/* Called with each line of a committed row. */
typedef bool side_visit(const struct csv_stream *, void *user, struct fault *);

/* Open runs.csv and read it once: the header, each row once. `torn` tells of a last line that is left out. False with
 * AK_USAGE where the folder is none, lacks columns, or is damaged. */
bool launches_open(struct arena *, struct launches *, const char *folder, struct fault *);
/* The next row; false at the end or with a fault. */
bool launches_next(struct launches *, struct fault *);
/* A field of the row by its position in columns[]; "" where the folder lacks the column. */
const char *launches_field(const struct launches *, int column);
void launches_close(struct launches *);

/* Read a side file once, and call `visit` (may be NULL) with every line of a committed row. */
bool side_lines_open(struct arena *, struct side_lines *, const struct launches *, const char *folder,
                     enum side, side_visit *visit, void *user, struct fault *);
/* Begin with the lines of the row at hand. */
bool side_lines_of(struct side_lines *, const struct launches *, struct fault *);
/* Its next line, in stream.field; false after the last one or with a fault. */
bool side_lines_next(struct side_lines *, struct fault *);
void side_lines_close(struct side_lines *);

/* What tells launches apart in one number. */
uint64_t launch_key(const char *run_id, const char *row_id);

#endif
