/*
 * cache.h - a set-associative cache with true LRU, tags only.
 *
 * A tag is one word: the address of a line, whose six low bits are free for flags. The flags of a line in a cache are
 * never all 0, so that an empty way, which is 0, is no line's. The ways of a set lie in order of use, the last used one
 * first, empty ones last: a search mostly ends at the first word, and order costs a move of the few words before.
 */
#ifndef AK_SIM_CACHE_H
#define AK_SIM_CACHE_H

#include "model.h"

#define TAG_FLAGS MODEL_FLAGS

struct cache {
    uint64_t *tags; /* [sets][ways] and one more, which is read and of no meaning (model.h); owned */
    uint64_t mask;  /* sets - 1 */
    uint32_t ways;
};

/* An empty cache; false where there is no memory. The memory is touched as it is used. */
bool cache_open(struct cache *cache, const struct machine_cache *shape);
void cache_close(struct cache *cache);

static inline uint64_t *cache_set(const struct cache *cache, uint64_t line)
{
    return cache->tags + (line / MACHINE_LINE & cache->mask) * cache->ways;
}

/* The two differ in flags, and these are not all 0. */
static inline bool tag_is(uint64_t tag, uint64_t line)
{
    return (tag ^ line) - 1 < TAG_FLAGS;
}

/* The way of a set that a line is in, or the number of ways. */
static inline uint32_t cache_way(const uint64_t *set, uint32_t ways, uint64_t line)
{
    uint32_t way = 0;
    while (way < ways && !tag_is(set[way], line))
        way++;
    return way;
}

/* A tag becomes the last used one of its set, in place of the one that is in `way` now. */
static inline void cache_lead(uint64_t *set, uint32_t way, uint64_t tag)
{
    for (; way > 0; way--)
        set[way] = set[way - 1];
    set[0] = tag;
}

/* Where the tag of a line is, or NULL; the order stays. */
static inline uint64_t *cache_peek(const struct cache *cache, uint64_t line)
{
    uint64_t *set = cache_set(cache, line);
    uint32_t way = cache_way(set, cache->ways, line);
    return way < cache->ways ? &set[way] : NULL;
}

/* The same, and the line becomes the last used one. */
static inline uint64_t *cache_touch(const struct cache *cache, uint64_t line)
{
    uint64_t *set = cache_set(cache, line);
    uint32_t way = cache_way(set, cache->ways, line);
    if (way == cache->ways)
        return NULL;
    cache_lead(set, way, set[way]);
    return set;
}

/* Puts in, as the last used one, a line that is not there. Returns the tag that had to go, or 0. */
static inline uint64_t cache_put(const struct cache *cache, uint64_t tag)
{
    uint64_t *set = cache_set(cache, tag);
    uint64_t out = set[cache->ways - 1];
    cache_lead(set, cache->ways - 1, tag);
    return out;
}

/* Takes a line out. Returns its tag, or 0. */
static inline uint64_t cache_take(const struct cache *cache, uint64_t line)
{
    uint64_t *at = cache_peek(cache, line);
    if (at == NULL)
        return 0;
    uint64_t tag = *at;
    uint64_t *last = cache_set(cache, line) + cache->ways - 1;
    for (; at < last; at++)
        at[0] = at[1];
    *last = 0;
    return tag;
}

#endif
