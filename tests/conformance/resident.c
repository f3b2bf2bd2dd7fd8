/* Resident memory over time: patterns that make other allocators grow without a bound, each with the bound that is promised.
 *
 * Figures are of the whole process, so what the tests hold themselves is static.
 */
#include "tap.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static pthread_t thread_run(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0) {
        tap_say("Bail out! pthread_create failed\n");
        _exit(1);
    }
    return thread;
}

/* What is resident beyond `before`. */
static size_t grown_since(size_t before)
{
    size_t now = resident_now();
    return now > before ? now - before : 0;
}

/* ---- pairs of producer and consumer that change ---- */

/* PAIR_THREADS threads live all the time. In each round one of them allocates PAIR_BYTES, another one frees them, the rest
 * waits; every ordered pair has its turn. Live memory never exceeds PAIR_BYTES. */
enum { PAIR_THREADS = 6, PAIR_ROUNDS = PAIR_THREADS * (PAIR_THREADS - 1) * 2, PAIR_BLOCKS = 12000 };

static char *pair_blocks[PAIR_BLOCKS];
static size_t pair_bytes, pair_resident[PAIR_ROUNDS];
static pthread_barrier_t pair_barrier;

static unsigned pair_producer(unsigned round)
{
    return round % PAIR_THREADS;
}

static unsigned pair_consumer(unsigned round)
{
    return (round + 1 + round / PAIR_THREADS % (PAIR_THREADS - 1)) % PAIR_THREADS;
}

static void *pair_body(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;
    for (unsigned round = 0; round < PAIR_ROUNDS; round++) {
        uint64_t seed = round + 1;
        pthread_barrier_wait(&pair_barrier);
        if (number == pair_producer(round)) {
            pair_bytes = 0;
            for (int i = 0; i < PAIR_BLOCKS; i++) {
                size_t size = 32 + random_size(&seed, 11);
                pair_blocks[i] = malloc(size);
                memset(pair_blocks[i], 1, size);
                pair_bytes += size;
            }
        }
        pthread_barrier_wait(&pair_barrier);
        if (number == pair_consumer(round)) {
            for (int i = 0; i < PAIR_BLOCKS; i++)
                free(pair_blocks[i]);
            pair_resident[round] = resident_now();
        }
    }
    return NULL;
}

static size_t pair_peak(unsigned first, unsigned last)
{
    size_t peak = 0;
    for (unsigned i = first; i < last; i++)
        peak = pair_resident[i] > peak ? pair_resident[i] : peak;
    return peak;
}

static void test_pairs(void)
{
    pthread_t threads[PAIR_THREADS];
    size_t before = resident_now();
    pthread_barrier_init(&pair_barrier, NULL, PAIR_THREADS);
    for (uintptr_t i = 0; i < PAIR_THREADS; i++)
        threads[i] = thread_run(pair_body, (void *)i);
    for (int i = 0; i < PAIR_THREADS; i++)
        pthread_join(threads[i], NULL);
    size_t early = pair_peak(0, PAIR_ROUNDS / 2) - before,
           late = pair_peak(PAIR_ROUNDS / 2, PAIR_ROUNDS) - before;
    tap_ok(late < early + early / 8 + MIB,
           "%d rounds of changing pairs, %zu KiB live: %zu KiB at most in the first half, %zu in the second",
           PAIR_ROUNDS, pair_bytes / KIB, early / KIB, late / KIB);
    /* To tlfl-hardened a block is 24 bytes more, and its quarantine keeps spans that are otherwise free. */
    tap_promise(
        late < PAIR_THREADS * pair_bytes * (allocator_is_hardened() ? 4 : 3) / 2,
        "changing pairs: never more than one and a half times the live bytes a thread, of tlfl-hardened "
        "two: %zu KiB",
        late / KIB);
}

/* ---- an owner that sleeps, all its blocks freed by others ---- */

enum { IDLE_MOST = 400000 };

static char *idle_blocks[IDLE_MOST];
static size_t idle_size, idle_count;
static pthread_barrier_t idle_barrier;

static void *idle_body(void *argument)
{
    (void)argument;
    for (size_t i = 0; i < idle_count; i++) {
        idle_blocks[i] = malloc(idle_size);
        memset(idle_blocks[i], 1, idle_size);
    }
    pthread_barrier_wait(&idle_barrier);
    pthread_barrier_wait(&idle_barrier); /* frees and trim are here */
    return NULL;
}

static void test_idle_owner(size_t size)
{
    idle_size = size;
    idle_count = 32 * MIB / size;
    pthread_barrier_init(&idle_barrier, NULL, 2);
    malloc_trim(0);
    size_t before = resident_now();
    pthread_t owner = thread_run(idle_body, NULL);
    pthread_barrier_wait(&idle_barrier);
    size_t full = grown_since(before);
    for (size_t i = 0; i < idle_count; i++)
        free(idle_blocks[i]);
    malloc_trim(0);
    size_t left = grown_since(before);
    pthread_barrier_wait(&idle_barrier);
    pthread_join(owner, NULL);
    tap_promise(
        full > 28 * MIB && left < 4 * MIB,
        "32 MiB in blocks of %zu bytes of a sleeping thread, freed and trimmed by another: %zu KiB stay",
        size, left / KIB);
}

/* ---- one block in 33 stays ---- */

enum { KEEP = 33, KEEP_MOST = 700 };

