#include "clock.h"
#include "sampler.h"

const char *const hist_call_name[HIST_CALLS] = { "malloc", "free", "touch", "pair" };

struct served served;

/* One a thread, so that a countdown never shares a line. */
static __thread struct {
    uint32_t malloc_gap, free_gap, mean_gap, drawn;
    struct rng rng;
    struct hist *hist;
} sampler;

static __thread char *stub_pool;

static uint32_t gap_draw(void)
{
    return 1 + rng_below(rng_next(&sampler.rng), 2 * sampler.mean_gap - 1);
}

void sampler_init(struct hist *hists, uint64_t seed, uint32_t mean_gap)
{
    sampler.rng.state = seed;
    sampler.mean_gap = mean_gap;
    sampler.malloc_gap = gap_draw();
    sampler.free_gap = gap_draw();
    sampler.hist = hists;
}

static __attribute__((noinline)) void *malloc_sample(size_t size)
{
    bool touch = sampler.drawn++ % 4 == 3;
    uint64_t start = clock_start();
    char *block = served.malloc(size);
    if (touch && block != NULL)
        *(volatile char *)block = 0;
    uint64_t stop = clock_stop();
    hist_add(&sampler.hist[touch ? HIST_TOUCH : HIST_MALLOC], stop - start);
    sampler.malloc_gap = gap_draw();
    return block;
}

static __attribute__((noinline)) void free_sample(void *block)
{
    uint64_t start = clock_start();
    served.free(block);
    uint64_t stop = clock_stop();
    hist_add(&sampler.hist[HIST_FREE], stop - start);
    sampler.free_gap = gap_draw();
}

void *timed_malloc(size_t size)
{
    return --sampler.malloc_gap == 0 ? malloc_sample(size) : served.malloc(size);
}

void timed_free(void *block)
{
    if (--sampler.free_gap == 0)
        free_sample(block);
    else
        served.free(block);
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
