/*
 * results.h - a results folder.
 *
 *   meta.json     written last when the folder is made: without it the folder is not begun
 *   sweep.ini     the sweep as it was read
 *   plan.csv      every planned row, in order
 *   runs.csv      one line a launch; its write commits the row
 *   hist.csv timeline.csv metrics.csv matrix.csv   side files, written before the row that commits them
 *
 * Invariant at any moment, whatever kills ak: runs.csv is a header, whole rows of the plan, each at most
 * once, and at most one torn line; every side row of a committed row is there, others may follow and are
 * dropped on resume. One ak at a time: the folder itself is locked (flock).
 */
#ifndef AK_RESULTS_H
#define AK_RESULTS_H

#include "arena.h"
#include "columns.h"
#include "fault.h"
#include "plan.h"
#include "text.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define FILE_META  "meta.json"
#define FILE_SWEEP "sweep.ini"
#define FILE_PLAN  "plan.csv"
#define FILE_RUNS  "runs.csv"

struct results {
    const char *folder;
    int lock_fd; /* of the folder */
    int runs_fd, side_fd[SIDES];
    bool *done; /* by row of the plan */
    size_t done_count;
};

/* The name of a file that belongs to every results folder, or of one that is about to be. */
bool results_own(const char *name);

enum folder_state { FOLDER_ABSENT, FOLDER_EMPTY, FOLDER_BEGUN, FOLDER_COMPLETE, FOLDER_FOREIGN };
/* BEGUN: an ak was ended while it made the folder; COMPLETE: has meta.json; FOREIGN: holds something else. */
enum folder_state results_state(const char *folder);

/* Make the folder (if need be) and lock it. False: AK_USAGE where another ak holds it, else
 * AK_ENVIRONMENT. */
bool results_lock(struct results *, const char *folder, struct fault *);
/* Write sweep, plan, empty tables and at last meta.json. False with AK_USAGE where runs.csv holds rows already. */
bool results_create(struct results *, const struct plan *, const json_t *meta, struct fault *);
/* Open an existing folder for the same plan: cut a torn line, drop side rows that were never committed, and
 * learn which rows are done. False with AK_USAGE where the plan differs or a file is damaged. */
bool results_resume(struct arena *, struct results *, const struct plan *, struct fault *);
/* False (AK_ENVIRONMENT) where the folder or its runs.csv is no longer where it was: renamed, replaced or removed. */
bool results_in_place(const struct results *, struct fault *);
/* Side rows first, then the row. On failure nothing of the row remains, and the fault says how to go on. */
bool results_append(struct results *, const struct buffer side[SIDES], const struct buffer *row,
                    struct fault *);
/* Replace meta.json. */
bool results_write_meta(const struct results *, const json_t *meta, struct fault *);
void results_close(struct results *);

#endif
