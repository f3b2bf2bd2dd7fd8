/* remote.h - blocks freed by a thread that does not own them.
 *
 * Each heap has one list, heap->remote, that any thread may push to (one compare-and-swap) and that
 * is only ever taken as a whole (one exchange) by who owns the heap: its thread on the slow path,
 * or the holder of the central lock when it is idle. There is no pop, so no ABA.
 *
 * The sender reads span->owner before it pushes. Until the push the block is live and pins its
 * span; after it the sender touches only the heap, which is never unmapped. The owner of the span
 * may change in between (adoption), or the heap may serve another thread by then: whoever takes the
 * list looks up each block's span again and forwards what is not its own.
 *
 * Nobody takes the list of an idle heap by itself: who pushes to one sweeps the abandoned heaps
 * every REMOTE_SWEEP pushes, as do malloc_trim and adopting refills.
 *
 * Bound: the list of a heap holds at most the blocks of its own spans. A thread that never again
 * reaches its slow path keeps them there.
 */
#ifndef TLFL_REMOTE_H
#define TLFL_REMOTE_H

#include "heap.h"

#define REMOTE_SWEEP 32

/* Frees a block of a span that another heap owns. */
void tlfl__remote_free(struct span *span, struct block *block);

/* Puts all that has arrived into the spans of the heap; true when there was anything. */
bool tlfl__remote_drain(struct heap *heap);

TLFL_INLINE bool remote_pending(const struct heap *heap)
{
    return atomic_load_explicit(&heap->remote, memory_order_relaxed) != NULL;
}

#endif
