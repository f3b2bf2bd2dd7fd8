/* class.h - size classes: multiples of 16 up to 128 bytes, then four per doubling up to 64 KiB.
 *
 * Rounding up to a class wastes at most a fifth of a block above 128 bytes. Larger requests are
 * rounded in the same four steps (class_round), so there is no cliff where classes end.
 */
#ifndef TLFL_CLASS_H
#define TLFL_CLASS_H

#include "base.h"

#define CLASS_FINE_MAX   ((size_t)128)      /* classes are 16 bytes apart up to here */
#define CLASS_FINE       8                  /* number of those */
#define CLASS_MAX        ((size_t)64 << 10) /* largest size that has a class */
#define CLASS_COUNT      44
#define CLASS_DIRECT_MAX ((size_t)1024) /* sizes that the fast path looks up by size / 16 */
#define CLASS_DIRECT     (CLASS_DIRECT_MAX / BLOCK_ALIGN + 1)

/* Spans of 1, 2 or 4 granules: at least 4 blocks in each, so that a span is not its own block. */
#define CLASS_ORDERS 3

/* Index of the top set bit; n is not 0. */
TLFL_INLINE unsigned size_log2(size_t n)
{
    return 63u - (unsigned)__builtin_clzll(n);
}

/* Class of a size of 0 to CLASS_MAX bytes. */
TLFL_INLINE unsigned class_of(size_t size)
{
    if (size <= CLASS_FINE_MAX)
        return size == 0 ? 0 : (unsigned)((size - 1) / BLOCK_ALIGN);
    unsigned top = size_log2(size - 1);
    return CLASS_FINE + (top - 7) * 4 + (unsigned)((size - 1) >> (top - 2) & 3);
}

/* Bytes of a block of a class. */
TLFL_INLINE size_t class_size(unsigned class)
{
    if (class < CLASS_FINE)
        return (class + 1) * (size_t)BLOCK_ALIGN;
    class -= CLASS_FINE;
    return (size_t)(5 + class % 4) << (5 + class / 4);
}

/* log2 of the granules of a span of this class. */
TLFL_INLINE unsigned class_order(unsigned class)
{
    size_t size = class_size(class);
    return size <= GRANULE_SIZE / 4 ? 0 : size <= GRANULE_SIZE / 2 ? 1 : 2;
}

/* Rounds a size above CLASS_MAX and up to PTRDIFF_MAX up to a quarter of a doubling. */
TLFL_INLINE size_t class_round(size_t size)
{
    return size_round(size, (size_t)1 << (size_log2(size - 1) - 2));
}

_Static_assert(GRANULE_SIZE % CLASS_MAX == 0, "a span of the top class needs whole granules");

#endif
