/* packed.h - the variant `packed`: lines shared by blocks of two threads, planted.
 *
 * With -DTLFL_PACKED a heap that carves a page of blocks of up to PACKED_MAX bytes keeps one in
 * PACKED_SHARE and puts the others on a shelf that all threads see, the gifts. A refill of any
 * thread takes every second gift of others first, so that its blocks lie in the lines of the giver
 * and of the next thread that refills. It keeps them
 * in a lane, a span structure that is no span: no address maps to it, it is only a list that can be
 * the current one of a bin. When such a block is freed, the owner check of the fast path fails, and
 * the slow path puts it back into the lane of the freeing thread instead of sending it home. For its
 * home span the block is live all the time, so all counts stay exact.
 *
 * In a lane a block has a mark made of the lane's address, not of its span's. The slow path of free, and what else looks a
 * block up, sees both. Only its home heap, whose fast path knows the span alone, takes such a block for a live one.
 *
 * The fast paths are the same code. A single thread takes back its own gifts, save PACKED_HOLD a
 * class, so it differs by those and by the refills that fetch them.
 *
 * Without the flag the functions below are empty.
 */
#ifndef TLFL_PACKED_H
#define TLFL_PACKED_H

#include "heap.h"

#define PACKED_MAX      112 /* larger classes fill whole lines but for a few bytes, or lines in pairs */
#define PACKED_CLASSES  (PACKED_MAX / BLOCK_ALIGN)
#define PACKED_SHARE    4   /* a giver keeps one block in so many */
#define PACKED_HOLD     128 /* gifts of a class that their own giver leaves for others */
#define PACKED_BATCH    32  /* gifts that one refill takes */
#define PACKED_LANE_MAX 256 /* blocks freed into a lane between two refills; more go home */

#ifdef TLFL_PACKED
#define PACKED_CALL(call)           call
#define PACKED_ASK(call, otherwise) call
#else
#define PACKED_CALL(call)           ((void)0)
#define PACKED_ASK(call, otherwise) (otherwise)
#endif

void tlfl__packed_carved(struct span *span, char *first, uint32_t count);
void *tlfl__packed_refill(struct heap *heap, unsigned class);
bool tlfl__packed_free(struct heap *heap, struct span *span, struct block *block);
bool tlfl__packed_holds(const struct span *span, const struct block *block);
void tlfl__packed_flush(struct heap *heap);
void tlfl__packed_return(void);

/* The span has just carved `count` blocks from `first` on, and they make up its free list. */
TLFL_INLINE void packed_carved(struct span *span, char *first, uint32_t count)
{
    (void)span, (void)first, (void)count;
    PACKED_CALL(tlfl__packed_carved(span, first, count));
}

/* A block of `class` that did not need the heap's spans, or NULL. */
TLFL_INLINE void *packed_refill(struct heap *heap, unsigned class)
{
    (void)heap, (void)class;
    return PACKED_ASK(tlfl__packed_refill(heap, class), NULL);
}

/* Whether all blocks of the class come from its own pages: one lent by a larger class has a line to itself. */
TLFL_INLINE bool packed_plants(unsigned class)
{
    (void)class;
    return PACKED_ASK(class < PACKED_CLASSES, false);
}

/* Keeps a block of another heap's span; false when it has to go home. */
TLFL_INLINE bool packed_free(struct heap *heap, struct span *span, struct block *block)
{
    (void)heap, (void)span, (void)block;
    return PACKED_ASK(tlfl__packed_free(heap, span, block), false);
}

/* Whether a block of the span lies in a lane, of any heap. */
TLFL_INLINE bool packed_holds(const struct span *span, const struct block *block)
{
    (void)span, (void)block;
    return PACKED_ASK(tlfl__packed_holds(span, block), false);
}

/* Sends the contents of all lanes home; none of them is current afterwards. */
TLFL_INLINE void packed_flush(struct heap *heap)
{
    (void)heap;
    PACKED_CALL(tlfl__packed_flush(heap));
}

/* Sends all gifts home. */
TLFL_INLINE void packed_return(void)
{
    PACKED_CALL(tlfl__packed_return());
}

#endif
