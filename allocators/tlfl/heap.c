/* heap.c - see heap.h. */
#include "heap.h"

#include <errno.h>

#include "huge.h"
#include "lock.h"
#include "map.h"
#include "os.h"
#include "packed.h"
#include "remote.h"
#include "thread.h"

/* clang-format off */
const struct heap tlfl__heap_none = {
    .direct = {[0 ... CLASS_DIRECT - 1] = SPAN_NONE},
    .current = {[0 ... CLASS_COUNT - 1] = SPAN_NONE},
    .state = HEAP_NONE };
/* clang-format on */

static void heap_set_limit(struct heap *heap)
{
    int64_t peak = heap->peak > heap->peak_before ? heap->peak : heap->peak_before;
    int64_t live = tlfl__thread_live(), cpus = tlfl__os_cpus();
    int64_t keep = HEAP_KEEP / live < HEAP_KEEP_MAX ? HEAP_KEEP / live : HEAP_KEEP_MAX;
    int32_t limit = (int32_t)(keep + (live <= cpus ? peak : peak * cpus / live));
    heap->room += limit - heap->limit;
    heap->limit = limit;
}

void tlfl__heap_init(struct heap *heap)
{
    heap_set_limit(heap);
    for (size_t i = 0; i < CLASS_DIRECT; i++)
        heap->direct[i] = SPAN_NONE;
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        struct bin *bin = &heap->bin[class];
        heap->current[class] = SPAN_NONE;
        bin->order = (uint8_t)class_order(class);
        if (class_size(class) <= CLASS_DIRECT_MAX) {
            bin->first = class == 0 ? 0 : heap->bin[class - 1].end;
            bin->end = (uint8_t)(class_size(class) / BLOCK_ALIGN + 1);
        }
    }
}

void tlfl__heap_set_current(struct heap *heap, unsigned class, struct span *span)
{
    struct bin *bin = &heap->bin[class];
    heap->current[class] = span;
    for (unsigned i = bin->first; i < bin->end; i++)
        heap->direct[i] = span;
}

/* ---- own[] ---- */

static uintptr_t own_entry(const struct span *span)
{
    return (uintptr_t)span - (uintptr_t)SPAN_NONE;
}

void tlfl__heap_own(struct heap *heap, struct span *span)
{
    size_t first = (uintptr_t)span->base >> GRANULE_SHIFT;
    for (size_t i = 0; i < span->run.granules; i++)
        heap->own[(first + i) & (HEAP_OWN - 1)] = own_entry(span);
}

void tlfl__heap_disown(struct heap *heap, const struct span *span)
{
    size_t first = (uintptr_t)span->base >> GRANULE_SHIFT;
    for (size_t i = 0; i < span->run.granules; i++) {
        uintptr_t *entry = &heap->own[(first + i) & (HEAP_OWN - 1)];
        if (*entry == own_entry(span))
            *entry = 0;
    }
}

/* ---- spans in and out ---- */

static struct span *heap_new_span(struct heap *heap, unsigned class)
{
    unsigned granules = 1u << class_order(class);
    tlfl__central_enter();
    if (tlfl__pool_dirty() < granules) /* sooner than fresh pages */
        tlfl__heap_clear_shelves(heap);
    struct span *span = tlfl__span_take();
    if (span != NULL) {
        if (tlfl__pool_take(granules, heap->node, &span->run)) {
            span->kind = SPAN_SMALL;
            atomic_store_explicit(&span->owner, heap, memory_order_relaxed);
            tlfl__span_cut(span, class);
            tlfl__map_set(span->base, span->run.granules, span);
            tlfl__heap_own(heap, span);
            heap->granules += span->run.granules;
        } else {
            tlfl__span_give(span);
            span = NULL;
        }
    }
    tlfl__central_leave();
    return span;
}

void tlfl__heap_release(struct heap *heap, struct span *span)
{
    tlfl__central_enter();
    if (span->kind == SPAN_SMALL) {
        heap->granules -= span->run.granules;
        tlfl__heap_disown(heap, span);
        tlfl__map_set(span->base, span->run.granules, NULL);
    } else {
        tlfl__map_set(span->base, 1, NULL);
    }
    tlfl__pool_give(&span->run);
    tlfl__span_give(span);
    tlfl__central_leave();
}

void tlfl__heap_collect(struct heap *heap)
{
    tlfl__central_enter();
    struct span *span = atomic_load_explicit(&heap->stolen, memory_order_relaxed);
    atomic_store_explicit(&heap->stolen, NULL, memory_order_relaxed);
    for (struct span *next; span != NULL; span = next) {
        next = span->next;
        heap->room += (int32_t)span->run.granules;
        if (span_state(span) == SPAN_STOLEN)
            heap->used -= (int32_t)span->run.granules; /* and not one of a shelf */
        if (span->kind == SPAN_SMALL) {
            heap->granules -= span->run.granules;
            tlfl__heap_disown(heap, span);
        }
        tlfl__span_give(span);
    }
    tlfl__central_leave();
}

