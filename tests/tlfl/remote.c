/* White box: remote frees, idle heaps and adoption; also meant to run under ThreadSanitizer. */
#include "../conformance/tap.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "api.h"
#include "check.h"
#include "heap.h"
#include "lock.h"
#include "map.h"
#include "remote.h"
#include "thread.h"

enum { BLOCKS = 3000 };

static struct heap *made_by;

static void *make_body(void *blocks)
{
    for (int i = 0; i < BLOCKS; i++)
        ((void **)blocks)[i] = tlfl_test_malloc(48);
    made_by = tlfl__heap;
    return NULL;
}

static void in_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0)
        _exit(1);
    pthread_join(thread, NULL);
}

static void *free_body(void *blocks)
{
    for (int i = 0; i < BLOCKS; i++)
        tlfl_test_free(((void **)blocks)[i]);
    return NULL;
}

static void test_list(void)
{
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = tlfl_test_malloc(48);
    struct span *span = map_find(blocks[0]);
    uint32_t before = tlfl__span_free_count(span);
    struct heap *mine = tlfl__heap;
    bool good = !remote_pending(mine);
    in_thread(free_body, blocks);
    good &= remote_pending(mine) && tlfl__span_free_count(span) == before;
    tap_ok(good, "a remote free touches nothing but the list of the owner");
    good = tlfl__remote_drain(mine) && !remote_pending(mine) && !tlfl__remote_drain(mine);
    tap_ok(good, "a drain takes all of it");
    tlfl_test_malloc_trim(0);
    tap_ok(mine->granules == 0, "drained blocks are free: nothing is left after a trim");
}

/* ---- an owner that sleeps ---- */

static struct {
    pthread_barrier_t made, freed;
    struct heap *heap;
    void *blocks[BLOCKS];
    const char *wrong;
} sleeper;

