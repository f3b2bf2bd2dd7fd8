/*
 * registry.h - the allocators that there are, and what became of them on this machine.
 *
 * A section of registry.ini is an allocator; its order is the order of display. Keys: label, colour (1 to 8),
 * library (soname, path, or empty for what programs are linked with), linked (a folder of static programs, linked.h;
 * `library` then names what is linked in, and empty is the C library's own), version (a --version-call),
 * metadata (a --metadata-call), required (yes or no), kernels (a list; absent: all), frees (yes or no), compare (yes
 * or no), env (a list of NAME=VALUE for its processes; $ORIGIN in it is the library's folder, as the loader has it),
 * what (one line). The environment overrides a library, or a folder, by AK_LIBRARY_<SECTION in capitals, '-' as '_'>;
 * that counts as named by the user: where it cannot be loaded, nothing is run. A path may hold commas only there.
 */
#ifndef AK_REGISTRY_H
#define AK_REGISTRY_H

#include "arena.h"
#include "fault.h"
#include "kernels.h"
#include "places.h"
#include "text.h"

#include <stdbool.h>
#include <stdint.h>

struct linked_program; /* linked.h */

struct allocator {
    /* from the registry */
    const char *name, *label, *library, *version_call, *metadata_call, *what;
    uint64_t colour;
    bool required;
    bool frees;
    bool compare;         /* `ak compare` takes it without being asked */
    const char *linked;   /* a name below paths->linked, or a path, of its programs; "": it is preloaded */
    struct words kernels; /* it runs in these only; empty: in all */
    unsigned kernels_line;
    struct words env;   /* NAME=VALUE; allocator_resolve puts the folder in place of $ORIGIN */
    struct words parts; /* sonames of further libraries that it consists of: CPU samples there are its own */
    const char *file;   /* where it was declared; "" for name=library on the command line */
    unsigned line;
    const char *get; /* how to get the library where it is not here; "" where nothing is said */
    bool named;      /* by the user, on the command line or by AK_LIBRARY_... */
    /* from allocator_resolve */
    bool found;
    bool present;                   /* not found, but a file is there: it cannot be loaded */
    const char *reason;             /* why not, in words */
    const char *preload;            /* LD_PRELOAD for a kernel; "" for libc */
    const char *directory;          /* where a kernel must start for `preload` to be found; NULL: anywhere */
    const char *expect;             /* --expect: real path, or "libc" */
    const char *real;               /* real path of the object that must serve */
    const char *build_id;           /* as the file has it */
    const char *stamp;              /* file_stamp: tells builds without a build-id apart */
    struct linked_program *program; /* of a linked one: `real` is their folder, build_id and stamp are "" */
    size_t programs;
    /* from allocator_probe: what the library says of itself in a process */
    const char *version;
    const char *trouble; /* why it did not serve; "" if it did */
    const char *machine_id;
};

struct registry {
    struct allocator *allocator;
    size_t count;
    struct words names;
};

/* Add a file's sections to the registry; a section of the same name replaces the earlier one. */
bool registry_read(struct arena *, const char *path, struct registry *, struct fault *);
/* Every kernel that a section lists is there: else AK_USAGE with the nearest name. */
bool registry_check(struct arena *, const struct registry *, const struct words *kernels, struct fault *);
struct allocator *registry_find(const struct registry *, const char *name);
/* Add an allocator that the user named with its library (name=library), or the folder of its static programs. */
bool registry_add_library(struct arena *, struct registry *, const char *name, const char *library,
                          struct fault *);
/* The position of an allocator in the registry, from 0. */
size_t registry_index(const struct registry *, const struct allocator *);

/* Find the library as the loader does, by starting a process with it; an in-tree one in `paths->libraries`
 * first. Sets found, reason and what follows. False only if nothing can be started at all. */
bool allocator_resolve(struct arena *, const struct paths *, struct allocator *, struct fault *);
/* Ask it in a process of the kernel at `probe_kernel`. Sets version, trouble, machine_id. */
bool allocator_probe(struct arena *, const struct paths *, const char *probe_kernel, struct allocator *,
                     struct fault *);
/* NULL if the library, or the static program of that kernel, is still there as it was resolved; else what changed. */
const char *allocator_changed(struct arena *, const struct allocator *, const char *kernel);
bool allocator_runs_in(const struct allocator *, const struct kernel_info *);

#endif
