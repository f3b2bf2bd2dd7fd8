/* White box: threads that end without a word, and who may take their heaps. */
#include "../conformance/tap.h"

#include <limits.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "api.h"
#include "check.h"
#include "heap.h"
#include "os.h"
#include "remote.h"
#include "thread.h"

enum { MANY = 300, MOST = 12 };

/* Whether a thread may end by the system call alone: not where something else keeps books of threads. */
#if !defined __GLIBC__ || defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define BARE false
#else
#define BARE true
#endif
#define BARE_WHY "the C library or the sanitizer would not know that they ended"

static pthread_t start(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0)
        _exit(1);
    return thread;
}

static void in_thread(void *(*body)(void *), void *argument)
{
    pthread_join(start(body, argument), NULL);
}

/* ---- threads that end without a word ---- */

static pthread_key_t late_key;

static void late_destructor(void *value)
{
    uintptr_t round = (uintptr_t)value;
    if (round < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(late_key, (void *)(round + 1));
    else
        tlfl_test_free(tlfl_test_malloc(100));
}

static void *late_body(void *unused)
{
    pthread_setspecific(late_key, (void *)1);
    return unused;
}

static void *plain_body(void *unused)
{
    tlfl_test_free(tlfl_test_malloc(100));
    return unused;
}

/* Leaves a block of `other`, if that is not NULL, on its way. */
static void *bare_body(void *other)
{
    tlfl_test_free(tlfl_test_malloc(100));
    tlfl_test_free(other);
    syscall(SYS_exit, 0);
    return NULL;
}

/* In a child of its own, so that main has no heap yet and all keys can be used up. */
static bool no_key(void)
{
    pthread_key_t key;
    pid_t child = fork();
    if (child != 0)
        return child_good(child);
    while (pthread_key_create(&key, NULL) == 0)
        ;
    for (int i = 0; i < MANY; i++)
        in_thread(plain_body, NULL);
    _exit(tlfl__thread_heaps() > MOST);
}

static void test_many(void)
{
    pthread_key_create(&late_key, late_destructor);
    for (int i = 0; i < MANY; i++)
        in_thread(late_body, NULL);
    tap_ok(tlfl__thread_heaps() <= MOST,
           "%d threads, first malloc in the last round of destructors: %zu heaps", MANY,
           tlfl__thread_heaps());
    if (!BARE) {
        tap_skip("threads that end by the system call alone", BARE_WHY);
        return;
    }
    for (int i = 0; i < MANY; i++)
        in_thread(bare_body, NULL);
    tap_ok(tlfl__thread_heaps() <= MOST, "%d threads that end by the system call alone: %zu heaps", MANY,
           tlfl__thread_heaps());
}

/* ---- what a heap leaves ---- */

static struct heap *bare_heap;

static void *bare_sender(void *block)
{
    bare_heap = tlfl__thread_heap();
    return bare_body(block);
}

/* The kernel tells who waits for a thread that it is over a moment before it forgets it. */
static bool trimmed_to_idle(const struct heap *heap)
{
    for (int i = 0; i < 1000 && heap_state(heap) != HEAP_IDLE; i++) {
        tlfl_test_malloc_trim(0);
        usleep(1000);
    }
    return heap_state(heap) == HEAP_IDLE;
}

static void test_outbox(void)
{
    if (!BARE) {
        tap_skip("what such a thread had on the way arrives", BARE_WHY);
        return;
    }
    struct heap *mine = tlfl__thread_heap();
    tlfl__remote_drain(mine);
    void *block = tlfl_test_malloc(64);
    in_thread(bare_sender, block);
    bool good = !remote_pending(mine) && trimmed_to_idle(bare_heap);
    tap_ok(good, "a trim notices a thread that ended without a word");
    tap_ok(tlfl__heap_is_valid(bare_heap) == NULL && mine->granules == 0, "what it had on the way arrives");
}

/* ---- children, which do not see the threads of their parent ---- */

enum { SLEEPERS = 4 };

static struct heap *asleep[SLEEPERS];
static pthread_barrier_t sleeping, sharing;

static void *sleep_body(void *number)
{
    asleep[(uintptr_t)number] = tlfl__thread_heap();
    pthread_barrier_wait(&sleeping);
    pthread_barrier_wait(&sleeping);
    return NULL;
}

/* A trim and sweeps take no heap of a thread that sleeps. */
static bool asks_in_vain(void)
{
    bool good = true;
    tlfl_test_malloc_trim(0);
    for (int i = 0; i < SLEEPERS + MOST; i++)
        tlfl__thread_sweep(0);
    for (int i = 0; i < SLEEPERS; i++)
        good &= heap_state(asleep[i]) == HEAP_LIVE;
    return good;
}

static bool fork_good(void)
{
    struct heap *mine = tlfl__heap;
    for (int i = 0; i < SLEEPERS; i++) /* as if it had its parent's number, in a namespace of its own */
        asleep[i]->process = tlfl__os_process();
    bool good = asks_in_vain();
    size_t heaps = tlfl__thread_heaps();
    for (int i = 0; i < MANY; i++) /* these are its own, and it asks for them whenever it needs a heap */
        in_thread(late_body, NULL);
    good &= tlfl__thread_heaps() <= heaps + MOST && heap_state(mine) == HEAP_LIVE;
    return asks_in_vain() && good;
}

static void test_fork(void)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(50);
        _exit(!fork_good());
    }
    tap_ok(child > 0 && child_good(child), "a child of fork leaves the heaps of its parent's threads alone");
}

/* The child shares the memory, and is the first to need a heap. */
static void *vfork_body(void *good)
{
    pid_t child = vfork();
    if (child == 0) {
        tlfl_test_free(tlfl_test_malloc(100));
        *(bool *)good = asks_in_vain();
        _exit(0);
    }
    *(bool *)good &= child > 0 && child_good(child);
    struct heap *heap = tlfl__thread_heap();
    pthread_barrier_wait(&sharing);
    pthread_barrier_wait(&sharing); /* main asks in between */
    *(bool *)good &= heap_state(heap) == HEAP_LIVE;
    return NULL;
}

static void test_vfork(void)
{
    bool shared = false;
    pthread_barrier_init(&sharing, NULL, 2);
    pthread_t thread = start(vfork_body, &shared);
    pthread_barrier_wait(&sharing);
    bool good = asks_in_vain();
    pthread_barrier_wait(&sharing);
    pthread_join(thread, NULL);
    tap_ok(shared && good, "a child of vfork takes no heap, and what it claimed for its parent is not taken");
}

static void test_children(void)
{
    pthread_t threads[SLEEPERS];
    pthread_barrier_init(&sleeping, NULL, SLEEPERS + 1);
    for (uintptr_t i = 0; i < SLEEPERS; i++)
        threads[i] = start(sleep_body, (void *)i);
    pthread_barrier_wait(&sleeping);
    tap_ok(asks_in_vain(), "a thread that sleeps is no thread that ended");
    test_fork();
    test_vfork();
    pthread_barrier_wait(&sleeping);
    for (int i = 0; i < SLEEPERS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    tap_start(100);
#ifdef __SANITIZE_THREAD__
    tap_skip("threads that end without a word", "no thread may run when the sanitizer's own destructor has");
    return tap_done();
#endif
    tap_ok(no_key(), "%d threads that found no key left: their heaps are handed on", MANY);
    tlfl_test_free(tlfl_test_malloc(1)); /* a heap for main */
    test_many();
    test_outbox();
    test_children();
    return tap_done();
}
