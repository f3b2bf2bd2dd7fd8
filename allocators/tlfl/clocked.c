/* clocked.c - see clocked.h. */
#include "clocked.h"

#ifdef TLFL_CLOCKED

#include <time.h>

#include "api.h"
#include "heap.h"
#include "thread.h"
#include "tlfl.h"

#define READING_ROUNDS 4
#define READINGS       49 /* microseconds in all: who asks sets `now` against a clock of its own */

static struct clocked_book book_of_none; /* of threads without a heap; under the outermost lock */

/* The outermost lock that this thread holds. */
static TLFL_TLS struct {
    unsigned depth; /* locks held */
    bool contended, timed;
    uint32_t gap, draw;    /* takes until the next one that is timed; random */
    uint64_t asked, taken; /* when, if timed */
} clocked;

/* After all that comes before it, as far as loads go. */
static uint64_t clock_now(void)
{
#if defined(__x86_64__)
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
    uint64_t now;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(now)::"memory");
    return now;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
#endif
}

static uint64_t figure(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

/* One writer: no locked instruction. */
static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_store_explicit(to, figure(to) + n, memory_order_relaxed);
}

/* Gaps are drawn from 1 to 2 * CLOCKED_GAP - 1, by a linear congruential generator (D. Knuth, H. Lewis). */
static bool due(void)
{
    if (TLFL_LIKELY(clocked.gap > 1)) {
        clocked.gap--;
        return false;
    }
    clocked.draw = clocked.draw * 1664525 + 1013904223;
    clocked.gap = 1 + (clocked.draw >> 16) % (2 * CLOCKED_GAP - 1);
    return true;
}

void tlfl__clocked_take(struct lock *lock)
{
    if (clocked.depth++ != 0) {
        tlfl__lock_take(lock);
        return;
    }
    clocked.timed = due();
    if (!clocked.timed) {
        clocked.contended = tlfl__lock_take(lock);
        return;
    }
    clocked.asked = clock_now();
    clocked.contended = tlfl__lock_take(lock);
    clocked.taken = clock_now();
}

void tlfl__clocked_drop(struct lock *lock)
{
    if (--clocked.depth == 0) {
        struct clocked_book *book = heap_state(tlfl__heap) == HEAP_LIVE ? &tlfl__heap->book : &book_of_none;
        add(&book->takes, 1);
        add(&book->contended, clocked.contended);
        if (clocked.timed) {
            add(&book->clocked, 1);
            add(&book->wait, clocked.taken - clocked.asked);
            add(&book->hold, clock_now() - clocked.taken);
        }
    }
    tlfl__lock_drop(lock);
}

void tlfl__clocked_reset(void)
{
    clocked.depth = 0;
}

static void times_add(struct tlfl_lock_times *times, const struct clocked_book *book)
{
    times->takes += figure(&book->takes);
    times->contended += figure(&book->contended);
    times->clocked += figure(&book->clocked);
    times->wait += figure(&book->wait);
    times->hold += figure(&book->hold);
}

/* The least of some: what an interrupt adds is no part of it. */
static uint64_t clock_reading(void)
{
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < READING_ROUNDS; round++) {
        uint64_t start = clock_now();
        for (int i = 0; i < READINGS; i++)
            clock_now();
        uint64_t all = clock_now() - start;
        least = all < least ? all : least;
    }
    return least;
}

TLFL_API void tlfl_lock_times(struct tlfl_lock_times *times)
{
    *times = (struct tlfl_lock_times){.readings = READINGS + 1, .reading = clock_reading()};
    times->now = clock_now();
    clocked.depth++; /* not counted itself */
    tlfl__central_enter();
    times_add(times, &book_of_none);
    for (const struct heap *heap = tlfl__thread_all(); heap != NULL; heap = heap->later)
        times_add(times, &heap->book);
    tlfl__central_leave();
    clocked.depth--;
}

#endif
