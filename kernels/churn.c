/*
 * churn - the published workload: every op frees one block of a live set and allocates another of random size.
 *
 * Work per op: one random number, one free, one malloc, the stores that `touch` asks for, and 12 bytes of
 * bookkeeping. Live set, lifetimes and touching decide cache misses and resident memory, so they are parameters and
 * columns. Each block begins with a tag; tags issued must equal tags found when blocks are freed. `planted` adds visits to
 * lines that another thread wrote last (planted.h): ns an op over them has what a line that moves costs as its slope.
 */
#include <string.h>

#include "planted.h"

enum touch { TOUCH_NONE, TOUCH_LINE, TOUCH_PAGE, TOUCH_ALL };
enum lifetime { LIFETIME_RANDOM, LIFETIME_FIFO, LIFETIME_BIMODAL };

/* bimodal: seven of eight ops recycle the first tenth of the slots */
#define SHORT_LIVED_DIVISOR 10
#define SHORT_LIVED_EIGHTHS 7

struct state {
    enum touch touch;
    enum lifetime lifetime;
    uint64_t next;        /* fifo: the oldest slot */
    uint32_t short_lived; /* bimodal: slots that most ops recycle */
    uint64_t balance;     /* sum of the tags issued less those found: what live blocks must hold */
    uint64_t done;
    uint64_t dose; /* planted visits an op */
    struct planted planted;
};

static const struct param params[] = {
    { "live_blocks", PARAM_INT, "1000", "count", 1, 100000000, NULL, "blocks that each thread keeps live" },
    { "lifetime_dist", PARAM_WORD, "random", "", 0, 0, "random|fifo|bimodal", "which block is freed next" },
    { "touch", PARAM_WORD, "page", "", 0, 0, "none|line|page|all", "stores to a fresh block: none, its first line, a line a page, all" },
    { "planted", PARAM_INT, "0", "1/op", 0, PLANTED_MAX, NULL, "lines that an op visits which another thread wrote last" },
    { "planted_ring", PARAM_WORD, "shared", "", 0, 0, "shared|own", "own: the same visits to lines of the thread's own, the control" },
    { 0 },
};

static uint64_t live_slots(void)
{
    return param_int("live_blocks");
}

static size_t shared_bytes(void)
{
    uint64_t threads = param_int("threads");
    return param_int("planted") > 0 ? planted_lines((unsigned)threads) * sizeof(struct planted_line) : 0;
}

static const char *refuse(void)
{
    bool moves = param_int("planted") > 0 && strcmp(param_word("planted_ring"), "shared") == 0;
    if (!moves || param_int("threads") > 1)
        return NULL;
    return "--planted wants lines that another thread wrote, and with --threads 1 there is none";
}

static inline __attribute__((always_inline)) void block_touch(char *block, uint32_t size, enum touch touch, uint64_t tag)
{
    if (touch == TOUCH_PAGE)
        for (uint32_t at = PAGE_BYTES; at < size; at += PAGE_BYTES)
            *(volatile char *)(block + at) = 1;
    else if (touch == TOUCH_ALL)
        memset(block, 1, size);
    if (touch != TOUCH_NONE)
        memcpy(block, &tag, sizeof tag);
}

static inline uint64_t block_tag(const void *block)
{
    uint64_t tag;
    memcpy(&tag, block, sizeof tag);
    return tag;
}

/* Random: two parts of one draw pick slot and size. Bimodal: three more bits pick between few slots and all. */
static inline __attribute__((always_inline)) uint64_t slot_pick(struct state *s, uint32_t slots, enum lifetime lifetime,
                                                                uint64_t draw)
{
    if (lifetime == LIFETIME_RANDOM)
        return rng_below(draw, slots);
    if (lifetime == LIFETIME_FIFO) {
        uint64_t slot = s->next;
        s->next = slot + 1 == slots ? 0 : slot + 1;
        return slot;
    }
    return rng_below(draw, (draw >> 12 & 7) < SHORT_LIVED_EIGHTHS ? s->short_lived : slots);
}

/* One op a turn. Inlined once for each touch and lifetime, so that no test of a parameter is left in the loop; the
 * random state and the sums live in registers, since every call through c would make the compiler store them. */
static inline __attribute__((always_inline)) int cycle(struct ctx *c, struct state *s, uint64_t iters, enum touch touch,
                                                       enum lifetime lifetime, bool plants)
{
    void *(*const allocate)(size_t) = c->malloc;
    void (*const release)(void *) = c->free;
    void **const block = c->live.block;
    uint32_t *const size_of = c->live.size;
    const uint32_t slots = (uint32_t)c->live.slots;
    struct rng rng = c->rng;
    uint64_t balance = 0;
    const uint64_t dose = s->dose;
    struct planted planted = s->planted;

