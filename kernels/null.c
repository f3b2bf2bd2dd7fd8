/*
 * null - what the harness itself costs.
 *
 * Work per op: two calls through the pointers of the context, into a stub that hands out addresses of a small pool.
 * No allocator is called. Its throughput is the floor under every other kernel's, and its quantiles are what the
 * clock alone looks like.
 */
#include "kernel.h"

struct state { uint64_t pairs; };

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    for (uint64_t i = 0; i < iters; i++) {
        void *block = c->malloc(16);
        c->free(block);
    }
    s->pairs += iters;
    return 0;
}

static int verify(struct ctx *c)
{
    const struct state *s = c->priv;
    if (s->pairs != c->iters_done)
        return ak_fail("%llu pairs were made, %llu asked for", (unsigned long long)s->pairs,
                       (unsigned long long)c->iters_done);
    return 0;
}

const struct kernel kernel = {
    .name = "null",
    .what = "the harness's own cost: the loop, two calls into a stub, the clock",
    .op = "one pair of stub calls",
    .no_alloc = true,
    .priv_bytes = sizeof(struct state),
    .run = run,
    .verify = verify,
};
