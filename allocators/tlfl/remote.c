/* remote.c - see remote.h. */
#include "remote.h"

#include "lock.h"
#include "map.h"
#include "os.h"
#include "thread.h"

static TLFL_TLS unsigned remote_pushes; /* of this thread to idle heaps */

/* What a block of 32 bytes or more holds on its way: also the block that comes REMOTE_AHEAD later in the
 * list. A hint for the receiver, who else would wait for the line of each block in turn. */
struct parcel {
    struct block block;
    struct block *ahead;
};

static bool is_parcel(const struct span *span)
{
    return span->size > BLOCK_ALIGN;
}

/* ---- send ---- */

static void remote_push(struct heap *heap, struct block *first, struct block *last)
{
    struct block *head = atomic_load_explicit(&heap->remote, memory_order_relaxed);
    do
        last->next = head;
    while (!atomic_compare_exchange_weak_explicit(&heap->remote, &head, first, memory_order_release,
                                                  memory_order_relaxed));
}

static bool is_power_of_two(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

static void remote_send(struct heap *heap, struct block *first, struct block *last)
{
    remote_push(heap, first, last);
    if (TLFL_UNLIKELY(tlfl__central_held())) /* sent by a sweep, or the like: one is enough */
        return;
    if (TLFL_UNLIKELY(heap_state(heap) == HEAP_IDLE)) {
        if (++remote_pushes % REMOTE_SWEEP == 0)
            tlfl__thread_sweep(tlfl__os_ms());
        return;
    }
    uint32_t posts = atomic_fetch_add_explicit(&heap->posts, 1, memory_order_relaxed) + 1;
    if (TLFL_UNLIKELY(posts >= REMOTE_PATIENCE && is_power_of_two(posts)))
        tlfl__remote_steal(heap);
}

static void outbox_flush(struct outbox *box)
{
    struct heap *to = box->to;
    if (to == NULL)
        return;
    box->to = NULL; /* first: a sweep on the way may come here again */
    remote_send(to, box->first, box->last);
}

/* Empties an outbox for another heap; false where it holds blocks for that one already. A sweep on the way
 * may free blocks of others, which puts new ones into it. */
static bool outbox_turn(struct outbox *box, struct heap *to)
{
    while (box->to != NULL && box->to != to)
        outbox_flush(box);
    if (box->to == to)
        return false;
    box->to = to;
    box->first = NULL;
    box->load = 0;
    return true;
}

void tlfl__remote_flush(struct heap *heap)
{
    for (unsigned i = 0; i < HEAP_OUTBOXES; i++)
        outbox_flush(&heap->outbox[i]);
}

void tlfl__remote_free(struct heap *from, struct span *span, struct block *block)
{
    struct heap *to = span_owner(span);
    if (TLFL_UNLIKELY(heap_state(from) != HEAP_LIVE)) {
        if (is_parcel(span))
            ((struct parcel *)block)->ahead = NULL;
        block_set_mark(block, block_key(span, block));
        remote_send(to, block, block);
        return;
    }
    struct outbox *box = &from->outbox[((uintptr_t)to >> 12) % HEAP_OUTBOXES]; /* heaps are pages apart */
    struct block **before = &box->recent[box->count++ % REMOTE_AHEAD];
    if (is_parcel(span))
        ((struct parcel *)block)->ahead = *before;
    *before = block;
    block_set_mark(block, block_key(span, block));
    if (TLFL_UNLIKELY(box->to != to) && outbox_turn(box, to))
        box->last = block;
    block->next = box->first;
    box->first = block;
    box->load += span->size + REMOTE_WEIGHT;
    if (TLFL_UNLIKELY(box->load >= REMOTE_LOAD))
        outbox_flush(box);
}

/* ---- receive ---- */

static struct block *remote_take(struct heap *heap)
{
    atomic_store_explicit(&heap->posts, 0, memory_order_relaxed);
    return atomic_exchange_explicit(&heap->remote, NULL, memory_order_acquire);
}

bool tlfl__remote_drain(struct heap *heap)
{
    if (!remote_pending(heap))
        return false;
    struct block *block = remote_take(heap);
    for (struct block *next; block != NULL; block = next) {
        next = block->next;
        struct span *span = heap_own(heap, block);
        if (TLFL_UNLIKELY(!span_holds(span, block))) {
            span = map_find(block);
            if (span_owner(span) != heap) {
                remote_push(span_owner(span), block, block);
                continue;
            }
        }
        if (is_parcel(span)) {
            poison_lift(block, sizeof(struct parcel));
            __builtin_prefetch(((struct parcel *)block)->ahead, 1);
        }
        if (span_push(span, block, block_key(span, block)))
            tlfl__heap_event(heap, span);
    }
    return true;
}

/* ---- steal ---- */

#define STEAL_DONE UINT32_MAX /* in span->counted: all its blocks are in hand */

/* Counts the blocks of each span of `heap` in the list. */
static void steal_count(struct heap *heap, struct block *list)
{
    for (struct block *block = list; block != NULL; block = block->next) {
        struct span *span = map_find(block);
        if (span_owner(span) == heap)
            span->counted++;
    }
}

/* Splits the list: spans that are in it as a whole are returned, through next; other blocks go back
 * to where they belong. */
static struct span *steal_sort(struct block *list)
{
    struct span *whole = NULL;
    for (struct block *block = list, *next; block != NULL; block = next) {
        next = block->next;
        struct span *span = map_find(block);
        if (span->counted == STEAL_DONE)
            continue;
        if (span->counted == span->capacity && span_state(span) == SPAN_FULL) {
            span->counted = STEAL_DONE;
            span->next = whole;
            whole = span;
            continue;
        }
        span->counted = 0;
        remote_push(span_owner(span), block, block);
    }
    return whole;
}

/* Gives the memory to the pool and leaves the structure to the owner of the heap. */
static void steal_span(struct heap *heap, struct span *span)
{
    tlfl__map_set(span->base, span->kind == SPAN_SMALL ? span->run.granules : 1, NULL);
    tlfl__pool_give(&span->run);
    span->next = atomic_load_explicit(&heap->stolen, memory_order_relaxed);
    atomic_store_explicit(&heap->stolen, span, memory_order_relaxed);
}

bool tlfl__remote_steal(struct heap *heap)
{
    struct span *whole = NULL;
    tlfl__central_enter();
    if (heap_state(heap) == HEAP_LIVE && remote_pending(heap)) {
        struct block *list = remote_take(heap);
        steal_count(heap, list);
        whole = steal_sort(list);
    }
    for (struct span *span = whole, *next; span != NULL; span = next) {
        next = span->next;
        span->counted = 0;
        span_close(span);
        span_set_state(span, SPAN_STOLEN);
        steal_span(heap, span);
    }
    tlfl__central_leave();
    return whole != NULL;
}

bool tlfl__remote_clear(struct heap *heap)
{
    bool any = false;
    tlfl__central_enter();
    for (unsigned i = 0; i < CLASS_ORDERS + CLASS_LARGE_COUNT; i++) {
        struct shelf *shelf = i < CLASS_ORDERS ? &heap->empty[i] : &heap->large[i - CLASS_ORDERS];
        struct span *span = atomic_load_explicit(&shelf->head, memory_order_relaxed) ? shelf_take_all(shelf) : NULL;
        for (struct span *next; span != NULL; span = next, any = true) {
            next = span->next;
            steal_span(heap, span);
        }
    }
    tlfl__central_leave();
    return any;
}
