/* span.h - a run of memory cut into blocks of one size.
 *
 * A block that is free holds a link and a mark in its first two words:
 *   next   the next free block of the same list, NULL at the end
 *   mark   the address of its span plus its own. malloc clears it. A block that is being freed and
 *          shows its mark is free already, unless its user wrote just this value, which no user
 *          ever sees: so a match is looked at closer, and a mismatch costs two instructions
 *
 * The states of a span of kind SMALL. Every span is in exactly one of them and in at most one list:
 *
 *   CURRENT  heap->bin[class].current; malloc takes from its list. One a class and heap
 *   FULL     in no list. Had no free block when it stopped being current; fewer than `wake` since
 *   AVAIL    in heap->bin[class].avail; has free blocks, or blocks not yet carved, and live ones
 *   EMPTY    in heap->empty[order]; no live block
 *
 * FULL --wake frees--> AVAIL --last free--> EMPTY; AVAIL or EMPTY --refill--> CURRENT; CURRENT
 * --exhausted--> FULL.
 *
 * How a span knows that it is empty although malloc counts nothing: `out` counts down frees.
 *   FULL     out = frees until it becomes AVAIL. Exact: all `capacity` blocks were live at the start
 *   AVAIL    out = live blocks. Exact: nothing is taken from it
 *   CURRENT  out only says when to look in on housekeeping
 *   EMPTY    out is 0; a free would be a double free
 * Between a push that ends the countdown and its event out is 0; at no other time outside EMPTY.
 * A block on the way home from another thread (remote.h) still counts as live.
 *
 * A LARGE span is one block out of the pool, a HUGE span one mapping of its own; they have no owner
 * and no list, and any thread may free them.
 */
#ifndef TLFL_SPAN_H
#define TLFL_SPAN_H

#include "class.h"
#include "pool.h"

struct heap;

struct block {
    struct block *next;
    uintptr_t mark;
};

enum span_kind { SPAN_SMALL = 1, SPAN_LARGE, SPAN_HUGE };
enum span_state { SPAN_CURRENT = 1, SPAN_FULL, SPAN_AVAIL, SPAN_EMPTY };

/* Who may touch what: kind, base, size, run are constant while the span is in use. owner changes
 * under the central lock (adoption) and is read by any thread. All else belongs to the owner. */
struct span {
    alignas(LINE_PAIR) struct block *free; /* free blocks, last freed first */
    struct heap *_Atomic owner;            /* NULL: large or huge */
    uint32_t out;                          /* frees until the next event; see above */
    uint32_t wake;                         /* frees that turn FULL into AVAIL */
    uint32_t capacity;                     /* blocks that fit */
    uint32_t carved;                       /* blocks [0, carved) have been handed out before */
    char *base;                            /* first block */
    size_t size;                           /* usable bytes of a block */
    uint8_t kind;                          /* enum span_kind */
    uint8_t class;
    bool zero;     /* large and huge: reads as zero when new */
    uint8_t state; /* enum span_state */

    struct span *next, *prev; /* AVAIL, EMPTY: neighbours in the list; unused structure: next */
    struct run run;           /* not for huge */
};

_Static_assert(sizeof(struct block) <= BLOCK_ALIGN, "the smallest block holds link and mark");
_Static_assert(sizeof(struct span) == LINE_PAIR, "spans of different owners share no line");
_Static_assert(offsetof(struct span, next) <= 64, "what malloc and free touch is one line");

/* All the spans that heaps without one point to: nothing free in it, so the fast path fails and
 * never writes to it. */
extern const struct span tlfl__span_none;
#define SPAN_NONE ((struct span *)&tlfl__span_none)

TLFL_INLINE uintptr_t span_mark(const struct span *span, const void *block)
{
    return (uintptr_t)span + (uintptr_t)block;
}

/* Takes a free block; NULL when the list is empty. */
TLFL_INLINE void *span_pop(struct span *span)
{
    struct block *block = span->free;
    if (TLFL_UNLIKELY(block == NULL))
        return NULL;
    span->free = block->next;
    block->mark = 0;
    return block;
}

/* Puts a block into the list; true when the owner has to call tlfl__heap_event. */
TLFL_INLINE bool span_push(struct span *span, struct block *block)
{
    block->next = span->free;
    block->mark = span_mark(span, block);
    span->free = block;
    return --span->out == 0;
}

/* A span structure with all members zero, or NULL. Under the central lock, as is the next. */
struct span *tlfl__span_take(void);
void tlfl__span_give(struct span *span);

/* Number of structures handed out. Under the central lock. */
size_t tlfl__span_count(void);

/* Cuts a span with a run into blocks of `class`, none of them carved yet. */
void tlfl__span_cut(struct span *span, unsigned class);

/* Moves some blocks that were never used to the empty free list; false when there are none. */
bool tlfl__span_carve(struct span *span);

/* Whether a block is in the free list: walks it. */
bool tlfl__span_lists(const struct span *span, const void *block);

/* Number of blocks in the free list: walks it. */
uint32_t tlfl__span_free_count(const struct span *span);

#endif