/* Asks for huge pages in all anonymous memory there is, as the system does by itself where it is set to `always`. */
static void huge_pages_everywhere(void)
{
    static char text[1 << 18];
    size_t length = 0;
    ssize_t got;
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (file >= 0 && (got = read(file, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    if (file >= 0)
        close(file);
    text[length] = '\0';
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        uintptr_t first = strtoul(line, &line, 16), last = strtoul(line + 1, &line, 16);
        if (strncmp(line, " rw-p", 5) == 0 && strchr(line, '/') == NULL && strchr(line, '[') == NULL)
            madvise((void *)first, last - first, MADV_HUGEPAGE);
    }
}

struct kept {
    size_t full, freed, trimmed, live;
};

/* In a child: 64 MiB of blocks of 100,000 bytes, all but one in 33 freed, trimmed. */
static void keep_child(int out, bool always)
{
    static char *blocks[KEEP_MOST];
    enum { SIZE = 100000 };
    struct kept kept = {0, 0, 0, 0};
    malloc_trim(0);
    size_t before = resident_now();
    for (int i = 0; i < KEEP_MOST; i++) {
        blocks[i] = malloc(SIZE);
        if (always && i % 16 == 0)
            huge_pages_everywhere();
    }
    if (always)
        huge_pages_everywhere();
    for (int i = 0; i < KEEP_MOST; i++)
        content_fill(blocks[i], SIZE, (unsigned)i);
    kept.full = grown_since(before);
    for (int i = 0; i < KEEP_MOST; i++)
        if (i % KEEP != 0)
            free(blocks[i]);
    kept.freed = grown_since(before);
    malloc_trim(0);
    kept.trimmed = grown_since(before);
    bool good = true;
    for (int i = 0; i < KEEP_MOST; i += KEEP) {
        good &= content_good(blocks[i], SIZE, SIZE, (unsigned)i);
        kept.live += SIZE;
    }
    _exit(write(out, &kept, sizeof kept) != sizeof kept || !good);
}

enum huge_pages { AS_SET, NEVER, ALWAYS };

static void test_keep(enum huge_pages mode)
{
    static const char *const names[] = {"as the system sets them", "never", "always"};
    struct kept kept;
    int ends[2];
    if (pipe(ends) != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        if (mode == NEVER && prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
            _exit(3);
        keep_child(ends[1], mode == ALWAYS);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], &kept, sizeof kept);
    close(ends[0]);
    bool good = child > 0 && child_good(child);
    if (got != sizeof kept) {
        tap_skip("one block in 33 stays", "the child was not allowed to set huge pages");
        return;
    }
    tap_promise(good && kept.trimmed < kept.live * 2 + 4 * MIB,
                "one block in 33 stays, huge pages %s: %zu KiB live; %zu full, %zu freed, %zu trimmed",
                names[mode], kept.live / KIB, kept.full / KIB, kept.freed / KIB, kept.trimmed / KIB);
}

/* Small ones hold their neighbourhood: nothing can go back, but all of it serves again. */
static void test_holes(void)
{
    enum { SIZE = 400, MANY = 120000 };
    static char *blocks[MANY];
    malloc_trim(0);
    size_t before = resident_now();
    for (int i = 0; i < MANY; i++)
        memset(blocks[i] = malloc(SIZE), 1, SIZE);
    size_t full = grown_since(before), most = 0;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < MANY; i++)
            if ((i + round) % KEEP != 0)
                free(blocks[i]), blocks[i] = NULL;
        for (int i = 0; i < MANY; i++)
            if (blocks[i] == NULL)
                memset(blocks[i] = malloc(SIZE), 1, SIZE);
        size_t now = grown_since(before);
        most = now > most ? now : most;
    }
    for (int i = 0; i < MANY; i++)
        free(blocks[i]);
    tap_ok(most < full + full / 10,
           "holes between small blocks serve again: %zu KiB full, %zu at most in 6 rounds", full / KIB,
           most / KIB);
}

/* ---- after a peak ---- */

/* The program goes on with little: half a MiB of blocks now and then. tlfl says 100 to 200 ms; the test waits for as long
 * as it takes, up to 10 s, and prints it. */
static void test_peak(void)
{
    enum { SIZE = 2000, MANY = 32000, LITTLE = 256, STEP_MS = 10, STEPS = 1000 };
    static char *blocks[MANY];
    if (!tap_tlfl("after a peak, with little activity"))
        return;
    malloc_trim(0);
    size_t before = resident_now();
    for (int i = 0; i < MANY; i++)
        memset(blocks[i] = malloc(SIZE), 1, SIZE);
    size_t full = grown_since(before);
    for (int i = 0; i < MANY; i++)
        free(blocks[i]);
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    size_t left = SIZE_MAX;
    for (int step = 0; step < STEPS && left > 6 * MIB; step++) {
        nanosleep(&(struct timespec){0, STEP_MS * 1000000L}, NULL);
        for (int i = 0; i < LITTLE; i++)
            blocks[i] = malloc(SIZE);
        for (int i = 0; i < LITTLE; i++)
            free(blocks[i]);
        left = grown_since(before);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    tap_ok(full > 50 * MIB && left <= 6 * MIB, "after a peak of %zu KiB, with little activity: %zu KiB stay",
           full / KIB, left / KIB);
    tap_note("that took %ld ms",
             (long)((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000));
    malloc_trim(0);
    left = grown_since(before);
    tap_ok(left < 3 * MIB, "and malloc_trim leaves %zu KiB", left / KIB);
}

int main(void)
{
    tap_start(60);
    test_pairs();
    if (allocator_has("malloc_trim")) {
        test_idle_owner(100);
        test_idle_owner(5000);
        test_idle_owner(50000);
        test_idle_owner(400000);
        test_idle_owner(6000000);
        test_keep(AS_SET);
        test_keep(NEVER);
        test_keep(ALWAYS);
    } else {
        tap_skip("sleeping owner, one block in 33", "the allocator has no malloc_trim");
    }
    test_holes();
    test_peak();
    return tap_done();
}
