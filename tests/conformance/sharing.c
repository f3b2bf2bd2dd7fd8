/* Where blocks lie in the caches: lines that hold live blocks of two threads, and where large arrays start. From the
 * addresses alone, not timed. */
#include "tap.h"

#include <pthread.h>

#define LINE 64

enum { THREADS = 4, BLOCKS = 200 };

static char *blocks[THREADS][BLOCKS];
static size_t block_size;
static pthread_barrier_t barrier;

/* Allocates in turns with the others, frees and allocates again, so that reuse counts as well. */
static void *body(void *argument)
{
    char **mine = blocks[(uintptr_t)argument];
    for (int i = 0; i < BLOCKS; i++) {
        if (i % 50 == 0)
            pthread_barrier_wait(&barrier);
        mine[i] = malloc(block_size);
    }
    for (int round = 0; round < 5; round++)
        for (int i = round; i < BLOCKS; i += 3) {
            free(mine[i]);
            mine[i] = malloc(block_size);
        }
    pthread_barrier_wait(&barrier); /* none ends, and leaves its memory, before all have theirs */
    return NULL;
}

static bool share_line(const char *a, const char *b)
{
    uintptr_t a_first = (uintptr_t)a / LINE, a_last = ((uintptr_t)a + block_size - 1) / LINE;
    uintptr_t b_first = (uintptr_t)b / LINE, b_last = ((uintptr_t)b + block_size - 1) / LINE;
    return a_first <= b_last && b_first <= a_last;
}

/* Blocks that share a line with a block of another thread. */
static size_t shared_blocks(size_t size)
{
    pthread_t threads[THREADS];
    size_t count = 0;
    block_size = size;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, body, (void *)i) != 0)
            return SIZE_MAX;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < BLOCKS; i++) {
            bool found = false;
            for (int u = 0; u < THREADS && !found; u++)
                for (int k = 0; u != t && k < BLOCKS && !found; k++)
                    found = share_line(blocks[t][i], blocks[u][k]);
            count += found;
        }
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[t][i]);
    return count;
}

/* The same in a process of its own: what packed plants, it plants into fresh memory. Heaps that ended threads left, and
 * that others took over, hold whole lines again. */
static size_t shared_blocks_fresh(size_t size)
{
    int ends[2];
    size_t count = SIZE_MAX;
    if (pipe(ends) != 0)
        return count;
    pid_t child = fork();
    if (child == 0) {
        count = shared_blocks(size);
        _exit(write(ends[1], &count, sizeof count) == sizeof count ? 0 : 1);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &count, sizeof count) != sizeof count)
        count = SIZE_MAX;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return count;
}

/* Large blocks of one size, as arrays that a program walks in lockstep. Where they start within a page decides which sets of
 * the first cache they meet in; that is printed, since nothing is promised about it but the alignment. */
static void test_arrays(size_t size)
{
    enum { ARRAYS = 16, PAGE = 4096 };
    char *arrays[ARRAYS];
    bool good = true;
    unsigned starts = 0;
    for (int i = 0; i < ARRAYS; i++) {
        arrays[i] = malloc(size);
        good &= arrays[i] != NULL && aligned_to(arrays[i], 16);
        bool seen = false;
        for (int k = 0; k < i; k++) {
            good &= arrays[i] + size <= arrays[k] || arrays[k] + size <= arrays[i];
            seen |= ((uintptr_t)arrays[i] % PAGE) / LINE == ((uintptr_t)arrays[k] % PAGE) / LINE;
        }
        starts += !seen;
    }
    for (int i = 0; i < ARRAYS; i++)
        free(arrays[i]);
    tap_note("%d arrays of %zu bytes start in %u of %d lines of a page", ARRAYS, size, starts, PAGE / LINE);
    tap_ok(good, "%d arrays of %zu bytes lie apart", ARRAYS, size);
}

int main(void)
{
    const size_t sizes[] = {8, 16, 32, 48, 64, 100};
    tap_start(60);
    const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "tlfl_version");
    bool packed = version != NULL && strstr(version(), "-packed") != NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t count = shared_blocks_fresh(sizes[i]), all = THREADS * BLOCKS;
        if (version == NULL)
            tap_skip("lines of two threads", "a promise of tlfl");
        else if (!packed)
            tap_ok(count == 0, "%zu bytes: %zu of %zu blocks share a line with another thread's", sizes[i],
                   count, all);
        else if (sizes[i] % LINE != 0)
            tap_ok(count > all / 10 && count <= all, "packed: %zu bytes: %zu of %zu blocks share a line",
                   sizes[i], count, all);
    }
    const size_t large[] = {4096, 16384, 65536, 262144, 1 << 20, 8 << 20};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        test_arrays(large[i]);
    return tap_done();
}
