/*
 * execute.h - run the rows of a plan that are not done, and keep what they come to.
 */
#ifndef AK_EXECUTE_H
#define AK_EXECUTE_H

#include "cells.h"
#include "child.h"
#include "fault.h"
#include "places.h"
#include "plan.h"
#include "result.h"
#include "results.h"
#include "share.h"
#include "simulator.h"

struct tally {
    size_t by_status[STATUSES]; /* of this start */
    bool stopped;               /* by interrupts, before the last row */
};

/* Launch row after row, but for those that their cells do not need. False with the fault where a row cannot be kept or nothing can be started. */
bool execute_plan(const struct paths *, const struct simulator *, const struct plan *,
                  const struct run_facts *, struct results *, struct cells *, struct tally *, struct fault *);
/* What to start for a row. False with `why` where it cannot be said. */
bool launch_request(struct arena *, const struct simulator *, const struct planned *, struct child_request *,
                    const char **why);
/* The words that start a row, for people to read; NULL where it cannot be started. */
const char **launch_command(struct arena *, const struct simulator *, const struct planned *);

#endif
