/* span.h - a run of memory cut into blocks of one size.
 *
 * A block that is free holds a mark and a link in its first two words:
 *   mark   the address of its span plus its own, halves swapped. malloc takes it out again, and aborts
 *          if it is not there: something was written to a free block. A block that is being freed and
 *          shows its mark is free already, since no user ever sees that value. It lies in the word
 *          that a write past the block before reaches first
 *   next   the next free block of the same list, BLOCK_END at the end
 *
 * The states of a span of kind SMALL. Every span is in exactly one of them and in at most one list:
 *
 *   CURRENT  heap->current[class]; malloc takes from its list. One a class and heap
 *   FULL     in no list. Had no free block when it stopped being current; fewer than `wake` since
 *   AVAIL    in heap->bin[class].avail; has free blocks, or blocks not yet carved, and live ones
 *   EMPTY    in heap->empty[order]; no live block
 *   STOLEN   was FULL when all its blocks came back from other threads, and its memory has gone to
 *            the pool without its owner (remote.h); in heap->stolen. So is an EMPTY span that was taken
 *            off a shelf, until the owner collects it
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
 * Which pointers a span takes: x = pointer - base is the start of one of its blocks if and only if
 * x * magic (mod 2^64) < limit. With magic = floor(2^64 / size) + 1, magic * size = 2^64 + e and
 * 0 < e <= size, and so for x = q * size + r the product is q * e + r * magic: below magic for r = 0
 * alone, and there it grows with q. limit is the product of the last carved block plus 1, or 0
 * where no free is welcome. Exact for x below 2^48. (After Granlund and Montgomery's test for divisibility.)
 *
 * A LARGE span is one block out of the pool, a HUGE span one mapping of its own. Any thread may free
 * them; owner is the heap that took a large one, or NULL. state is FULL while the block is live, else EMPTY: whoever swaps it
 * has the block.
 */
#ifndef TLFL_SPAN_H
#define TLFL_SPAN_H

#include "class.h"
#include "poison.h"
#include "pool.h"

struct heap;

struct block {
    union {
        uint64_t mark;
        uint32_t half[2];
    };
    struct block *next;
};

/* Ends every list of a span. A block without a mark, see block_take_mark. */
extern struct block tlfl__block_end;
#ifndef TLFL_UNCHECKED
#define BLOCK_END (&tlfl__block_end)
#else
#define BLOCK_END NULL
#endif

enum span_kind { SPAN_SMALL = 1, SPAN_LARGE, SPAN_HUGE };
enum span_state { SPAN_CURRENT = 1, SPAN_FULL, SPAN_AVAIL, SPAN_EMPTY, SPAN_STOLEN };

/* Who may touch what: kind, base, size, magic, capacity and run are constant while the span has a
 * live block. owner changes under the central lock (adoption) and is read by any
 * thread. state is written by the owner, or by who holds all blocks of a FULL span. All else
 * belongs to the owner. */
struct span {
    alignas(LINE_PAIR) struct block *free; /* free blocks, last freed first */
    char *base;                            /* first block */
    uint64_t magic, limit;                 /* see above */
    uint32_t out;                          /* frees until the next event; see above */
    uint32_t carved;                       /* blocks [0, carved) have been handed out before */
    struct heap *_Atomic owner;            /* see above */
    uint32_t size;                         /* SMALL: usable bytes of a block */
    uint32_t wake;                         /* frees that turn FULL into AVAIL */
    uint32_t capacity;                     /* blocks that fit */
    uint8_t kind;                          /* enum span_kind */
    uint8_t class;                         /* LARGE: from CLASS_COUNT on */
    _Atomic uint8_t state;                 /* enum span_state */
    bool zero;                             /* large and huge: reads as zero when new */

