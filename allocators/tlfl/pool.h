/* pool.h - granules: where spans get their memory and give it back to.
 *
 * Memory comes from the OS in chunks of up to 64 granules (4 MiB), so that one word tells which
 * granules of a chunk are free. The pool is also the cache of large spans: freed granules stay
 * resident for a while and are handed out first.
 *
 * Purging. A granule that is given back is dirty. A tick happens at most every POOL_TICK_MS, when a
 * thread gives memory back or refills; there is no background thread. A tick purges the granules
 * that were dirty at the tick before and are still free: 1 to 2 tick lengths after the free, if the
 * program goes on allocating at all. When what is in use and what is dirty together exceed by
 * more than POOL_DIRTY_MAX granules what was in use at once since the tick before last, a tick comes at
 * once. Adjacent granules are purged by one call. A
 * chunk that is free and clean throughout is unmapped by the next tick, save one.
 */
#ifndef TLFL_POOL_H
#define TLFL_POOL_H

#include "base.h"

#define CHUNK_GRANULES 64
#define POOL_TICK_MS   100
#define POOL_DIRTY_MAX 512 /* granules: 32 MiB */

/* A chunk. Under the central lock throughout. Its granules go to the threads of one NUMA node, which
 * touch them first; those of another node get them only when the OS refuses.
 *
 *   all     the granules it has: the low bits, all 64 unless the OS would only give less
 *   free    not part of a span
 *   dirty   subset of all: may hold old contents. A granule not in it reads as zero
 *   aged    subset of dirty: was dirty at the last tick already
 *
 * next, prev: the list of its bucket, by the longest run of free granules.
 * later, earlier: the list of all chunks.
 */
struct chunk {
    char *base;
    uint64_t all, free, dirty, aged;
    struct chunk *next, *prev;
    struct chunk *later, *earlier;
    unsigned bucket, node;
};

/* A run of granules out of one chunk. */
struct run {
    struct chunk *chunk;
    unsigned first, granules;
    bool zero; /* reads as zero throughout */
};

/* Takes 1 to CHUNK_GRANULES granules, for a thread on `node`. False when the OS refuses and nothing is left to give back
 * to it. Under the central lock. */
bool tlfl__pool_take(unsigned granules, unsigned node, struct run *run);

/* Makes a run longer, if what follows it is free, or shorter. Under the central lock. */
bool tlfl__pool_resize(struct run *run, unsigned granules);

/* Gives a run back. Its map entries are NULL. Under the central lock. */
void tlfl__pool_give(const struct run *run);

/* Purges what is due. To be called with no lock held (it lets the central lock go around madvise);
 * costs a clock reading when nothing is due. */
void tlfl__pool_tick(void);

/* In the child of a fork: a thread that was in a tick is not there. What it was purging at that moment,
 * one run of granules, is lost to the child. */
void tlfl__pool_reset(void);

/* Purges all that is free and unmaps every free chunk; returns the bytes given back. */
size_t tlfl__pool_trim(void);

/* Free granules that may be resident. Under the central lock. */
size_t tlfl__pool_dirty(void);

struct pool_books {
    size_t mapped, dirty, free; /* bytes */
};
struct pool_books tlfl__pool_books(void);

TLFL_INLINE char *run_start(const struct run *run)
{
    return run->chunk->base + run->first * GRANULE_SIZE;
}

#endif
