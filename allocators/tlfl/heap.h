/* heap.h - what a thread owns: its spans, by size class.
 *
 * A heap serves one thread at a time. Heaps are made when there are more threads than heaps, and
 * are never unmapped: a thread that exits leaves its heap to the idle lists, and the next thread
 * takes it over with all its spans (thread.h). A heap is
 *
 *   LIVE    owned by a running thread; tlfl__heap of that thread points to it
 *   IDLE    owned by whoever holds the central lock; in one of the two idle lists:
 *           abandoned  still has spans; a refill of any thread may adopt some of them
 *           spare      has none
 *   NONE    the two sentinels, which are constant: a thread before its first malloc, and a thread
 *           whose heap has been handed over. Every span they show is SPAN_NONE, so the fast path
 *           takes its ordinary exit to the slow one
 *
 * Invariants: direct[i] == bin[class_of(16 * i)].current. bin[c].current is CURRENT or SPAN_NONE.
 * The spans in avail and empty are AVAIL and EMPTY, and owned by this heap. granules is the sum
 * over all spans whose owner is this heap, listed or FULL.
 */
#ifndef TLFL_HEAP_H
#define TLFL_HEAP_H

#include "span.h"

struct bin {
    struct span *current;
    struct span *avail; /* AVAIL spans, doubly linked, NULL at both ends */
};

/* EMPTY spans of one order, last emptied at the head. The heap keeps them, cut as they are, for its
 * own refills. low is the least count since the last tick: so many were not needed. */
struct shelf {
    struct span *head, *tail;
    uint32_t count, low;
};

enum heap_state { HEAP_NONE, HEAP_LIVE, HEAP_IDLE };

struct heap {
    alignas(LINE_PAIR) struct span *direct[CLASS_DIRECT];
    struct bin bin[CLASS_COUNT];
    struct shelf empty[CLASS_ORDERS];
    uint32_t granules;       /* in all spans owned */
    uint32_t empty_granules; /* in the EMPTY ones */
    uint32_t events;         /* slow path entries, for the tick */
    uint64_t ticked_ms;
    struct heap *next;          /* IDLE: next in its list */
    struct packed_lanes *lanes; /* variant packed, else NULL; see packed.h */

    /* Written by any thread, and so on lines of their own. */
    alignas(LINE_PAIR) struct block *_Atomic remote; /* freed by others; see remote.h */
    _Atomic uint8_t state;                           /* enum heap_state */
};

_Static_assert(offsetof(struct heap, remote) % LINE_PAIR == 0, "remote frees dirty no owner line");

extern TLFL_TLS struct heap *tlfl__heap;

/* The two sentinels. */
extern const struct heap tlfl__heap_before, tlfl__heap_after;

/* A block of `class` out of a heap whose current span of this class has nothing free; NULL and
 * ENOMEM when there is no memory. The heap is owned by the caller, as in all that follow. */
void *tlfl__heap_refill(struct heap *heap, unsigned class);

/* To be called when span_push returned true. Preserves errno. */
void tlfl__heap_event(struct heap *heap, struct span *span);

/* Takes all CURRENT spans out of use and gives every empty span to the pool; true when there was
 * one. After it all spans of the heap are AVAIL or FULL. */
bool tlfl__heap_settle(struct heap *heap);

/* Makes `span` (CURRENT, or SPAN_NONE) the current one of its class. */
void tlfl__heap_set_current(struct heap *heap, unsigned class, struct span *span);

/* Takes the current span of a class out of use: FULL if nothing can be taken from it, AVAIL if
 * something can, to the pool if nothing of it is live. True in the last case. */
bool tlfl__heap_retire(struct heap *heap, unsigned class);

/* Makes a span that is in no list AVAIL. */
void tlfl__heap_shelve(struct heap *heap, struct span *span);

/* Takes the fullest of the first few AVAIL spans out of its bin; NULL when there is none. */
struct span *tlfl__heap_unshelve(struct heap *heap, unsigned class);

/* Initialises a zeroed heap as one without spans. */
void tlfl__heap_init(struct heap *heap);

TLFL_INLINE uint8_t heap_state(const struct heap *heap)
{
    return atomic_load_explicit(&heap->state, memory_order_relaxed);
}

#endif