/* ---- AVAIL ---- */

static void heap_shelve(struct heap *heap, struct span *span)
{
    struct span **head = &heap->bin[span->class].avail;
    span_set_state(span, SPAN_AVAIL);
    span->prev = NULL;
    span->next = *head;
    if (*head != NULL)
        (*head)->prev = span;
    *head = span;
}

static void heap_unlink(struct heap *heap, struct span *span)
{
    *(span->prev != NULL ? &span->prev->next : &heap->bin[span->class].avail) = span->next;
    if (span->next != NULL)
        span->next->prev = span->prev;
}

struct span *tlfl__heap_unshelve(struct heap *heap, unsigned class)
{
    struct span *span = heap->bin[class].avail;
    if (span != NULL)
        heap_unlink(heap, span);
    return span;
}

/* ---- the shelves ---- */

static struct span *heap_take(struct heap *heap, struct shelf *shelf)
{
    struct span *span = shelf_take(shelf);
    if (span != NULL)
        heap_count_taken(heap, span);
    return span;
}

static void heap_put(struct heap *heap, struct shelf *shelf, struct span *span)
{
    if (TLFL_LIKELY(heap_keeps(heap, span))) {
        shelf_put(shelf, span);
    } else {
        heap_count_out(heap, span);
        tlfl__heap_release(heap, span);
        tlfl__pool_tick();
    }
}

/* Gives spans to the pool until there is `room`, or none is left. */
static bool heap_clear(struct heap *heap, struct shelf *shelf, int32_t room)
{
    struct span *span;
    bool any = false;
    for (; heap->room < room && (span = shelf_take(shelf)) != NULL; any = true) {
        heap->room += (int32_t)span->run.granules;
        tlfl__heap_release(heap, span);
    }
    return any;
}

static bool heap_clear_shelves(struct heap *heap, int32_t room)
{
    bool any = false;
    for (unsigned class = CLASS_LARGE_COUNT; class-- > 0;)
        any |= heap_clear(heap, &heap->large[class], room);
    for (unsigned order = CLASS_ORDERS; order-- > 0;)
        any |= heap_clear(heap, &heap->empty[order], room);
    return any;
}

bool tlfl__heap_clear_shelves(struct heap *heap)
{
    return heap_clear_shelves(heap, INT32_MAX);
}

static struct span *heap_take_empty(struct heap *heap, unsigned class)
{
    struct span *span = heap_take(heap, &heap->empty[heap->bin[class].order]);
    if (span != NULL && span->class != class)
        tlfl__span_cut(span, class);
    return span;
}

/* ---- housekeeping ---- */

void tlfl__heap_raise(struct heap *heap)
{
    heap->peak = heap->used;
    if (heap->peak > heap->peak_before)
        heap_set_limit(heap);
}

/* A tick ends: the peak before the last one no longer counts. */
static void heap_lower(struct heap *heap)
{
    int32_t lost = (int32_t)atomic_exchange_explicit(&heap->lost, 0, memory_order_relaxed);
    heap->room += lost;
    heap->used -= lost;
    heap->peak_before = heap->peak;
    heap->peak = heap->used;
    heap_set_limit(heap);
    heap_clear_shelves(heap, 0);
}

TLFL_NOINLINE void tlfl__heap_tick(struct heap *heap)
{
    if (heap_state(heap) != HEAP_LIVE) /* a sweep settles those */
        return;
    tlfl__remote_flush(heap);
    if (TLFL_UNLIKELY(tlfl__thread_moved(heap))) {
        heap->refills = HEAP_EVENTS - 1; /* the next refill follows; the shelves must not put it off */
        tlfl__heap_clear_shelves(heap);
    }
    uint64_t now = tlfl__os_ms();
    if (now - heap_ticked(heap) < POOL_TICK_MS)
        return;
    atomic_store_explicit(&heap->ticked_ms, now, memory_order_relaxed);
    if (heap_stolen(heap))
        tlfl__heap_collect(heap);
    heap_lower(heap);
    tlfl__thread_sweep(now);
    tlfl__huge_tick(now);
    tlfl__pool_tick();
}

void tlfl__heap_event(struct heap *heap, struct span *span)
{
    switch (span_state(span)) {
    case SPAN_CURRENT: /* a program that stays on the fast paths: the only time to look at the clock */
        span->out = span->capacity;
        tlfl__heap_tick(heap);
        break;
    case SPAN_FULL:
        span->out = span->capacity - span->wake;
        heap_shelve(heap, span);
        break;
    case SPAN_AVAIL:
        heap_unlink(heap, span);
        span_close(span);
        span_set_state(span, SPAN_EMPTY);
        heap_put(heap, &heap->empty[heap->bin[span->class].order], span);
        break;
    }
    heap_count_event(heap);
}

