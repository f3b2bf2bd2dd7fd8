/*
 * large - blocks of 64 KiB to 1 GiB, touched and untouched, and how long freed memory takes to reach the system.
 *
 * pair: free each block at once. batch: allocate `batch` blocks, then free them, oldest first. Work per op: one
 * malloc, one free, and by `touch` nothing, a tag in the first line, a store to each page (the faults and the zeroing of
 * pages that the allocator took fresh from the system are then part of the op), or to every byte. Blocks are checked
 * when they are freed: the tag, and with page and all the last byte. Between ops nothing is live: live_peak_bytes is 0,
 * and rss_overhead_bytes is all that the allocator keeps.
 *
 * Metric return_ms: after the workers are gone the main thread allocates one block of the largest size, touches every
 * page, frees it, and looks at once and then every LOOK_MS, with a little activity before each look (ak_stir: 1000 blocks
 * each of 64 B and 64 KiB), until the resident size, less what was given back lazily, has fallen by nine tenths of the
 * block. The time of the free itself is in it. Not under --no-alloc; empty where `return_limit_ms` went by.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kernel.h"

#define SIZE_LEAST (64u << 10)
#define BATCH_MAX  1024
#define LOOK_MS    5

enum touch { TOUCH_NONE, TOUCH_LINE, TOUCH_PAGE, TOUCH_ALL };

struct state {
    enum touch touch;
    uint64_t batch;
    uint64_t made, freed;
    uint64_t issued, found; /* sums of tags and of last bytes */
};

static const struct param params[] = {
    { "batch", PARAM_INT, "8", "count", 1, BATCH_MAX, NULL, "blocks of a batch" },
    { "touch", PARAM_WORD, "page", "", 0, 0, "none|line|page|all", "stores: none, to the first line, each page, all" },
    { "return_limit_ms", PARAM_INT, "1000", "ms", 0, 600000, NULL, "how long freed memory may take to go back" },
    { 0 },
};

/* Live between a malloc and its free only: at a barrier all slots are empty, but for the blocks that verify leaves to
 * the harness's own check. */
static uint64_t live_slots(void)
{
    return variant_is("batch") ? param_int("batch") : 1;
}

static uint64_t grain(void)
{
    return variant_is("batch") ? param_int("batch") : 8;
}

static uint64_t size_least(void)
{
    return SIZE_LEAST;
}

/* The last byte that is written: of the last page's first line, or of the block. */
static inline uint64_t last_touched(uint32_t size, enum touch touch)
{
    return touch == TOUCH_ALL ? size - 1 : (size - 1) / PAGE_BYTES * PAGE_BYTES;
}

static inline void block_touch(const struct ctx *c, char *block, uint32_t size, enum touch touch, uint64_t tag)
{
    if (touch == TOUCH_PAGE)
        for (uint64_t at = PAGE_BYTES; at < size; at += PAGE_BYTES)
            *(volatile char *)(block + (at & c->reach)) = (char)tag;
    else if (touch == TOUCH_ALL)
        for (uint64_t at = 0; at < size; at += SIZE_LEAST)
            memset(block + (at & c->reach), (char)tag, size - at < SIZE_LEAST ? size - at : SIZE_LEAST);
    if (touch != TOUCH_NONE)
        memcpy(block, &tag, sizeof tag);
}

static inline uint64_t block_sum(const struct ctx *c, const char *block, uint32_t size, enum touch touch)
{
    uint64_t tag = 0;
    if (touch == TOUCH_NONE)
        return 0;
    memcpy(&tag, block, sizeof tag);
    if (touch == TOUCH_LINE)
        return tag;
    return tag + *(const volatile unsigned char *)(block + (last_touched(size, touch) & c->reach));
}

/* What block_sum must find. */
static inline uint64_t tag_sum(enum touch touch, uint64_t tag)
{
    return touch == TOUCH_NONE ? 0 : touch == TOUCH_LINE ? tag : tag + (unsigned char)tag;
}

static int block_make(struct ctx *c, struct state *s, uint64_t slot)
{
    uint64_t draw = rng_next(&c->rng);
    uint32_t size = c->size_table[draw & SIZE_TABLE_MASK];
    char *block = c->malloc(size);

    if (__builtin_expect(block == NULL, 0)) {
        ak_no_memory(size);
        return 1;
    }
    block_touch(c, block, size, s->touch, draw);
    s->issued += tag_sum(s->touch, draw);
    s->made++;
    c->live.block[slot] = block;
    c->live.size[slot] = size;
    return 0;
}

