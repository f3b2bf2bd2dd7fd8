/*
 * committed.h - whether the side files still hold what committed rows wrote.
 *
 * A row's side lines are on disk before the row itself, so no death of ak can leave less; a copy that was cut, or a
 * disk, can. Going on would hide that for good.
 */
#ifndef AK_COMMITTED_H
#define AK_COMMITTED_H

#include "fault.h"

#include <stdbool.h>

/* Compare runs.csv of the folder with hist.csv, timeline.csv and metrics.csv. False with AK_USAGE, which names the
 * first row that lacks something. A torn last line counts as not there. */
bool committed_rows_whole(const char *folder, struct fault *);

#endif
