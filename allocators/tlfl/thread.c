/* thread.c - see thread.h. */
#include "thread.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include "guard.h"
#include "huge.h"
#include "lock.h"
#include "meta.h"
#include "os.h"
#include "packed.h"
#include "remote.h"

/* The round of thread-specific data destructors in which a heap is handed over. glibc runs
 * PTHREAD_DESTRUCTOR_ITERATIONS of them at most. */
#define THREAD_LAST_ROUND (PTHREAD_DESTRUCTOR_ITERATIONS - 1)

/* Idle heaps that one adoption or sweep looks at. */
#define THREAD_LOOKS 4

/* Live heaps that one sweep looks at. */
#define THREAD_SLEEPERS 64

/* Live heaps whose threads may be asked for, for each time that a heap is needed: two system calls each. What
 * is not spent is saved up, so that heaps of ended threads are met unless they are less than a third of the others. */
#define THREAD_CALLS 4

TLFL_TLS struct heap *tlfl__heap = (struct heap *)&tlfl__heap_none;
static TLFL_TLS bool thread_over; /* the heap has been handed over for good */

/* Idle heaps of a node: put and taken at the head, so that the next thread finds a warm one; a sweep
 * goes round by its cursor. */
struct idle {
    struct heap *head, *cursor;
};

static struct heap thread_first; /* most processes have one thread: no mapping for its heap */

/* Under the central lock. */
static struct {
    struct idle idle[NODES];
    _Atomic uint32_t idle_count; /* read without the lock */
    struct heap *all, *sleeper;  /* through later; where the last sweep stopped */
    struct heap *called;         /* where the last look for an ended thread was */
    size_t calls;                /* looks that are saved up, for one round at most */
    uint32_t forks;              /* of this process and those before it, back to the first */
    _Atomic size_t heaps;
    pthread_key_t key;
    bool has_key;
} threads;

static uint32_t idle_count(void)
{
    return atomic_load_explicit(&threads.idle_count, memory_order_relaxed);
}

static void idle_remove(struct heap *heap)
{
    struct idle *idle = &threads.idle[heap->node];
    if (idle->cursor == heap)
        idle->cursor = heap->next;
    *(heap->prev != NULL ? &heap->prev->next : &idle->head) = heap->next;
    if (heap->next != NULL)
        heap->next->prev = heap->prev;
    atomic_store_explicit(&threads.idle_count, idle_count() - 1, memory_order_relaxed);
}

static void idle_put(struct heap *heap)
{
    struct idle *idle = &threads.idle[heap->node];
    atomic_store_explicit(&heap->state, HEAP_IDLE, memory_order_relaxed);
    heap->settled = false;
    heap->prev = NULL;
    heap->next = idle->head;
    if (idle->head != NULL)
        idle->head->prev = heap;
    idle->head = heap;
    atomic_store_explicit(&threads.idle_count, idle_count() + 1, memory_order_relaxed);
}

/* The next heap in turn, or NULL. */
static struct heap *idle_next(struct idle *idle)
{
    struct heap *heap = idle->cursor != NULL ? idle->cursor : idle->head;
    idle->cursor = heap == NULL ? NULL : heap->next;
    return heap;
}

/* ---- whose a heap is ---- */

static void heap_sign(struct heap *heap)
{
    heap->process = tlfl__os_process();
    heap->thread = tlfl__os_thread();
    heap->forks = threads.forks;
}

/* Takes a heap from a thread that ended without a word, see thread.h. Under the central lock, as is the next. */
static bool heap_reclaim(struct heap *heap)
{
    if (heap == tlfl__heap || heap_state(heap) != HEAP_LIVE || heap->forks != threads.forks ||
        heap->process != tlfl__os_process() || !tlfl__os_thread_gone(heap->process, heap->thread))
        return false;
    tlfl__remote_flush(heap);
    idle_put(heap);
    return true;
}

/* Looks at the next heap in turn, round all of them. */
static void reclaim_next(void)
{
    struct heap *heap = threads.called != NULL ? threads.called : threads.all;
    threads.called = heap->later;
    heap_reclaim(heap);
}

/* Looks until there is an idle heap of the node, or no look is left. */
static void reclaim_for(unsigned node)
{
    for (; threads.idle[node].head == NULL && threads.calls > 0; threads.calls--)
        reclaim_next();
}

/* ---- a heap for a thread ---- */

