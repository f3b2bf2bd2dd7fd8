/*
 * simmachine.h - a machine to simulate: experiments/machines/NAME.ini, or a file of the user's own.
 *
 * The format: docs/counters.md, "Machine files". What the numbers mean, and which of them can be:
 * kernels/simulator/machine.h.
 */
#ifndef AK_SIMMACHINE_H
#define AK_SIMMACHINE_H

#include "arena.h"
#include "fault.h"
#include "places.h"
#include "text.h"

struct simmachine {
    const char *name; /* of the file, without folder and .ini: the same on every host */
    const char *path, *what;
    const char *words; /* the text form of kernels/simulator/machine.h, separated by commas */
    unsigned nodes, cores_per_node, cores;
};

/* Names of the machines that come with the suite, sorted. */
struct words simmachine_names(struct arena *, const struct paths *);
/* Path of a machine given by name, or by path (taken from `folder`); NULL if there is none. */
const char *simmachine_locate(struct arena *, const struct paths *, const char *folder,
                              const char *name_or_path);
/* Read and check. NULL with "file:line: what, expected what" (AK_USAGE). */
struct simmachine *simmachine_read(struct arena *, const char *path, struct fault *);

#endif
