#include "cache.h"
#include "pool.h"

static size_t bytes_of(uint64_t sets, uint32_t ways)
{
    return (sets * ways + 1) * sizeof(uint64_t);
}

bool cache_open(struct cache *cache, const struct machine_cache *shape)
{
    uint64_t sets = shape->size / MACHINE_LINE / shape->ways;
    cache->tags = memory_map(bytes_of(sets, shape->ways));
    cache->mask = sets - 1;
    cache->ways = shape->ways;
    return cache->tags != NULL;
}

void cache_close(struct cache *cache)
{
    if (cache->tags != NULL)
        memory_unmap(cache->tags, bytes_of(cache->mask + 1, cache->ways));
    cache->tags = NULL;
}
