/* heap.h - what a thread owns: its spans, by size class.
 *
 * A heap serves one thread at a time. Heaps are made when there are more threads than heaps, and
 * are never unmapped: a thread that exits leaves its heap to the idle list of its node, and the
 * next thread takes it over with all its spans (thread.h). A heap is
 *
 *   LIVE    owned by a running thread; tlfl__heap of that thread points to it
 *           (or by one that ended without a word, until that is noticed: thread.h)
 *   IDLE    owned by whoever holds the central lock; in an idle list. A refill of any thread may
 *           adopt some of its spans
 *   NONE    the sentinel, which is constant: of a thread before its first malloc, and of one whose
 *           heap has been handed over. Every span it shows is SPAN_NONE, so both fast paths take
 *           their ordinary exit to the slow ones
 *
 * Invariants: direct[i] == current[class_of(16 * i)]. current[c] is CURRENT or SPAN_NONE.
 * The spans in avail and empty are AVAIL and EMPTY, and owned by this heap. granules is the sum
 * over all small spans whose owner is this heap, listed or FULL, and of those in `stolen`.
 *
 * What a heap keeps. A span that becomes free goes to a shelf, and the shelves together with what is
 * in use never exceed by much what was in use at once since the tick before last; the rest goes to
 * the pool. So a program that uses again what it has just freed pays for no lock, no
 * page fault and no carving, and a phase that ends leaves nothing behind for longer than two ticks.
 *   used   granules of spans in use that this heap took: small ones with live blocks or CURRENT, and
 *          large ones, whoever frees them; what others freed or resized is in `lost` until the next tick
 *   limit  this heap's share of HEAP_KEEP + the larger peak, or less of it where more heaps are live
 *          than CPUs could use at once
 *   room   limit - used - granules on the shelves. Taking from a shelf and
 *          putting back leaves it as it is
 *
 * A class that the heap has hardly used has no span. The largest class of its doubling serves it, up to
 * HEAP_DEBUT times, so that a few blocks of each of many sizes do not cost a page for each size. For
 * the same reason a class of pages takes a free block of that class before it touches fresh
 * pages, but for every eighth time.
 *
 * own[] finds the span of a block that this thread may free by itself, in one load. It is a cache by
 * the low bits of the granule's number: what it has no room for goes by map.h. An entry is the
 * distance of the span from SPAN_NONE, so that zero is a span that takes no pointer; it is right
 * for any pointer that span_holds, and of no meaning for others.
 */
#ifndef TLFL_HEAP_H
#define TLFL_HEAP_H

#include "clocked.h"
#include "shelf.h"

struct bin {
    struct span *avail; /* AVAIL spans, doubly linked, NULL at both ends */
    uint8_t first, end; /* direct[first] to direct[end - 1] are of this class */
    uint8_t order;      /* of its spans */
    uint8_t debut, lent; /* blocks that a larger class has lent to it, at first and later */
};

#define REMOTE_AHEAD 4 /* lines that a receiver waits for at a time; a power of two */

/* Blocks on the way to another heap: see remote.h. */
struct outbox {
    struct heap *to; /* NULL: empty */
    struct block *first, *last;
    uint32_t load; /* bytes */
    uint32_t count;
    struct block *recent[REMOTE_AHEAD]; /* the last ones, by count; of the heap before, too */
};

enum heap_state { HEAP_NONE, HEAP_LIVE, HEAP_IDLE };

#define HEAP_OWN      8192 /* entries: 512 MiB of address space without a conflict */
#define HEAP_OUTBOXES 4
#define HEAP_KEEP     64 /* granules, 4 MiB: what all live heaps together may keep beyond that */
#define HEAP_KEEP_MAX 32 /* and a single one */
#define HEAP_WIDE     24 /* class of 2.5 KiB: from here on a block is worth a look before a fresh one */
#define HEAP_LENDS    7
#define HEAP_EVENTS   32 /* slow path entries between two looks at the clock; a power of two */

/* Blocks of a small class before it gets a span of its own. The layer of the variant `hardened` wants
 * blocks of the class that it asked for. */
#ifndef TLFL_HARDENED
#define HEAP_DEBUT 16
#else
#define HEAP_DEBUT 0
#endif

struct heap {
    alignas(LINE_PAIR) struct span *direct[CLASS_DIRECT];
    struct span *current[CLASS_COUNT];
    struct bin bin[CLASS_COUNT];
    struct shelf empty[CLASS_ORDERS];      /* EMPTY small spans, by order */
    struct shelf large[CLASS_LARGE_COUNT]; /* free large spans, by class */
    uint32_t granules;                     /* in all small spans owned */
    int32_t used, room, limit;             /* see above */
    int32_t peak, peak_before;             /* of used, since the last tick and between the two before */
    uint32_t events, refills;              /* slow path entries of free and of malloc, for the tick */
    uint32_t node;                         /* NUMA node that its memory comes from */
    uint32_t process, thread, forks;       /* LIVE: who claimed it; see thread.h */
    _Atomic uint64_t ticked_ms;            /* when the last tick was; others look at it */
    struct outbox outbox[HEAP_OUTBOXES];
    struct heap *next, *prev;   /* IDLE: neighbours in the list */
    struct heap *later;         /* the list of all heaps */
    bool settled;               /* IDLE: nothing CURRENT, nothing on a shelf */
    struct packed_lanes *lanes; /* variant packed, else NULL; see packed.h */
    struct clocked_book book;   /* variants clocked: of the thread that owns it; else nothing */

