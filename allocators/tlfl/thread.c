/* thread.c - see thread.h. */
#include "thread.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include "guard.h"
#include "lock.h"
#include "meta.h"
#include "packed.h"
#include "remote.h"

/* The round of thread-specific data destructors in which a heap is handed over. glibc runs
 * PTHREAD_DESTRUCTOR_ITERATIONS of them at most. */
#define THREAD_LAST_ROUND (PTHREAD_DESTRUCTOR_ITERATIONS - 1)

/* Abandoned heaps that one adoption or sweep looks at. */
#define THREAD_LOOKS 4

TLFL_TLS struct heap *tlfl__heap = (struct heap *)&tlfl__heap_before;

/* A list of idle heaps: taken at the head, put at the tail, so that looks go round. */
struct idle {
    struct heap *head, **tail;
    _Atomic uint32_t count; /* read without the lock */
};

/* Under the central lock. */
static struct {
    struct idle abandoned, spare;
    size_t heaps;
    pthread_key_t key;
    bool has_key;
} threads = {
    .abandoned.tail = &threads.abandoned.head,
    .spare.tail = &threads.spare.head,
};

static uint32_t idle_count(const struct idle *idle)
{
    return atomic_load_explicit(&idle->count, memory_order_relaxed);
}

static struct heap *idle_take(struct idle *idle)
{
    struct heap *heap = idle->head;
    if (heap == NULL)
        return NULL;
    idle->head = heap->next;
    if (idle->head == NULL)
        idle->tail = &idle->head;
    atomic_store_explicit(&idle->count, idle_count(idle) - 1, memory_order_relaxed);
    return heap;
}

static void idle_put(struct heap *heap)
{
    struct idle *idle = heap->granules != 0 ? &threads.abandoned : &threads.spare;
    atomic_store_explicit(&heap->state, HEAP_IDLE, memory_order_relaxed);
    heap->next = NULL;
    *idle->tail = heap;
    idle->tail = &heap->next;
    atomic_store_explicit(&idle->count, idle_count(idle) + 1, memory_order_relaxed);
}

/* An idle heap or a new one, NULL when refused. Under the central lock. */
static struct heap *thread_find_heap(void)
{
    struct heap *heap = idle_take(&threads.abandoned);
    if (heap == NULL)
        heap = idle_take(&threads.spare);
    if (heap == NULL && (heap = tlfl__meta_take(sizeof *heap)) != NULL) {
        tlfl__heap_init(heap);
        threads.heaps++;
    }
    return heap;
}

/* ---- life of a thread ---- */

static void thread_exit(struct heap *heap)
{
    tlfl__heap = (struct heap *)&tlfl__heap_after;
    tlfl__central_enter();
    tlfl__remote_drain(heap);
    tlfl__heap_settle(heap);
    idle_put(heap);
    tlfl__central_leave();
    tlfl__pool_tick();
}

/* `value` counts the rounds. */
static void thread_destructor(void *value)
{
    uintptr_t round = (uintptr_t)value;
    struct heap *heap = tlfl__heap;
    guard_enter();
    if (round >= THREAD_LAST_ROUND || pthread_setspecific(threads.key, (void *)(round + 1)) != 0)
        if (heap_state(heap) == HEAP_LIVE)
            thread_exit(heap);
    guard_leave();
}

static struct heap *thread_enter(void)
{
    tlfl__central_enter();
    if (!threads.has_key)
        threads.has_key = pthread_key_create(&threads.key, thread_destructor) == 0;
    bool has_key = threads.has_key;
    struct heap *heap = thread_find_heap();
    tlfl__central_leave();
    if (heap == NULL)
        return NULL;
    atomic_store_explicit(&heap->state, HEAP_LIVE, memory_order_relaxed);
    tlfl__heap = heap;
    if (has_key) /* allocates for a high key number, from the heap that is in place by now */
        pthread_setspecific(threads.key, (void *)1);
    return heap;
}

static void *thread_borrow(unsigned class)
{
    void *block = NULL;
    tlfl__central_enter();
    struct heap *heap = thread_find_heap();
    if (heap != NULL) {
        block = tlfl__heap_refill(heap, class);
        tlfl__heap_settle(heap);
        idle_put(heap);
    }
    tlfl__central_leave();
    return block;
}

void *tlfl__thread_malloc(unsigned class)
{
    void *block = NULL;
    if (tlfl__heap == &tlfl__heap_after) {
        block = thread_borrow(class);
    } else {
        struct heap *heap = thread_enter();
        if (heap != NULL)
            block = tlfl__heap_refill(heap, class);
    }
    if (block == NULL)
        errno = ENOMEM;
    return block;
}

/* ---- idle heaps ---- */

struct span *tlfl__thread_adopt(struct heap *heap, unsigned class)
{
    struct span *span = NULL;
    if (idle_count(&threads.abandoned) == 0)
        return NULL;
    tlfl__central_enter();
    for (int looks = 0; span == NULL && looks < THREAD_LOOKS; looks++) {
        struct heap *from = idle_take(&threads.abandoned);
        if (from == NULL)
            break;
        tlfl__remote_drain(from);
        span = tlfl__heap_unshelve(from, class);
        if (span != NULL) {
            from->granules -= span->run.granules;
            heap->granules += span->run.granules;
            atomic_store_explicit(&span->owner, heap, memory_order_relaxed);
        }
        tlfl__heap_settle(from);
        idle_put(from);
    }
    tlfl__central_leave();
    return span;
}

/* Under the central lock. */
static bool thread_sweep_list(struct idle *idle, uint32_t most)
{
    bool any = false;
    uint32_t count = idle_count(idle);
    for (count = count < most ? count : most; count > 0; count--) {
        struct heap *heap = idle_take(idle);
        if (tlfl__remote_drain(heap))
            any |= tlfl__heap_settle(heap);
        idle_put(heap);
    }
    return any;
}

void tlfl__thread_sweep(void)
{
    tlfl__central_enter();
    thread_sweep_list(&threads.abandoned, THREAD_LOOKS);
    tlfl__central_leave();
    tlfl__pool_tick();
}

bool tlfl__thread_trim(void)
{
    bool any = false;
    struct heap *heap = tlfl__heap;
    packed_return();
    if (heap_state(heap) == HEAP_LIVE) {
        tlfl__remote_drain(heap);
        any |= tlfl__heap_settle(heap);
    }
    tlfl__central_enter();
    any |= thread_sweep_list(&threads.abandoned, UINT32_MAX);
    any |= thread_sweep_list(&threads.spare, UINT32_MAX);
    tlfl__central_leave();
    return (tlfl__pool_trim() != 0) | any;
}

size_t tlfl__thread_heaps(void)
{
    return threads.heaps;
}

/* ---- fork ---- */

static void fork_prepare(void)
{
    guard_enter();
    tlfl__central_enter();
}

static void fork_parent(void)
{
    tlfl__central_leave();
    guard_leave();
}

static void fork_child(void)
{
    tlfl__central_reset();
    guard_reset();
}

__attribute__((constructor)) static void thread_start(void)
{
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}
