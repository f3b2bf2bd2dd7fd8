/*
 * fragment - a long-lived heap: keep 1 in k of what each phase allocates, while the sizes change from phase to phase.
 *
 * A phase fills (two mallocs an op until it has `blocks`), then thins (two blocks an op, in order of allocation: of
 * each `keep` one, chosen at random, lives on, and the kept block of `hold` phases ago is freed in its stead; all others
 * are freed). Phase p draws its sizes from the p-th of `phases` equal parts of the sorted sizes, smallest first, over and
 * over: what one phase freed fits the next one badly. Work per op: two mallocs, with touch a tag written to each, or two
 * frees with the tag read; one malloc/free cycle on average.
 *
 * The memory pass looks where a phase is full and where it is thinned, in turn (mem_idle_ms: after so long an idle time
 * with a little activity), so timeline.csv shows resident over live bytes. Metrics, at the full look with most live
 * bytes (peak) and at the last thinned one (end):
 *   internal_*_ratio   (usable - requested) / requested: what size classes round up
 *   external_*_ratio   (rss - baseline - usable) / usable: free blocks, pages not given back, and the allocator's books
 *   rss_over_live_*    (rss - baseline) / requested: both together; 1.05 is 5 % of fragmentation
 */
#include <stdio.h>
#include <string.h>

#include "fragmentation.h"
#include "kernel.h"

#define TABLE_ENTRIES (SIZE_TABLE_MASK + 1)

/* A slot below `blocks` belongs to the phase at hand, in order of allocation; behind these lie `hold` rows of kept
 * blocks, one row a phase, one slot for each `keep` blocks. */
struct state {
    uint64_t blocks, keep, hold, phases, row;
    bool     touch;
    uint64_t at;            /* op of the phase: below blocks / 2 it fills, from there on it thins */
    uint64_t phase;
    uint64_t kept;          /* slot that survives of the group being thinned */
    uint64_t balance;       /* sum of the tags issued less those found: what live blocks must hold */
    uint64_t live;          /* blocks */
    uint64_t done;
    uint32_t sorted[TABLE_ENTRIES];
};

static const struct param params[] = {
    { "blocks", PARAM_INT, "4096", "count", 2, 100000000, NULL, "blocks that each thread allocates in a phase (even)" },
    { "keep", PARAM_INT, "10", "count", 1, 100000, NULL, "of so many blocks one outlives its phase" },
    { "hold", PARAM_INT, "8", "phases", 1, 1000, NULL, "how long it lives" },
    { "phases", PARAM_INT, "8", "count", 1, 256, NULL, "parts of the sizes, one a phase" },
    { "touch", PARAM_WORD, "line", "", 0, 0, "none|line", "stores to a fresh block: none, or to its first line" },
    { 0 },
};

static uint64_t row_slots(void)
{
    return (param_int("blocks") + param_int("keep") - 1) / param_int("keep");
}

static uint64_t live_slots(void)
{
    return param_int("blocks") + param_int("hold") * row_slots();
}

static const char *refuse(void)
{
    return param_int("blocks") % 2 == 0 ? NULL : "--blocks is odd, and an op takes two";
}

/* A batch is one phase. */
static uint64_t grain(void)
{
    return param_int("blocks");
}

/* To where the phase is full, or thinned. */
static uint64_t step(const struct ctx *c)
{
    const struct state *s = c->priv;
    uint64_t half = s->blocks / 2;
    return s->at < half ? half - s->at : s->blocks - s->at;
}

/* A touched block begins with a tag. */
static uint64_t size_least(void)
{
    return strcmp(param_word("touch"), "none") == 0 ? 1 : sizeof(uint64_t);
}

/* Shell's sort: the C library's may allocate. */
static void sort(uint32_t *list, uint32_t count)
{
    for (uint32_t gap = count / 2; gap > 0; gap /= 2)
        for (uint32_t i = gap; i < count; i++)
            for (uint32_t j = i; j >= gap && list[j - gap] > list[j]; j -= gap) {
                uint32_t swap = list[j];
                list[j] = list[j - gap];
                list[j - gap] = swap;
            }
}

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    s->blocks = param_int("blocks");
    s->keep = param_int("keep");
    s->hold = param_int("hold");
    s->phases = param_int("phases");
    s->row = row_slots();
    s->touch = strcmp(param_word("touch"), "none") != 0;
    memcpy(s->sorted, c->size_table, sizeof s->sorted);
    sort(s->sorted, TABLE_ENTRIES);
    return 0;
}

static inline int slot_fill(struct ctx *c, struct state *s, uint64_t slot)
{
    const uint32_t part = (uint32_t)(TABLE_ENTRIES / s->phases);
    uint64_t draw = rng_next(&c->rng);
    uint32_t size = s->sorted[s->phase % s->phases * part + rng_below(draw, part)];
    void *block = c->live.block[slot] = c->malloc(size);

    if (__builtin_expect(block == NULL, 0))
        return ak_no_memory(size);
    c->live.size[slot] = size;
    if (s->touch) {
        memcpy(block, &draw, sizeof draw);
        s->balance += draw;
    }
    return 0;
}

static inline uint64_t block_tag(const void *block)
{
    uint64_t tag;
    memcpy(&tag, block, sizeof tag);
    return tag;
}

