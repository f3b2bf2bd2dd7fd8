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

#include <stdbool.h>

#define MERGED_PARTS  "parts"
#define MERGED_COLUMN ",run_id" /* what the headers of side files end in */

bool folder_is_merged(const char *folder);

#endif
