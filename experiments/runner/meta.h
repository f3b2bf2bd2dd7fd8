/*
 * meta.h - meta.json: under which circumstances a run was made.
 */
#ifndef AK_META_H
#define AK_META_H

#include "fault.h"
#include "machine.h"
#include "places.h"
#include "plan.h"
#include "simulator.h"

#include <jansson.h>

#define SUITE_VERSION "0.1"
#define META_SCHEMA   1

/* "2026-01-31T12:00:00Z", now. */
char *time_stamp(struct arena *);

/* A new run. `command` is the command line, NULL-terminated; of `simulator` nothing is told where no row needs it. */
json_t *meta_make(struct arena *, const struct paths *, const struct plan *, const struct simulator *,
                  const struct registry *, const struct machine *, char **command, struct fault *);
/* Read meta.json of a folder; NULL with AK_USAGE. */
json_t *meta_read(struct arena *, const char *folder, struct fault *);
/* Refuse to go on where sweep, preset, seed, repetitions, machine, an allocator's build or the simulated machine differ
 * from the run's; notes the new start. An allocator that was missing when the run began stays missing. */
bool meta_continue(struct arena *, json_t *meta, const struct plan *, const struct simulator *,
                   const struct registry *, char **command, struct fault *);
const char *meta_text(const json_t *meta, const char *key);
/* True where the description of a kernel says `flag`, of those that meta.json keeps (no_alloc, app, timed). */
bool meta_kernel_is(const json_t *meta, const char *kernel, const char *flag);

#endif
