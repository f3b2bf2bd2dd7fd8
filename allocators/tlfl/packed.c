/* packed.c - see packed.h. */
#include "packed.h"

#ifdef TLFL_PACKED

#include "lock.h"
#include "map.h"
#include "meta.h"
#include "remote.h"

_Static_assert(PACKED_MAX < CLASS_FINE_MAX, "class_of(PACKED_MAX) is PACKED_MAX / 16 - 1");

/* lane[class] of one heap: see packed.h. freed counts the blocks put into it since it was last
 * counted or found empty: an upper bound of its length, since malloc takes blocks out uncounted. */
struct packed_lanes {
    struct span lane[PACKED_CLASSES];
    uint32_t freed[PACKED_CLASSES];
    struct packed_lanes *later; /* the list of all */
};

/* Written under the central lock, read without: none is ever given back. All lie in [low, high). */
static struct {
    struct packed_lanes *_Atomic all;
    _Atomic uintptr_t low, high;
} made;

/* Blocks to give away, marked as free blocks of their span. Under the central lock. */
static struct {
    struct block *first;
    uint32_t count;
    struct heap *giver; /* owner of all of them, or NULL: of several */
} gifts[PACKED_CLASSES];

static void gift_put(unsigned class, struct block *block, struct heap *giver)
{
    if (gifts[class].count == 0)
        gifts[class].giver = giver;
    else if (gifts[class].giver != giver)
        gifts[class].giver = NULL;
    block->next = gifts[class].first;
    gifts[class].first = block;
    gifts[class].count++;
}

static struct block *gift_take(unsigned class)
{
    struct block *block = gifts[class].first;
    if (block != NULL) {
        gifts[class].first = block->next;
        gifts[class].count--;
    }
    return block;
}

void tlfl__packed_carved(struct span *span, char *first, uint32_t count)
{
    if (span->class >= PACKED_CLASSES)
        return;
    struct block *kept = BLOCK_END;
    struct heap *heap = atomic_load_explicit(&span->owner, memory_order_relaxed);
    tlfl__central_enter();
    for (uint32_t i = count; i-- > 0;) {
        struct block *block = (struct block *)(first + i * span->size);
        if (i % PACKED_SHARE == 0) {
            block->next = kept;
            kept = block;
        } else {
            gift_put(span->class, block, heap);
        }
    }
    tlfl__central_leave();
    span->free = kept;
}

static void lane_put(struct packed_lanes *lanes, unsigned class, struct block *block)
{
    block->next = lanes->lane[class].free;
    block_set_mark(block, block_key(&lanes->lane[class], block)); /* for the malloc that takes it from there */
    lanes->lane[class].free = block;
}

/* Moves every second gift of others to the lane and own ones above PACKED_HOLD home; the next thread that refills gets
 * those between. Under the central lock. The lane keeps the order of the addresses, so that a few blocks of each
 * thread are enough for shared lines. */
static void lane_fill(struct heap *heap, struct packed_lanes *lanes, unsigned class)
{
    uint32_t most = gifts[class].count, taken = 0, fetched = 0;
    struct block *held = NULL, *batch[PACKED_BATCH];
    bool take = false;
    if (gifts[class].giver == heap && most <= PACKED_HOLD)
        return;
    for (; taken < PACKED_BATCH && most > 0; most--) {
        struct block *block = gift_take(class);
        struct span *span = map_find(block);
        take = !take;
        bool own = atomic_load_explicit(&span->owner, memory_order_relaxed) == heap;
        if (!own && take) {
            batch[fetched++] = block;
            taken++;
        } else if (own && gifts[class].count >= PACKED_HOLD) {
            if (span_push(span, block, block_key(span, block)))
                tlfl__heap_event(heap, span);
            taken++;
        } else {
            block->next = held;
            held = block;
        }
    }
    while (fetched > 0)
        lane_put(lanes, class, batch[--fetched]);
    for (struct block *next; held != NULL; held = next) {
        next = held->next;
        gift_put(class, held, heap);
    }
}

