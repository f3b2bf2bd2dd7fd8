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

/*
 * The flags of a tag. A stay of a line is open from a coherence miss until it is known what sharing caused it.
 *
 * TAG_LOAD: a load may pass, since the stay is not open. TAG_STORE: a store may pass, since moreover the line is
 * modified and nobody has to be told what is written. TAG_TRACKED: somebody has, the line's record of sharing.
 */
enum {
    TAG_SHARED = 1, /* others may hold the line too */
    TAG_EXCLUSIVE = 2,
    TAG_MODIFIED = 3,
    TAG_STATE = 3,
    TAG_LOAD = MODEL_PASS_LOAD,
    TAG_STORE = MODEL_PASS_STORE,
    TAG_TRACKED = 16
};

struct core {
    struct cache l1, l2;
    struct cache *outer;        /* &l2, or &l1 where there is no L2 */
    struct model_counts *tally; /* where all else is counted now: `counts` or `nothing` */
    uint64_t open;              /* open stays */
    uint64_t counted[MODEL_ATOMIC + 1], ignored[MODEL_ATOMIC + 1];
    struct model_counts counts; /* without what is in `counted`; cycles: those beyond a hit of the L1 each */
    struct model_counts nothing;
    struct model_counts shown; /* what model_counts returned last */
    unsigned id, node;
};

struct system {
    struct model model; /* first: what others hold a pointer to */
    struct machine machine;
    unsigned cores;
    struct core *core; /* [cores] */
    struct cache l3[MACHINE_NODES_MAX];
    struct cores node_cores[MACHINE_NODES_MAX];
    struct directory directory;
    struct bindings bindings;
};

static struct system *system_of(struct model *model)
{
    return (struct system *)model;
}

static bool core_open(struct system *system, unsigned id)
{
    const struct machine *machine = &system->machine;
    struct core *core = &system->core[id];
    bool two = machine->l2.size != 0;

    if (!cache_open(&core->l1, &machine->l1) || (two && !cache_open(&core->l2, &machine->l2)))
        return false;
    core->id = id;
    core->node = id / machine->cores_per_node;
    core->outer = two ? &core->l2 : &core->l1;
    cores_add(&system->node_cores[core->node], id);
    system->model.front[id] =
        (struct model_front){.tags = core->l1.tags, .mask = core->l1.mask, .ways = core->l1.ways};
    model_count(&system->model, id, false);
    return true;
}

struct model *model_new(const struct machine *machine, char why[MACHINE_WHY_MAX])
{
    const char *key;
    if (!machine_check(machine, &key, why))
        return NULL;

    struct system *system = memory_map(sizeof *system);
    bool fits = system != NULL;
    if (fits) {
        system->model.hit = machine->l1.latency;
        system->machine = *machine;
        system->cores = machine_cores(machine);
        system->core = memory_map(system->cores * sizeof *system->core);
        fits = system->core != NULL && directory_open(&system->directory, system->cores);
    }
    for (unsigned node = 0; fits && node < machine->nodes; node++)
        fits = cache_open(&system->l3[node], &machine->l3);
    for (unsigned core = 0; fits && core < system->cores; core++)
        fits = core_open(system, core);
    if (!fits) {
        snprintf(why, MACHINE_WHY_MAX, "no memory for the caches of %u cores", machine_cores(machine));
        model_free(&system->model);
        return NULL;
    }
    return &system->model;
}

