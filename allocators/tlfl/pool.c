/* pool.c - see pool.h. */
#include "pool.h"

#include "class.h"
#include "lock.h"
#include "map.h"
#include "meta.h"
#include "os.h"
#include "poison.h"

/* Bucket 0 holds chunks with nothing free, bucket b those whose longest free run has 2^(b-1) to
 * 2^b - 1 granules. */
#define POOL_BUCKETS 8

/* In the bucket that may or may not have a long enough run, look at so many chunks. */
#define POOL_LOOKS 4

/* At most so many madvise calls in one tick; the rest waits for the next. */
#define POOL_TICK_CALLS 64

static struct {
    struct chunk *bucket[NODES][POOL_BUCKETS];
    struct chunk *chunks; /* all of them, through later and earlier */
    struct chunk *spare;  /* structures not in use, through next */
    char *hint;           /* where the last chunk started: the kernel maps downwards */
    size_t granules, free, dirty;
    size_t peak, peak_before; /* of granules - free, since the last tick and between the two before */
    _Atomic uint64_t ticked_ms;
    _Atomic bool overfull; /* a tick is due whatever the time */
    bool ticking;
} pool;

static uint64_t bits_mask(unsigned first, unsigned count)
{
    return (count == 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1) << first;
}

/* Set at the starts of all runs of `count` set bits. */
static uint64_t bits_runs(uint64_t bits, unsigned count)
{
    for (unsigned have = 1; have < count;) {
        unsigned step = count - have < have ? count - have : have;
        bits &= bits >> step;
        have += step;
    }
    return bits;
}

static unsigned bits_first(uint64_t bits)
{
    return (unsigned)__builtin_ctzll(bits);
}

static unsigned bits_count(uint64_t bits)
{
    return (unsigned)__builtin_popcountll(bits);
}

/* ---- lists ---- */

static unsigned chunk_bucket(const struct chunk *chunk)
{
    uint64_t bits = chunk->free;
    unsigned bucket = 0;
    while (bits != 0) {
        bits &= bucket < 6 ? bits >> (1u << bucket) : 0;
        bucket++;
    }
    return bucket;
}

static void chunk_enlist(struct chunk *chunk)
{
    struct chunk **head = &pool.bucket[chunk->node][chunk->bucket = chunk_bucket(chunk)];
    chunk->prev = NULL;
    chunk->next = *head;
    if (*head != NULL)
        (*head)->prev = chunk;
    *head = chunk;
}

static void chunk_delist(struct chunk *chunk)
{
    if (chunk->prev != NULL)
        chunk->prev->next = chunk->next;
    else
        pool.bucket[chunk->node][chunk->bucket] = chunk->next;
    if (chunk->next != NULL)
        chunk->next->prev = chunk->prev;
}

static void chunk_set_free(struct chunk *chunk, uint64_t bits)
{
    pool.free += bits_count(bits);
    pool.free -= bits_count(chunk->free);
    chunk->free = bits;
    if (pool.granules - pool.free > pool.peak)
        pool.peak = pool.granules - pool.free;
    if (chunk_bucket(chunk) != chunk->bucket) {
        chunk_delist(chunk);
        chunk_enlist(chunk);
    }
}

static void chunk_set_dirty(struct chunk *chunk, uint64_t bits)
{
    pool.dirty += bits_count(bits & chunk->free);
    pool.dirty -= bits_count(chunk->dirty & chunk->free);
    chunk->dirty = bits;
    chunk->aged &= bits;
}

/* ---- chunks ---- */

static char *chunk_map(size_t bytes)
{
    char *base = tlfl__os_map(bytes);
    if (base != NULL && ((uintptr_t)base & (GRANULE_SIZE - 1)) != 0) {
        tlfl__os_unmap(base, bytes);
        base = tlfl__os_map_aligned(bytes, GRANULE_SIZE);
    }
    return base;
}

