/*
 * planted.h - a known dose of lines that move: ones that another thread wrote last, and this one writes.
 *
 * All threads go round one ring of lines, in one order and as far apart from each other as they can be. So whatever line
 * comes next was last written by the thread ahead, and lies in its cache: PLANTED_EACH lines a thread are no burden. The
 * order jumps, so that no prefetcher follows. A visit is a load, and a store to the same word.
 *
 * Threads do not wait for each other, which would cost what is to be measured. Each line holds who wrote it, and visits
 * that found another thread are counted: all of them while threads keep pace, fewer where one stands still for long.
 */
#ifndef AK_PLANTED_H
#define AK_PLANTED_H

#include <stdatomic.h>

#include "kernel.h"

#define PLANTED_EACH 32u /* lines of the ring for each thread */
#define PLANTED_MAX  16

/* 0: nobody yet; else the thread's number plus 1. */
struct planted_line { _Alignas(CACHE_SECTOR) _Atomic uint32_t writer; };

/* One thread's place in the ring. */
struct planted {
    struct planted_line *ring;
    uint32_t first, at, jump, mask;
    uint32_t me;
    uint64_t moved; /* visits that found another's line */
};

/* Lines of the ring: a power of two, so that an odd jump comes by all. */
static inline uint32_t planted_lines(unsigned threads)
{
    uint32_t lines = PLANTED_EACH;
    while (lines < PLANTED_EACH * threads)
        lines *= 2;
    return lines;
}

/* Before the first visit the lines up to the next thread's place count as that one's. `own`: the control instead, a part of
 * the ring that nobody else visits. */
static inline void planted_init(struct planted *p, const struct ctx *c, bool own)
{
    uint32_t lines = own ? PLANTED_EACH : planted_lines(c->threads), threads = own ? 1 : c->threads;
    uint32_t place = own ? 0 : c->thread, next = (place + 1) % threads;
    uint32_t begin = (uint32_t)((uint64_t)lines * place / threads), end = (uint32_t)((uint64_t)lines * (place + 1) / threads);

    p->ring = (struct planted_line *)c->shared + (own ? c->thread * PLANTED_EACH : 0);
    p->mask = lines - 1;
    p->jump = lines * 5 / 8 | 1;
    p->first = p->at = begin * p->jump & p->mask;
    p->me = own ? 1 : c->thread + 1;
    for (uint32_t i = begin; i < end; i++)
        atomic_init(&p->ring[i * p->jump & p->mask].writer, next + 1);
}

static inline __attribute__((always_inline)) void planted_visit(struct planted *p, uint64_t visits)
{
    for (; visits > 0; visits--) {
        _Atomic uint32_t *writer = &p->ring[p->at].writer;
        p->moved += atomic_load_explicit(writer, memory_order_relaxed) != p->me;
        atomic_store_explicit(writer, p->me, memory_order_relaxed);
        p->at = (p->at + p->jump) & p->mask;
    }
}

/* After so many visits: is this thread where they lead, and was every line that it came by written by a thread that
 * there is? */
static inline int planted_verify(const struct planted *p, const struct ctx *c, uint64_t visits)
{
    uint32_t at = (uint32_t)(p->first + visits * p->jump) & p->mask;
    if (p->at != at)
        return ak_fail("%llu planted visits ended at line %u, expected %u", (unsigned long long)visits, p->at, at);
    for (uint64_t i = 0; i < visits && i <= p->mask; i++) {
        uint32_t writer = atomic_load_explicit(&p->ring[(p->first + i * p->jump) & p->mask].writer, memory_order_relaxed);
        if (writer == 0 || writer > c->threads)
            return ak_fail("a planted line says that thread %u of %u wrote it", writer, c->threads);
    }
    return 0;
}

#endif
