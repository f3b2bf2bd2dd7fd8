/* guard.h - the variant `locked`: one lock around every call, planted.
 *
 * With -DTLFL_LOCKED every function of the malloc family holds one lock from entry to exit; all
 * else is the same code. Without it the functions below are empty. The lock may be entered again by
 * its holder, because pthread_setspecific, called inside, may call calloc.
 */
#ifndef TLFL_GUARD_H
#define TLFL_GUARD_H

#include "base.h"

#ifdef TLFL_LOCKED

void tlfl__guard_enter(void);
void tlfl__guard_leave(void);
void tlfl__guard_reset(void);

TLFL_INLINE void guard_enter(void)
{
    tlfl__guard_enter();
}

TLFL_INLINE void guard_leave(void)
{
    tlfl__guard_leave();
}

TLFL_INLINE void guard_reset(void)
{
    tlfl__guard_reset();
}

#else

TLFL_INLINE void guard_enter(void) {}

TLFL_INLINE void guard_leave(void) {}

/* In the child of a fork: nobody holds or waits. */
TLFL_INLINE void guard_reset(void) {}

#endif

#endif