static void *sleeper_body(void *unused)
{
    (void)unused;
    for (int i = 0; i < BLOCKS; i++)
        sleeper.blocks[i] = tlfl_test_malloc(64);
    sleeper.heap = tlfl__heap;
    pthread_barrier_wait(&sleeper.made);
    pthread_barrier_wait(&sleeper.freed);
    void *again[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        again[i] = tlfl_test_malloc(64);
    sleeper.wrong = tlfl__heap_is_valid(tlfl__heap);
    for (int i = 0; i < BLOCKS; i++)
        tlfl_test_free(again[i]);
    return NULL;
}

static void test_sleeper(void)
{
    pthread_t thread;
    pthread_barrier_init(&sleeper.made, NULL, 2);
    pthread_barrier_init(&sleeper.freed, NULL, 2);
    if (pthread_create(&thread, NULL, sleeper_body, NULL) != 0)
        _exit(1);
    pthread_barrier_wait(&sleeper.made);
    struct span *first = map_find(sleeper.blocks[0]), *last = map_find(sleeper.blocks[BLOCKS - 1]);
    bool good = first != last && span_state(first) == SPAN_FULL && span_state(last) == SPAN_CURRENT;
    free_body(sleeper.blocks);
    tlfl_test_malloc_trim(0);
    good &= map_find(sleeper.blocks[0]) == NULL && span_state(first) == SPAN_STOLEN;
    tap_ok(good, "a trim gets the full spans of a sleeping owner back");
    good = map_find(sleeper.blocks[BLOCKS - 1]) == last && remote_pending(sleeper.heap);
    tap_ok(good, "and leaves it what it has in use");
    pthread_barrier_wait(&sleeper.freed);
    pthread_join(thread, NULL);
    good = sleeper.wrong == NULL && atomic_load(&sleeper.heap->stolen) == NULL;
    tap_ok(good, "the owner collects the structures and goes on (%s)", good ? "all holds" : sleeper.wrong);
    tlfl_test_malloc_trim(0);
    tap_ok(sleeper.heap->granules == 0, "nothing is left of it");
}

/* Stops when all blocks of its span have been handed out and no malloc has noticed: the span is still CURRENT. */
static void *exhausted_body(void *unused)
{
    (void)unused;
    struct span *span;
    int count = 0;
    do {
        sleeper.blocks[count] = tlfl_test_malloc(2048);
        span = map_find(sleeper.blocks[count++]);
    } while (count < (int)span->capacity || span->carved < span->capacity || span->free != BLOCK_END);
    pthread_barrier_wait(&sleeper.made);
    pthread_barrier_wait(&sleeper.freed);
    void *block = tlfl_test_malloc(2048);
    if (map_find(block) != span)
        sleeper.wrong = "not of the same span";
    tlfl_test_free(block);
    return NULL;
}

static void test_exhausted(void)
{
    pthread_t thread;
    memset(sleeper.blocks, 0, sizeof sleeper.blocks);
    sleeper.wrong = NULL;
    if (pthread_create(&thread, NULL, exhausted_body, NULL) != 0)
        _exit(1);
    pthread_barrier_wait(&sleeper.made);
    struct span *span = map_find(sleeper.blocks[0]);
    bool good = span_state(span) == SPAN_CURRENT;
    free_body(sleeper.blocks);
    tlfl_test_malloc_trim(0);
    good &= span_state(span) == SPAN_CURRENT;
    pthread_barrier_wait(&sleeper.freed);
    pthread_join(thread, NULL);
    tap_ok(good && sleeper.wrong == NULL, "a span all of whose blocks came back stays while it is CURRENT (%s)",
           sleeper.wrong == NULL ? "and goes on" : sleeper.wrong);
    tlfl_test_malloc_trim(0);
}

static void test_idle(void)
{
    static void *blocks[BLOCKS];
    in_thread(make_body, blocks);
    struct heap *heap = made_by;
    bool good = heap_state(heap) == HEAP_IDLE && heap->granules != 0;
    tap_ok(good && !heap->settled, "an ended thread leaves an idle heap as it was");
    tlfl__thread_sweep(0);
    for (unsigned class = 0; class < CLASS_COUNT; class ++)
        good &= heap->current[class] == SPAN_NONE;
    tap_ok(good && heap->settled, "a sweep takes its current spans out of use");
    /* Its spans are adopted when this thread needs some. */
    struct heap *mine = tlfl__heap;
    uint32_t before = heap->granules;
    for (int i = 0; i < BLOCKS; i += 2) {
        tlfl_test_free(blocks[i]);
        blocks[i] = NULL;
    }
    static void *own[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        own[i] = tlfl_test_malloc(48);
    struct span *span = map_find(blocks[HEAP_DEBUT + 1]); /* the first ones lie in another class */
    good = heap->granules < before && atomic_load(&span->owner) == mine;
    tap_ok(good, "a refill adopts spans of an idle heap");
    /* A block pushed to the old owner after the span has moved is forwarded. */
    struct block *late = own[0];
    struct span *late_span = map_find(late);
    good = atomic_load(&late_span->owner) == mine;
    block_set_mark(late, block_key(late_span, late));
    late->next = NULL;
    atomic_store(&heap->remote, late);
    good &= !remote_pending(mine);
    tlfl__remote_drain(heap);
    good &= !remote_pending(heap) && atomic_load(&mine->remote) == late;
    tap_ok(good, "a block that reaches the wrong heap is forwarded");
    for (int i = 1; i < BLOCKS; i++)
        tlfl_test_free(own[i]);
    for (int i = 1; i < BLOCKS; i += 2)
        tlfl_test_free(blocks[i]);
    tlfl_test_malloc_trim(0);
    tap_ok(mine->granules == 0 && heap->granules == 0, "all is given back in the end");
}

static void test_handover(void)
{
    static void *blocks[BLOCKS];
    in_thread(make_body, blocks);
    struct heap *first = made_by;
    for (int i = 0; i < BLOCKS; i++) /* few enough pushes a sweep may have left */
        tlfl_test_free(blocks[i]);
    size_t heaps = tlfl__thread_heaps();
    in_thread(make_body, blocks);
    tap_ok(made_by == first && tlfl__thread_heaps() == heaps, "the next thread takes over the idle heap");
    for (int i = 0; i < BLOCKS; i++)
        tlfl_test_free(blocks[i]);
}

/* ---- thieves beside an owner that goes on, for the sanitizer ---- */

/* The owner makes blocks of one class, in a ring; all that others do is to free them in turn and to steal. So a list often
 * holds whole spans, FULL ones and the CURRENT one, which has to stay. */
enum { STOLEN_SIZE = 2048, RING = 80, STOLEN_ROUNDS = 20000, STEAL_EVERY = 24, THIEVES = 2 };

static struct {
    void *_Atomic ring[RING];
    struct heap *_Atomic heap;
    _Atomic bool over;
    _Atomic unsigned stolen, doubled;
} victim;

static void *victim_body(void *unused)
{
    (void)unused;
    const char *wrong = NULL;
    for (unsigned round = 0; round < STOLEN_ROUNDS && wrong == NULL; round++) {
        uint64_t *block = tlfl_test_malloc(STOLEN_SIZE);
        atomic_store(&victim.heap, tlfl__heap);
        block[0] = block[STOLEN_SIZE / 8 - 1] = round;
        while (atomic_load(&victim.ring[round % RING]) != NULL)
            sched_yield();
        if (round % 64 == 63)
            tlfl_test_free(block);
        else
            atomic_store(&victim.ring[round % RING], block);
        if (round % 1000 == 0) {
            tlfl__central_enter();
            tlfl__heap_collect(tlfl__heap);
            wrong = tlfl__heap_is_valid(tlfl__heap);
            tlfl__central_leave();
        }
    }
    atomic_store(&victim.over, true);
    return (void *)wrong;
}

static void *thief_body(void *number)
{
    unsigned freed = 0;
    for (uintptr_t at = (uintptr_t)number; !atomic_load(&victim.over); at++) {
        uint64_t *block = atomic_exchange(&victim.ring[at % RING], NULL);
        if (block == NULL) {
            sched_yield();
            continue;
        }
        if (block[0] != block[STOLEN_SIZE / 8 - 1])
            atomic_fetch_add(&victim.doubled, 1);
        tlfl_test_free(block);
        if (++freed % STEAL_EVERY != 0)
            continue;
        struct heap *heap = atomic_load(&victim.heap);
        tlfl__remote_flush(tlfl__heap);
        if (tlfl__remote_steal(heap) || (freed % 3 == 0 && tlfl__remote_clear(heap)))
            atomic_fetch_add(&victim.stolen, 1);
    }
    return NULL;
}

static void test_thieves(void)
{
    pthread_t owner, thieves[THIEVES];
    void *wrong = NULL;
    if (pthread_create(&owner, NULL, victim_body, NULL) != 0)
        _exit(1);
    for (uintptr_t i = 0; i < THIEVES; i++)
        if (pthread_create(&thieves[i], NULL, thief_body, (void *)i) != 0)
            _exit(1);
    pthread_join(owner, &wrong);
    for (int i = 0; i < THIEVES; i++)
        pthread_join(thieves[i], NULL);
    for (int i = 0; i < RING; i++)
        tlfl_test_free(atomic_exchange(&victim.ring[i], NULL));
    tlfl_test_malloc_trim(0);
    tap_ok(wrong == NULL && atomic_load(&victim.doubled) == 0, "thieves beside an owner that goes on (%s)",
           wrong != NULL ? (const char *)wrong : "all holds");
    tap_note("spans were had %u times", atomic_load(&victim.stolen));
    tap_ok(tlfl__span_count() == 0, "they leave no span behind: %zu", tlfl__span_count());
}

/* ---- stress, for the sanitizer ---- */

enum { THREADS = 4, TABLE = 512, ROUNDS = 30000, GENERATIONS = 3 };

static void *_Atomic table[TABLE];

static void *stress_body(void *argument)
{
    uint64_t seed = (uint64_t)(uintptr_t)argument + 17;
    bool good = true;
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = random_size(&seed, round % 100 == 0 ? 18 : 9);
        unsigned char *block = tlfl_test_malloc(size);
        block[0] = block[size - 1] = (unsigned char)size;
        unsigned char *other = atomic_exchange(&table[random_next(&seed) % TABLE], block);
        if (other != NULL) {
            size_t usable = tlfl_test_malloc_usable_size(other);
            good &= usable > 0;
            if (round % 5 == 0 && (other = tlfl_test_realloc(other, usable * 2)) == NULL)
                return NULL;
            tlfl_test_free(other);
        }
        if (round % 10000 == 0)
            tlfl_test_malloc_trim(0);
    }
    return good ? table : NULL;
}

static void test_stress(void)
{
    bool good = true;
    for (int generation = 0; generation < GENERATIONS; generation++) {
        pthread_t threads[THREADS];
        for (uintptr_t i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, stress_body, (void *)(i + 10)) != 0)
                _exit(1);
        for (int i = 0; i < THREADS; i++) {
            void *result = NULL;
            pthread_join(threads[i], &result);
            good &= result != NULL;
        }
    }
    for (int i = 0; i < TABLE; i++) {
        tlfl_test_free(table[i]);
        table[i] = NULL;
    }
    tlfl_test_malloc_trim(0);
    tap_ok(good, "threads that exchange all their blocks");
    tap_ok(tlfl__span_count() == 0, "no span is left behind: %zu", tlfl__span_count());
    tap_ok(tlfl__pool_books().mapped == 0, "no memory is left behind: %zu bytes", tlfl__pool_books().mapped);
}

int main(void)
{
    tap_start(100);
    tlfl_test_free(tlfl_test_malloc(1)); /* a heap for main */
    test_list();
    test_sleeper();
    test_exhausted();
    test_idle();
    test_handover();
    test_thieves();
    test_stress();
    return tap_done();
}
