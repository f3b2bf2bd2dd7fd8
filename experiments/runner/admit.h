/*
 * admit.h - does each kernel take what a plan asks of it?
 *
 * Ranges of single values are in a kernel's description; what does not go together (a start above its end) only the
 * kernel knows. It is asked by --check, one short launch a block, so that a slip in a sweep is a line before the first
 * row and not an error in every row.
 */
#ifndef AK_ADMIT_H
#define AK_ADMIT_H

#include "fault.h"
#include "places.h"
#include "plan.h"

#include <stdbool.h>

/* False with AK_USAGE and the place in the sweep where a kernel refuses its options. Blocks of which every row is
 * skipped, and kernels that do not offer --check, are not asked. */
bool plan_admit(const struct paths *, const struct plan *, struct fault *);

#endif
