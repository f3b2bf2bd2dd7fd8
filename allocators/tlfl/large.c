/* large.c - see large.h. */
#include "large.h"

#include <errno.h>
#include <string.h>

#include "fail.h"
#include "heap.h"
#include "huge.h"
#include "lock.h"
#include "map.h"
#include "os.h"
#include "thread.h"

static struct span *large_new(unsigned class, unsigned node)
{
    size_t size = class_size(CLASS_COUNT + class);
    tlfl__central_enter();
    struct span *span = tlfl__span_take();
    if (span != NULL) {
        if (tlfl__pool_take((unsigned)(size_round(size, GRANULE_SIZE) >> GRANULE_SHIFT), node, &span->run)) {
            span->kind = SPAN_LARGE;
            span->class = (uint8_t)(CLASS_COUNT + class);
            span->base = run_start(&span->run);
            span->bytes = size;
            span->zero = span->run.zero;
            span->capacity = span->carved = 1;
            tlfl__map_set(span->base, 1, span);
        } else {
            tlfl__span_give(span);
            span = NULL;
        }
    }
    tlfl__central_leave();
    return span;
}

TLFL_INLINE struct span *large_from_shelf(struct heap *heap, unsigned class)
{
    struct span *span = shelf_take(&heap->large[class]);
    if (TLFL_LIKELY(span != NULL)) {
        heap_count_taken(heap, span);
        poison_lift(span->base, span->bytes);
        span->zero = false;
    }
    return span;
}

/* What is resident already saves page faults and the lock, and is worth a block up to twice as large. */
#ifndef TLFL_HARDENED
#define LARGE_BIGGER 4
#else
#define LARGE_BIGGER 0 /* its layer wants blocks of the class that it asked for */
#endif

static struct span *large_from_bigger(struct heap *heap, unsigned class)
{
    struct span *span = NULL;
    for (unsigned bigger = class + 1; span == NULL && bigger <= class + LARGE_BIGGER; bigger++)
        if (bigger < CLASS_LARGE_COUNT)
            span = large_from_shelf(heap, bigger);
    return span;
}

static struct span *large_from_pool(unsigned class)
{
    struct heap *heap = tlfl__thread_heap();
    if (heap == NULL)
        return large_new(class, 0);
    if (heap_count_refill(heap)) {
        tlfl__heap_tick(heap);
        heap = tlfl__thread_follow(heap);
    }
    struct span *span = large_from_bigger(heap, class);
    if (span != NULL)
        return span;
    tlfl__central_enter();
    if (tlfl__pool_dirty() < class_size(CLASS_COUNT + class) >> GRANULE_SHIFT) /* sooner than fresh pages */
        tlfl__heap_clear_shelves(heap);
    span = large_new(class, heap->node);
    if (span == NULL && tlfl__heap_settle(heap)) /* refused: what the heap keeps may do */
        span = large_new(class, heap->node);
    tlfl__central_leave();
    if (span != NULL) {
        atomic_store_explicit(&span->owner, heap, memory_order_relaxed);
        heap_count_in(heap, span);
    }
    return span;
}

static TLFL_NOINLINE void *large_slow(size_t size, size_t align, bool zero)
{
    struct span *span = NULL;
    if (size <= LARGE_MAX && align <= GRANULE_SIZE)
        span = large_from_pool(class_of_large(size <= CLASS_MAX ? CLASS_MAX + 1 : size));
    else if (size <= (size_t)PTRDIFF_MAX - tlfl__os_page())
        span = tlfl__huge_take(size, align);
    if (span == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    if (zero && !span->zero)
        memset(span->base, 0, size);
    span_set_state(span, SPAN_FULL);
    return span->base;
}

void *tlfl__large_malloc(size_t size)
{
    if (TLFL_LIKELY(size <= LARGE_MAX)) {
        struct span *span = large_from_shelf(tlfl__heap, class_of_large(size));
        if (TLFL_LIKELY(span != NULL)) {
            span_set_state(span, SPAN_FULL);
            return span->base;
        }
    }
    return large_slow(size, BLOCK_ALIGN, false);
}

void *tlfl__large_alloc(size_t size, size_t align, bool zero)
{
    if (size > CLASS_MAX && size <= LARGE_MAX && align <= GRANULE_SIZE) {
        struct span *span = large_from_shelf(tlfl__heap, class_of_large(size));
        if (span != NULL) {
            if (zero)
                memset(span->base, 0, size);
            span_set_state(span, SPAN_FULL);
            return span->base;
        }
    }
    return large_slow(size, align, zero);
}

static TLFL_NOINLINE void large_free_slow(struct heap *heap, struct span *span)
{
    if (span->kind == SPAN_HUGE) {
        tlfl__huge_give(span);
        return;
    }
    struct heap *owner = span_owner(span);
    if (owner == heap)
        heap_count_out(heap, span);
    else if (owner != NULL)
        atomic_fetch_add_explicit(&owner->lost, span->run.granules, memory_order_relaxed);
    tlfl__heap_release(heap, span);
    tlfl__pool_tick();
}

void tlfl__large_free(struct span *span, void *block)
{
    if (TLFL_UNLIKELY(block != span->base))
        tlfl__fail("free", block, "points into a block, not to its start");
    if (TLFL_UNLIKELY(atomic_exchange_explicit(&span->state, SPAN_EMPTY, memory_order_acq_rel) != SPAN_FULL))
        tlfl__fail("free", block, "block is free already");
    struct heap *heap = tlfl__heap;
    if (TLFL_LIKELY(span_owner(span) == heap) && TLFL_LIKELY(heap_keeps(heap, span))) { /* never a huge one */
        poison_set(span->base, span->bytes);
        shelf_put(&heap->large[span->class - CLASS_COUNT], span);
        heap_count_event(heap);
    } else {
        large_free_slow(heap, span);
    }
}

/* Its owner's books; they are for a tick to mend where the caller is another. */
static void large_count_resize(const struct span *span, int32_t grown)
{
    struct heap *owner = span_owner(span);
    if (owner == tlfl__heap) {
        owner->room -= grown;
        owner->used += grown;
        if (owner->used > owner->peak)
            tlfl__heap_raise(owner);
    } else if (owner != NULL) {
        atomic_fetch_sub_explicit(&owner->lost, (uint32_t)grown, memory_order_relaxed);
    }
}

/* Grows or shrinks a large block by whole granules where it is. */
static bool large_resize_in_place(struct span *span, unsigned class)
{
    size_t size = class_size(CLASS_COUNT + class);
    unsigned granules = (unsigned)(size_round(size, GRANULE_SIZE) >> GRANULE_SHIFT);
    bool done = true;
    if (granules != span->run.granules) {
        int32_t grown = (int32_t)(granules - span->run.granules);
        tlfl__central_enter();
        done = tlfl__pool_resize(&span->run, granules);
        tlfl__central_leave();
        if (done)
            large_count_resize(span, grown);
    }
    if (done) {
        span->class = (uint8_t)(CLASS_COUNT + class);
        span->bytes = size;
    }
    return done;
}

void *tlfl__large_resize(struct span *span, size_t size)
{
    if (span->kind == SPAN_HUGE)
        return size > LARGE_MAX ? tlfl__huge_resize(span, size) : NULL;
    if (size > LARGE_MAX)
        return NULL;
    return large_resize_in_place(span, class_of_large(size)) ? span->base : NULL;
}
