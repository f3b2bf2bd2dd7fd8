/*
 * chase - latency of a dependent load by working set: L1, L2, L3, memory.
 *
 * Each thread walks its own lines in one random cycle (Sattolo's shuffle), so that no prefetcher can follow. Work per
 * op: one load whose address is the last one's result. With pages=base it includes the TLB misses of the working set.
 */
#include <string.h>

#include "kernel.h"

/* One cache line of the working set. */
struct node { _Alignas(CACHE_LINE) struct node *next; };

struct state {
    struct node *nodes, *at;
    uint64_t count;
};

static const struct param params[] = {
    { "set", PARAM_SIZE, "32K", "bytes", 1024, 1ull << 36, NULL, "working set of each thread" },
    { "pages", PARAM_WORD, "huge", "", 0, 0, "base|huge", "huge asks for transparent huge pages: latency without TLB misses" },
    { 0 },
};

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    s->count = param_int("set") / sizeof(struct node);
    s->nodes = strcmp(param_word("pages"), "huge") == 0 ? ak_map_huge(s->count * sizeof(struct node))
                                                        : ak_map(s->count * sizeof(struct node));
    for (uint64_t i = 0; i < s->count; i++)
        s->nodes[i].next = &s->nodes[i];
    for (uint64_t i = s->count - 1; i > 0; i--) {
        uint64_t j = rng_next(&c->rng) % i;
        struct node *swap = s->nodes[i].next;
        s->nodes[i].next = s->nodes[j].next;
        s->nodes[j].next = swap;
    }
    s->at = s->nodes;
    for (uint64_t i = 0; i < s->count; i++)
        s->at = s->at->next; /* warm */
    return s->at == s->nodes ? 0 : ak_fail("the lines do not form one cycle");
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    struct node *at = s->at;
    for (uint64_t i = 0; i < iters; i++)
        at = *(struct node *volatile *)&at->next;
    s->at = at;
    return 0;
}

/* After n loads the walk stands n mod count steps from where it began. */
static int verify(struct ctx *c)
{
    const struct state *s = c->priv;
    const struct node *at = s->nodes;
    for (uint64_t i = c->iters_done % s->count; i > 0; i--)
        at = at->next;
    return at == s->at ? 0 : ak_fail("the walk ended on another line than %llu loads lead to", (unsigned long long)c->iters_done);
}

static void teardown(struct ctx *c)
{
    struct state *s = c->priv;
    ak_unmap(s->nodes, s->count * sizeof(struct node));
}

const struct kernel kernel = {
    .name = "chase",
    .what = "latency of a dependent load by working set",
    .params = params,
    .op = "one dependent load",
    .no_alloc = true,
    .once = true,
    .default_ops = 2000000,
    .priv_bytes = sizeof(struct state),
    .setup = setup,
    .run = run,
    .verify = verify,
    .teardown = teardown,
};
