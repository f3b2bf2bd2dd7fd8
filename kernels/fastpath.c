/*
 * fastpath - T_metadata(S): what malloc and free of one size cost when nothing is in the way.
 *
 * pair: free each block at once, so that the allocator serves the hottest one. lifo, fifo: allocate `batch` blocks,
 * then free them newest or oldest first, so that lists grow and refills happen. Work per op: one malloc, one free,
 * and with touch=line one store. `heap_state` keeps other blocks of the class live: an empty heap gives its last
 * page back at every free, which is a cost of its own.
 */
#include <string.h>

#include "kernel.h"

#define BATCH_MAX  65536
#define WARM_SLOTS 300

enum order { ORDER_PAIR, ORDER_LIFO, ORDER_FIFO };

struct state {
    uint64_t size, batch;
    bool     touch, dependent;
    enum order order;
    uint64_t done;
    void   **block; /* the batch; `batch` of them */
};

static const struct param params[] = {
    { "batch", PARAM_INT, "256", "count", 1, BATCH_MAX, NULL, "blocks of a lifo or fifo batch" },
    { "heap_state", PARAM_WORD, "warm", "", 0, 0, "empty|one|warm", "other live blocks of the size: 0, 1 or 300" },
    { "form", PARAM_WORD, "throughput", "", 0, 0, "throughput|dependent", "whether a call needs the last one's result" },
    { "touch", PARAM_WORD, "none", "", 0, 0, "none|line", "store to a fresh block" },
    { 0 },
};

static uint64_t live_slots(void)
{
    const char *state = param_word("heap_state");
    return strcmp(state, "empty") == 0 ? 0 : strcmp(state, "one") == 0 ? 1 : WARM_SLOTS;
}

static uint64_t grain(void)
{
    return variant_is("pair") ? 64 : param_int("batch");
}

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    s->size = param_int("size_min");
    s->batch = param_int("batch");
    s->touch = strcmp(param_word("touch"), "line") == 0;
    s->dependent = strcmp(param_word("form"), "dependent") == 0;
    s->order = variant_is("lifo") ? ORDER_LIFO : variant_is("fifo") ? ORDER_FIFO : ORDER_PAIR;
    s->block = ak_map(s->batch * sizeof(void *));
    for (uint64_t i = 0; i < c->live.slots; i++) {
        c->live.block[i] = c->malloc(s->size);
        c->live.size[i] = (uint32_t)s->size;
        if (c->live.block[i] == NULL)
            return ak_no_memory(s->size);
    }
    return 0;
}

/* In the dependent form the next size comes out of the last pointer, by way of a bit that no user address has. */
static inline __attribute__((always_inline)) size_t size_after(size_t size, bool dependent, uintptr_t last)
{
    return dependent ? size + (last >> 63) : size;
}

static inline __attribute__((always_inline)) int pairs(struct ctx *c, uint64_t iters, bool touch, bool dependent)
{
    const struct state *s = c->priv;
    void *(*const allocate)(size_t) = c->malloc;
    void (*const release)(void *) = c->free;
    const size_t size = s->size;
    uintptr_t last = 0;

    for (uint64_t i = 0; i < iters; i++) {
        char *block = allocate(size_after(size, dependent, last));
        if (__builtin_expect(block == NULL, 0))
            return ak_no_memory(size);
        if (touch)
            *(volatile char *)block = 1;
        last = (uintptr_t)block;
        release(block);
    }
    return 0;
}

static inline __attribute__((always_inline)) int batch(struct ctx *c, uint64_t n, bool touch, bool dependent)
{
    const struct state *s = c->priv;
    void *(*const allocate)(size_t) = c->malloc;
    void (*const release)(void *) = c->free;
    void **const blocks = s->block;
    const size_t size = s->size;
    uintptr_t last = 0;

    for (uint64_t i = 0; i < n; i++) {
        char *block = blocks[i] = allocate(size_after(size, dependent, last));
        if (__builtin_expect(block == NULL, 0))
            return ak_no_memory(size);
        if (touch)
            *(volatile char *)block = 1;
        last = (uintptr_t)block;
    }
    if (s->order == ORDER_LIFO)
        for (uint64_t i = n; i-- > 0;)
            release(blocks[i]);
    else
        for (uint64_t i = 0; i < n; i++)
            release(blocks[i]);
    return 0;
}

/* Inlined once for each form, so that no test of a parameter is left in a loop. */
static inline __attribute__((always_inline)) int stretch(struct ctx *c, uint64_t iters, bool touch, bool dependent)
{
    const struct state *s = c->priv;
    if (s->order == ORDER_PAIR)
        return pairs(c, iters, touch, dependent);
    for (uint64_t left = iters, n; left > 0; left -= n) {
        n = left < s->batch ? left : s->batch;
        if (batch(c, n, touch, dependent) != 0)
            return 1;
    }
    return 0;
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    s->done += iters;
    if (s->dependent)
        return s->touch ? stretch(c, iters, true, true) : stretch(c, iters, false, true);
    return s->touch ? stretch(c, iters, true, false) : stretch(c, iters, false, false);
}

static int verify(struct ctx *c)
{
    const struct state *s = c->priv;
    if (s->done != c->iters_done)
        return ak_fail("%llu ops were done, %llu asked for", (unsigned long long)s->done, (unsigned long long)c->iters_done);
    return c->no_alloc ? 0 : ak_verify_blocks(c, s->size);
}

static void teardown(struct ctx *c)
{
    for (uint64_t i = 0; i < c->live.slots; i++) {
        c->free(c->live.block[i]);
        c->live.block[i] = NULL;
    }
}

const struct kernel kernel = {
    .name = "fastpath",
    .what = "T_metadata(S): malloc/free of one size with nothing in the way",
    .variants = "pair|lifo|fifo",
    .params = params,
    .sizes = SIZES_FIXED,
    .priv_bytes = sizeof(struct state),
    .live_slots = live_slots,
    .grain = grain,
    .setup = setup,
    .run = run,
    .verify = verify,
    .teardown = teardown,
};
