/*
 * places.h - where the suite's parts lie, found from the running program.
 *
 *              source tree                          installed under PREFIX
 *   ak         ROOT/BUILD/bin/ak                    PREFIX/bin/ak
 *   launcher   ROOT/BUILD/bin/ak-launch             PREFIX/bin/ak-launch
 *   kernels    ROOT/BUILD/kernels                   PREFIX/lib/alloc-kernels/kernels
 *   counters   ROOT/BUILD/counters                  PREFIX/lib/alloc-kernels/counters
 *   libraries  ROOT/BUILD/lib                       PREFIX/lib
 *   simulator  ROOT/BUILD/lib/simulator.so          PREFIX/lib/alloc-kernels/simulator.so
 *   linked     ROOT/BUILD/musl/kernels              PREFIX/lib/alloc-kernels/musl
 *   registry   ROOT/allocators/registry.ini         PREFIX/share/alloc-kernels/registry.ini
 *   sweeps     ROOT/experiments                     PREFIX/share/alloc-kernels/experiments
 *
 * ROOT is the nearest folder above ak that holds allocators/registry.ini, else the path that BUILD/root holds.
 */
#ifndef AK_PLACES_H
#define AK_PLACES_H

#include "arena.h"
#include "fault.h"
#include "text.h"

struct paths {
    const char *launcher, *kernels, *counters, *libraries, *simulator, *linked, *registry, *experiments;
    const char *root;    /* of the source tree; NULL where installed */
    const char *program; /* the running ak itself */
};

/* From /proc/self/exe. False (AK_ENVIRONMENT) if the parts are not there. */
bool paths_find(struct arena *, struct paths *, struct fault *);
/* An absolute form of `path` as the user meant it, whether or not it exists. */
char *path_absolute(struct arena *, const char *path);
/* realpath in the arena, or NULL with errno. */
char *path_real(struct arena *, const char *path);
/* The part before the last '/' ("." if none) and the part after it. */
char *path_folder(struct arena *, const char *path);
const char *path_name(const char *path);
bool path_is_file(const char *path);
bool path_is_folder(const char *path);
/* Path of a program on PATH, or NULL. */
char *program_find(struct arena *, const char *name);
/* Names of the files in `folder` that end in `suffix`, without it, sorted. */
struct words names_in(struct arena *, const char *folder, const char *suffix);

#endif
