/* harden_large.h - large blocks of the variant `hardened`, each between guards.
 *
 * Pages of a block of the family below that is aligned to a granule and larger than any that shares a span:
 *
 *     base           first                                     end               the last page
 *       | guard        | filler, the user's bytes, filler        | guard           | record: struct guarded |
 *
 *   guards  pages that may not be accessed: 1 to GUARDED_FRONT_PAGES in front, a random number, so that the distance of two
 *           blocks is none to rely on; 1 or more behind. The user's bytes end where the guard begins but for their
 *           alignment. What is aligned to more than a page starts where the guard in front ends, and above
 *           GUARDED_ALIGN_MAX there is none in front
 *   filler  holds the pattern, looked at by free, realloc and malloc_usable_size. What realloc made larger has some of
 *           its size more of it (GUARDED_SPARE_SHIFT), so that growth by small steps does not move it each time
 *
 * More than GUARDED_MAX blocks do not get guards, since each takes four mappings of the 65,530 that Linux lets a
 * process have.
 *
 * A free gives the pages back and makes a guard of all until GUARDED_HELD large blocks more were freed, or more than
 * GUARDED_HELD_BYTES: a use after free faults. Then up to GUARDED_IDLE of a class stay as they are, to be used again.
 */
#ifndef TLFL_HARDEN_LARGE_H
#define TLFL_HARDEN_LARGE_H

#include "span.h"

#define GUARDED_MAX         4096
#define GUARDED_FRONT_PAGES 8
#define GUARDED_ALIGN_MAX   (GRANULE_SIZE / 2)
#define GUARDED_SPARE_SHIFT 3
#define GUARDED_HELD        64
#define GUARDED_HELD_BYTES  ((size_t)64 << 20)
#define GUARDED_IDLE        4
#define GUARDED_SIZE_MAX    ((size_t)PTRDIFF_MAX / 2) /* no sum below overflows */

struct guarded {
    char *base;        /* of the block below */
    char *first, *end; /* the pages between the guards */
    char *pointer;     /* the user's */
    size_t size;       /* asked for, at least 1 */
    size_t align;
    bool guards;           /* whether there are any; else all pages are open */
    _Atomic uint64_t seal; /* of pointer, size and whether it is live */
};

/* `size` bytes, zeroed, aligned to `align`, a power of two from BLOCK_ALIGN on, `spare` bytes of filler or more behind
 * them; NULL and ENOMEM when refused. */
void *tlfl__guarded_new(size_t size, size_t align, size_t spare);

/* The record of a live block that is as it should be, or aborts; `span` is what map_find found for `pointer`. */
struct guarded *tlfl__guarded_check(const struct span *span, void *pointer, const char *call);

/* The same, and frees the block. */
void tlfl__guarded_free(const struct span *span, void *pointer, const char *call);

/* Gives a block that was checked another size where it is; false when it does not fit, or too much would be filler. */
bool tlfl__guarded_resize(struct guarded *guarded, size_t size);

/* Gives a block that was checked a lesser size where it is, however much: the pages behind go back and become part of the
 * guard. For a block that has nowhere to move. */
void tlfl__guarded_shrink(struct guarded *guarded, size_t size);

/* Lets go of all freed and idle blocks; true when there were any. */
bool tlfl__guarded_clear(void);

#endif
