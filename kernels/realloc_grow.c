/*
 * realloc_grow - blocks that grow by realloc: by one byte, by half, or to double their size.
 *
 * Each thread grows `blocks` blocks in turn, so that another one lies behind each (1: the heap's last block, which may
 * just be extended). A block begins with malloc of `start` bytes, grows by realloc until it has `end`, is freed, and
 * begins again. Work per op: one realloc, and by `touch` the first word read, checked and written (line), or a store to
 * each page that is new as well (page: a block that is moved must then be copied, or remapped); besides 1/n of a malloc
 * and a free, where n is the number of growths from start to end: 12 where 16 B double to 64 KiB.
 *
 * lat_* are of those mallocs; the reallocs are `realloc` in hist.csv and realloc_*_ns in metrics.csv.
 */
#include <string.h>

#include "kernel.h"

enum growth { GROWTH_BYTE, GROWTH_HALF, GROWTH_DOUBLE };
enum touch { TOUCH_NONE, TOUCH_LINE, TOUCH_PAGE };

/* What verification writes: a byte of each line and the last one. Thread 0 grows a block to `end`, the others to no
 * more than VERIFIED_MOST; checking a byte-wise growth to its end would take minutes, hence a limit on the lines read. */
#define VERIFIED_MOST  (1u << 20)
#define VERIFIED_LINES (1u << 25)

struct state {
    uint64_t start, end;
    enum growth growth;
    enum touch touch;
    uint64_t next;              /* block whose turn it is */
    uint64_t done, begun, ended;
    uint64_t expected, found;   /* sums of first words: as written, and as read after each growth */
    uint64_t *tag;              /* what the first word of each block holds */
};

static const struct param params[] = {
    { "start", PARAM_SIZE, "16", "bytes", 8, 1u << 30, NULL, "size of a fresh block" },
    { "end", PARAM_SIZE, "64K", "bytes", 9, 1u << 30, NULL, "size at which a block is freed, above start" },
    { "blocks", PARAM_INT, "8", "count", 1, 4096, NULL, "blocks that each thread grows in turn" },
    { "touch", PARAM_WORD, "line", "", 0, 0, "none|line|page", "stores: none, to the first line, each new page too" },
    { 0 },
};

static uint64_t live_slots(void)
{
    return param_int("blocks");
}

static const char *refuse(void)
{
    return param_int("start") < param_int("end") ? NULL : "--start is not below --end";
}

static uint64_t larger(const struct state *s, uint64_t size)
{
    uint64_t step = s->growth == GROWTH_BYTE ? 1 : s->growth == GROWTH_HALF ? size / 2 : size;
    return size + step < s->end ? size + step : s->end;
}

/* The first word is the block's own, so a store begins after it. */
static inline void pages_touch(const struct ctx *c, char *block, uint64_t from, uint64_t to)
{
    for (uint64_t at = (from + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES; at < to; at += PAGE_BYTES)
        *(volatile char *)(block + (at & c->reach)) = 1;
}

static inline void tag_write(struct state *s, uint64_t slot, void *block, uint64_t tag)
{
    s->tag[slot] = tag;
    memcpy(block, &tag, sizeof tag);
}

static int begin(struct ctx *c, struct state *s, uint64_t slot)
{
    char *block = c->live.block[slot] = c->malloc(s->start);
    if (__builtin_expect(block == NULL, 0))
        return ak_no_memory(s->start);
    c->live.size[slot] = (uint32_t)s->start;
    if (s->touch == TOUCH_PAGE)
        pages_touch(c, block, PAGE_BYTES, s->start);
    if (s->touch != TOUCH_NONE)
        tag_write(s, slot, block, rng_next(&c->rng));
    s->begun++;
    return 0;
}

static inline int grow(struct ctx *c, struct state *s, uint64_t slot)
{
    uint64_t before = c->live.size[slot], after = larger(s, before), tag;
    char *block = c->realloc(c->live.block[slot], after);

    if (__builtin_expect(block == NULL, 0))
        return ak_no_memory(after);
    c->live.block[slot] = block;
    c->live.size[slot] = (uint32_t)after;
    if (s->touch == TOUCH_PAGE)
        pages_touch(c, block, before, after);
    if (s->touch != TOUCH_NONE) {
        memcpy(&tag, block, sizeof tag);
        s->found += tag;
        s->expected += s->tag[slot];
        tag_write(s, slot, block, tag + after);
    }
    return 0;
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;

    for (uint64_t i = 0; i < iters; i++) {
        uint64_t slot = s->next;
        s->next = slot + 1 == c->live.slots ? 0 : slot + 1;
        if (c->live.size[slot] == s->end) {
            c->free(c->live.block[slot]);
            c->live.block[slot] = NULL;
            s->ended++;
            if (begin(c, s, slot) != 0)
                return 1;
        }
        if (grow(c, s, slot) != 0)
            return 1;
    }
    s->done += iters;
    return 0;
}

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    const char *touch = param_word("touch");

    s->start = param_int("start");
    s->end = param_int("end");
    s->growth = variant_is("byte") ? GROWTH_BYTE : variant_is("half") ? GROWTH_HALF : GROWTH_DOUBLE;
    s->touch = strcmp(touch, "none") == 0 ? TOUCH_NONE : strcmp(touch, "line") == 0 ? TOUCH_LINE : TOUCH_PAGE;
    s->tag = ak_map(c->live.slots * sizeof *s->tag);
    for (uint64_t slot = 0; slot < c->live.slots; slot++)
        if (begin(c, s, slot) != 0)
            return 1;
    return 0;
}

