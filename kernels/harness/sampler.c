#include "clock.h"
#include "sampler.h"

const char *const hist_call_name[HIST_CALLS] = { "malloc", "free", "touch", "pair", "realloc" };

struct served served;

/* A pointer to the worker's own, so that threads which run one after the other for a worker go on with its gaps. */
static __thread struct sampler *sampler;

static __thread char *stub_pool;

static uint32_t gap_draw(struct sampler *s)
{
    return 1 + rng_below(rng_next(&s->rng), 2 * s->mean_gap - 1);
}

void sampler_init(struct sampler *s, struct hist *hists, uint64_t seed, uint32_t mean_gap)
{
    s->rng.state = seed;
    s->mean_gap = mean_gap;
    s->malloc_gap = gap_draw(s);
    s->free_gap = gap_draw(s);
    s->realloc_gap = gap_draw(s);
    s->hist = hists;
}

void sampler_use(struct sampler *s)
{
    sampler = s;
}

/* What gives a fresh block. One of the three, inlined into each; `align` and `count` are for those that take them. */
enum fresh { FRESH_MALLOC, FRESH_CALLOC, FRESH_ALIGNED };

static inline __attribute__((always_inline)) void *fresh_block(enum fresh call, size_t count, size_t align, size_t size)
{
    return call == FRESH_MALLOC ? served.malloc(size) : call == FRESH_CALLOC ? served.calloc(count, size)
         : served.aligned_alloc(align, size);
}

static __attribute__((noinline)) void *fresh_sample(enum fresh call, size_t count, size_t align, size_t size)
{
    bool touch = sampler->drawn++ % 4 == 3;
    uint64_t start = clock_start();
    char *block = fresh_block(call, count, align, size);
    if (touch && block != NULL)
        *(volatile char *)block = 0;
    uint64_t stop = clock_stop();
    hist_add(&sampler->hist[touch ? HIST_TOUCH : HIST_MALLOC], stop - start);
    sampler->malloc_gap = gap_draw(sampler);
    return block;
}

static __attribute__((noinline)) void free_sample(void *block)
{
    uint64_t start = clock_start();
    served.free(block);
    uint64_t stop = clock_stop();
    hist_add(&sampler->hist[HIST_FREE], stop - start);
    sampler->free_gap = gap_draw(sampler);
}

static __attribute__((noinline)) void *realloc_sample(void *block, size_t size)
{
    uint64_t start = clock_start();
    void *grown = served.realloc(block, size);
    uint64_t stop = clock_stop();
    hist_add(&sampler->hist[HIST_REALLOC], stop - start);
    sampler->realloc_gap = gap_draw(sampler);
    return grown;
}

void *timed_malloc(size_t size)
{
    return --sampler->malloc_gap == 0 ? fresh_sample(FRESH_MALLOC, 0, 0, size) : served.malloc(size);
}

void *timed_calloc(size_t count, size_t size)
{
    return --sampler->malloc_gap == 0 ? fresh_sample(FRESH_CALLOC, count, 0, size) : served.calloc(count, size);
}

void *timed_aligned_alloc(size_t align, size_t size)
{
    return --sampler->malloc_gap == 0 ? fresh_sample(FRESH_ALIGNED, 0, align, size) : served.aligned_alloc(align, size);
}

void timed_free(void *block)
{
    if (--sampler->free_gap == 0)
        free_sample(block);
    else
        served.free(block);
}

void *timed_realloc(void *block, size_t size)
{
    return --sampler->realloc_gap == 0 ? realloc_sample(block, size) : served.realloc(block, size);
}

void stub_init(char *pool)
{
    stub_pool = pool;
}

void *stub_malloc(size_t size)
{
    return stub_pool + (size * CACHE_LINE & (STUB_SPREAD - 1));
}

void stub_free(void *block)
{
    __asm__ volatile("" ::"r"(block) : "memory");
}

void *stub_realloc(void *block, size_t size)
{
    stub_free(block);
    return stub_malloc(size);
}

void *stub_calloc(size_t count, size_t size)
{
    return stub_malloc(count * size);
}

void *stub_aligned_alloc(size_t align, size_t size)
{
    return align > CACHE_LINE ? stub_pool : stub_malloc(size);
}
