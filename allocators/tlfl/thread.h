/* thread.h - which heap a thread has, from its first malloc to after its last destructor; fork.
 *
 * A thread gets a heap at its first malloc, not at a free: one that only frees needs none. The heap
 * comes from the abandoned list, the spare list or the metadata store, in this order.
 *
 * Exit is noticed by a pthread key. Destructors of other keys may allocate and free, so ours puts
 * itself off until the last round but one; then it hands the heap over and leaves the sentinel
 * tlfl__heap_after behind. From there on a free takes the remote path, which needs no heap, and a
 * malloc borrows an idle heap for the one call.
 *
 * fork() takes the central lock (and the guard of the variant `locked`) in the parent and lets it
 * go in both processes. In the child the heaps of the threads that are not there stay as they are:
 * such a thread may have been anywhere in its fast path, so their free blocks are not used again;
 * blocks of theirs that the child frees are queued to them.
 */
#ifndef TLFL_THREAD_H
#define TLFL_THREAD_H

#include "heap.h"

/* A block of `class` for a thread without a heap of its own; NULL and ENOMEM when refused. */
void *tlfl__thread_malloc(unsigned class);

/* Moves an AVAIL span of `class` from an abandoned heap to `heap`; NULL when none is at hand. The
 * span is in no list. Looks at a few heaps only. */
struct span *tlfl__thread_adopt(struct heap *heap, unsigned class);

/* Puts what was freed to the abandoned heaps into their spans, and gives empty ones to the pool.
 * Looks at a few heaps only. */
void tlfl__thread_sweep(void);

/* All that can be given back without the other threads' help: empty spans of the caller's heap and
 * of all idle ones, and all the pool has. True when anything went. */
bool tlfl__thread_trim(void);

/* Number of heaps ever made. Under the central lock. */
size_t tlfl__thread_heaps(void);

#endif
