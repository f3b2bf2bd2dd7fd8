/* fork: from a process whose other threads are inside the allocator all the time. */
#include "tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define FILL_BITS     15
#define CHILD_SECONDS 20 /* a child that hangs is killed by its own alarm, and counts as failed */

static atomic_bool hammer_stop;

/* One block in eight is large and left untouched: those are what an allocator takes its locks for. */
static void *hammer_body(void *argument)
{
    void *blocks[100] = {NULL};
    uint64_t seed = (uint64_t)(uintptr_t)argument + 1;
    while (!hammer_stop) {
        unsigned i = (unsigned)(random_next(&seed) % 100);
        free(blocks[i]);
        blocks[i] = malloc(i % 8 != 0 ? random_size(&seed, 14) : ((size_t)64 << 10) + random_size(&seed, 20));
    }
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
    return NULL;
}

/* Every size up to 8 MiB, allocated, filled where that costs few faults, freed. */
static bool use_allocator(unsigned times)
{
    bool good = true;
    for (unsigned round = 0; round < times; round++) {
        char *blocks[24];
        for (unsigned bits = 0; bits < 24; bits++) {
            blocks[bits] = malloc((size_t)1 << bits);
            if (blocks[bits] == NULL)
                return false;
            content_fill(blocks[bits], (size_t)1 << (bits < FILL_BITS ? bits : FILL_BITS), bits + round);
        }
        for (unsigned bits = 0; bits < 24; bits++) {
            size_t size = (size_t)1 << (bits < FILL_BITS ? bits : FILL_BITS);
            good &= content_good(blocks[bits], size, size, bits + round);
            free(blocks[bits]);
        }
    }
    return good;
}

static void *thread_in_child(void *argument)
{
    (void)argument;
    return (void *)(uintptr_t)use_allocator(2);
}

static char *inherited[500];

/* What a child does; generation 0 has no children of its own. */
static bool child_life(unsigned number, int generation)
{
    alarm(CHILD_SECONDS);
    bool good = use_allocator(2);
    for (unsigned i = 0; i < 500; i++) {
        good &= content_good(inherited[i], 10 + i, 10 + i, i);
        if (i % 3 == 0)
            free(inherited[i]);
    }
    if (number % 4 == 0) {
        pthread_t thread;
        void *result = NULL;
        good &= pthread_create(&thread, NULL, thread_in_child, NULL) == 0;
        good &= pthread_join(thread, &result) == 0 && result != NULL;
    }
    if (generation > 0) {
        pid_t child = fork();
        if (child == 0) {
            for (unsigned i = 0; i < 500; i += 3)
                content_fill(inherited[i] = malloc(10 + i), 10 + i, i);
            _exit(!child_life(number + 1, generation - 1));
        }
        good &= child > 0 && child_good(child);
    }
    return good && use_allocator(1);
}

static void test_storm(unsigned threads, unsigned forks)
{
    pthread_t hammers[16];
    bool good = true;
    hammer_stop = false;
    for (uintptr_t i = 0; i < threads; i++)
        good &= pthread_create(&hammers[i], NULL, hammer_body, (void *)i) == 0;
    for (unsigned i = 0; good && i < forks; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(!child_life(i, i % 8 == 0 ? 2 : 0));
        good &= child > 0 && child_good(child) && use_allocator(1);
    }
    hammer_stop = true;
    for (unsigned i = 0; i < threads; i++)
        pthread_join(hammers[i], NULL);
    tap_ok(good, "%u forks while %u threads allocate", forks, threads);
}

static pthread_barrier_t barrier;

static void *fork_body(void *argument)
{
    bool good = true;
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < 8; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(CHILD_SECONDS);
            _exit(!use_allocator(1));
        }
        good &= use_allocator(1) && child > 0 && child_good(child);
    }
    (void)argument;
    return (void *)(uintptr_t)good;
}

static void test_concurrent(void)
{
    pthread_t threads[4];
    bool good = true;
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++)
        good &= pthread_create(&threads[i], NULL, fork_body, NULL) == 0;
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        good &= result != NULL;
    }
    tap_ok(good, "4 threads fork at the same time");
}

/* Every thread forks children that fork again and start threads there. */
static void *family_body(void *argument)
{
    bool good = true;
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(!child_life(0, 2));
        good &= child > 0 && child_good(child);
    }
    return good ? &barrier : argument;
}

static void test_families(void)
{
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    bool good = true;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        good &= pthread_create(&threads[i], NULL, family_body, NULL) == 0;
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        good &= result != NULL;
    }
    tap_ok(good, "%d threads fork children of children that start threads", THREADS);
}

/* ---- what fork costs ---- */

static void *hold_body(void *argument)
{
    free(malloc(100)); /* a thread the allocator knows */
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return argument;
}

/* Microseconds for fork and wait, the least of some, while `count` threads wait; 0 when a child was not good. */
static double fork_us(unsigned count)
{
    enum { MOST = 64, TRIES = 10 };
    pthread_t threads[MOST];
    double least = 0;
    bool good = true;
    pthread_barrier_init(&barrier, NULL, count + 1);
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, hold_body, NULL) != 0)
            _exit(1);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < TRIES; i++) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        pid_t child = fork();
        if (child == 0) {
            free(malloc(100));
            _exit(0);
        }
        good &= child > 0 && child_good(child);
        clock_gettime(CLOCK_MONOTONIC, &end);
        double us = (double)(end.tv_sec - start.tv_sec) * 1e6 + (double)(end.tv_nsec - start.tv_nsec) / 1e3;
        least = least == 0 || us < least ? us : least;
    }
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return good ? least : 0;
}

static void test_latency(void)
{
    const unsigned counts[] = {0, 1, 4, 16, 64};
    bool good = true;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        double us = fork_us(counts[i]);
        good &= us > 0;
        tap_note("fork and wait with %u other threads: %.0f us", counts[i], us);
    }
    tap_ok(good, "fork beside up to 64 threads that sleep");
}

/* Handlers of the program that allocate; those registered first run while ours hold the lock. */
static atomic_int handler_calls;

static void handler(void)
{
    void *blocks[100];
    for (unsigned i = 0; i < 100; i++)
        blocks[i] = malloc(i * 700);
    for (unsigned i = 0; i < 100; i++)
        free(blocks[i]);
    handler_calls++;
}

static void test_handlers(void)
{
    pthread_atfork(handler, handler, handler);
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        _exit(!(use_allocator(1) && handler_calls == 2));
    }
    tap_ok(child > 0 && child_good(child) && handler_calls == 2, "fork handlers that allocate");
}

int main(void)
{
    tap_start(100);
    for (unsigned i = 0; i < 500; i++)
        content_fill(inherited[i] = malloc(10 + i), 10 + i, i);
    test_storm(0, 10);
    test_storm(3, 40);
    test_storm(16, 6);
    test_concurrent();
    test_families();
    test_latency();
    test_handlers();
    return tap_done();
}
