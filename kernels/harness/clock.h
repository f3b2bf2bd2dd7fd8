/*
 * clock.h - the harness's clock: the time-stamp counter where it is invariant, else CLOCK_MONOTONIC_RAW.
 *
 * Ticks are raw; clock_ns converts. A start/stop pair is fenced so that neither end overlaps the work: start waits
 * for earlier instructions to finish (LFENCE), stop for the work itself (RDTSCP) and keeps later ones from beginning.
 */
#ifndef AK_CLOCK_H
#define AK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct clock_facts {
    bool     tsc;             /* false: CLOCK_MONOTONIC_RAW, one tick is 1 ns */
    double   ns_per_tick;
    uint64_t overhead_ticks;  /* median of a start/stop pair with nothing between */
    uint64_t granularity;     /* smallest step between two readings, in ticks: at most this coarse */
};

extern struct clock_facts clock_facts;

/* Calibrate against CLOCK_MONOTONIC_RAW (about 10 ms) and measure the overhead. Main thread, once. */
void clock_init(void);

static inline uint64_t clock_raw_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_start(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(clock_facts.tsc, 1)) {
        uint32_t low, high;
        __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
        return (uint64_t)high << 32 | low;
    }
#endif
    return clock_raw_ns();
}

static inline uint64_t clock_stop(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(clock_facts.tsc, 1)) {
        uint32_t low, high, cpu;
        __asm__ volatile("rdtscp\n\tlfence" : "=a"(low), "=d"(high), "=c"(cpu)::"memory");
        return (uint64_t)high << 32 | low;
    }
#endif
    return clock_raw_ns();
}

static inline double clock_ns(double ticks)
{
    return ticks * clock_facts.ns_per_tick;
}

#endif