static struct packed_lanes *lanes_new(void)
{
    struct packed_lanes *lanes = tlfl__meta_take(sizeof *lanes);
    for (unsigned class = 0; lanes != NULL && class < PACKED_CLASSES; class ++) {
        lanes->lane[class].free = BLOCK_END;
        lanes->lane[class].size = (uint32_t)class_size(class); /* of what is poisoned */
    }
    if (lanes != NULL) {
        uintptr_t at = (uintptr_t)lanes, end = at + sizeof *lanes;
        lanes->later = made.all;
        if (lanes->later == NULL || at < made.low)
            made.low = at;
        if (end > made.high)
            made.high = end;
        made.all = lanes;
    }
    return lanes;
}

void *tlfl__packed_refill(struct heap *heap, unsigned class)
{
    if (class >= PACKED_CLASSES)
        return NULL;
    tlfl__central_enter();
    struct packed_lanes *lanes = heap->lanes;
    if (lanes == NULL)
        lanes = heap->lanes = lanes_new();
    if (lanes != NULL && lanes->lane[class].free == BLOCK_END) {
        lanes->freed[class] = 0;
        lane_fill(heap, lanes, class);
    }
    tlfl__central_leave();
    if (lanes == NULL)
        return NULL;
    struct span *lane = &lanes->lane[class];
    bool is_current = heap->current[class] == lane;
    if (lane->free == BLOCK_END) {
        if (is_current)
            tlfl__heap_set_current(heap, class, SPAN_NONE);
        return span_pop(heap->current[class]);
    }
    if (!is_current && heap->current[class] != SPAN_NONE)
        tlfl__heap_retire(heap, class);
    tlfl__heap_set_current(heap, class, lane);
    return span_pop(lane);
}

static uint32_t lane_length(const struct span *lane)
{
    uint32_t length = 0;
    for (const struct block *block = lane->free; block != BLOCK_END; block = block->next)
        length++;
    return length;
}

bool tlfl__packed_free(struct heap *heap, struct span *span, struct block *block)
{
    struct packed_lanes *lanes = heap->lanes;
    unsigned class = span->class;
    if (class >= PACKED_CLASSES || lanes == NULL)
        return false;
    if (lanes->freed[class] >= PACKED_LANE_MAX)
        lanes->freed[class] = lane_length(&lanes->lane[class]);
    if (lanes->freed[class] >= PACKED_LANE_MAX)
        return false;
    lanes->freed[class]++;
    lane_put(lanes, class, block);
    return true;
}

/* What the mark names, if it is one, is a lane or not; hardly anything that users write lies among them. */
bool tlfl__packed_holds(const struct span *span, const struct block *block)
{
    uintptr_t named = (uintptr_t)key_mark(block->mark) - (uintptr_t)block;
    if (span->class >= PACKED_CLASSES || named < made.low || named >= made.high)
        return false;
    for (const struct packed_lanes *lanes = made.all; lanes != NULL; lanes = lanes->later)
        if (block_is_marked(&lanes->lane[span->class], block))
            return true;
    return false;
}

void tlfl__packed_flush(struct heap *heap)
{
    struct packed_lanes *lanes = heap->lanes;
    if (lanes == NULL)
        return;
    for (unsigned class = 0; class < PACKED_CLASSES; class ++) {
        struct span *lane = &lanes->lane[class];
        if (heap->current[class] == lane)
            tlfl__heap_set_current(heap, class, SPAN_NONE);
        for (struct block *block = lane->free, *next; block != BLOCK_END; block = next) {
            next = block->next;
            tlfl__remote_free(tlfl__heap, map_find(block), block);
        }
        lane->free = BLOCK_END;
        lanes->freed[class] = 0;
    }
}

void tlfl__packed_return(void)
{
    tlfl__central_enter();
    for (unsigned class = 0; class < PACKED_CLASSES; class ++)
        for (struct block *block; (block = gift_take(class)) != NULL;)
            tlfl__remote_free(tlfl__heap, map_find(block), block);
    tlfl__central_leave();
}

#else

_Static_assert(PACKED_MAX < CLASS_MAX, "a translation unit is not empty in ISO C");

#endif
