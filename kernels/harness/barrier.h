/*
 * barrier.h - a reusable barrier for pinned threads. Where every thread has a CPU the waiters spin, so that
 * they leave within a cache miss of each other; otherwise they sleep on a futex at once. Allocates nothing.
 *
 * Invariant: `arrived` counts the threads of the current phase; the last one clears it and opens the next phase.
 */
#ifndef AK_BARRIER_H
#define AK_BARRIER_H

#include <stdatomic.h>

#include "kernel.h"

struct barrier {
    _Alignas(CACHE_SECTOR) atomic_uint arrived;
    _Alignas(CACHE_SECTOR) atomic_uint phase;
    _Alignas(CACHE_SECTOR) unsigned threads, spins;
};

/* spins: steps of PAUSE before sleeping; 0 where threads outnumber CPUs. */
void barrier_init(struct barrier *b, unsigned threads, unsigned spins);
void barrier_wait(struct barrier *b);

static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
