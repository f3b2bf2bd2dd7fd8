/* lock.h - a futex lock, and the central lock.
 *
 * The central lock guards everything that is not owned by one heap: the pool and its chunks, the
 * metadata store, growth of the map, the lists of idle heaps. No fast path takes it. It is the only
 * lock of the plain library, so fork() has one lock to take whatever the number of threads.
 *
 * It may be entered again by the thread that holds it. Two users need that: a sweep of an abandoned
 * heap gives spans back to the pool, and a fork handler of somebody else may allocate between our
 * own prepare and parent handlers.
 */
#ifndef TLFL_LOCK_H
#define TLFL_LOCK_H

#include "base.h"

/* word: 0 free, 1 held, 2 held and somebody may sleep on it. */
struct lock {
    alignas(LINE_PAIR) _Atomic uint32_t word;
};

/* True where it was held, and had to be waited for. */
bool tlfl__lock_take(struct lock *lock);
void tlfl__lock_drop(struct lock *lock);

void tlfl__central_enter(void);
void tlfl__central_leave(void);

/* Whether this thread is inside. */
bool tlfl__central_held(void);

/* In the child of a fork, where nobody can wait: leaves the central lock as the forking thread held
 * it once, without waking. */
void tlfl__central_reset(void);

#endif