void model_free(struct model *model)
{
    struct system *system = system_of(model);
    if (system == NULL)
        return;
    for (unsigned core = 0; system->core != NULL && core < system->cores; core++) {
        cache_close(&system->core[core].l1);
        cache_close(&system->core[core].l2);
    }
    for (unsigned node = 0; node < MACHINE_NODES_MAX; node++)
        cache_close(&system->l3[node]);
    directory_close(&system->directory);
    bindings_close(&system->bindings);
    if (system->core != NULL)
        memory_unmap(system->core, system->cores * sizeof *system->core);
    memory_unmap(system, sizeof *system);
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
static void l3_fill(struct system *system, unsigned node, struct entry *entry, uint64_t line)
{
    if (entry->l3 >> node & 1) {
        cache_touch(&system->l3[node], line);
        return;
    }
    uint64_t out = cache_put(&system->l3[node], line | TAG_SHARED);
    entry->l3 |= (uint8_t)(1u << node);
    if (out != 0)
        directory_entry(&system->directory, out)->l3 &= (uint8_t) ~(1u << node);
}

/* The copies in all L3 but one's are out of date. */
static void l3_drop_others(struct system *system, unsigned node, struct entry *entry, uint64_t line)
{
    unsigned others = entry->l3 & ~(1u << node);
    entry->l3 &= (uint8_t)(1u << node);
    for (; others != 0; others &= others - 1)
        cache_take(&system->l3[__builtin_ctz(others)], line);
}

/* ---- between cores -------------------------------------------------------------------------------------------- */

/* The core becomes the only holder, for a store: what others hold is taken away. Returns how long the farthest of
 * them takes to answer; 0: there are none. */
static uint32_t take_away(struct system *system, struct core *core, struct entry *entry, uint64_t line)
{
    struct cores others = entry->holders;
    uint32_t wait = 0;

    cores_remove(&others, core->id);
    if (!cores_none(&others) && entry->sharing == NULL)
        entry->sharing = pool_get(&system->directory.sharings);
    while (!cores_none(&others)) {
        struct core *other = &system->core[cores_pop(&others)];
        drop(other, line);
        cores_remove(&entry->holders, other->id);
        sharing_lose(entry->sharing, other->id);
        core->tally->invalidations++;
        wait = larger(wait,
                      other->node == core->node ? system->machine.cache_local : system->machine.cache_remote);
    }
    l3_drop_others(system, core->node, entry, line);
    return wait;
}

/* The owner, if there is one, becomes one of those who hold the line in common; what it changed goes to its L3. */
static void downgrade(struct system *system, struct entry *entry, uint64_t line, bool modified)
{
    if (entry->owner == NO_OWNER)
        return;
    struct core *owner = &system->core[entry->owner];
    uint64_t tag = *cache_peek(owner->outer, line);
    if (modified)
        l3_fill(system, owner->node, entry, line);
    retag(owner, with_pass((tag & ~(uint64_t)TAG_STATE) | TAG_SHARED));
    entry->owner = NO_OWNER;
}

/* Which node a page is on that is touched for the first time. */
static struct page *first_touch(struct system *system, struct core *core, uint64_t address)
{
    struct page *page = directory_add(&system->directory, address);
    int bound = bindings_node(&system->bindings, address / PAGE_SIZE);
    page->home = bound >= 0 ? (uint8_t)bound : (uint8_t)core->node;
    core->tally->zeroed += PAGE_LINES;
    return page;
}

/* What serves a miss of the private caches; counts it, and returns its latency. */
static uint32_t serve(struct system *system, struct core *core, const struct page *page,
                      const struct entry *entry, bool modified)
{
    const struct machine *machine = &system->machine;
    struct model_counts *tally = core->tally;

    if (modified && system->core[entry->owner].node == core->node) {
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
    if (cores_meet(&entry->holders, &system->node_cores[core->node]))
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
static void evict(struct system *system, struct core *core, uint64_t tag)
{
    uint64_t line = tag & ~TAG_FLAGS;
    struct entry *entry = directory_entry(&system->directory, line);

    if (core->outer != &core->l1)
        cache_take(&core->l1, line);
    settle(core, tag);
    cores_remove(&entry->holders, core->id);
    if (entry->owner == core->id)
        entry->owner = NO_OWNER;
    if ((tag & TAG_STATE) == TAG_MODIFIED)
        l3_fill(system, core->node, entry, line);
}

/* Brings a line into the outer cache, for a load in common or alone, for a store alone. Returns its tag. */
static uint64_t fetch(struct system *system, struct core *core, uint64_t line, bool store, uint32_t *latency)
{
    struct page *page = directory_page(&system->directory, line);
    if (page == NULL)
        page = first_touch(system, core, line);
    struct entry *entry = &page->line[line / MACHINE_LINE % PAGE_LINES];
    uint64_t tag = line | TAG_LOAD;

    if (entry->sharing != NULL && sharing_return(entry->sharing, core->id) && core->tally == &core->counts) {
        tag &= ~(uint64_t)TAG_LOAD;
        core->open++;
    }
    bool modified = entry->owner != NO_OWNER &&
                    (*cache_peek(system->core[entry->owner].outer, line) & TAG_STATE) == TAG_MODIFIED;
    *latency = serve(system, core, page, entry, modified);
    if (store)
        *latency = larger(*latency, take_away(system, core, entry, line));
    else
        downgrade(system, entry, line, modified);
    l3_fill(system, core->node, entry, line);

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
        evict(system, core, out);
    return tag;
}

/* ---- an access ------------------------------------------------------------------------------------------------ */

/* What an access does that the fast path must not pass, to a line that is in the L1 by now with this tag. Returns
 * how long an upgrade took, or 0. */
static uint32_t attend(struct system *system, struct core *core, uint64_t tag, words_t words, bool store)
{
    uint64_t line = tag & ~TAG_FLAGS;
    uint64_t before = tag;
    uint32_t wait = 0;
    struct entry *entry = NULL;
    struct sharing *sharing = NULL;

    if ((tag & TAG_STATE) == TAG_SHARED || tag & TAG_TRACKED) {
        entry = directory_entry(&system->directory, line);
        sharing = entry->sharing;
    }
    if (!(tag & TAG_LOAD) && sharing != NULL && sharing->written[core->id] & words) {
        core->counts.true_sharing++;
        core->open--;
        tag |= TAG_LOAD;
    }
    if (store) {
        if ((tag & TAG_STATE) == TAG_SHARED) {
            core->tally->upgrades++;
            wait = larger(system->machine.l3.latency, take_away(system, core, entry, line));
            entry->owner = (uint8_t)core->id;
            sharing = entry->sharing;
        }
        if (sharing != NULL) {
            if ((tag & TAG_STATE) != TAG_MODIFIED)
                sharing_own(sharing);
            sharing_write(sharing, system->cores, core->id, words);
            tag |= TAG_TRACKED;
        }
        tag |= TAG_MODIFIED;
    }
    tag = with_pass(tag);
    if (tag != before)
        retag(core, tag);
    return wait;
}

/* An access that the fast path does not let pass, within one line. */
static uint32_t access_line(struct system *system, struct core *core, uint64_t address, unsigned size,
                            enum model_kind kind)
{
    const struct machine *machine = &system->machine;
    uint64_t line = address & ~TAG_FLAGS & ADDRESS_MASK;
    bool store = kind != MODEL_LOAD;
    uint32_t latency = machine->l1.latency;
    uint64_t tag;

    system->model.front[core->id].accesses[kind]++;
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
            tag = fetch(system, core, line, store, &latency);
        }
        if (core->outer != &core->l1)
            cache_put(&core->l1, tag);
    }
    if (!(tag & (store ? TAG_STORE : TAG_LOAD)))
        latency = larger(latency, attend(system, core, tag, words_of(address, size), store));
    core->tally->cycles += latency - machine->l1.latency;
    return latency;
}

uint32_t model_access_slow(struct model *model, unsigned id, uint64_t address, unsigned size,
                           enum model_kind kind)
{
    struct system *system = system_of(model);
    struct core *core = &system->core[id];
    unsigned room = MACHINE_LINE - (unsigned)(address % MACHINE_LINE);

    if (size <= room)
        return access_line(system, core, address, size, kind);
    return access_line(system, core, address, room, kind) +
           access_line(system, core, address + room, size - room, kind);
}

/* ---- what a caller asks --------------------------------------------------------------------------------------- */

void model_count(struct model *model, unsigned id, bool on)
{
    struct core *core = &system_of(model)->core[id];
    model->front[id].accesses = on ? core->counted : core->ignored;
    core->tally = on ? &core->counts : &core->nothing;
}

/* Open stays are false sharing so far. */
static void settle_all(struct core *core)
{
    const struct cache *outer = core->outer;
    for (uint64_t i = 0; core->open > 0 && i < (outer->mask + 1) * outer->ways; i++) {
        uint64_t tag = outer->tags[i];
        if (tag != 0 && !(tag & TAG_LOAD)) {
            settle(core, tag);
            retag(core, with_pass(tag | TAG_LOAD));
        }
    }
}

/* Members are all of one type. */
static void counts_add(struct model_counts *to, const struct model_counts *more)
{
    uint64_t *sum = (uint64_t *)to;
    for (size_t i = 0; i < sizeof *to / sizeof *sum; i++)
        sum[i] += ((const uint64_t *)more)[i];
}

void model_move(struct model *model, unsigned from, unsigned to)
{
    struct core *old = &system_of(model)->core[from], *new = &system_of(model)->core[to];
    if (from == to)
        return;
    bool on = old->tally == &old->counts;
    settle_all(old);
    counts_add(&new->counts, &old->counts);
    old->counts = (struct model_counts){0};
    for (size_t kind = 0; kind <= MODEL_ATOMIC; kind++) {
        new->counted[kind] += old->counted[kind];
        old->counted[kind] = 0;
    }
    model_count(model, from, false);
    model_count(model, to, on);
}

const struct model_counts *model_counts(struct model *model, unsigned id)
{
    struct core *core = &system_of(model)->core[id];
    struct model_counts *counts = &core->shown;

    settle_all(core);
    *counts = core->counts;
    counts->loads = core->counted[MODEL_LOAD];
    counts->stores = core->counted[MODEL_STORE];
    counts->atomics = core->counted[MODEL_ATOMIC];
    counts->cycles += (counts->loads + counts->stores + counts->atomics) * model->hit;
    return counts;
}

void model_forget(struct model *model, uint64_t address, uint64_t bytes)
{
    struct system *system = system_of(model);
    uint64_t at = address & ADDRESS_MASK;
    uint64_t end = bytes < ADDRESS_MASK + 1 - at ? at + bytes : ADDRESS_MASK + 1;
    struct page *page;

    while (bytes > 0 && (page = directory_next(&system->directory, &at, end)) != NULL) {
        uint64_t line = at & ~(uint64_t)(PAGE_SIZE - 1);
        for (unsigned i = 0; i < PAGE_LINES; i++, line += MACHINE_LINE) {
            struct entry *entry = &page->line[i];
            while (!cores_none(&entry->holders))
                drop(&system->core[cores_pop(&entry->holders)], line);
            for (unsigned nodes = entry->l3; nodes != 0; nodes &= nodes - 1)
                cache_take(&system->l3[__builtin_ctz(nodes)], line);
        }
        directory_remove(&system->directory, at);
        at = line;
    }
}

void model_bind(struct model *model, uint64_t address, uint64_t bytes, uint64_t mask)
{
    struct system *system = system_of(model);
    uint64_t at = address & ADDRESS_MASK;
    uint64_t end = bytes < ADDRESS_MASK + 1 - at ? at + bytes : ADDRESS_MASK + 1;
    bindings_set(&system->bindings, at / PAGE_SIZE, (end + PAGE_SIZE - 1) / PAGE_SIZE,
                 mask & ((UINT64_C(1) << system->machine.nodes) - 1));
}

int model_home(const struct model *model, uint64_t address)
{
    const struct system *system = (const struct system *)model;
    const struct page *page = directory_page(&system->directory, address);
    return page == NULL ? -1 : page->home;
}
