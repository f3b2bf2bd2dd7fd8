/* thread.h - which heap a thread has, from its first malloc to after its last destructor; fork.
 *
 * A thread gets a heap at its first malloc, or at its first free of somebody else's block. The heap
 * is the one that an ended thread on the same NUMA node left last, or a new one.
 *
 * Exit is noticed by a pthread key. Destructors of other keys may allocate and free, so ours puts
 * itself off until the last round but one; then it sends what is in the outboxes, hands the heap
 * over as it is and leaves the sentinel behind. From there on a free takes the remote path, which
 * needs no heap, and a malloc borrows an idle heap for the one call. What an idle heap keeps in
 * current spans and on shelves waits for the next thread, until a sweep settles the heap: a few of
 * them at every tick of any live one.
 *
 * Not every thread comes by there: one whose first malloc is in the last round of destructors, or which found
 * no key left, or which ended by the system call alone. Its heap stays LIVE until somebody asks the kernel for the
 * thread: who finds no idle heap, before it makes a new one, asks for some in turn, a sweep for one, a trim for
 * all. A heap whose thread is not there is then handed over as above. Two things keep the answer honest:
 *
 *   process, thread  the numbers of who claimed the heap, as the kernel has them. Only a caller in the same process
 *                    asks: one that shares memory (vfork) or got a copy of it (clone, without the handlers of
 *                    fork) does not see the threads of the other
 *   forks            as many as there were then. What a child of fork inherits it never asks for: the
 *                    threads are not there, and may have been anywhere (below). The one that is there is now the
 *                    main thread, which the kernel knows as long as the process lives
 *
 * A thread that finds itself on another NUMA node swaps heaps: the old one becomes idle on its node,
 * where its memory is. It looks every 32 refills, and only where there are several nodes.
 *
 * fork() takes the central lock (and the guard of the variant `locked`) in the parent and lets it
 * go in both processes. In the child the heaps of the threads that are not there stay as they are:
 * such a thread may have been anywhere in its fast path, so their free blocks are not used again;
 * blocks of theirs that the child frees are queued to them, and spans that come to lie in such a
 * queue as a whole are reused (remote.h).
 */
#ifndef TLFL_THREAD_H
#define TLFL_THREAD_H

#include "heap.h"

/* The heap of this thread, which gets one if it has none; NULL when its last destructor has run or
 * memory is refused. */
struct heap *tlfl__thread_heap(void);

/* A block of `class` for a thread without a heap of its own; NULL and ENOMEM when refused. */
void *tlfl__thread_malloc(unsigned class);

/* Whether the caller is on another NUMA node than its heap. */
bool tlfl__thread_moved(const struct heap *heap);

/* The heap to refill: `heap`, the caller's own, or another one if the thread has moved. */
struct heap *tlfl__thread_follow(struct heap *heap);

/* Moves an AVAIL span of `class` from an idle heap to `heap`; NULL when none is at hand. The span is
 * in no list. Looks at a few heaps only. */
struct span *tlfl__thread_adopt(struct heap *heap, unsigned class);

/* Settles some idle heaps and puts what was freed to them into their spans; clears the shelves of
 * some live ones whose threads seem to sleep. `now` is tlfl__os_ms. */
void tlfl__thread_sweep(uint64_t now);

/* All that can be given back without the other threads' help: free spans of the caller's heap and
 * of all idle ones, whole spans that were freed to running ones, kept huge blocks and all the pool
 * has. True when anything went. */
bool tlfl__thread_trim(void);

/* Number of live heaps, at least 1; about, without the lock. */
uint32_t tlfl__thread_live(void);

/* All heaps, through later. Under the central lock. */
const struct heap *tlfl__thread_all(void);

/* Number of heaps ever made. Under the central lock. */
size_t tlfl__thread_heaps(void);

#endif
