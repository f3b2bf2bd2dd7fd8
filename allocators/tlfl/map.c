/* map.c - see map.h. */
#include "map.h"

#include "meta.h"
#include "os.h"

struct map_leaf *_Atomic tlfl__map_root[MAP_ROOT];

/* A leaf that is mapped and not yet entered in the root, or NULL. */
static struct map_leaf *map_spare_leaf;

static size_t map_root_index(uintptr_t address)
{
    return (uint64_t)address >> (GRANULE_SHIFT + MAP_LEAF_BITS);
}

bool tlfl__map_spare(void)
{
    if (map_spare_leaf == NULL) {
        map_spare_leaf = tlfl__os_map(sizeof(struct map_leaf));
        if (map_spare_leaf == NULL)
            return false;
        tlfl__meta_count(sizeof(struct map_leaf));
    }
    return true;
}

bool tlfl__map_reserve(const void *start, size_t bytes)
{
    size_t last = map_root_index((uintptr_t)start + bytes - 1);
    for (size_t i = map_root_index((uintptr_t)start); i <= last; i++) {
        if (i >= MAP_ROOT)
            return false;
        if (atomic_load_explicit(&tlfl__map_root[i], memory_order_relaxed) != NULL)
            continue;
        if (!tlfl__map_spare())
            return false;
        atomic_store_explicit(&tlfl__map_root[i], map_spare_leaf, memory_order_release);
        map_spare_leaf = NULL;
    }
    return true;
}

void tlfl__map_set(const void *start, size_t granules, struct span *span)
{
    uintptr_t address = (uintptr_t)start;
    for (size_t i = 0; i < granules; i++, address += GRANULE_SIZE) {
        struct map_leaf *leaf =
            atomic_load_explicit(&tlfl__map_root[map_root_index(address)], memory_order_relaxed);
        atomic_store_explicit(&leaf->span[(uint32_t)address >> GRANULE_SHIFT], span, memory_order_release);
    }
}
