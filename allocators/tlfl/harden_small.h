/* harden_small.h - small blocks of the variant `hardened`.
 *
 * A block of the family below, which has a size class:
 *
 *     start               head     pointer           pointer + size         end
 *       | gap, often empty |        | the user's bytes | tail, 8 bytes at least |
 *
 *   gap, tail  hold the pattern, looked at by free, realloc and malloc_usable_size. How much of the spare room is the gap is
 *              random
 *   head       the size asked for, the alignment, the length of the gap, and the seal of these with the state, live or
 *              freed. A free takes nothing but what has the seal of a live block, so no pointer but one from
 *              malloc, and changes it for the other seal: of two frees at the same time one sees that. A write
 *              before the block breaks the seal
 *
 * malloc zeroes the user's bytes, free covers them with the pattern: nothing old is ever seen.
 *
 *   stock       malloc takes one of the stock of its class at random and puts a fresh one in its place: what follows each
 *               other in time does not in space. Blocks up to SMALL_STOCK_PATTERNED hold the pattern meanwhile, so
 *               that a write far past a block may be seen there. A thread keeps to one of SMALL_STOCKS: so many
 *               threads share no lines
 *   quarantine  a freed block takes the place of a random one of its class, and that one waits in a queue until as many
 *               others came after it as the queue has room for. When it leaves all has to be as free left it.
 *               Either half has up to SMALL_HELD blocks of a class or SMALL_HELD_BYTES, but SMALL_HELD_MIN at least:
 *               no more than 3.5 MiB a process, in case it frees blocks of every class
 */
#ifndef TLFL_HARDEN_SMALL_H
#define TLFL_HARDEN_SMALL_H

#include "span.h"

#define SMALL_MAX             ((size_t)32 << 10)
#define SMALL_CANARY          8 /* bytes of the tail, at least */
#define SMALL_STOCKS          8
#define SMALL_STOCK           32 /* blocks of a class, at most */
#define SMALL_STOCK_BYTES     ((size_t)16 << 10)
#define SMALL_STOCK_MIN       4
#define SMALL_STOCK_PATTERNED ((size_t)1 << 10)
#define SMALL_HELD            256
#define SMALL_HELD_BYTES      ((size_t)32 << 10)
#define SMALL_HELD_MIN        2

struct head {
    uint32_t size;         /* asked for, at least 1 */
    uint16_t offset;       /* from the start of the block below to the user's bytes, in BLOCK_ALIGNs */
    uint16_t align;        /* log2 */
    _Atomic uint64_t seal; /* of the above */
};

_Static_assert(sizeof(struct head) == BLOCK_ALIGN, "the user's bytes are aligned as the head is");
_Static_assert(CLASS_MAX / BLOCK_ALIGN <= UINT16_MAX, "an offset fits");
_Static_assert(SMALL_STOCK_MIN <= SMALL_STOCK && SMALL_HELD_MIN <= SMALL_HELD, "the arrays hold the least");
_Static_assert((SMALL_HELD & (SMALL_HELD - 1)) == 0 && (SMALL_HELD_MIN & (SMALL_HELD_MIN - 1)) == 0,
               "places in the queue go round by a mask");

/* Whether blocks of this size and alignment are small. */
TLFL_INLINE bool small_fits(size_t size, size_t align)
{
    return size <= SMALL_MAX && sizeof(struct head) + align + size + SMALL_CANARY <= CLASS_MAX;
}

/* `size` (at least 1) bytes, zeroed, aligned to `align`, a power of two from BLOCK_ALIGN on; NULL when refused. */
void *tlfl__small_new(size_t size, size_t align);

/* The head of a live block that is as it should be, or aborts; `span` is what map_find found for `pointer`. */
struct head *tlfl__small_check(const struct span *span, void *pointer, const char *call);

/* The same, and frees the block. */
void tlfl__small_free(const struct span *span, void *pointer, const char *call);

/* Gives a block that was checked another size where it is; false when that does not fit. */
bool tlfl__small_resize(const struct span *span, struct head *head, size_t size);

/* Empties stocks and quarantine; true when there was something in them. */
bool tlfl__small_clear(void);

#endif
