/* class.h - size classes: multiples of 16 up to 128 bytes, then four per doubling.
 *
 * Rounding up to a class wastes at most a fifth of a block above 128 bytes (a class that is hardly used
 * may borrow blocks of the power of two above it: heap.h). The SMALL classes, up to
 * 64 KiB, share spans; the LARGE ones, up to 4 MiB, are spans of one block. Sizes above are rounded
 * in the same four steps (class_round), so there is no cliff where classes end.
 */
#ifndef TLFL_CLASS_H
#define TLFL_CLASS_H

#include "base.h"

#define CLASS_FINE_MAX   ((size_t)128)      /* classes are 16 bytes apart up to here */
#define CLASS_FINE       8                  /* number of those */
#define CLASS_MAX        ((size_t)64 << 10) /* largest size that shares a span */
#define CLASS_COUNT      44
#define CLASS_DIRECT_MAX ((size_t)1024) /* sizes that the fast path looks up by size / 16 */
#define CLASS_DIRECT     (CLASS_DIRECT_MAX / BLOCK_ALIGN + 1)
#define CLASS_WIDE       ((size_t)256) /* larger ones are looked up by size / 256 */

#define CLASS_LARGE_MAX   ((size_t)4 << 20)
#define CLASS_LARGE_COUNT 24

/* A span is 1 to 32 granules: 2^order, the fewest that hold CLASS_BLOCKS blocks. Fewer would make a
 * span change its state too often; more would keep more memory from other classes. What is not
 * carved is not touched. */
#define CLASS_BLOCKS 32
#define CLASS_ORDERS 6

/* Class of sizes from 256 * (i - 1) + 1 to 256 * i; for i above 4. */
extern const uint8_t tlfl__class_wide[CLASS_MAX / CLASS_WIDE + 1];

/* Index of the top set bit; n is not 0. */
TLFL_INLINE unsigned size_log2(size_t n)
{
    return 63u - (unsigned)__builtin_clzll(n);
}

/* Quarter doublings from 128 bytes on, 0 for 129 to 160; size is above 128. */
TLFL_INLINE unsigned class_quarter(size_t size)
{
    unsigned top = size_log2(size - 1);
    return (top - 7) * 4 + (unsigned)((size - 1) >> (top - 2) & 3);
}

/* Class of a size of 0 to CLASS_MAX bytes. */
TLFL_INLINE unsigned class_of(size_t size)
{
    if (size <= CLASS_FINE_MAX)
        return size == 0 ? 0 : (unsigned)((size - 1) / BLOCK_ALIGN);
    return CLASS_FINE + class_quarter(size);
}

/* The same for CLASS_DIRECT_MAX + 1 to CLASS_MAX, by a table: half the instructions. */
TLFL_INLINE unsigned class_of_wide(size_t size)
{
    return tlfl__class_wide[(size + CLASS_WIDE - 1) / CLASS_WIDE];
}

/* Number of the LARGE class of a size of CLASS_MAX + 1 to CLASS_LARGE_MAX bytes: the classes look the
 * same at 64 times the size. */
TLFL_INLINE unsigned class_of_large(size_t size)
{
    return tlfl__class_wide[(size + CLASS_WIDE * 64 - 1) / (CLASS_WIDE * 64)] - 20u;
}

/* Bytes of a block of a class; CLASS_COUNT and above are the LARGE ones. */
TLFL_INLINE size_t class_size(unsigned class)
{
    if (class < CLASS_FINE)
        return (class + 1) * (size_t)BLOCK_ALIGN;
    class -= CLASS_FINE;
    return (size_t)(5 + class % 4) << (5 + class / 4);
}

/* The largest class of the doubling that a class is in: 32, 64, 128, 256 bytes and so on. */
TLFL_INLINE unsigned class_top(unsigned class)
{
    if (class >= CLASS_FINE)
        return class | 3;
    return class < 2 ? 1 : class < 4 ? 3 : CLASS_FINE - 1;
}

/* log2 of the granules of a span of this class. */
TLFL_INLINE unsigned class_order(unsigned class)
{
    size_t bytes = class_size(class) * CLASS_BLOCKS;
    return bytes <= GRANULE_SIZE ? 0 : size_log2(bytes - 1) + 1 - GRANULE_SHIFT;
}

/* Rounds a size above CLASS_MAX and up to PTRDIFF_MAX up to a quarter of a doubling. */
TLFL_INLINE size_t class_round(size_t size)
{
    return size_round(size, (size_t)1 << (size_log2(size - 1) - 2));
}

_Static_assert(CLASS_MAX * CLASS_BLOCKS == GRANULE_SIZE << (CLASS_ORDERS - 1), "the top class fills the top order");

#endif