    for (uint64_t i = 0; i < iters; i++) {
        uint64_t draw = rng_next(&rng), slot = slot_pick(s, slots, lifetime, draw);
        uint32_t size = c->size_table[draw & SIZE_TABLE_MASK];
        if (touch != TOUCH_NONE)
            balance -= block_tag(block[slot]);
        release(block[slot]);
        char *fresh = allocate(size);
        if (__builtin_expect(fresh == NULL, 0)) {
            block[slot] = NULL;
            return ak_no_memory(size);
        }
        block_touch(fresh, size, touch, draw);
        if (touch != TOUCH_NONE)
            balance += draw;
        block[slot] = fresh;
        size_of[slot] = size;
        if (plants)
            planted_visit(&planted, dose);
    }
    if (plants)
        s->planted = planted;
    c->rng = rng;
    s->balance += balance;
    s->done += iters;
    return 0;
}

static inline __attribute__((always_inline)) int cycle_touching(struct ctx *c, uint64_t iters, enum touch touch,
                                                                bool plants)
{
    struct state *s = c->priv;
    switch (s->lifetime) {
    case LIFETIME_RANDOM: return cycle(c, s, iters, touch, LIFETIME_RANDOM, plants);
    case LIFETIME_FIFO: return cycle(c, s, iters, touch, LIFETIME_FIFO, plants);
    default: return cycle(c, s, iters, touch, LIFETIME_BIMODAL, plants);
    }
}

static inline __attribute__((always_inline)) int cycle_planting(struct ctx *c, uint64_t iters, bool plants)
{
    const struct state *s = c->priv;
    switch (s->touch) {
    case TOUCH_NONE: return cycle_touching(c, iters, TOUCH_NONE, plants);
    case TOUCH_LINE: return cycle_touching(c, iters, TOUCH_LINE, plants);
    case TOUCH_PAGE: return cycle_touching(c, iters, TOUCH_PAGE, plants);
    default: return cycle_touching(c, iters, TOUCH_ALL, plants);
    }
}

/* Apart, so that the loops without are what they are without. */
static __attribute__((noinline)) int run_planting(struct ctx *c, uint64_t iters)
{
    return cycle_planting(c, iters, true);
}

static int run(struct ctx *c, uint64_t iters)
{
    const struct state *s = c->priv;
    return s->dose > 0 ? run_planting(c, iters) : cycle_planting(c, iters, false);
}

/* A touched block begins with a tag. */
static uint64_t size_least(void)
{
    return strcmp(param_word("touch"), "none") == 0 ? 1 : sizeof(uint64_t);
}

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    const char *touch = param_word("touch"), *lifetime = param_word("lifetime_dist");

    s->touch = strcmp(touch, "none") == 0 ? TOUCH_NONE : strcmp(touch, "line") == 0 ? TOUCH_LINE
             : strcmp(touch, "page") == 0 ? TOUCH_PAGE : TOUCH_ALL;
    s->lifetime = strcmp(lifetime, "fifo") == 0 ? LIFETIME_FIFO : strcmp(lifetime, "bimodal") == 0 ? LIFETIME_BIMODAL
                : LIFETIME_RANDOM;
    s->short_lived = (uint32_t)(c->live.slots / SHORT_LIVED_DIVISOR ? c->live.slots / SHORT_LIVED_DIVISOR : 1);
    s->dose = param_int("planted");
    if (s->dose > 0)
        planted_init(&s->planted, c, strcmp(param_word("planted_ring"), "own") == 0);
    for (uint64_t slot = 0; slot < c->live.slots; slot++) {
        uint64_t draw = rng_next(&c->rng);
        uint32_t size = c->size_table[draw & SIZE_TABLE_MASK];
        char *block = c->malloc(size);
        if (block == NULL)
            return ak_no_memory(size);
        block_touch(block, size, s->touch, draw);
        c->live.block[slot] = block;
        c->live.size[slot] = size;
        s->balance += draw;
    }
    return 0;
}

static int verify(struct ctx *c)
{
    const struct state *s = c->priv;
    uint64_t live = 0;

    if (s->done != c->iters_done)
        return ak_fail("%llu cycles were done, %llu asked for", (unsigned long long)s->done,
                       (unsigned long long)c->iters_done);
    if (s->dose > 0 && planted_verify(&s->planted, c, s->done * s->dose) != 0)
        return 1;
    if (s->touch == TOUCH_NONE || c->no_alloc)
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

static void report(void)
{
    uint64_t visits = 0, moved = 0;

    for (unsigned t = 0; t < ak_ctx(0)->threads; t++) {
        const struct state *s = ak_ctx(t)->priv;
        visits += s->done * s->dose;
        moved += s->planted.moved;
    }
    if (visits > 0)
        ak_metric("planted_moved_ratio", "0..1", (double)moved / (double)visits, NULL);
}

const struct kernel kernel = {
    .name = "churn",
    .what = "the published workload: random free and malloc over a live set",
    .params = params,
    .sizes = SIZES_RANGE,
    .priv_bytes = sizeof(struct state),
    .shared_bytes = shared_bytes,
    .live_slots = live_slots,
    .size_least = size_least,
    .refuse = refuse,
    .setup = setup,
    .run = run,
    .verify = verify,
    .teardown = teardown,
    .report = report,
};