/* A new chunk of 64 granules, or, where the OS refuses, of fewer, down to what is needed. */
static struct chunk *chunk_new(unsigned needed, unsigned node)
{
    struct chunk *chunk = pool.spare;
    if (chunk != NULL)
        pool.spare = chunk->next;
    else if ((chunk = tlfl__meta_take(sizeof *chunk)) == NULL)
        return NULL;
    char *base = NULL;
    unsigned granules = CHUNK_GRANULES;
    for (;;) {
        base = chunk_map(granules * GRANULE_SIZE);
        if (base != NULL || granules == needed)
            break;
        granules = granules / 2 > needed ? granules / 2 : needed;
    }
    if (base != NULL && !tlfl__map_reserve(base, granules * GRANULE_SIZE)) {
        tlfl__os_unmap(base, granules * GRANULE_SIZE);
        base = NULL;
    }
    if (base != NULL)
        tlfl__os_home(base, granules * GRANULE_SIZE, node);
    if (base == NULL) {
        chunk->next = pool.spare;
        pool.spare = chunk;
        return NULL;
    }
    chunk->base = base;
    chunk->all = chunk->free = bits_mask(0, granules);
    chunk->dirty = chunk->aged = 0;
    chunk->node = node;
    chunk->earlier = NULL;
    chunk->later = pool.chunks;
    if (pool.chunks != NULL)
        pool.chunks->earlier = chunk;
    pool.chunks = chunk;
    pool.granules += granules;
    pool.free += granules;
    poison_set(base, granules * GRANULE_SIZE);
    chunk_enlist(chunk);
    return chunk;
}

static void chunk_delete(struct chunk *chunk)
{
    unsigned granules = bits_count(chunk->all);
    chunk_set_dirty(chunk, 0);
    chunk_delist(chunk);
    if (chunk->earlier != NULL)
        chunk->earlier->later = chunk->later;
    else
        pool.chunks = chunk->later;
    if (chunk->later != NULL)
        chunk->later->earlier = chunk->earlier;
    pool.granules -= granules;
    pool.free -= granules;
    poison_lift(chunk->base, granules * GRANULE_SIZE);
    tlfl__os_unmap(chunk->base, granules * GRANULE_SIZE);
    chunk->next = pool.spare;
    pool.spare = chunk;
}

/* ---- take and give ---- */

/* The first run in the chunk, of dirty granules where possible: those need no page faults. */
static bool chunk_take(struct chunk *chunk, unsigned granules, struct run *run)
{
    uint64_t starts = bits_runs(chunk->free & chunk->dirty, granules);
    if (starts == 0)
        starts = bits_runs(chunk->free, granules);
    if (starts == 0)
        return false;
    uint64_t bits = bits_mask(bits_first(starts), granules);
    *run = (struct run){chunk, bits_first(starts), granules, (chunk->dirty & bits) == 0};
    poison_lift(run_start(run), granules * GRANULE_SIZE);
    chunk_set_dirty(chunk, chunk->dirty & ~bits);
    chunk_set_free(chunk, chunk->free & ~bits);
    return true;
}

/* From the fullest chunks first, so that others become free as a whole. */
static bool pool_find(unsigned granules, unsigned node, struct run *run)
{
    unsigned bucket = size_log2(granules) + 1;
    struct chunk *chunk = pool.bucket[node][bucket];
    for (int looks = 0; chunk != NULL && looks < POOL_LOOKS; looks++, chunk = chunk->next)
        if (chunk_take(chunk, granules, run))
            return true;
    while (++bucket < POOL_BUCKETS)
        if (pool.bucket[node][bucket] != NULL)
            return chunk_take(pool.bucket[node][bucket], granules, run);
    return false;
}

bool tlfl__pool_take(unsigned granules, unsigned node, struct run *run)
{
    if (pool_find(granules, node, run))
        return true;
    struct chunk *chunk = chunk_new(granules, node);
    if (chunk == NULL && tlfl__pool_trim() != 0)
        chunk = chunk_new(granules, node);
    if (chunk != NULL)
        return chunk_take(chunk, granules, run);
    for (unsigned other = 0; other < NODES; other++)
        if (pool_find(granules, other, run))
            return true;
    return false;
}

bool tlfl__pool_resize(struct run *run, unsigned granules)
{
    struct chunk *chunk = run->chunk;
    if (granules < run->granules) {
        struct run rest = {chunk, run->first + granules, run->granules - granules, false};
        run->granules = granules;
        tlfl__pool_give(&rest);
        return true;
    }
    if (run->first + granules > CHUNK_GRANULES)
        return false;
    uint64_t bits = bits_mask(run->first + run->granules, granules - run->granules);
    if ((chunk->free & bits) != bits)
        return false;
    chunk_set_dirty(chunk, chunk->dirty & ~bits);
    chunk_set_free(chunk, chunk->free & ~bits);
    run->granules = granules;
    poison_lift(run_start(run), granules * GRANULE_SIZE);
    return true;
}