bool tlfl__heap_retire(struct heap *heap, unsigned class)
{
    struct span *span = heap->current[class];
    tlfl__heap_set_current(heap, class, SPAN_NONE);
    uint32_t unused = tlfl__span_free_count(span);
    span->out = span->carved - unused;
    if (span->out == 0) {
        heap_count_out(heap, span);
        tlfl__heap_release(heap, span);
        return true;
    }
    if (unused != 0 || span->carved < span->capacity) {
        heap_shelve(heap, span);
    } else {
        span->out = span->wake;
        span_set_state(span, SPAN_FULL);
    }
    return false;
}

bool tlfl__heap_settle(struct heap *heap)
{
    bool any = false;
    packed_flush(heap);
    for (unsigned class = 0; class < CLASS_COUNT; class ++)
        if (heap->current[class] != SPAN_NONE)
            any |= tlfl__heap_retire(heap, class);
    return tlfl__heap_clear_shelves(heap) | any;
}

/* ---- refill ---- */

/* A span with something to take, out of any list: the heap's own first, since those cost no lock. */
static TLFL_NOINLINE struct span *heap_find_span(struct heap *heap, unsigned class)
{
    tlfl__heap_set_current(heap, class, SPAN_NONE); /* the last one is FULL, and below may settle the heap */
    struct span *span = tlfl__thread_adopt(heap, class);
    if (span == NULL)
        span = heap_new_span(heap, class);
    if (span == NULL && tlfl__heap_settle(heap)) /* refused: what other classes keep may do */
        span = heap_new_span(heap, class);
    if (span != NULL)
        heap_count_in(heap, span);
    return span;
}

/* What other threads have left for this one. */
static TLFL_NOINLINE void heap_open_mail(struct heap *heap)
{
    if (heap_stolen(heap))
        tlfl__heap_collect(heap);
    tlfl__remote_drain(heap);
}

static bool heap_has_mail(const struct heap *heap)
{
    return remote_pending(heap) || heap_stolen(heap);
}

/* A block of the largest class of the doubling for a class that has hardly been used; else NULL. That
 * class is a power of two, and so aligned to all that the smaller ones are. */
static void *heap_lend(struct heap *heap, unsigned class)
{
    struct bin *bin = &heap->bin[class];
    if (TLFL_LIKELY(bin->debut == HEAP_DEBUT) || heap->current[class] != SPAN_NONE || bin->avail != NULL)
        return NULL;
    unsigned top = class_top(class);
    if (top == class || class_size(top) > CLASS_DIRECT_MAX || packed_plants(class))
        return NULL;
    bin->debut++;
    void *block = span_pop(heap->current[top]);
    return block != NULL ? block : tlfl__heap_refill(heap, top);
}

/* The same for a block of pages, sooner than fresh ones; else NULL. Every HEAP_LENDS blocks the class
 * gets one of its own, so that what it needs for long it has in the end. */
static void *heap_lend_wide(struct heap *heap, unsigned class)
{
    unsigned top = class_top(class);
    if (class < HEAP_WIDE || top == class || ++heap->bin[class].lent % (HEAP_LENDS + 1) == 0)
        return NULL;
    return span_pop(heap->current[top]);
}

void *tlfl__heap_refill(struct heap *heap, unsigned class)
{
    void *block;
    struct span *span = heap->current[class];
    span_check_empty(span);
    if (heap_count_refill(heap)) {
        tlfl__heap_tick(heap);
        heap = tlfl__thread_follow(heap);
        if ((block = span_pop(heap->current[class])) != NULL)
            return block;
    }
    if (TLFL_UNLIKELY(heap_has_mail(heap))) {
        heap_open_mail(heap);
        if ((block = span_pop(heap->current[class])) != NULL)
            return block;
    }
    if ((block = packed_refill(heap, class)) != NULL || (block = heap_lend(heap, class)) != NULL)
        return block;
    span = heap->current[class];
    if (span != SPAN_NONE) {
        if (span->carved < span->capacity) {
            if ((block = heap_lend_wide(heap, class)) != NULL)
                return block;
            tlfl__span_carve(span);
            return span_pop(span);
        }
        span->out = span->wake;
        span_set_state(span, SPAN_FULL);
    }
    if (heap->bin[class].avail != NULL) {
        span = tlfl__heap_unshelve(heap, class);
    } else {
        span = heap_take_empty(heap, class);
        if (TLFL_UNLIKELY(span == NULL) && (span = heap_find_span(heap, class)) == NULL) {
            errno = ENOMEM;
            return NULL;
        }
        span_open(span);
    }
    span_set_state(span, SPAN_CURRENT);
    span->out = span->capacity;
    tlfl__heap_set_current(heap, class, span);
    if (span->free == BLOCK_END)
        tlfl__span_carve(span);
    return span_pop(span);
}
