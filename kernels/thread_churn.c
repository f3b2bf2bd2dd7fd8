/*
 * thread_churn - what a thread's birth and death cost, and what they leave behind.
 *
 * Each op is one life: a thread is made, allocates `objects` blocks, writes a tag into each, and ends; variant free:
 * it frees them itself; variant leave: its parent frees them once it is gone. One thread lives at a time for each
 * worker, on the worker's CPU. Work per op: pthread_create and pthread_join on a stack that is used again (kernel.h,
 * ak_thread: one small calloc and free of the C library's are in it), then for each object one malloc, one free, and
 * with touch a store and a load. Under --no-alloc the same lives with a stub: the threads alone.
 *
 * What the dead leave behind shows in rss_overhead_bytes and timeline.csv, since no block is live at a look. Metric
 * left_per_life_bytes: resident bytes at the end (after --settle-ms) above the baseline, over all lives of the launch.
 */
#include <string.h>

#include "kernel.h"

#define OBJECTS_MAX 65536

struct state {
    uint64_t objects;
    bool     leave, touch;
    uint64_t lives, died;   /* counted by the parent, and by each thread at its end */
    uint64_t made, freed;
    uint64_t issued, found; /* sums of tags */
    void   **block;         /* `objects` of them; NULL where nothing is live */
};

static const struct param params[] = {
    { "objects", PARAM_INT, "100", "count", 0, OBJECTS_MAX, NULL, "blocks that each thread allocates" },
    { "touch", PARAM_WORD, "line", "", 0, 0, "none|line", "stores to a fresh block: none, or to its first line" },
    { 0 },
};

/* No block is live at a barrier: the parent frees what a life left. */
static uint64_t live_slots(void)
{
    return 0;
}

/* A batch is one life, so that `pair` in hist.csv is what one costs. */
static uint64_t grain(void)
{
    return 1;
}

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    s->objects = param_int("objects");
    s->leave = variant_is("leave");
    s->touch = strcmp(param_word("touch"), "none") != 0;
    s->block = ak_map(s->objects * sizeof(void *));
    return 0;
}

/* The oldest first. */
static void blocks_free(struct ctx *c, struct state *s, uint64_t objects)
{
    void (*const release)(void *) = c->free;
    uint64_t found = 0;

    for (uint64_t i = 0; i < objects; i++) {
        if (s->touch)
            found += *(volatile unsigned char *)s->block[i];
        release(s->block[i]);
        s->block[i] = NULL;
    }
    s->found += found;
    s->freed += objects;
}

static int life(struct ctx *c, uint64_t objects)
{
    struct state *s = c->priv;
    void *(*const allocate)(size_t) = c->malloc;
    uint64_t draw = rng_next(&c->rng), issued = 0;

    for (uint64_t i = 0; i < objects; i++, draw++) {
        unsigned char *block = s->block[i] = allocate(c->size_table[draw & SIZE_TABLE_MASK]);
        if (__builtin_expect(block == NULL, 0))
            return ak_no_memory(c->size_table[draw & SIZE_TABLE_MASK]);
        if (s->touch) {
            *(volatile unsigned char *)block = (unsigned char)draw;
            issued += (unsigned char)draw;
        }
    }
    s->issued += issued;
    s->made += objects;
    if (!s->leave)
        blocks_free(c, s, objects);
    s->died++;
    return 0;
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    for (uint64_t i = 0; i < iters; i++) {
        s->lives++;
        if (ak_thread(c, life, s->objects) != 0)
            return 1;
        if (s->leave)
            blocks_free(c, s, s->objects);
    }
    return 0;
}

static int verify(struct ctx *c)
{
    const struct state *s = c->priv;
    if (s->lives != c->iters_done || s->died != s->lives)
        return ak_fail("%llu threads lived and %llu ended, %llu were asked for", (unsigned long long)s->lives,
                       (unsigned long long)s->died, (unsigned long long)c->iters_done);
    if (s->made != s->lives * s->objects || s->freed != s->made)
        return ak_fail("%llu blocks were made and %llu freed, %llu were asked for", (unsigned long long)s->made,
                       (unsigned long long)s->freed, (unsigned long long)(s->lives * s->objects));
    if (c->no_alloc)
        return 0;
    if (s->issued != s->found)
        return ak_fail("block contents changed: tags sum to %llu, issued were %llu", (unsigned long long)s->found,
                       (unsigned long long)s->issued);
    return ak_verify_blocks(c, 0);
}

static void report(void)
{
    struct look baseline, look;
    uint64_t lives = 0;
    unsigned looks = 0;

    ak_look(0, &baseline);
    while (ak_look(looks, &look))
        looks++;
    for (uint64_t t = 0; t < param_int("threads"); t++)
        lives += ((const struct state *)ak_ctx((unsigned)t)->priv)->lives;
    ak_metric("left_per_life_bytes", "bytes", ((double)look.rss - (double)baseline.rss) / (double)lives,
              look.rss == 0 ? "the resident size cannot be read" : NULL);
}

const struct kernel kernel = {
    .name = "thread_churn",
    .what = "create a thread, allocate, exit: what a birth and a death cost and leave behind",
    .variants = "free|leave",
    .params = params,
    .op = "one thread's life: create, allocate `objects` blocks, free or leave them, join",
    .makes_threads = true,
    .sizes = SIZES_RANGE,
    .default_ops = 300,
    .default_size_max = "1024",
    .priv_bytes = sizeof(struct state),
    .live_slots = live_slots,
    .grain = grain,
    .setup = setup,
    .run = run,
    .verify = verify,
    .report = report,
};
