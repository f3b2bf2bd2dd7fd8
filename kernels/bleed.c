/*
 * bleed - the server pattern: objects outlive the thread that made them and are freed by its successors.
 *
 * Each worker keeps `live_blocks` objects. Its ops are done by one generation after the other: a thread that is made,
 * does `generation` ops and ends. An op frees an object and allocates another of random size in its place. A generation
 * replaces objects of its own share alone, `share` percent of the slots beginning where the last one's ended, and
 * chosen at random among these: the first time it comes by a slot it frees what a dead thread left, later its own. The
 * other objects live on. (P. Larson and M. Krishnan, Memory allocation for long-running server applications, ISMM 1998,
 * is the pattern with a share of all.)
 *
 * Work per op: one random number, one free, one malloc, with touch a tag read and a tag written, 12 bytes of bookkeeping,
 * and 1/generation of a thread's life (thread_churn; --no-alloc has it too). A generation also ends where a run does.
 */
#include <string.h>

#include "kernel.h"

struct state {
    bool     touch;
    uint64_t generation; /* ops of one */
    uint32_t window;     /* slots that one generation replaces */
    uint32_t first;      /* slot where the window of the next one begins */
    uint64_t balance;    /* sum of the tags issued less those found: what live blocks must hold */
    uint64_t done;
    uint64_t born, died; /* generations: counted by the worker, and by each thread at its end */
};

static const struct param params[] = {
    { "live_blocks", PARAM_INT, "2000", "count", 1, 100000000, NULL, "objects that each worker keeps" },
    { "share", PARAM_INT, "50", "percent", 1, 100, NULL, "share of the objects that one generation replaces" },
    { "generation", PARAM_INT, "4000", "count", 1, 1000000000, NULL, "ops of a thread before the next takes over" },
    { "touch", PARAM_WORD, "line", "", 0, 0, "none|line", "stores to a fresh block: none, or to its first line" },
    { 0 },
};

static uint64_t live_slots(void)
{
    return param_int("live_blocks");
}

/* A batch is one generation, its birth and death included. */
static uint64_t grain(void)
{
    return param_int("generation");
}

/* A touched block begins with a tag. */
static uint64_t size_least(void)
{
    return strcmp(param_word("touch"), "none") == 0 ? 1 : sizeof(uint64_t);
}

static inline uint64_t block_tag(const void *block)
{
    uint64_t tag;
    memcpy(&tag, block, sizeof tag);
    return tag;
}

static inline int block_place(struct ctx *c, uint64_t slot, void *block, uint32_t size, bool touch, uint64_t tag)
{
    c->live.block[slot] = block;
    if (__builtin_expect(block == NULL, 0))
        return ak_no_memory(size);
    if (touch)
        memcpy(block, &tag, sizeof tag);
    c->live.size[slot] = size;
    return 0;
}

static int generation(struct ctx *c, uint64_t ops)
{
    struct state *s = c->priv;
    void *(*const allocate)(size_t) = c->malloc;
    void (*const release)(void *) = c->free;
    const uint32_t slots = (uint32_t)c->live.slots, first = s->first, window = s->window;
    const bool touch = s->touch;
    struct rng rng = c->rng;
    uint64_t balance = 0;

    for (uint64_t i = 0; i < ops; i++) {
        uint64_t draw = rng_next(&rng), slot = first + rng_below(draw, window);
        uint32_t size = c->size_table[draw & SIZE_TABLE_MASK];
        slot = slot < slots ? slot : slot - slots;
        if (touch)
            balance += draw - block_tag(c->live.block[slot]);
        release(c->live.block[slot]);
        if (block_place(c, slot, allocate(size), size, touch, draw) != 0)
            return 1;
    }
    c->rng = rng;
    s->balance += balance;
    s->done += ops;
    s->first = first + window < slots ? first + window : first + window - slots;
    s->died++;
    return 0;
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    for (uint64_t left = iters, ops; left > 0; left -= ops) {
        ops = left < s->generation ? left : s->generation;
        s->born++;
        if (ak_thread(c, generation, ops) != 0)
            return 1;
    }
    return 0;
}

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    uint64_t window = c->live.slots * param_int("share") / 100;

    s->touch = strcmp(param_word("touch"), "none") != 0;
    s->generation = param_int("generation");
    s->window = window ? (uint32_t)window : 1;
    for (uint64_t slot = 0; slot < c->live.slots; slot++) {
        uint64_t draw = rng_next(&c->rng);
        uint32_t size = c->size_table[draw & SIZE_TABLE_MASK];
        if (block_place(c, slot, c->malloc(size), size, s->touch, draw) != 0)
            return 1;
        s->balance += draw;
    }
    return 0;
}

static int verify(struct ctx *c)
{
    const struct state *s = c->priv;
    uint64_t live = 0;

    if (s->done != c->iters_done || s->died != s->born)
        return ak_fail("%llu cycles were done, %llu asked for; of %llu generations %llu ended",
                       (unsigned long long)s->done, (unsigned long long)c->iters_done, (unsigned long long)s->born,
                       (unsigned long long)s->died);
    if (!s->touch || c->no_alloc)
        return 0;
    for (uint64_t slot = 0; slot < c->live.slots; slot++)
        live += block_tag(c->live.block[slot]);
    if (live != s->balance)
        return ak_fail("block contents changed: the live tags sum to %llx, expected %llx", (unsigned long long)live,
                       (unsigned long long)s->balance);
    return 0;
}

static void teardown(struct ctx *c)
{
    for (uint64_t slot = 0; slot < c->live.slots; slot++) {
        c->free(c->live.block[slot]);
        c->live.block[slot] = NULL;
    }
}

const struct kernel kernel = {
    .name = "bleed",
    .what = "the server pattern: objects outlive their thread and are freed by its successors",
    .params = params,
    .makes_threads = true,
    .sizes = SIZES_RANGE,
    .default_ops = 200000,
    .default_size_max = "1024",
    .priv_bytes = sizeof(struct state),
    .live_slots = live_slots,
    .size_least = size_least,
    .grain = grain,
    .setup = setup,
    .run = run,
    .verify = verify,
    .teardown = teardown,
};