static struct heap *heap_new(unsigned node)
{
    struct heap *heap = &thread_first;
    if (threads.heaps != 0) {
        size_t bytes = size_round(sizeof *heap, tlfl__os_page());
        heap = tlfl__os_map(bytes);
        if (heap == NULL)
            return NULL;
        tlfl__meta_count(bytes);
    }
    tlfl__heap_init(heap);
    heap->node = node;
    heap->later = threads.all;
    threads.all = heap;
    threads.heaps++;
    return heap;
}

/* An idle heap of the node or a new one, NULL when refused. Under the central lock. */
static struct heap *thread_find_heap(unsigned node)
{
    size_t calls = threads.calls + THREAD_CALLS;
    threads.calls = calls < threads.heaps ? calls : threads.heaps;
    reclaim_for(node);
    struct heap *heap = threads.idle[node].head;
    if (heap == NULL)
        return heap_new(node);
    idle_remove(heap);
    return heap;
}

/* The same for a thread that will own it. It is LIVE before the lock is let go: a trim settles
 * whatever it finds IDLE. */
static struct heap *thread_claim_heap(unsigned node)
{
    struct heap *heap = thread_find_heap(node);
    if (heap != NULL) {
        heap_sign(heap);
        atomic_store_explicit(&heap->state, HEAP_LIVE, memory_order_relaxed);
    }
    return heap;
}

/* ---- life of a thread ---- */

static void thread_leave(struct heap *heap)
{
    tlfl__heap = (struct heap *)&tlfl__heap_none;
    tlfl__remote_flush(heap);
    tlfl__central_enter();
    idle_put(heap);
    tlfl__central_leave();
}

/* `value` counts the rounds. */
static void thread_destructor(void *value)
{
    uintptr_t round = (uintptr_t)value;
    guard_enter();
    if (round >= THREAD_LAST_ROUND || pthread_setspecific(threads.key, (void *)(round + 1)) != 0) {
        thread_over = true;
        if (heap_state(tlfl__heap) == HEAP_LIVE)
            thread_leave(tlfl__heap);
    }
    guard_leave();
}

static void fork_register(void);

static struct heap *thread_enter(void)
{
    unsigned node = tlfl__os_node();
    tlfl__central_enter();
    if (!threads.has_key)
        threads.has_key = pthread_key_create(&threads.key, thread_destructor) == 0;
    bool has_key = threads.has_key;
    struct heap *heap = thread_claim_heap(node);
    tlfl__central_leave();
    if (heap == NULL)
        return NULL;
    tlfl__heap = heap;
    if (has_key) /* allocates for a high key number, from the heap that is in place by now */
        pthread_setspecific(threads.key, (void *)1);
    fork_register();
    return heap;
}

struct heap *tlfl__thread_heap(void)
{
    struct heap *heap = tlfl__heap;
    if (TLFL_LIKELY(heap_state(heap) == HEAP_LIVE))
        return heap;
    return thread_over ? NULL : thread_enter();
}

static void *thread_borrow(unsigned class)
{
    void *block = NULL;
    tlfl__central_enter();
    struct heap *heap = thread_find_heap(0);
    if (heap != NULL) {
        block = span_pop(heap->current[class]);
        if (block == NULL)
            block = tlfl__heap_refill(heap, class);
        idle_put(heap);
    }
    tlfl__central_leave();
    return block;
}

void *tlfl__thread_malloc(unsigned class)
{
    struct heap *heap = tlfl__thread_heap();
    void *block = NULL;
    if (heap == NULL)
        block = thread_over ? thread_borrow(class) : NULL;
    else if ((block = span_pop(heap->current[class])) == NULL)
        block = tlfl__heap_refill(heap, class);
    if (block == NULL)
        errno = ENOMEM;
    return block;
}

bool tlfl__thread_moved(const struct heap *heap)
{
    return TLFL_UNLIKELY(tlfl__os_nodes() > 1) && tlfl__os_node() != heap->node;
}

struct heap *tlfl__thread_follow(struct heap *heap)
{
    if (heap_state(heap) != HEAP_LIVE || !tlfl__thread_moved(heap))
        return heap;
    tlfl__central_enter();
    tlfl__remote_flush(heap); /* under the lock no sweep comes between */
    struct heap *other = thread_claim_heap(tlfl__os_node());
    if (other != NULL)
        idle_put(heap);
    tlfl__central_leave();
    if (other == NULL) /* refused: stays */
        return heap;
    tlfl__heap = other;
    return other;
}

