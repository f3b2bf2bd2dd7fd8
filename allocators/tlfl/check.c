/* check.c - see check.h. */
#include "check.h"

#ifdef TLFL_TEST

#include "map.h"

#define CHECK(holds, what) \
    do {                   \
        if (!(holds))      \
            return what;   \
    } while (0)

/* The free list holds distinct, marked blocks of the span; counts them. */
static const char *check_list(const struct span *span, uint32_t *count)
{
    uint64_t seen[GRANULE_SIZE / BLOCK_ALIGN / 64] = {0}; /* no span has more blocks: class_order */
    *count = 0;
    for (const struct block *block = span->free; block != BLOCK_END; block = block->next, ++*count) {
        size_t offset = (size_t)((const char *)block - span->base), index = offset / span->size;
        CHECK(offset % span->size == 0 && index < span->carved, "list: a carved block of the span");
        CHECK((seen[index / 64] >> index % 64 & 1) == 0, "list: no block twice");
        seen[index / 64] |= UINT64_C(1) << index % 64;
        CHECK(block_is_marked(span, block), "list: marked");
    }
    return NULL;
}

/* Exactly the starts of carved blocks are let in: looks at the first block, the last and around them. */
static const char *check_door(const struct span *span)
{
    const char *first = span->base, *last = first + ((size_t)span->carved - 1) * span->size;
    for (int step = -3; step <= 3; step++) {
        bool inside = step == 0 && span->carved > 0;
        CHECK(span_holds(span, first + step * 4) == inside, "door: the first block, and nothing beside it");
        CHECK(span_holds(span, last + step * 4) == inside, "door: the last block, and nothing beside it");
    }
    CHECK(!span_holds(span, last + span->size) && !span_holds(span, first - span->size), "door: not behind the ends");
    return NULL;
}

const char *tlfl__span_is_valid(struct heap *heap, const struct span *span)
{
    uint32_t unused;
    const char *wrong = check_list(span, &unused);
    if (wrong != NULL)
        return wrong;
    uint32_t live = span->carved - unused;
    CHECK(span->kind == SPAN_SMALL && span->size == class_size(span->class), "kind and size");
    CHECK(span_owner(span) == heap, "owner");
    for (size_t i = 0; i < span->run.granules; i++)
        CHECK(map_find(span->base + i * GRANULE_SIZE) == span, "map: every granule");
    struct span *own = heap_own(heap, span->base);
    CHECK(own == span || !span_holds(own, span->base), "own: this span, or one that is elsewhere");
    switch (span_state(span)) {
    case SPAN_CURRENT:
        CHECK(span->out > 0 && span->out <= span->capacity, "CURRENT: out");
        return check_door(span);
    case SPAN_AVAIL:
        CHECK(span->out == live && live > 0 && unused + (span->capacity - span->carved) > 0, "AVAIL: out");
        return check_door(span);
    case SPAN_FULL:
        CHECK(span->carved == span->capacity && span->out == span->wake - unused, "FULL: out");
        return check_door(span);
    case SPAN_EMPTY:
        CHECK(live == 0 && span->limit == 0, "EMPTY: nothing live, closed");
        return NULL;
    }
    return "state";
}

static const char *check_class(struct heap *heap, unsigned class, uint32_t *granules)
{
    struct span *span = heap->current[class], *prev = NULL;
    const char *wrong;
    if (span != SPAN_NONE) {
        CHECK(span_state(span) == SPAN_CURRENT && span->class == class, "current: CURRENT, of the class");
        if ((wrong = tlfl__span_is_valid(heap, span)) != NULL)
            return wrong;
        *granules += span->run.granules;
    }
    for (span = heap->bin[class].avail; span != NULL; prev = span, span = span->next) {
        CHECK(span_state(span) == SPAN_AVAIL && span->class == class && span->prev == prev, "avail: links");
        if ((wrong = tlfl__span_is_valid(heap, span)) != NULL)
            return wrong;
        *granules += span->run.granules;
    }
    return NULL;
}

/* A shelf of small spans, or of large ones. */
static const char *check_shelf(struct heap *heap, const struct shelf *shelf, bool small, uint32_t *granules)
{
    for (struct span *span = shelf->head; span != NULL; span = span->next) {
        CHECK(span_state(span) == SPAN_EMPTY, "shelf: EMPTY");
        const char *wrong = small ? tlfl__span_is_valid(heap, span) : NULL;
        if (wrong != NULL)
            return wrong;
        CHECK(small || map_find(span->base) == span, "shelf: large spans stay in the map");
        *granules += span->run.granules;
    }
    return NULL;
}

const char *tlfl__heap_is_valid(struct heap *heap)
{
    uint32_t listed = 0, empty = 0, large = 0;
    const char *wrong = NULL;
    for (size_t i = 0; i < CLASS_DIRECT; i++)
        CHECK(heap->direct[i] == heap->current[class_of(i * BLOCK_ALIGN)], "direct");
    for (unsigned class = 0; wrong == NULL && class < CLASS_COUNT; class ++)
        wrong = check_class(heap, class, &listed);
    for (unsigned order = 0; wrong == NULL && order < CLASS_ORDERS; order++)
        wrong = check_shelf(heap, &heap->empty[order], true, &empty);
    for (unsigned class = 0; wrong == NULL && class < CLASS_LARGE_COUNT; class ++)
        wrong = check_shelf(heap, &heap->large[class], false, &large);
    if (wrong != NULL)
        return wrong;
    CHECK(heap->granules >= listed + empty, "granules");
    int32_t used = heap->used - (int32_t)heap->lost;
    CHECK(used >= (int32_t)(heap->granules - empty) && heap->used <= heap->peak, "used");
    CHECK(heap->room == heap->limit - heap->used - (int32_t)(empty + large), "room");
    return NULL;
}

#else

_Static_assert(CLASS_COUNT != 0, "a translation unit is not empty in ISO C");

#endif