static void block_free(struct ctx *c, struct state *s, uint64_t slot)
{
    s->found += block_sum(c, c->live.block[slot], c->live.size[slot], s->touch);
    c->free(c->live.block[slot]);
    c->live.block[slot] = NULL;
    s->freed++;
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;

    for (uint64_t left = iters, n; left > 0; left -= n) {
        n = left < c->live.slots ? left : c->live.slots;
        for (uint64_t slot = 0; slot < n; slot++)
            if (block_make(c, s, slot) != 0)
                return 1;
        for (uint64_t slot = 0; slot < n; slot++)
            block_free(c, s, slot);
    }
    return 0;
}

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    const char *touch = param_word("touch");
    s->touch = strcmp(touch, "none") == 0 ? TOUCH_NONE : strcmp(touch, "line") == 0 ? TOUCH_LINE
             : strcmp(touch, "page") == 0 ? TOUCH_PAGE : TOUCH_ALL;
    return 0;
}

static int verify(struct ctx *c)
{
    struct state *s = c->priv;

    if (s->made != c->iters_done || s->freed != s->made)
        return ak_fail("%llu blocks were made and %llu freed, %llu asked for", (unsigned long long)s->made,
                       (unsigned long long)s->freed, (unsigned long long)c->iters_done);
    if (c->no_alloc)
        return 0;
    if (s->issued != s->found)
        return ak_fail("block contents changed: tags and last bytes sum to %llx, expected %llx",
                       (unsigned long long)s->found, (unsigned long long)s->issued);
    for (uint64_t slot = 0; slot < c->live.slots; slot++)
        if (block_make(c, s, slot) != 0)
            return 1;
    return 0;
}

static void teardown(struct ctx *c)
{
    for (uint64_t slot = 0; slot < c->live.slots; slot++)
        if (c->live.block[slot] != NULL)
            block_free(c, c->priv, slot);
}

/* ---- how long memory takes to go back ---- */

static uint32_t largest(const struct ctx *c)
{
    uint32_t most = 0;
    for (unsigned i = 0; i <= SIZE_TABLE_MASK; i++)
        most = c->size_table[i] > most ? c->size_table[i] : most;
    return most;
}

static void report(void)
{
    static const struct timespec nap = { 0, LOOK_MS * 1000000 };
    struct ctx *c = ak_ctx(0);
    const uint64_t limit = param_int("return_limit_ms");
    const uint32_t size = largest(c);
    const char *why = c->no_alloc ? "a stub served" : NULL;
    char *block = why == NULL ? c->malloc(size) : NULL;
    char late[80];
    double ms = 0;

    if (why == NULL && block == NULL)
        why = "malloc of the largest size returned NULL";
    if (block != NULL) {
        block_touch(c, block, size, TOUCH_PAGE, 1);
        uint64_t full = ak_resident(&why);
        double start = ak_now_ns();
        c->free(block);
        while (why == NULL && ak_resident(&why) + size / 10 * 9 > full) {
            ms = (ak_now_ns() - start) / 1e6;
            if (ms >= (double)limit) {
                snprintf(late, sizeof late, "not within %llu ms", (unsigned long long)limit);
                why = late;
                break;
            }
            nanosleep(&nap, NULL);
            ak_stir(c);
        }
        ms = (ak_now_ns() - start) / 1e6;
    }
    ak_metric("return_ms", "ms", ms, why);
}

const struct kernel kernel = {
    .name = "large",
    .what = "blocks of 64 KiB to 1 GiB, touched and untouched, and the time until memory returns to the system",
    .variants = "pair|batch",
    .params = params,
    .sizes = SIZES_RANGE,
    .default_ops = 300,
    .default_size_min = "64K",
    .default_size_max = "4M",
    .priv_bytes = sizeof(struct state),
    .live_slots = live_slots,
    .size_least = size_least,
    .grain = grain,
    .setup = setup,
    .run = run,
    .verify = verify,
    .teardown = teardown,
    .report = report,
};
