/* remote.h - blocks freed by a thread that does not own them.
 *
 * Each heap has one list, heap->remote, that any thread may push to (one compare-and-swap) and that
 * is only ever taken as a whole (one exchange). There is no pop, so no ABA. It is taken by who owns
 * the heap: its thread on the slow path, or the holder of the central lock when it is idle; and by a
 * thief, see below.
 *
 * The sender reads span->owner before it pushes. Until the push the block is live and pins its
 * span; after it the sender touches only the heap, which is never unmapped. The owner of the span
 * may change in between (adoption), or the heap may serve another thread by then: whoever takes the
 * list looks up each block's span again and forwards what is not its own.
 *
 * A sender collects blocks for one heap in an outbox and pushes them together. An outbox goes off
 * when it holds REMOTE_LOAD, when blocks for a further heap need its place, at every tick of the
 * sender's heap, at the end of the thread and at malloc_trim. A thread without a heap pushes each
 * block by itself.
 *
 * A receiver would wait for the line of each block in turn, out of the sender's cache, since a block
 * names the next. So a block of 32 bytes or more also names the one that comes REMOTE_AHEAD later, for
 * which the receiver asks in time.
 *
 * A list that nobody takes. Who pushes to an idle heap sweeps some idle heaps every REMOTE_SWEEP
 * pushes. For a live heap whose thread sleeps or never leaves its fast path, the pusher turns thief
 * when the pushes since the last drain reach REMOTE_PATIENCE, and again at every doubling; so does
 * malloc_trim. A thief takes the list, picks out the spans all of whose blocks are in it, and puts
 * the rest back. Such a span was FULL and no block of it is live, so its owner has no way to it:
 * FULL spans are in no list, and an owner leaves FULL only by a free of one of its blocks. The
 * memory goes to the pool, and the structure is left for the owner to collect.
 *
 * The shelves of a live heap whose thread has not had a tick for REMOTE_IDLE_MS are cleared in the same
 * way, at the tick of any other heap: what it kept for itself it did not need.
 *
 * Bound: what has arrived and cannot be had are blocks of spans that its owner has in use besides,
 * less than what the owner had allocated; on the way are at most HEAP_OUTBOXES * REMOTE_LOAD bytes
 * a thread.
 */
#ifndef TLFL_REMOTE_H
#define TLFL_REMOTE_H

#include "heap.h"

#define REMOTE_LOAD     ((uint32_t)64 << 10)
#define REMOTE_WEIGHT   1024 /* a block counts so many bytes more, so that no outbox holds more than 64 */
#define REMOTE_SWEEP    32
#define REMOTE_PATIENCE 256 /* a power of two */
#define REMOTE_IDLE_MS  300

/* Frees a block of a span that another heap owns; `from` is the caller's heap, of any state. */
void tlfl__remote_free(struct heap *from, struct span *span, struct block *block);

/* Sends what is in the outboxes. */
void tlfl__remote_flush(struct heap *heap);

/* Puts all that has arrived into the spans of the heap; true when there was anything. */
bool tlfl__remote_drain(struct heap *heap);

/* Turns thief on a live heap of another thread: on its remote list, and on its shelves. True when a
 * span was had. */
bool tlfl__remote_steal(struct heap *heap);
bool tlfl__remote_clear(struct heap *heap);

TLFL_INLINE bool remote_pending(const struct heap *heap)
{
    return atomic_load_explicit(&heap->remote, memory_order_relaxed) != NULL;
}

#endif