static inline void slot_free(struct ctx *c, struct state *s, uint64_t slot)
{
    if (s->touch)
        s->balance -= block_tag(c->live.block[slot]);
    c->free(c->live.block[slot]);
    c->live.block[slot] = NULL;
    s->live--;
}

static inline void slot_thin(struct ctx *c, struct state *s, uint64_t slot)
{
    if (slot % s->keep == 0) {
        uint64_t left = s->blocks - slot;
        s->kept = slot + rng_below(rng_next(&c->rng), (uint32_t)(left < s->keep ? left : s->keep));
    }
    if (slot != s->kept) {
        slot_free(c, s, slot);
        return;
    }
    uint64_t place = s->blocks + s->phase % s->hold * s->row + slot / s->keep;
    if (c->live.block[place] != NULL)
        slot_free(c, s, place);
    c->live.block[place] = c->live.block[slot];
    c->live.size[place] = c->live.size[slot];
    c->live.block[slot] = NULL;
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    const uint64_t half = s->blocks / 2;

    for (uint64_t i = 0; i < iters; i++) {
        if (s->at < half) {
            uint64_t slot = 2 * s->at;
            if (slot_fill(c, s, slot) != 0 || slot_fill(c, s, slot + 1) != 0)
                return 1;
            s->live += 2;
        } else {
            uint64_t slot = 2 * (s->at - half);
            slot_thin(c, s, slot);
            slot_thin(c, s, slot + 1);
        }
        if (++s->at == s->blocks) {
            s->at = 0;
            s->phase++;
        }
    }
    s->done += iters;
    return 0;
}

/* Blocks that must live after so many ops, from the parameters alone. */
static uint64_t live_expected(const struct state *s)
{
    uint64_t half = s->blocks / 2, rows = s->phase < s->hold ? s->phase : s->hold;
    if (s->at <= half)
        return rows * s->row + 2 * s->at;
    uint64_t thinned = 2 * (s->at - half), groups = (thinned + s->keep - 1) / s->keep;
    /* of the group being thinned, the survivor may already have moved */
    uint64_t moved = groups > 0 && s->kept >= thinned ? groups - 1 : groups;
    return (s->phase < s->hold ? rows * s->row + moved : rows * s->row) + s->blocks - thinned;
}

static int verify(struct ctx *c)
{
    const struct state *s = c->priv;
    uint64_t sum = 0, live = 0;

    if (s->done != c->iters_done || s->done != s->phase * s->blocks + s->at)
        return ak_fail("%llu ops were done, %llu asked for", (unsigned long long)s->done,
                       (unsigned long long)c->iters_done);
    for (uint64_t slot = 0; slot < c->live.slots; slot++)
        if (c->live.block[slot] != NULL) {
            live++;
            sum += s->touch ? block_tag(c->live.block[slot]) : 0;
        }
    if (live != s->live || live != live_expected(s))
        return ak_fail("%llu blocks live, %llu were counted, expected %llu", (unsigned long long)live,
                       (unsigned long long)s->live, (unsigned long long)live_expected(s));
    if (sum != s->balance && !c->no_alloc)
        return ak_fail("block contents changed: the live tags sum to %llx, expected %llx", (unsigned long long)sum,
                       (unsigned long long)s->balance);
    return 0;
}

static void teardown(struct ctx *c)
{
    for (uint64_t slot = 0; slot < c->live.slots; slot++)
        if (c->live.block[slot] != NULL)
            slot_free(c, c->priv, slot);
}

/* ---- metrics ---- */

#define NO_LOOK "no such look: it needs the memory pass with mem_steps of 2 at least"

/* All threads do the same ops, so the first one's state tells where the last look of the memory pass was. */
static void report(void)
{
    const struct ctx *c = ak_ctx(0);
    const struct state *s = c->priv;
    struct look baseline, look, peak = { 0 }, end = { 0 };
    unsigned looks = 0, steps = 0, seen = 0;

    ak_look(0, &baseline);
    for (; ak_look(looks, &look); looks++)
        steps += look.memory_pass;
    for (unsigned i = 0; i < looks; i++) {
        ak_look(i, &look);
        if (!look.memory_pass)
            continue;
        seen++;
        bool thinned = (s->at == 0) == ((steps - seen) % 2 == 0);
        if (thinned)
            end = look;
        else if (look.live > peak.live)
            peak = look;
    }
    const char *why = c->no_alloc ? "a stub served" : NULL;
    fragmentation_report(&peak, (double)baseline.rss, "peak", why, NO_LOOK);
    fragmentation_report(&end, (double)baseline.rss, "end", why, NO_LOOK);
}

const struct kernel kernel = {
    .name = "fragment",
    .what = "a long-lived heap: keep 1 in k of each phase while sizes change; resident over live bytes",
    .params = params,
    .op = "two mallocs while a phase fills, two frees while it thins: one cycle on average",
    .sizes = SIZES_RANGE,
    .default_ops = 50000,
    .default_size_max = "4096",
    .priv_bytes = sizeof(struct state),
    .live_slots = live_slots,
    .size_least = size_least,
    .refuse = refuse,
    .grain = grain,
    .step = step,
    .setup = setup,
    .run = run,
    .verify = verify,
    .teardown = teardown,
    .report = report,
};
