/*
 * false_sharing.h - what false_active and false_passive have in common: all but where the first blocks come from.
 *
 * Each thread keeps `blocks` small objects. Work per op: free one, allocate one, and add one to its first word
 * `writes` times. Variant shared writes to the block; variant private makes the same allocations and redirects only
 * the writes to lines of the thread's own, so that the difference between the two is what sharing costs. (Padding the
 * objects instead would change their size class.)
 */
#ifndef AK_FALSE_SHARING_H
#define AK_FALSE_SHARING_H

#include <stdatomic.h>

#include "kernel.h"

#define BLOCKS_MAX 64

/* A word alone on its sector. */
struct line { _Alignas(CACHE_SECTOR) volatile uint64_t word; };

struct sharer {
    struct line line[BLOCKS_MAX]; /* where variant private writes */
    uint64_t object, writes, next, done;
    bool     redirected;
};

static const struct param sharing_params[] = {
    { "object", PARAM_SIZE, "8", "bytes", 8, 4096, NULL, "size of a block" },
    { "writes", PARAM_INT, "100", "count", 1, 1000000, NULL, "additions to each block" },
    { "blocks", PARAM_INT, "8", "count", 1, BLOCKS_MAX, NULL, "blocks that each thread keeps" },
    { 0 },
};

static uint64_t sharing_live_slots(void)
{
    return param_int("blocks");
}

static void sharing_init(struct ctx *c)
{
    struct sharer *s = c->priv;
    s->object = param_int("object");
    s->writes = param_int("writes");
    /* Under a stub the blocks of one thread overlap, and verification needs words of their own. */
    s->redirected = variant_is("private") || c->no_alloc;
}

static int sharing_place(struct ctx *c, uint64_t slot, void *block)
{
    const struct sharer *s = c->priv;
    if (block == NULL)
        return ak_no_memory(s->object);
    c->live.block[slot] = block;
    c->live.size[slot] = (uint32_t)s->object;
    return 0;
}

static int sharing_run(struct ctx *c, uint64_t iters)
{
    struct sharer *s = c->priv;
    for (uint64_t i = 0; i < iters; i++) {
        uint64_t slot = s->next;
        s->next = slot + 1 == c->live.slots ? 0 : slot + 1;
        c->free(c->live.block[slot]);
        if (sharing_place(c, slot, c->malloc(s->object)) != 0)
            return 1;
        /* The private word's address hangs on the block's, by a bit that no user address has: otherwise the CPU
         * would overlap the writes with malloc in one variant and not in the other. */
        uint64_t nothing = (uint64_t)(uintptr_t)c->live.block[slot] >> 63;
        volatile uint64_t *word = s->redirected ? &s->line[slot + nothing].word : c->live.block[slot];
        *word = 0;
        for (uint64_t w = 0; w < s->writes; w++)
            *word += 1;
        if (*word != s->writes)
            return ak_fail("a block that one thread wrote %llu times held %llu", (unsigned long long)s->writes,
                           (unsigned long long)*word);
    }
    s->done += iters;
    return 0;
}

/* Nobody changes a live set between the end of the runs and teardown, so the first thread may read them all. */
static int sharing_verify(struct ctx *c)
{
    const struct sharer *s = c->priv;
    if (s->done != c->iters_done)
        return ak_fail("%llu ops were done, %llu asked for", (unsigned long long)s->done, (unsigned long long)c->iters_done);
    if (c->thread == 0 && !c->no_alloc) {
        uint64_t lines, sectors;
        uint64_t shared_lines = ak_lines_shared(CACHE_LINE, &lines);
        uint64_t shared_sectors = ak_lines_shared(CACHE_SECTOR, &sectors);
        ak_metric("lines", "count", (double)lines, NULL);
        ak_metric("lines_shared", "count", (double)shared_lines, NULL);
        ak_metric("sectors", "count", (double)sectors, NULL);
        ak_metric("sectors_shared", "count", (double)shared_sectors, NULL);
    }
    return 0;
}

static void sharing_teardown(struct ctx *c)
{
    for (uint64_t slot = 0; slot < c->live.slots; slot++) {
        c->free(c->live.block[slot]);
        c->live.block[slot] = NULL;
    }
}

/* What both kernels put into their struct kernel; setup and shared_bytes are their own. */
#define SHARING_FIELDS                                                                                                 \
    .variants = "shared|private", .params = sharing_params, .op = "one free, one malloc and the writes to the block",  \
    .min_threads = 2, .default_ops = 100000, .priv_bytes = sizeof(struct sharer), .live_slots = sharing_live_slots,    \
    .run = sharing_run, .verify = sharing_verify, .teardown = sharing_teardown

#endif
