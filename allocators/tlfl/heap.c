/* heap.c - see heap.h. */
#include "heap.h"

#include <errno.h>

#include "lock.h"
#include "map.h"
#include "os.h"
#include "packed.h"
#include "remote.h"
#include "thread.h"

/* EMPTY spans a heap keeps: this many granules and an eighth of all it owns. Taking one from the
 * shelf costs no lock and no carving. */
#define HEAP_KEEP_GRANULES 16
#define HEAP_KEEP_SHIFT    3

/* AVAIL spans that a refill compares. */
#define HEAP_LOOKS 4

/* Slow path entries between two looks at the clock; a power of two. */
#define HEAP_EVENTS 32

/* clang-format off */
#define HEAP_SENTINEL { \
    .direct = {[0 ... CLASS_DIRECT - 1] = SPAN_NONE}, \
    .bin = {[0 ... CLASS_COUNT - 1] = {SPAN_NONE, NULL}}, \
    .state = HEAP_NONE }
/* clang-format on */

const struct heap tlfl__heap_before = HEAP_SENTINEL;
const struct heap tlfl__heap_after = HEAP_SENTINEL;

void tlfl__heap_init(struct heap *heap)
{
    for (size_t i = 0; i < CLASS_DIRECT; i++)
        heap->direct[i] = SPAN_NONE;
    for (unsigned class = 0; class < CLASS_COUNT; class ++)
        heap->bin[class].current = SPAN_NONE;
}

void tlfl__heap_set_current(struct heap *heap, unsigned class, struct span *span)
{
    heap->bin[class].current = span;
    size_t last = class_size(class) / BLOCK_ALIGN;
    if (last >= CLASS_DIRECT)
        return;
    for (size_t i = class == 0 ? 0 : class_size(class - 1) / BLOCK_ALIGN + 1; i <= last; i++)
        heap->direct[i] = span;
}

/* ---- spans in and out ---- */

static struct span *heap_new_span(struct heap *heap, unsigned class)
{
    tlfl__central_enter();
    struct span *span = tlfl__span_take();
    if (span != NULL) {
        if (tlfl__pool_take(1u << class_order(class), &span->run)) {
            span->kind = SPAN_SMALL;
            atomic_store_explicit(&span->owner, heap, memory_order_relaxed);
            tlfl__span_cut(span, class);
            tlfl__map_set(span->base, span->run.granules, span);
            heap->granules += span->run.granules;
        } else {
            tlfl__span_give(span);
            span = NULL;
        }
    }
    tlfl__central_leave();
    return span;
}

static void heap_release(struct heap *heap, struct span *span)
{
    heap->granules -= span->run.granules;
    tlfl__central_enter();
    tlfl__map_set(span->base, span->run.granules, NULL);
    tlfl__pool_give(&span->run);
    tlfl__span_give(span);
    tlfl__central_leave();
}

/* ---- AVAIL ---- */

void tlfl__heap_shelve(struct heap *heap, struct span *span)
{
    struct span **head = &heap->bin[span->class].avail;
    span->state = SPAN_AVAIL;
    span->prev = NULL;
    span->next = *head;
    if (*head != NULL)
        (*head)->prev = span;
    *head = span;
}

static void heap_unlink(struct heap *heap, struct span *span)
{
    if (span->prev != NULL)
        span->prev->next = span->next;
    else
        heap->bin[span->class].avail = span->next;
    if (span->next != NULL)
        span->next->prev = span->prev;
}

struct span *tlfl__heap_unshelve(struct heap *heap, unsigned class)
{
    struct span *best = heap->bin[class].avail, *span = best;
    if (best == NULL)
        return NULL;
    for (int looks = 1; looks < HEAP_LOOKS && (span = span->next) != NULL; looks++)
        if (span->out > best->out)
            best = span;
    heap_unlink(heap, best);
    return best;
}

/* ---- EMPTY ---- */

static struct span *shelf_take(struct heap *heap, struct shelf *shelf, struct span *span)
{
    if (span->prev != NULL)
        span->prev->next = span->next;
    else
        shelf->head = span->next;
    if (span->next != NULL)
        span->next->prev = span->prev;
    else
        shelf->tail = span->prev;
    if (--shelf->count < shelf->low)
        shelf->low = shelf->count;
    heap->empty_granules -= span->run.granules;
    return span;
}

static void shelf_put(struct heap *heap, struct shelf *shelf, struct span *span)
{
    span->state = SPAN_EMPTY;
    span->prev = NULL;
    span->next = shelf->head;
    if (shelf->head != NULL)
        shelf->head->prev = span;
    else
        shelf->tail = span;
    shelf->head = span;
    shelf->count++;
    heap->empty_granules += span->run.granules;
}

