/* map.h - from an address to its span.
 *
 * Two levels: the root has one entry per 4 GiB of the 48-bit user address space (512 KiB of bss, of
 * which a process touches a page or two), a leaf one entry per granule of such a part (512 KiB
 * mapped on demand, likewise touched by page). No reservation is needed, so the library works under
 * RLIMIT_AS.
 *
 * Invariants: an entry is the span that covers the granule while the span is in use, NULL
 * otherwise. A span of one block (large, huge) is entered by its first granule alone. Entries are
 * written under the central lock and read without: whoever may free a block got its address from
 * the thread that got it from malloc, and that orders the entry before the read.
 */
#ifndef TLFL_MAP_H
#define TLFL_MAP_H

#include "base.h"

struct span;

#if UINTPTR_MAX > UINT32_MAX
#define MAP_ADDRESS_BITS 48
#else
#define MAP_ADDRESS_BITS 32
#endif
#define MAP_LEAF_BITS    16
#define MAP_ROOT_BITS    (MAP_ADDRESS_BITS - GRANULE_SHIFT - MAP_LEAF_BITS)
#define MAP_ROOT         ((size_t)1 << MAP_ROOT_BITS)
#define MAP_LEAF         ((size_t)1 << MAP_LEAF_BITS)

struct map_leaf {
    struct span *_Atomic span[MAP_LEAF];
};

_Static_assert(sizeof(struct map_leaf) == MAP_LEAF * sizeof(void *), "leaf entries are plain words");
_Static_assert(GRANULE_SHIFT + MAP_LEAF_BITS == 32, "map_find takes the leaf index from 32 bits");

extern struct map_leaf *_Atomic tlfl__map_root[MAP_ROOT];

/* Span of the granule that `address` lies in, any address; NULL when there is none. */
TLFL_INLINE struct span *map_find(const void *address)
{
    uintptr_t a = (uintptr_t)address;
    uintptr_t root = (uint64_t)a >> (GRANULE_SHIFT + MAP_LEAF_BITS);
    if (TLFL_UNLIKELY(root >= MAP_ROOT))
        return NULL;
    struct map_leaf *leaf = atomic_load_explicit(&tlfl__map_root[root], memory_order_relaxed);
    if (TLFL_UNLIKELY(leaf == NULL))
        return NULL;
    return atomic_load_explicit(&leaf->span[(uint32_t)a >> GRANULE_SHIFT], memory_order_relaxed);
}

/* Makes sure that the leaves for [start, start + bytes) exist; false when the OS refuses one.
 * Under the central lock, as are the two below. */
bool tlfl__map_reserve(const void *start, size_t bytes);

/* Makes sure that the next tlfl__map_reserve of one granule cannot fail. */
bool tlfl__map_spare(void);

/* Enters `span` (or NULL) for `granules` granules from `start` on; the leaves exist. */
void tlfl__map_set(const void *start, size_t granules, struct span *span);

#endif