static bool pool_overfull(void)
{
    size_t peak = pool.peak > pool.peak_before ? pool.peak : pool.peak_before;
    return pool.granules - pool.free + pool.dirty > peak + POOL_DIRTY_MAX;
}

void tlfl__pool_give(const struct run *run)
{
    struct chunk *chunk = run->chunk;
    uint64_t bits = bits_mask(run->first, run->granules);
    chunk_set_free(chunk, chunk->free | bits);
    chunk_set_dirty(chunk, chunk->dirty | bits);
    poison_set(run_start(run), run->granules * GRANULE_SIZE);
    if (pool_overfull())
        atomic_store_explicit(&pool.overfull, true, memory_order_relaxed);
}

/* ---- purge ---- */

/* Purges the free granules in `bits`, a run at a time, at most `calls` of them. The run is taken
 * out while the lock is let go, so nobody can get it or unmap the chunk. Returns the granules
 * purged and lowers *calls. */
static size_t chunk_purge(struct chunk *chunk, uint64_t bits, unsigned *calls)
{
    size_t purged = 0;
    while (*calls > 0 && (bits &= chunk->free & chunk->dirty) != 0) {
        unsigned first = bits_first(bits);
        uint64_t ended = ~(bits >> first);
        unsigned count = ended == 0 ? 64 : bits_first(ended);
        uint64_t taken = bits_mask(first, count);
        chunk_set_dirty(chunk, chunk->dirty & ~taken);
        chunk_set_free(chunk, chunk->free & ~taken);
        tlfl__central_leave();
        bool done = tlfl__os_purge(chunk->base + first * GRANULE_SIZE, count * GRANULE_SIZE);
        tlfl__central_enter();
        chunk_set_free(chunk, chunk->free | taken);
        if (done)
            purged += count;
        else
            chunk_set_dirty(chunk, chunk->dirty | taken);
        bits &= ~taken;
        --*calls;
    }
    return purged;
}

static bool chunk_unused(const struct chunk *chunk)
{
    return chunk->free == chunk->all;
}

static void pool_purge_aged(void)
{
    unsigned calls = POOL_TICK_CALLS;
    bool kept_one = false;
    for (struct chunk *chunk = pool.chunks, *later; chunk != NULL; chunk = later) {
        if (chunk->aged & chunk->free)
            chunk_purge(chunk, chunk->aged, &calls);
        chunk->aged = chunk->dirty & chunk->free;
        later = chunk->later;
        if (chunk_unused(chunk) && chunk->dirty == 0) {
            if (kept_one)
                chunk_delete(chunk);
            kept_one = true;
        }
    }
}

void tlfl__pool_tick(void)
{
    uint64_t now = tlfl__os_ms();
    if (now - atomic_load_explicit(&pool.ticked_ms, memory_order_relaxed) < POOL_TICK_MS &&
        !atomic_load_explicit(&pool.overfull, memory_order_relaxed))
        return;
    tlfl__central_enter();
    if (!pool.ticking) {
        pool.ticking = true;
        atomic_store_explicit(&pool.ticked_ms, now, memory_order_relaxed);
        pool.peak_before = pool.peak;
        pool.peak = pool.granules - pool.free;
        pool_purge_aged();
        if (pool_overfull()) /* what it has aged just now is due as well */
            pool_purge_aged();
        atomic_store_explicit(&pool.overfull, false, memory_order_relaxed);
        pool.ticking = false;
    }
    tlfl__central_leave();
}

void tlfl__pool_reset(void)
{
    pool.ticking = false;
}

size_t tlfl__pool_trim(void)
{
    size_t given = 0;
    tlfl__central_enter();
    for (struct chunk *chunk = pool.chunks, *later; chunk != NULL; chunk = later) {
        unsigned calls = CHUNK_GRANULES;
        if (chunk_unused(chunk)) {
            given += bits_count(chunk->all);
            later = chunk->later;
            chunk_delete(chunk);
        } else {
            given += chunk_purge(chunk, ~UINT64_C(0), &calls);
            later = chunk->later;
        }
    }
    tlfl__central_leave();
    return given * GRANULE_SIZE;
}

size_t tlfl__pool_dirty(void)
{
    return pool.dirty;
}

struct pool_books tlfl__pool_books(void)
{
    return (struct pool_books){
        .mapped = pool.granules * GRANULE_SIZE,
        .dirty = pool.dirty * GRANULE_SIZE,
        .free = pool.free * GRANULE_SIZE,
    };
}