/* ---- verification: every growth keeps what was written ---- */

/* What the byte at an offset must hold: neither 0, as in a fresh page, nor the same on every line. */
static unsigned char byte_at(uint64_t at)
{
    return (unsigned char)(at / CACHE_LINE * 37 + at % CACHE_LINE) | 1;
}

static void pattern_write(unsigned char *block, uint64_t from, uint64_t to)
{
    for (uint64_t at = from; at < to; at = (at / CACHE_LINE + 1) * CACHE_LINE)
        block[at] = byte_at(at);
    block[to - 1] = byte_at(to - 1);
}

/* The size that the block had before a growth, or the first offset below it that does not hold what was written. */
static uint64_t pattern_wrong(const unsigned char *block, uint64_t from, uint64_t size)
{
    for (uint64_t at = from; at < size; at = (at / CACHE_LINE + 1) * CACHE_LINE)
        if (block[at] != byte_at(at))
            return at;
    return block[size - 1] == byte_at(size - 1) ? size : size - 1;
}

static int growths_check(struct ctx *c, const struct state *s)
{
    uint64_t most = c->thread == 0 || s->end < VERIFIED_MOST ? s->end : VERIFIED_MOST, size = s->start, lines = 0;
    unsigned char *block = c->malloc(size);

    if (block == NULL)
        return ak_no_memory(size);
    pattern_write(block, 0, size);
    while (size < most && lines < VERIFIED_LINES) {
        uint64_t after = larger(s, size);
        unsigned char *grown = c->realloc(block, after);
        if (grown == NULL)
            return ak_no_memory(after);
        block = grown;
        uint64_t wrong = pattern_wrong(block, 0, size);
        if (wrong != size)
            return ak_fail("realloc from %llu to %llu bytes lost the byte at %llu", (unsigned long long)size,
                           (unsigned long long)after, (unsigned long long)wrong);
        lines += size / CACHE_LINE + 1;
        pattern_write(block, size, after);
        size = after;
    }
    c->free(block);
    return 0;
}

static int verify(struct ctx *c)
{
    const struct state *s = c->priv;

    if (s->done != c->iters_done || s->begun != s->ended + c->live.slots)
        return ak_fail("%llu reallocs were done, %llu asked for; %llu blocks were begun and %llu freed",
                       (unsigned long long)s->done, (unsigned long long)c->iters_done, (unsigned long long)s->begun,
                       (unsigned long long)s->ended);
    if (c->no_alloc)
        return 0;
    if (s->found != s->expected)
        return ak_fail("first words after a realloc sum to %llx, expected %llx", (unsigned long long)s->found,
                       (unsigned long long)s->expected);
    return growths_check(c, s);
}

static void teardown(struct ctx *c)
{
    for (uint64_t slot = 0; slot < c->live.slots; slot++) {
        c->free(c->live.block[slot]);
        c->live.block[slot] = NULL;
    }
}

const struct kernel kernel = {
    .name = "realloc_grow",
    .what = "realloc: blocks that grow by one byte, by half or to double, small and huge",
    .variants = "double|half|byte",
    .params = params,
    .op = "one realloc to a larger size",
    .default_ops = 30000,
    .priv_bytes = sizeof(struct state),
    .live_slots = live_slots,
    .refuse = refuse,
    .setup = setup,
    .run = run,
    .verify = verify,
    .teardown = teardown,
};
