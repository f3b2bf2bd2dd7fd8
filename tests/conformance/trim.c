/* Memory goes back: by malloc_trim at once, and to other sizes and threads by itself. */
#include "tap.h"

#include <malloc.h>
#include <pthread.h>
#include <time.h>

#define MIB   ((size_t)1 << 20)
#define SLACK (12 * MIB) /* what may stay of 64 MiB */

enum { MOST = 400000 };

static char *blocks[MOST];

static size_t fill(size_t size, size_t bytes)
{
    size_t count = bytes / size;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(size);
        memset(blocks[i], 1, size);
    }
    return count;
}

static void drop(size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

static void test_sizes(void)
{
    const size_t sizes[] = {200, 1000, 5000, 30000, 100000, 900000, 3000000, 9000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        malloc_trim(0);
        size_t before = resident_now(), count = fill(sizes[i], 64 * MIB), full = resident_now();
        drop(count);
        malloc_trim(0);
        size_t after = resident_now();
        tap_ok(full > before + 50 * MIB && after < before + SLACK,
               "64 MiB in blocks of %zu bytes, freed, trimmed: %zu KiB before, %zu full, %zu after", sizes[i],
               before >> 10, full >> 10, after >> 10);
    }
    int again = malloc_trim(0);
    if (allocator_is_tlfl())
        tap_ok(again == 0 && malloc_trim(0) == 0, "malloc_trim returns 0 when there is nothing to give");
    else
        tap_skip("malloc_trim returns 0 when there is nothing to give", "a promise of tlfl");
}

static void *fill_body(void *count)
{
    *(size_t *)count = fill(500, 64 * MIB);
    return NULL;
}

static void test_ended_thread(void)
{
    size_t before, count = 0, full, after;
    pthread_t thread;
    malloc_trim(0);
    before = resident_now();
    pthread_create(&thread, NULL, fill_body, &count);
    pthread_join(thread, NULL);
    full = resident_now();
    drop(count);
    malloc_trim(0);
    after = resident_now();
    tap_ok(full > before + 50 * MIB && after < before + SLACK,
           "blocks of an ended thread: %zu KiB before, %zu full, %zu after", before >> 10, full >> 10,
           after >> 10);
}

static pthread_barrier_t barrier;

static void *owner_body(void *count)
{
    fill_body(count);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    malloc_trim(0);
    return NULL;
}

static void test_remote(void)
{
    size_t before, count = 0, full, after;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    malloc_trim(0);
    before = resident_now();
    pthread_create(&thread, NULL, owner_body, &count);
    pthread_barrier_wait(&barrier);
    full = resident_now();
    drop(count);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    malloc_trim(0);
    after = resident_now();
    tap_ok(full > before + 50 * MIB && after < before + SLACK,
           "blocks freed by another thread, then trimmed by their owner: %zu KiB before, %zu full, %zu after",
           before >> 10, full >> 10, after >> 10);
}

/* What one size has used serves another. */
static void test_other_size(void)
{
    malloc_trim(0);
    size_t before = resident_now();
    drop(fill(400, 64 * MIB));
    size_t count = fill(3000, 64 * MIB), peak = resident_now();
    drop(count);
    tap_ok(peak < before + 64 * MIB + 2 * SLACK,
           "64 MiB of 400 bytes, then of 3,000: %zu KiB before, %zu then", before >> 10, peak >> 10);
}

/* A peak goes back by itself, if the program goes on allocating. */
static void test_by_itself(void)
{
    if (!allocator_is_tlfl()) {
        tap_skip("a peak goes back without malloc_trim", "a promise of tlfl");
        return;
    }
    malloc_trim(0);
    size_t before = resident_now(), after = SIZE_MAX;
    drop(fill(1000, 64 * MIB));
    for (int waited = 0; waited < 400 && after > before + SLACK; waited++) {
        nanosleep(&(struct timespec){0, 10 * 1000 * 1000}, NULL);
        drop(fill(2000, MIB));
        after = resident_now();
    }
    tap_ok(after <= before + SLACK, "a peak goes back without malloc_trim: %zu KiB before, %zu after",
           before >> 10, after >> 10);
}

int main(void)
{
    tap_start(60);
    if (!allocator_has("malloc_trim")) {
        tap_skip("malloc_trim", "the allocator has none");
        return tap_done();
    }
    test_sizes();
    test_ended_thread();
    test_remote();
    test_other_size();
    test_by_itself();
    return tap_done();
}
