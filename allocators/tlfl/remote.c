/* remote.c - see remote.h. */
#include "remote.h"

#include "map.h"
#include "thread.h"

static TLFL_TLS unsigned remote_pushes; /* of this thread to idle heaps */

static void remote_push(struct heap *heap, struct block *block)
{
    struct block *head = atomic_load_explicit(&heap->remote, memory_order_relaxed);
    do
        block->next = head;
    while (!atomic_compare_exchange_weak_explicit(&heap->remote, &head, block, memory_order_release,
                                                  memory_order_relaxed));
}

void tlfl__remote_free(struct span *span, struct block *block)
{
    struct heap *heap = atomic_load_explicit(&span->owner, memory_order_relaxed);
    block->mark = span_mark(span, block);
    remote_push(heap, block);
    if (TLFL_UNLIKELY(heap_state(heap) == HEAP_IDLE) && ++remote_pushes % REMOTE_SWEEP == 0)
        tlfl__thread_sweep();
}

bool tlfl__remote_drain(struct heap *heap)
{
    if (!remote_pending(heap))
        return false;
    struct block *block = atomic_exchange_explicit(&heap->remote, NULL, memory_order_acquire);
    for (struct block *next; block != NULL; block = next) {
        next = block->next;
        struct span *span = map_find(block);
        struct heap *owner = atomic_load_explicit(&span->owner, memory_order_relaxed);
        if (TLFL_UNLIKELY(owner != heap))
            remote_push(owner, block);
        else if (span_push(span, block))
            tlfl__heap_event(heap, span);
    }
    return true;
}