    struct span *next, *prev; /* neighbours in the list; unused structure: next */
    size_t bytes;             /* LARGE and HUGE: usable */
    struct run run;           /* not for huge */
    uint32_t counted;         /* of a thief: see remote.c; under the central lock */
    uint64_t idle_since;      /* HUGE, cached: ms */
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the second half is the upper one");
_Static_assert(sizeof(struct block) <= BLOCK_ALIGN, "the smallest block holds mark and link");
_Static_assert(sizeof(struct span) == LINE_PAIR, "spans of different owners share no line");
_Static_assert(offsetof(struct span, next) <= 64, "what malloc and free touch is one line");

/* All the spans that heaps without one point to: nothing free in it and no block, so both fast
 * paths fail and never write to it. */
extern const struct span tlfl__span_none;
#define SPAN_NONE ((struct span *)&tlfl__span_none)

TLFL_INLINE unsigned span_state(const struct span *span)
{
    return atomic_load_explicit(&span->state, memory_order_acquire);
}

/* Whether `pointer` is the start of a carved block of the span; to `unchecked`, whether it lies in one. */
TLFL_INLINE bool span_holds(const struct span *span, const void *pointer)
{
    int64_t offset = (intptr_t)pointer - (intptr_t)span->base;
#ifndef TLFL_UNCHECKED
    return (uint64_t)offset * span->magic < span->limit;
#else
    return (uint64_t)offset < span->limit;
#endif
}

/* The same for any thread: by what does not change, and whether or not the block was ever carved. */
TLFL_INLINE bool span_cuts(const struct span *span, const void *pointer)
{
    int64_t offset = (intptr_t)pointer - (intptr_t)span->base;
    uint64_t step = span->magic * span->size; /* e above */
    return (uint64_t)offset * span->magic <= (span->capacity - 1) * step && span_state(span) != SPAN_EMPTY;
}

/* ---- marks; the variant `unchecked` does without ---- */

/* The sum that a mark is made of. The barrier keeps the compiler from adding twice in free. */
TLFL_INLINE uintptr_t block_key(const struct span *span, const struct block *block)
{
    uintptr_t key = (uintptr_t)span + (uintptr_t)block;
    __asm__("" : "+r"(key));
    return key;
}

TLFL_INLINE uint64_t key_mark(uint64_t key)
{
    return key << 32 | key >> 32;
}

/* Looks at the half that tells blocks apart. It is the second one, because programs often write the
 * first bytes of a block shortly before they free it: a load of eight bytes right after a store of
 * one has to wait for the store to reach the cache. A match by chance, of 2^-32, is what
 * block_is_marked is for. */
TLFL_INLINE bool block_shows_key(const struct block *block, uintptr_t key)
{
#ifndef TLFL_UNCHECKED
    return block->half[1] == (uint32_t)key;
#else
    (void)block, (void)key;
    return false;
#endif
}

TLFL_INLINE void block_set_mark(struct block *block, uintptr_t key)
{
#ifndef TLFL_UNCHECKED
    block->mark = key_mark(key);
#else
    (void)block, (void)key;
#endif
    poison_set(block + 1, ((struct span *)(key - (uintptr_t)block))->size - sizeof *block);
}

TLFL_INLINE bool block_is_marked(const struct span *span, const struct block *block)
{
    uintptr_t key = block_key(span, block);
    return block_shows_key(block, key) && block->mark == key_mark(key);
}

/* True if the mark was there. It never is at the end of a list, so that malloc needs no further test. */
TLFL_INLINE bool block_take_mark(const struct span *span, struct block *block)
{
#ifndef TLFL_UNCHECKED
    if (TLFL_UNLIKELY(block->mark != key_mark((uintptr_t)span + (uintptr_t)block)))
        return false;
    block->mark = 0;
    return true;
#else
    (void)span;
    return TLFL_LIKELY(block != BLOCK_END);
#endif
}

/* ---- the two steps that matter ---- */

/* Takes a free block; NULL when the list is empty, or its first block was written to. */
TLFL_INLINE void *span_pop(struct span *span)
{
    struct block *block = span->free;
    if (TLFL_UNLIKELY(!block_take_mark(span, block)))
        return NULL;
    poison_lift(block + 1, span->size - sizeof *block);
    span->free = block->next;
    return block;
}

/* Puts a block into the list; true when the owner has to call tlfl__heap_event. */
TLFL_INLINE bool span_push(struct span *span, struct block *block, uintptr_t key)
{
    block->next = span->free;
    block_set_mark(block, key);
    span->free = block;
    return --span->out == 0;
}

/* ---- slow paths ---- */

TLFL_INLINE void span_set_state(struct span *span, enum span_state state)
{
    atomic_store_explicit(&span->state, (uint8_t)state, memory_order_release);
}

TLFL_INLINE struct heap *span_owner(const struct span *span)
{
    return atomic_load_explicit(&span->owner, memory_order_relaxed);
}

/* Usable bytes of a block. */
TLFL_INLINE size_t span_usable(const struct span *span)
{
    return span->kind == SPAN_SMALL ? span->size : span->bytes;
}

/* Lets frees of carved blocks in, and keeps all out. */
TLFL_INLINE void span_open(struct span *span)
{
#ifndef TLFL_UNCHECKED
    uint64_t step = span->magic * span->size; /* e above */
    span->limit = span->carved == 0 ? 0 : (span->carved - 1) * step + 1;
#else
    span->limit = (uint64_t)span->carved * span->size;
#endif
}

TLFL_INLINE void span_close(struct span *span)
{
    span->limit = 0;
}

/* A span structure with all members zero, or NULL. Under the central lock, as is the next. */
struct span *tlfl__span_take(void);
void tlfl__span_give(struct span *span);

/* Number of structures handed out. Under the central lock. */
size_t tlfl__span_count(void);

/* Cuts a span with a run into blocks of `class`, none of them carved yet; closed. */
void tlfl__span_cut(struct span *span, unsigned class);

/* Moves some blocks that were never used to the empty free list; false when there are none. */
bool tlfl__span_carve(struct span *span);

/* To be called when nothing could be taken: aborts if that is because a free block was written to. */
_Noreturn void tlfl__span_overwritten(const struct span *span);
TLFL_INLINE void span_check_empty(const struct span *span)
{
    if (TLFL_UNLIKELY(span->free != BLOCK_END))
        tlfl__span_overwritten(span);
}

/* Number of blocks in the free list: walks it. */
uint32_t tlfl__span_free_count(const struct span *span);

#endif
