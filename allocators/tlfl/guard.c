/* guard.c - see guard.h. */
#include "guard.h"

#ifdef TLFL_LOCKED

#include "clocked.h"

static struct lock guard;
static TLFL_TLS unsigned guard_depth;

void tlfl__guard_enter(void)
{
    if (guard_depth++ == 0)
        clocked_take(&guard);
}

void tlfl__guard_leave(void)
{
    if (--guard_depth == 0)
        clocked_drop(&guard);
}

void tlfl__guard_reset(void)
{
    guard_depth = 0;
    atomic_store_explicit(&guard.word, 0, memory_order_release);
}

#else

_Static_assert(GRANULE_SIZE != 0, "a translation unit is not empty in ISO C");

#endif