/* Gives up to `count` EMPTY spans to the pool, those that have been empty for longest. */
static bool shelf_clear(struct heap *heap, struct shelf *shelf, uint32_t count)
{
    bool any = false;
    for (; count > 0 && shelf->tail != NULL; count--, any = true)
        heap_release(heap, shelf_take(heap, shelf, shelf->tail));
    return any;
}

static struct span *heap_take_empty(struct heap *heap, unsigned class)
{
    struct shelf *shelf = &heap->empty[class_order(class)];
    struct span *span = shelf->head;
    if (span == NULL)
        return NULL;
    shelf_take(heap, shelf, span);
    if (span->class != class)
        tlfl__span_cut(span, class);
    return span;
}

static void heap_put_empty(struct heap *heap, struct span *span)
{
    struct shelf *shelf = &heap->empty[class_order(span->class)];
    shelf_put(heap, shelf, span);
    if (heap->empty_granules > HEAP_KEEP_GRANULES + (heap->granules >> HEAP_KEEP_SHIFT)) {
        shelf_clear(heap, shelf, 1);
        tlfl__pool_tick();
    }
}

/* ---- housekeeping ---- */

/* EMPTY spans that no refill has wanted since the last tick go to the pool. */
static void heap_tick(struct heap *heap)
{
    uint64_t now = tlfl__os_ms();
    if (now - heap->ticked_ms < POOL_TICK_MS)
        return;
    heap->ticked_ms = now;
    for (unsigned order = 0; order < CLASS_ORDERS; order++) {
        struct shelf *shelf = &heap->empty[order];
        shelf_clear(heap, shelf, shelf->low);
        shelf->low = shelf->count;
    }
    tlfl__pool_tick();
}

static void heap_count_event(struct heap *heap)
{
    if ((++heap->events & (HEAP_EVENTS - 1)) == 0)
        heap_tick(heap);
}

void tlfl__heap_event(struct heap *heap, struct span *span)
{
    switch (span->state) {
    case SPAN_CURRENT:
        span->out = span->capacity;
        break;
    case SPAN_FULL:
        span->out = span->capacity - span->wake;
        tlfl__heap_shelve(heap, span);
        break;
    case SPAN_AVAIL:
        heap_unlink(heap, span);
        heap_put_empty(heap, span);
        break;
    }
    heap_count_event(heap);
}

bool tlfl__heap_retire(struct heap *heap, unsigned class)
{
    struct span *span = heap->bin[class].current;
    tlfl__heap_set_current(heap, class, SPAN_NONE);
    uint32_t unused = tlfl__span_free_count(span);
    span->out = span->carved - unused;
    if (span->out == 0) {
        heap_release(heap, span);
        return true;
    }
    if (unused != 0 || span->carved < span->capacity) {
        tlfl__heap_shelve(heap, span);
    } else {
        span->state = SPAN_FULL;
        span->out = span->wake;
    }
    return false;
}

bool tlfl__heap_settle(struct heap *heap)
{
    bool any = false;
    packed_flush(heap);
    for (unsigned class = 0; class < CLASS_COUNT; class ++)
        if (heap->bin[class].current != SPAN_NONE)
            any |= tlfl__heap_retire(heap, class);
    for (unsigned order = 0; order < CLASS_ORDERS; order++)
        any |= shelf_clear(heap, &heap->empty[order], UINT32_MAX);
    return any;
}

/* ---- refill ---- */

/* A span with something to take, out of any list: the heap's own first, since those cost no lock. */
static struct span *heap_next_span(struct heap *heap, unsigned class)
{
    struct span *span = tlfl__heap_unshelve(heap, class);
    if (span == NULL)
        span = heap_take_empty(heap, class);
    if (span == NULL)
        span = tlfl__thread_adopt(heap, class);
    if (span == NULL)
        span = heap_new_span(heap, class);
    if (span == NULL && tlfl__heap_settle(heap)) /* refused: what other classes keep may do */
        span = heap_new_span(heap, class);
    return span;
}

void *tlfl__heap_refill(struct heap *heap, unsigned class)
{
    heap_count_event(heap);
    void *block;
    if (tlfl__remote_drain(heap) && (block = span_pop(heap->bin[class].current)) != NULL)
        return block;
    if ((block = packed_refill(heap, class)) != NULL)
        return block;
    struct span *span = heap->bin[class].current;
    if (span != SPAN_NONE) {
        if (tlfl__span_carve(span))
            return span_pop(span);
        tlfl__heap_set_current(heap, class, SPAN_NONE);
        span->state = SPAN_FULL;
        span->out = span->wake;
    }
    span = heap_next_span(heap, class);
    if (span == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    span->state = SPAN_CURRENT;
    span->out = span->capacity;
    tlfl__heap_set_current(heap, class, span);
    if (span->free == NULL)
        tlfl__span_carve(span);
    return span_pop(span);
}
