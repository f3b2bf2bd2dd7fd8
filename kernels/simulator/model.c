/*
 * model.c - an access, from the first level to another node's memory.
 *
 * A core's outer cache, which is its L2 or, without one, its L1, says by the flags of a tag in what state the core
 * holds a line; an L1 inside an L2 repeats them. Two of the flags sum up for the fast path what an access that finds
 * its line in the L1 has left to do: nothing, in nearly all cases. The directory says the same of a line from outside:
 * who holds it, and who may change it without asking.
 */
#include <stdio.h>
#include <string.h>

#include "pool.h"
#include "binding.h"
#include "cache.h"
#include "cores.h"
#include "directory.h"
#include "model.h"
#include "sharing.h"

/* The flags of a tag. A stay of a line is open from a coherence miss until it is known what sharing caused it. */
enum {
    TAG_SHARED = 1, /* others may hold the line too */
    TAG_EXCLUSIVE = 2,
    TAG_MODIFIED = 3,
    TAG_STATE = 3,
    TAG_LOAD = 4,    /* a load may pass: the stay is not open */
    TAG_STORE = 8,   /* a store may pass: modified already, not open, and nobody has to be told what is written */
    TAG_TRACKED = 16 /* the line has a record of sharing */
};

struct core {
    struct cache l1, l2;
    struct cache *outer; /* &l2, or &l1 where there is no L2 */
    uint64_t *accesses;  /* [MODEL_ATOMIC + 1], where they are counted now: `counted` or `ignored` */
    struct model_counts *tally; /* where all else is counted now: `counts` or `nothing` */
    uint64_t open;              /* open stays */
    uint64_t counted[MODEL_ATOMIC + 1], ignored[MODEL_ATOMIC + 1];
    struct model_counts counts; /* without what is in `counted`; cycles: those beyond a hit of the L1 each */
    struct model_counts nothing;
    struct model_counts shown; /* what model_counts returned last */
    unsigned id, node;
};

struct model {
    struct machine machine;
    unsigned cores;
    struct core *core; /* [cores] */
    struct cache l3[MACHINE_NODES_MAX];
    struct cores node_cores[MACHINE_NODES_MAX];
    struct directory directory;
    struct bindings bindings;
};

struct model *model_new(const struct machine *machine, char why[MACHINE_WHY_MAX])
{
    const char *key;
    if (!machine_check(machine, &key, why))
        return NULL;

    struct model *model = memory_map(sizeof *model);
    if (model != NULL) {
        model->machine = *machine;
        model->cores = machine_cores(machine);
        model->core = memory_map(model->cores * sizeof *model->core);
    }
    bool fits = model != NULL && model->core != NULL && directory_open(&model->directory, model->cores);
    for (unsigned n = 0; fits && n < machine->nodes; n++)
        fits = cache_open(&model->l3[n], &machine->l3);
    for (unsigned c = 0; fits && c < model->cores; c++) {
        struct core *core = &model->core[c];
        core->id = c;
        core->node = c / machine->cores_per_node;
        cores_add(&model->node_cores[core->node], c);
        core->outer = machine->l2.size != 0 ? &core->l2 : &core->l1;
        fits = cache_open(&core->l1, &machine->l1) && (core->outer == &core->l1 || cache_open(&core->l2, &machine->l2));
        model_count(model, c, false);
    }
    if (!fits) {
        snprintf(why, MACHINE_WHY_MAX, "no memory for the caches of %u cores", machine_cores(machine));
        model_free(model);
        return NULL;
    }
    return model;
}

