/*
 * merged.h - a results folder that holds several runs (ak merge).
 *
 *   runs.csv                 as in any results folder; run_id tells the runs apart
 *   hist.csv timeline.csv metrics.csv matrix.csv   with run_id as a last column, since the same plan gives the same
 *                            row_ids on every machine
 *   meta.json                the list of the runs
 *   parts/RUN_ID/            meta.json, plan.csv and sweep.ini of each, as they were
 */
#ifndef AK_MERGED_H
#define AK_MERGED_H

#include "arena.h"
#include "fault.h"
#include "text.h"

#include <jansson.h>
#include <stdbool.h>

#define MERGED_PARTS  "parts"
#define MERGED_COLUMN ",run_id" /* what the headers of side files end in */

bool folder_is_merged(const char *folder);
/* The folder that holds meta.json, plan.csv and sweep.ini of a run. In the arena. */
const char *merged_part(struct arena *, const char *folder, const char *run_id);
/* The ids of the runs of a merged folder, as its meta.json lists them. False with AK_USAGE. */
bool merged_runs(struct arena *, const char *folder, const json_t *meta, struct words *run_ids,
                 struct fault *);
/* A run_id is a name of a folder: letters, digits, '.', '_' and '-', no dot in front. */
bool run_id_is_name(const char *run_id);

#endif
