/*
 * compare_plot.h - time and peak memory of each allocator as ratios to the default, with their intervals, by gnuplot.
 */
#ifndef AK_COMPARE_PLOT_H
#define AK_COMPARE_PLOT_H

#include "compare.h"
#include "fault.h"

/* Before anything is measured: the file's name ends in .svg or .pdf (AK_USAGE), gnuplot is there (AK_ENVIRONMENT). */
bool compare_plot_check(struct arena *, const char *file, struct fault *);
/* Draw it; the file is there as a whole or not at all. `folder`: for temporary files. */
bool compare_plot(struct arena *, const char *launcher, const char *folder, const struct comparison *,
                  const char *file, struct fault *);

#endif
