/*
 * skeleton - the kernel to copy: fill a block, free it, count.
 *
 * Copy this file to kernels/<name>.c, change `.name`, and `make` builds build/kernels/<name>; no list is edited.
 * Say here what one op costs: malloc of `size_min` bytes, `writes` stores to it, and free.
 */
#include "kernel.h"

/* This thread's state, in harness memory: zeroed, on lines of its own. */
struct state {
    uint64_t size, writes; /* parameters, read once in setup */
    uint64_t sum;          /* what the blocks held when they were freed */
};

/* An entry becomes an option (--writes 4), a key of a sweep (writes = 1, 4) and a metric of the row. */
static const struct param params[] = {
    { "writes", PARAM_INT, "1", "count", 1, 64, NULL, "stores to each block" },
    { 0 },
};

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    s->size = param_int("size_min");
    s->writes = param_int("writes");
    return 0;
}

/* The timed region: only c->malloc and c->free may allocate, and `iters` ops must be done. */
static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    for (uint64_t i = 0; i < iters; i++) {
        volatile unsigned char *block = c->malloc(s->size);
        if (block == NULL)
            return ak_no_memory(s->size);
        for (uint64_t w = 0; w < s->writes; w++)
            *block = (unsigned char)(w + 1);
        s->sum += *block;
        c->free((void *)block);
    }
    return 0;
}

/* Proof that the work was done. It must be able to fail. */
static int verify(struct ctx *c)
{
    const struct state *s = c->priv;
    if (s->sum != c->iters_done * s->writes)
        return ak_fail("the blocks held %llu, expected %llu", (unsigned long long)s->sum,
                       (unsigned long long)(c->iters_done * s->writes));
    return 0;
}

const struct kernel kernel = {
    .name = "skeleton",
    .what = "the kernel to copy: malloc, a few stores, free",
    .params = params,
    .sizes = SIZES_FIXED,
    .priv_bytes = sizeof(struct state),
    .setup = setup,
    .run = run,
    .verify = verify,
};