/* ---- idle heaps ---- */

/* Under the central lock, as is the next. */
static bool idle_settle(struct heap *heap)
{
    if (heap_stolen(heap))
        tlfl__heap_collect(heap);
    bool any = tlfl__remote_drain(heap);
    if (any || !heap->settled)
        any |= tlfl__heap_settle(heap);
    heap->settled = true;
    return any;
}

struct span *tlfl__thread_adopt(struct heap *heap, unsigned class)
{
    struct span *span = NULL;
    if (idle_count() == 0)
        return NULL;
    tlfl__central_enter();
    for (int looks = 0; span == NULL && looks < THREAD_LOOKS; looks++) {
        struct heap *from = idle_next(&threads.idle[heap->node]);
        if (from == NULL)
            break;
        idle_settle(from);
        span = tlfl__heap_unshelve(from, class);
        if (span != NULL) {
            from->granules -= span->run.granules;
            heap_count_out(from, span);
            tlfl__heap_disown(from, span);
            heap->granules += span->run.granules;
            tlfl__heap_own(heap, span);
            atomic_store_explicit(&span->owner, heap, memory_order_relaxed);
        }
    }
    tlfl__central_leave();
    return span;
}

/* Goes round all heaps. */
static void sweep_sleepers(uint64_t now)
{
    for (int looks = 0; looks < THREAD_SLEEPERS && looks < (int)threads.heaps; looks++) {
        struct heap *heap = threads.sleeper != NULL ? threads.sleeper : threads.all;
        threads.sleeper = heap->later;
        if (heap != tlfl__heap && heap_state(heap) == HEAP_LIVE && now - heap_ticked(heap) > REMOTE_IDLE_MS)
            tlfl__remote_clear(heap);
    }
}

void tlfl__thread_sweep(uint64_t now)
{
    if (threads.heaps == 1) /* a race with the second thread's first malloc does no harm */
        return;
    tlfl__central_enter();
    for (unsigned node = 0; node < NODES; node++)
        for (int looks = 0; looks < THREAD_LOOKS; looks++) {
            struct heap *heap = idle_next(&threads.idle[node]);
            if (heap == NULL)
                break;
            idle_settle(heap);
        }
    sweep_sleepers(now);
    reclaim_next();
    tlfl__central_leave();
}

/* Blocks that come to the wrong heap are forwarded, perhaps to one that has had its turn. */
#define TRIM_ROUNDS 2

bool tlfl__thread_trim(void)
{
    bool any = tlfl__huge_clear();
    struct heap *mine = tlfl__heap;
    packed_return();
    if (heap_state(mine) == HEAP_LIVE)
        tlfl__remote_flush(mine);
    tlfl__central_enter();
    for (int round = 0; round < TRIM_ROUNDS; round++) {
        for (struct heap *heap = threads.all; heap != NULL; heap = heap->later)
            if (heap_state(heap) == HEAP_IDLE || heap_reclaim(heap)) {
                any |= idle_settle(heap);
            } else if (heap != mine) {
                any |= tlfl__remote_steal(heap);
                any |= tlfl__remote_clear(heap);
            }
        if (heap_state(mine) == HEAP_LIVE) {
            if (heap_stolen(mine))
                tlfl__heap_collect(mine);
            tlfl__remote_drain(mine);
            any |= tlfl__heap_settle(mine);
        }
    }
    tlfl__central_leave();
    return (tlfl__pool_trim() != 0) | any;
}

uint32_t tlfl__thread_live(void)
{
    uint32_t all = (uint32_t)threads.heaps, idle = idle_count();
    return all > idle ? all - idle : 1;
}

const struct heap *tlfl__thread_all(void)
{
    return threads.all;
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
    tlfl__pool_reset();
    guard_reset();
    threads.forks++;
}

/* At the first malloc, or at the latest when the library is initialised: prepare handlers run in the
 * reverse order of registration, and ours has to be the last of them. Another one may wait for a thread
 * that waits for our lock. */
static void fork_register(void)
{
    static _Atomic bool registered;
    if (!atomic_exchange_explicit(&registered, true, memory_order_relaxed))
        pthread_atfork(fork_prepare, fork_parent, fork_child);
}

__attribute__((constructor)) static void thread_start(void)
{
    fork_register();
}