    /* Written by any thread, and so on lines of their own. */
    alignas(LINE_PAIR) struct block *_Atomic remote; /* freed by others; see remote.h */
    _Atomic uint32_t posts;                          /* arrivals since the last drain, about */
    _Atomic uint32_t lost;                           /* granules of its large spans that others freed */
    _Atomic uint8_t state;                           /* enum heap_state */
    struct span *_Atomic stolen;                     /* spans taken from it, through next; under the central lock */

    alignas(LINE_PAIR) uintptr_t own[HEAP_OWN];
};

_Static_assert(offsetof(struct heap, remote) % LINE_PAIR == 0, "remote frees dirty no owner line");

extern TLFL_TLS struct heap *tlfl__heap;

/* The sentinel. */
extern const struct heap tlfl__heap_none;

/* The span in own[] for the granule of `pointer`; SPAN_NONE where there is none. Any address will do. */
TLFL_INLINE struct span *heap_own(const struct heap *heap, const void *pointer)
{
    size_t i = (uintptr_t)pointer >> GRANULE_SHIFT & (HEAP_OWN - 1);
    return (struct span *)((uintptr_t)SPAN_NONE + heap->own[i]);
}

/* A block of `class` out of a heap whose current span of this class has nothing free; NULL and
 * ENOMEM when there is no memory. The heap is owned by the caller, as in all that follow. */
void *tlfl__heap_refill(struct heap *heap, unsigned class);

/* To be called when span_push returned true. Preserves errno. */
void tlfl__heap_event(struct heap *heap, struct span *span);

/* To be called every HEAP_EVENTS slow path entries: looks at the clock, gives away what is not needed. */
void tlfl__heap_tick(struct heap *heap);

/* Gives a free span to the pool; it is in no list. */
void tlfl__heap_release(struct heap *heap, struct span *span);

/* Takes all CURRENT spans out of use and gives every free span to the pool; true when there was
 * one. After it all spans of the heap are AVAIL or FULL. */
bool tlfl__heap_settle(struct heap *heap);

/* Gives the spans on the shelves to the pool; true when there was one. */
bool tlfl__heap_clear_shelves(struct heap *heap);

/* Makes `span` (CURRENT, or SPAN_NONE) the current one of its class. */
void tlfl__heap_set_current(struct heap *heap, unsigned class, struct span *span);

/* Takes the current span of a class out of use: FULL if nothing can be taken from it, AVAIL if
 * something can, to the pool if nothing of it is live. True in the last case. */
bool tlfl__heap_retire(struct heap *heap, unsigned class);

/* Takes the span that became AVAIL last, probably the fullest, out of its bin; NULL when there is none. */
struct span *tlfl__heap_unshelve(struct heap *heap, unsigned class);

/* Enters a span in own[], and takes it out. */
void tlfl__heap_own(struct heap *heap, struct span *span);
void tlfl__heap_disown(struct heap *heap, const struct span *span);

/* Does away with the spans that were stolen. */
void tlfl__heap_collect(struct heap *heap);

/* Initialises a zeroed heap as one without spans. */
void tlfl__heap_init(struct heap *heap);

TLFL_INLINE bool heap_stolen(const struct heap *heap)
{
    return atomic_load_explicit(&heap->stolen, memory_order_relaxed) != NULL;
}

TLFL_INLINE uint64_t heap_ticked(const struct heap *heap)
{
    return atomic_load_explicit(&heap->ticked_ms, memory_order_relaxed);
}

/* used has passed peak. */
void tlfl__heap_raise(struct heap *heap);

/* Counts a slow path entry of free. */
TLFL_INLINE void heap_count_event(struct heap *heap)
{
    if (TLFL_UNLIKELY((++heap->events & (HEAP_EVENTS - 1)) == 0))
        tlfl__heap_tick(heap);
}

/* The same of malloc; true when a tick is due, after which the thread has to follow (thread.h). */
TLFL_INLINE bool heap_count_refill(struct heap *heap)
{
    return TLFL_UNLIKELY((++heap->refills & (HEAP_EVENTS - 1)) == 0);
}

/* A span comes off a shelf to be used. */
TLFL_INLINE void heap_count_taken(struct heap *heap, const struct span *span)
{
    heap->used += (int32_t)span->run.granules;
    if (TLFL_UNLIKELY(heap->used > heap->peak))
        tlfl__heap_raise(heap);
}

/* Whether a span of the heap that has become free may go to a shelf; counts it as no longer in use
 * if so. */
TLFL_INLINE bool heap_keeps(struct heap *heap, const struct span *span)
{
    if (TLFL_UNLIKELY(heap->room < 0))
        return false;
    heap->used -= (int32_t)span->run.granules;
    return true;
}

/* A span that came from elsewhere is taken into use, and one that was in use leaves the heap. */
TLFL_INLINE void heap_count_in(struct heap *heap, const struct span *span)
{
    heap->room -= (int32_t)span->run.granules;
    heap_count_taken(heap, span);
}

TLFL_INLINE void heap_count_out(struct heap *heap, const struct span *span)
{
    heap->room += (int32_t)span->run.granules;
    heap->used -= (int32_t)span->run.granules;
}

TLFL_INLINE uint8_t heap_state(const struct heap *heap)
{
    return atomic_load_explicit(&heap->state, memory_order_relaxed);
}

#endif