void model_free(struct model *model)
{
    if (model == NULL)
        return;
    for (unsigned c = 0; model->core != NULL && c < model->cores; c++) {
        cache_close(&model->core[c].l1);
        cache_close(&model->core[c].l2);
    }
    for (unsigned n = 0; n < MACHINE_NODES_MAX; n++)
        cache_close(&model->l3[n]);
    directory_close(&model->directory);
    bindings_close(&model->bindings);
    if (model->core != NULL)
        memory_unmap(model->core, model->cores * sizeof *model->core);
    memory_unmap(model, sizeof *model);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* ---- one core's copies ---------------------------------------------------------------------------------------- */

/* The tag with the flag for stores as the others demand. */
static uint64_t with_pass(uint64_t tag)
{
    bool passes = (tag & TAG_STATE) == TAG_MODIFIED && (tag & (TAG_LOAD | TAG_TRACKED)) == TAG_LOAD;
    return passes ? tag | TAG_STORE : tag & ~(uint64_t)TAG_STORE;
}

/* New flags for a line that the core holds. */
static void retag(struct core *core, uint64_t tag)
{
    uint64_t line = tag & ~TAG_FLAGS;
    uint64_t *at = cache_peek(&core->l1, line);
    if (at != NULL)
        *at = tag;
    if (core->outer != &core->l1)
        *cache_peek(&core->l2, line) = tag;
}

/* A stay ends, with this tag. If it was open, nothing was ever read that another core wrote. */
static void settle(struct core *core, uint64_t tag)
{
    if (tag & TAG_LOAD)
        return;
    core->counts.false_sharing++;
    core->open--;
}

/* A core's copies of a line go. */
static void drop(struct core *core, uint64_t line)
{
    if (core->outer != &core->l1)
        cache_take(&core->l1, line);
    settle(core, cache_take(core->outer, line));
}

/* ---- the L3 of a node ----------------------------------------------------------------------------------------- */

/* A line comes into the L3 of a node, or is used there. */
static void l3_fill(struct model *model, unsigned node, struct entry *entry, uint64_t line)
{
    if (entry->l3 >> node & 1) {
        cache_touch(&model->l3[node], line);
        return;
    }
    uint64_t out = cache_put(&model->l3[node], line | TAG_SHARED);
    entry->l3 |= (uint8_t)(1u << node);
    if (out != 0)
        directory_entry(&model->directory, out)->l3 &= (uint8_t)~(1u << node);
}

/* The copies in all L3 but one's are out of date. */
static void l3_drop_others(struct model *model, unsigned node, struct entry *entry, uint64_t line)
{
    unsigned others = entry->l3 & ~(1u << node);
    entry->l3 &= (uint8_t)(1u << node);
    for (; others != 0; others &= others - 1)
        cache_take(&model->l3[__builtin_ctz(others)], line);
}

/* ---- between cores -------------------------------------------------------------------------------------------- */

/* The core becomes the only holder, for a store: what others hold is taken away. Returns how long the farthest of
 * them takes to answer; 0: there are none. */
static uint32_t take_away(struct model *model, struct core *core, struct entry *entry, uint64_t line)
{
    struct cores others = entry->holders;
    uint32_t wait = 0;

    cores_remove(&others, core->id);
    if (!cores_none(&others) && entry->sharing == NULL)
        entry->sharing = pool_get(&model->directory.sharings);
    while (!cores_none(&others)) {
        struct core *other = &model->core[cores_pop(&others)];
        drop(other, line);
        cores_remove(&entry->holders, other->id);
        sharing_lose(entry->sharing, other->id);
        core->tally->invalidations++;
        wait = larger(wait, other->node == core->node ? model->machine.cache_local : model->machine.cache_remote);
    }
    l3_drop_others(model, core->node, entry, line);
    return wait;
}

/* The owner, if there is one, becomes one of those who hold the line in common; what it changed goes to its L3. */
static void downgrade(struct model *model, struct entry *entry, uint64_t line, bool modified)
{
    if (entry->owner == NO_OWNER)
        return;
    struct core *owner = &model->core[entry->owner];
    uint64_t tag = *cache_peek(owner->outer, line);
    if (modified)
        l3_fill(model, owner->node, entry, line);
    retag(owner, with_pass((tag & ~(uint64_t)TAG_STATE) | TAG_SHARED));
    entry->owner = NO_OWNER;
}

/* Which node a page is on that is touched for the first time. */
static struct page *first_touch(struct model *model, struct core *core, uint64_t address)
{
    struct page *page = directory_add(&model->directory, address);
    int bound = bindings_node(&model->bindings, address / PAGE_SIZE);
    page->home = bound >= 0 ? (uint8_t)bound : (uint8_t)core->node;
    core->tally->zeroed += PAGE_LINES;
    return page;
}

/* What serves a miss of the private caches; counts it, and returns its latency. */
static uint32_t serve(struct model *model, struct core *core, const struct page *page, const struct entry *entry,
                      bool modified)
{
    const struct machine *machine = &model->machine;
    struct model_counts *tally = core->tally;

    if (modified && model->core[entry->owner].node == core->node) {
        tally->hitm_local++;
        return machine->cache_local;
    }
    if (modified) {
        tally->hitm_remote++;
        tally->l3_miss++;
        tally->cross_node++;
        return machine->cache_remote;
    }
    if (entry->l3 >> core->node & 1)
        return machine->l3.latency;
    if (cores_meet(&entry->holders, &model->node_cores[core->node]))
        return machine->cache_local;
    tally->l3_miss++;
    if (page->home == core->node) {
        tally->dram_local++;
        return machine->memory_local;
    }
    tally->dram_remote++;
    tally->cross_node++;
    return machine->memory_remote;
}

/* A line leaves the outer cache for want of room. */
static void evict(struct model *model, struct core *core, uint64_t tag)
{
    uint64_t line = tag & ~TAG_FLAGS;
    struct entry *entry = directory_entry(&model->directory, line);

    if (core->outer != &core->l1)
        cache_take(&core->l1, line);
    settle(core, tag);
    cores_remove(&entry->holders, core->id);
    if (entry->owner == core->id)
        entry->owner = NO_OWNER;
    if ((tag & TAG_STATE) == TAG_MODIFIED)
        l3_fill(model, core->node, entry, line);
}

/* Brings a line into the outer cache, for a load in common or alone, for a store alone. Returns its tag. */
static uint64_t fetch(struct model *model, struct core *core, uint64_t line, bool store, uint32_t *latency)
{
    struct page *page = directory_page(&model->directory, line);
    if (page == NULL)
        page = first_touch(model, core, line);
    struct entry *entry = &page->line[line / MACHINE_LINE % PAGE_LINES];
    uint64_t tag = line | TAG_LOAD;

    if (entry->sharing != NULL && sharing_return(entry->sharing, core->id) && core->tally == &core->counts) {
        tag &= ~(uint64_t)TAG_LOAD;
        core->open++;
    }
    bool modified =
        entry->owner != NO_OWNER &&
        (*cache_peek(model->core[entry->owner].outer, line) & TAG_STATE) == TAG_MODIFIED;
    *latency = serve(model, core, page, entry, modified);
    if (store)
        *latency = larger(*latency, take_away(model, core, entry, line));
    else
        downgrade(model, entry, line, modified);
    l3_fill(model, core->node, entry, line);

    if (cores_none(&entry->holders)) {
        entry->owner = (uint8_t)core->id;
        tag |= TAG_EXCLUSIVE;
    } else {
        tag |= TAG_SHARED;
    }
    cores_add(&entry->holders, core->id);
    if (entry->sharing != NULL)
        tag |= TAG_TRACKED;
    uint64_t out = cache_put(core->outer, tag);
    if (out != 0)
        evict(model, core, out);
    return tag;
}

/* ---- an access ------------------------------------------------------------------------------------------------ */

/* What an access does that the fast path must not pass, to a line that is in the L1 by now with this tag. Returns
 * how long an upgrade took, or 0. */
static uint32_t attend(struct model *model, struct core *core, uint64_t tag, words_t words, bool store)
{
    uint64_t line = tag & ~TAG_FLAGS;
    uint64_t before = tag;
    uint32_t wait = 0;
    struct entry *entry = NULL;

    if (!(tag & TAG_LOAD) || (tag & TAG_STATE) == TAG_SHARED || tag & TAG_TRACKED)
        entry = directory_entry(&model->directory, line);
    if (!(tag & TAG_LOAD) && entry->sharing->written[core->id] & words) {
        core->counts.true_sharing++;
        core->open--;
        tag |= TAG_LOAD;
    }
    if (store) {
        if ((tag & TAG_STATE) == TAG_SHARED) {
            core->tally->upgrades++;
            wait = larger(model->machine.l3.latency, take_away(model, core, entry, line));
            entry->owner = (uint8_t)core->id;
            if (entry->sharing != NULL)
                tag |= TAG_TRACKED;
        }
        if (tag & TAG_TRACKED) {
            if ((tag & TAG_STATE) != TAG_MODIFIED)
                sharing_own(entry->sharing);
            sharing_write(entry->sharing, model->cores, core->id, words);
        }
        tag |= TAG_MODIFIED;
    }
    tag = with_pass(tag);
    if (tag != before)
        retag(core, tag);
    return wait;
}

/* An access that the fast path does not let pass, within one line. */
static uint32_t access_line(struct model *model, struct core *core, uint64_t address, unsigned size,
                            enum model_kind kind)
{
    const struct machine *machine = &model->machine;
    uint64_t line = address & ~TAG_FLAGS & ADDRESS_MASK;
    bool store = kind != MODEL_LOAD;
    uint32_t latency = machine->l1.latency;
    uint64_t tag;

    core->accesses[kind]++;
    uint64_t *at = cache_touch(&core->l1, line);
    if (at != NULL) {
        tag = *at;
    } else {
        core->tally->l1_miss++;
        at = core->outer != &core->l1 ? cache_touch(&core->l2, line) : NULL;
        if (at != NULL) {
            tag = *at;
            latency = machine->l2.latency;
        } else {
            core->tally->l2_miss++;
            tag = fetch(model, core, line, store, &latency);
        }
        if (core->outer != &core->l1)
            cache_put(&core->l1, tag);
    }
    if (!(tag & (store ? TAG_STORE : TAG_LOAD)))
        latency = larger(latency, attend(model, core, tag, words_of(address, size), store));
    core->tally->cycles += latency - machine->l1.latency;
    return latency;
}

uint32_t model_access(struct model *model, unsigned id, uint64_t address, unsigned size, enum model_kind kind)
{
    struct core *core = &model->core[id];
    unsigned room = MACHINE_LINE - (unsigned)(address % MACHINE_LINE);

    if (size > room)
        return access_line(model, core, address, room, kind) +
               access_line(model, core, address + room, size - room, kind);
    uint64_t pass = kind == MODEL_LOAD ? TAG_LOAD : TAG_STORE;
    uint64_t line = address & ~TAG_FLAGS;
    if ((*cache_set(&core->l1, line) & (~TAG_FLAGS | pass)) == (line | pass)) {
        core->accesses[kind]++;
        return model->machine.l1.latency;
    }
    return access_line(model, core, address, size, kind);
}

/* ---- what a caller asks --------------------------------------------------------------------------------------- */

void model_count(struct model *model, unsigned id, bool on)
{
    struct core *core = &model->core[id];
    core->accesses = on ? core->counted : core->ignored;
    core->tally = on ? &core->counts : &core->nothing;
}

const struct model_counts *model_counts(struct model *model, unsigned id)
{
    struct core *core = &model->core[id];
    struct model_counts *counts = &core->counts;
    const struct cache *outer = core->outer;

    for (uint64_t i = 0; core->open > 0 && i < (outer->mask + 1) * outer->ways; i++) {
        uint64_t tag = outer->tags[i];
        if (tag != 0 && !(tag & TAG_LOAD)) {
            settle(core, tag);
            retag(core, with_pass(tag | TAG_LOAD));
        }
    }
    core->shown = *counts;
    counts = &core->shown;
    counts->loads = core->counted[MODEL_LOAD];
    counts->stores = core->counted[MODEL_STORE];
    counts->atomics = core->counted[MODEL_ATOMIC];
    counts->cycles += (counts->loads + counts->stores + counts->atomics) * model->machine.l1.latency;
    return counts;
}

void model_forget(struct model *model, uint64_t address, uint64_t bytes)
{
    uint64_t at = address & ADDRESS_MASK;
    uint64_t end = bytes < ADDRESS_MASK + 1 - at ? at + bytes : ADDRESS_MASK + 1;
    struct page *page;

    while (bytes > 0 && (page = directory_next(&model->directory, &at, end)) != NULL) {
        uint64_t line = at & ~(uint64_t)(PAGE_SIZE - 1);
        for (unsigned i = 0; i < PAGE_LINES; i++, line += MACHINE_LINE) {
            struct entry *entry = &page->line[i];
            while (!cores_none(&entry->holders))
                drop(&model->core[cores_pop(&entry->holders)], line);
            for (unsigned nodes = entry->l3; nodes != 0; nodes &= nodes - 1)
                cache_take(&model->l3[__builtin_ctz(nodes)], line);
        }
        directory_remove(&model->directory, at);
        at = line;
    }
}

void model_bind(struct model *model, uint64_t address, uint64_t bytes, uint64_t mask)
{
    uint64_t at = address & ADDRESS_MASK;
    uint64_t end = bytes < ADDRESS_MASK + 1 - at ? at + bytes : ADDRESS_MASK + 1;
    bindings_set(&model->bindings, at / PAGE_SIZE, (end + PAGE_SIZE - 1) / PAGE_SIZE,
                 mask & ((UINT64_C(1) << model->machine.nodes) - 1));
}

int model_home(const struct model *model, uint64_t address)
{
    const struct page *page = directory_page(&model->directory, address);
    return page == NULL ? -1 : page->home;
}
