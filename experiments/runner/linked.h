/*
 * linked.h - allocators that are linked into static programs, one a kernel, where others are preloaded.
 *
 * The key `linked` of a registry section names their folder (docs/musl.md). Such a program holds one malloc for
 * good: what it has is read from its own table of symbols, before a run and by the program itself in every launch.
 */
#ifndef AK_LINKED_PROGRAMS_H
#define AK_LINKED_PROGRAMS_H

#include "arena.h"
#include "places.h"
#include "plan.h"
#include "registry.h"

struct linked_program {
    const char *kernel, *path;
    const char *build_id, *stamp;
    const char *trouble;  /* why it cannot be used; NULL: it can */
    uint64_t bytes;       /* of the file up to the end of what is loaded: as if it were stripped */
    uint64_t plain_bytes; /* of the same kernel with the C library's own malloc; 0: there is none */
};

/* True if the allocator is of this kind. */
bool linked_is(const struct allocator *);
/* True if what its programs have is the C library's own malloc: a section whose `library` is empty. */
bool linked_is_plain(const struct allocator *);
/* Find its programs: sets found, reason, real (the folder) and program. */
void linked_resolve(struct arena *, const struct paths *, struct allocator *, const char *folder);
/* Its program for a kernel, or NULL. */
const struct linked_program *linked_program(const struct allocator *, const char *kernel);
/* The program that tells of the allocator: that of the probing kernel, else any; NULL where it is none of this kind. */
const struct linked_program *linked_probe(const struct allocator *, const char *probe_kernel);
/* Why rows of that kernel cannot be, or NULL. */
const char *linked_lacks(struct arena *, const struct allocator *, const char *kernel);
/* Of an allocator that was resolved: read what its programs of the plan's kernels hold, and compare their size. */
void linked_inspect(struct arena *, const struct paths *, const struct plan *, struct registry *,
                    struct allocator *);
/* NULL if the program is still the one that was resolved; else what changed. */
const char *linked_changed(struct arena *, const struct allocator *, const char *kernel);

#endif
