/*
 * sampler.h - malloc, free and their like as a pass wants them: straight, timed now and then, or replaced by a stub.
 *
 * The timed calls count down a random gap; at its end one call is timed on its own. Gaps are drawn uniformly from
 * 1 .. 2 * mean - 1, since a fixed stride would alias with an allocator's refills. Every fourth sampled malloc also
 * covers the first write to the block, and counts as `touch` instead. calloc and aligned_alloc count as malloc.
 */
#ifndef AK_SAMPLER_H
#define AK_SAMPLER_H

#include "histogram.h"
#include "kernel.h"

enum hist_call { HIST_MALLOC, HIST_FREE, HIST_TOUCH, HIST_PAIR, HIST_REALLOC, HIST_CALLS };
extern const char *const hist_call_name[HIST_CALLS];

/* What the lock inside of an allocator came to since the start, over all threads: takes, those that found it held, and of
 * the `clocked` ones the time spent waiting and held, in ticks of a clock that reads `now`; `readings` of that clock take
 * `reading`. As in allocators/tlfl/tlfl.h. */
struct lock_times { uint64_t takes, contended, clocked, wait, hold, readings, reading, now; };

/* The allocator that serves the launch: what dlsym finds, or the stub under --no-alloc. */
struct served {
    void *(*malloc)(size_t);
    void  (*free)(void *);
    void *(*realloc)(void *, size_t);
    void *(*calloc)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t); /* NULL: of another object, or not there */
    size_t (*usable)(void *);               /* NULL: unknown */
    void (*locks)(struct lock_times *);     /* NULL: it does not clock its lock */
};
extern struct served served;

/* The countdowns of a worker. Owner: the one thread that runs for it at a time. */
struct sampler {
    uint32_t malloc_gap, free_gap, realloc_gap; /* calls until the next sample */
    uint32_t mean_gap, drawn;
    struct rng rng;
    struct hist *hist; /* HIST_CALLS of them */
};

void sampler_init(struct sampler *, struct hist *hists, uint64_t seed, uint32_t mean_gap);
/* The timed calls of this thread count in that sampler. On each thread before its first call. */
void sampler_use(struct sampler *);
void *timed_malloc(size_t size);
void  timed_free(void *block);
void *timed_realloc(void *block, size_t size);
void *timed_calloc(size_t count, size_t size);
void *timed_aligned_alloc(size_t align, size_t size);

/* The stub hands out an address of a small pool that follows from the size alone: a counter in memory would chain the
 * calls. `pool`, on a page of its own, must hold the largest size, and STUB_REACH bytes at least, plus STUB_SPREAD.
 * stub_init is for each thread. */
#define STUB_SPREAD 4096u
#define STUB_REACH  65536u
void  stub_init(char *pool);
void *stub_malloc(size_t size);
void  stub_free(void *block);
void *stub_realloc(void *block, size_t size);
void *stub_calloc(size_t count, size_t size);            /* not zeroed */
void *stub_aligned_alloc(size_t align, size_t size);     /* alignments up to a page */

#endif
