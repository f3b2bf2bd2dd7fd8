/*
 * sampler.h - malloc and free as a pass wants them: straight, timed now and then, or replaced by a stub.
 *
 * The timed pair counts down a random gap; at its end one call is timed on its own. Gaps are drawn uniformly from
 * 1 .. 2 * mean - 1, since a fixed stride would alias with an allocator's refills. Every fourth sampled malloc also
 * covers the first write to the block, and counts as `touch` instead.
 */
#ifndef AK_SAMPLER_H
#define AK_SAMPLER_H

#include "histogram.h"
#include "kernel.h"

enum hist_call { HIST_MALLOC, HIST_FREE, HIST_TOUCH, HIST_PAIR, HIST_CALLS };
extern const char *const hist_call_name[HIST_CALLS];

/* The allocator that serves the launch: what dlsym finds, or the stub under --no-alloc. */
struct served {
    void *(*malloc)(size_t);
    void  (*free)(void *);
    size_t (*usable)(void *); /* NULL: unknown */
};
extern struct served served;

/* On each worker before its first call: seeds the gaps, names the histograms (HIST_CALLS of them). */
void sampler_init(struct hist *hists, uint64_t seed, uint32_t mean_gap);
void *timed_malloc(size_t size);
void  timed_free(void *block);

/* The stub hands out an address of a small pool that follows from the size alone: a counter in memory would chain the
 * calls. `pool` must hold the largest size plus STUB_SPREAD bytes. */
#define STUB_SPREAD 4096u
void  stub_init(char *pool);
void *stub_malloc(size_t size);
void  stub_free(void *block);

#endif
