/* clocked.h - the variants `clocked` and `locked-clocked`: what the lock costs, told from inside.
 *
 * With -DTLFL_CLOCKED every take of a lock is counted, and about one in CLOCKED_GAP, at random, is clocked: the
 * thread reads the clock before it, when it has the lock, and before it lets go. To clock all would make a pair of
 * malloc and free ten times as dear, and so tell of another lock. What counts is the outermost lock that a thread holds:
 * the guard of the variant `locked`, or the central lock where there is no guard; what is taken under that one is a
 * part of its hold. Without the flag the calls are those of lock.h.
 *
 *   wait   from the wish to having it, also where it is free: the line of the lock has to come all the same
 *   hold   from then until the drop begins. What the drop itself takes, and stores that are still on their way, are
 *          in the wait of who comes next
 *
 * One reading of the clock lies in each of the two, and what that takes is told beside them. The book of a thread is
 * its heap's, so that no line moves for it; a thread without a heap uses one for all, under the lock that it counts.
 * Whose heap it is, is asked when the lock is let go: the first malloc of a thread takes it without a heap.
 */
#ifndef TLFL_CLOCKED_H
#define TLFL_CLOCKED_H

#include "lock.h"

#ifdef TLFL_CLOCKED

#define CLOCKED_GAP 16 /* a power of two */

/* Written by one thread at a time, read by any. Wait and hold of the `clocked` takes, in ticks of the clock. */
struct clocked_book {
    _Atomic uint64_t takes, contended, clocked, wait, hold;
};

void tlfl__clocked_take(struct lock *lock);
void tlfl__clocked_drop(struct lock *lock);
void tlfl__clocked_reset(void);

TLFL_INLINE void clocked_take(struct lock *lock)
{
    tlfl__clocked_take(lock);
}

TLFL_INLINE void clocked_drop(struct lock *lock)
{
    tlfl__clocked_drop(lock);
}

TLFL_INLINE void clocked_reset(void)
{
    tlfl__clocked_reset();
}

#else

struct clocked_book {
};

TLFL_INLINE void clocked_take(struct lock *lock)
{
    tlfl__lock_take(lock);
}

TLFL_INLINE void clocked_drop(struct lock *lock)
{
    tlfl__lock_drop(lock);
}

/* In the child of a fork: this thread holds no lock any more. */
TLFL_INLINE void clocked_reset(void) {}

#endif

#endif
