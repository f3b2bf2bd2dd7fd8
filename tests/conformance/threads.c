/* Threads: blocks that cross, threads that only free, threads that end before their blocks. */
#include "tap.h"

#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static pthread_t thread_run(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0) {
        tap_say("Bail out! pthread_create failed\n");
        _exit(1);
    }
    return thread;
}

static void *thread_result(pthread_t thread)
{
    void *result = NULL;
    pthread_join(thread, &result);
    return result;
}

/* ---- stress: random calls, blocks handed over through a common table ---- */

enum { STRESS_THREADS = 4, STRESS_OWN = 500, STRESS_SHARED = 2000, STRESS_ROUNDS = 120000 };

/* The head of every block of the stress. */
struct item {
    size_t size;
    unsigned tag;
};

static struct item *_Atomic shared[STRESS_SHARED];

static struct item *item_new(uint64_t *seed, unsigned tag)
{
    size_t size = random_size(seed, tag % 256 == 0 ? 18 : 11);
    struct item *item = tag % 16 == 3 ? calloc(1, sizeof *item + size) : malloc(sizeof *item + size);
    if (item == NULL)
        return NULL;
    item->size = size;
    item->tag = tag;
    content_fill(item + 1, size, tag);
    return item;
}

/* Checks and frees. */
static bool item_end(struct item *item)
{
    bool good = item == NULL || content_good(item + 1, item->size, item->size, item->tag);
    free(item);
    return good;
}

static void *stress_body(void *argument)
{
    struct item *own[STRESS_OWN] = {NULL};
    uint64_t seed = (uint64_t)(uintptr_t)argument * 7919 + 1;
    bool good = true;
    for (unsigned round = 0; round < STRESS_ROUNDS; round++) {
        uint64_t dice = random_next(&seed);
        struct item **slot = &own[dice % STRESS_OWN];
        switch (dice >> 32 & 7) {
        case 0:
        case 1:
        case 2:
            good &= item_end(*slot);
            *slot = item_new(&seed, round);
            good &= *slot != NULL;
            break;
        case 3:
            good &= item_end(*slot);
            *slot = NULL;
            break;
        case 4:
            if (*slot != NULL) {
                size_t size = random_size(&seed, 12), old = (*slot)->size;
                struct item *moved = realloc(*slot, sizeof *moved + size);
                good &= moved != NULL && content_good(moved + 1, old, old < size ? old : size, moved->tag);
                moved->size = size;
                content_fill(moved + 1, size, moved->tag);
                *slot = moved;
            }
            break;
        default:
            *slot = atomic_exchange(&shared[dice >> 40 & (STRESS_SHARED / 2 - 1)], *slot);
        }
    }
    for (int i = 0; i < STRESS_OWN; i++)
        good &= item_end(own[i]);
    return (void *)(uintptr_t)good;
}

static void test_stress(void)
{
    pthread_t threads[STRESS_THREADS];
    bool good = true;
    for (uintptr_t i = 0; i < STRESS_THREADS; i++)
        threads[i] = thread_run(stress_body, (void *)i);
    for (int i = 0; i < STRESS_THREADS; i++)
        good &= thread_result(threads[i]) != NULL;
    for (int i = 0; i < STRESS_SHARED; i++)
        good &= item_end(shared[i]);
    tap_ok(good, "%d threads, random calls and hand-overs: all contents kept", STRESS_THREADS);
}

/* ---- producer, consumer that only frees ---- */

enum { RING = 1024, RING_BLOCKS = 300000 };

static void *_Atomic ring[RING];
static atomic_bool ring_wrong;

static void *consume_body(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < RING_BLOCKS; i++) {
        unsigned *block;
        while ((block = atomic_exchange(&ring[i % RING], NULL)) == NULL)
            sched_yield();
        if (block[0] != i || block[3] != ~i)
            ring_wrong = true;
        free(block);
    }
    return NULL;
}

static void test_free_only(void)
{
    size_t before = resident_now();
    pthread_t consumer = thread_run(consume_body, NULL);
    for (unsigned i = 0; i < RING_BLOCKS; i++) {
        unsigned *block = malloc(16 + i % 500);
        block[0] = i;
        block[3] = ~i;
        void *empty = NULL;
        while (!atomic_compare_exchange_weak(&ring[i % RING], &empty, block)) {
            empty = NULL;
            sched_yield();
        }
    }
    thread_result(consumer);
    size_t grown = resident_now() - before;
    tap_ok(!ring_wrong, "a thread that only frees gets 300,000 blocks intact");
    tap_ok(resident_now() < before || grown < (size_t)32 << 20,
           "75 MiB through a thread that only frees: memory grows by %zu KiB, below 32 MiB", grown >> 10);
}

/* ---- threads that end before their blocks ---- */

enum { LEFT = 20000 };

static void *leave_body(void *argument)
{
    char **blocks = argument;
    for (unsigned i = 0; i < LEFT; i++) {
        blocks[i] = malloc(24 + i % 200);
        content_fill(blocks[i], 24 + i % 200, i);
    }
    for (unsigned i = 0; i < LEFT; i += 2) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    return NULL;
}

static bool left_end(char **blocks)
{
    bool good = true;
    for (unsigned i = 1; i < LEFT; i += 2) {
        good &= content_good(blocks[i], 24 + i % 200, 24 + i % 200, i);
        free(blocks[i]);
        blocks[i] = NULL;
    }
    return good;
}

static void test_outlive(void)
{
    static char *blocks[LEFT];
    bool good = true;
    size_t after_five = 0;
    for (int round = 0; round < 30; round++) {
        thread_result(thread_run(leave_body, blocks));
        char *mine = malloc(100); /* between the end of the owner and the frees */
        good &= left_end(blocks) && mine != NULL;
        free(mine);
        if (round == 4)
            after_five = resident_now();
    }
    size_t end = resident_now();
    tap_ok(good, "blocks outlive their thread, 30 times 10,000");
    tap_ok(end < after_five + ((size_t)8 << 20),
           "their memory is used again: %zu KiB after 30 rounds, %zu after 5", end >> 10, after_five >> 10);
}

static pthread_barrier_t leave_barrier;

/* As leave_body, but none ends, and leaves its heap to the next, before all have allocated. */
static void *leave_together_body(void *argument)
{
    leave_body(argument);
    pthread_barrier_wait(&leave_barrier);
    return NULL;
}

/* The memory that ended threads leave half used serves a thread that ran all the time. */
static void test_adoption(void)
{
    enum { OWNERS = 8, TAKEN = OWNERS * LEFT / 2 };
    static char *blocks[OWNERS][LEFT], *taken[TAKEN];
    bool good = true;
    pthread_t owners[OWNERS];
    pthread_barrier_init(&leave_barrier, NULL, OWNERS);
    for (int k = 0; k < OWNERS; k++)
        owners[k] = thread_run(leave_together_body, blocks[k]);
    for (int k = 0; k < OWNERS; k++)
        thread_result(owners[k]);
    size_t before = resident_now();
    for (unsigned i = 0; i < TAKEN; i++) {
        taken[i] = malloc(24 + i * 2 % 200);
        memset(taken[i], 1, 24);
    }
    size_t grown = resident_now() - before;
    for (unsigned i = 0; i < TAKEN; i++)
        free(taken[i]);
    for (int k = 0; k < OWNERS; k++)
        good &= left_end(blocks[k]);
    tap_ok(good, "a running thread allocates beside what ended threads left");
    if (allocator_is_tlfl())
        tap_ok(resident_now() < before || grown < (size_t)5 << 20,
               "it reuses their holes: %zu KiB more for 10 MiB of blocks", grown >> 10);
    else
        tap_skip("it reuses their holes", "a promise of tlfl");
}

/* ---- many short threads ---- */

/* tlfl makes as many heaps as threads run at a time, not one for each that ever did. */
static void heaps_handed_on(const char *by)
{
    size_t (*stat)(const char *) = (size_t(*)(const char *))dlsym(RTLD_DEFAULT, "tlfl_stat");
    if (stat != NULL)
        tap_ok(stat("heaps") <= 16, "heaps are handed on by %s: %zu were made so far", by, stat("heaps"));
    else
        tap_skip("heaps are handed on", "a promise of tlfl");
}

static void *churn_body(void *argument)
{
    void *blocks[64];
    for (int i = 0; i < 64; i++) {
        blocks[i] = malloc((size_t)(i + 1) * 37);
        memset(blocks[i], 1, (size_t)(i + 1) * 37);
    }
    for (int i = 1; i < 64; i++)
        free(blocks[i]);
    free(argument);
    return blocks[0]; /* freed by the next one */
}

static void test_churn(void)
{
    const int count = tap_long() ? 100000 : 20000;
    void *left = NULL;
    size_t early = 0;
    for (int i = 0; i < count; i += 2) {
        pthread_t one = thread_run(churn_body, left), two = thread_run(churn_body, NULL);
        left = thread_result(one);
        free(thread_result(two));
        if (i == count / 10)
            early = resident_now();
    }
    free(left);
    size_t late = resident_now();
    tap_ok(early != 0 && late < early + ((size_t)1 << 20),
           "%d threads come and go: %zu KiB after a tenth, %zu at the end", count, early >> 10, late >> 10);
    heaps_handed_on("short threads");
}

/* ---- destructors of thread-specific data ---- */

enum { KEYS = 40, KEY_FREES = 128 };

static pthread_key_t keys[KEYS];
static atomic_int key_runs, key_wrong;

/* What a destructor is given: how often to come back, and blocks to free, some each time. */
struct key_data {
    pthread_key_t key;
    int rounds;
    char *blocks[KEY_FREES];
};

static void key_destructor(void *value)
{
    struct key_data *data = value;
    key_runs++;
    for (int i = data->rounds; i < KEY_FREES; i += 4) {
        if (!content_good(data->blocks[i], 40, 40, (unsigned)i))
            key_wrong++;
        free(data->blocks[i]);
        data->blocks[i] = NULL;
    }
    char *scratch[30];
    for (unsigned i = 0; i < 30; i++) {
        scratch[i] = malloc(i * 100 + 1);
        content_fill(scratch[i], i * 100 + 1, i);
    }
    for (unsigned i = 0; i < 30; i++) {
        if (!content_good(scratch[i], i * 100 + 1, i * 100 + 1, i))
            key_wrong++;
        free(scratch[i]);
    }
    if (data->rounds-- > 0) {
        pthread_setspecific(data->key, data);
    } else {
        void *large = realloc(malloc(10), 300000);
        if (large == NULL)
            key_wrong++;
        free(large);
        free(data);
    }
}

static struct key_data *key_data_new(pthread_key_t key)
{
    struct key_data *data = malloc(sizeof *data);
    data->key = key;
    data->rounds = 3; /* with the first, all four rounds that glibc runs */
    for (int i = 0; i < KEY_FREES; i++) {
        data->blocks[i] = malloc(40);
        content_fill(data->blocks[i], 40, (unsigned)i);
    }
    return data;
}

static void *key_body(void *argument)
{
    bool mine = argument == NULL;
    for (int i = 0; i < KEYS; i++)
        pthread_setspecific(keys[i], mine ? key_data_new(keys[i]) : ((void **)argument)[i]);
    return NULL;
}

static void test_keys(void)
{
    void *given[KEYS];
    for (int i = 0; i < KEYS; i++) {
        pthread_key_create(&keys[i], key_destructor);
        given[i] = key_data_new(keys[i]);
    }
    for (int round = 0; round < 20; round++)
        thread_result(thread_run(key_body, NULL));
    thread_result(thread_run(key_body, given));
    tap_ok(key_runs == 21 * 4 * KEYS, "destructors that come back run in all rounds (%d calls)", key_runs);
    tap_ok(key_wrong == 0, "they allocate and free, their own and others' blocks, to the last round");
    heaps_handed_on("threads whose destructors allocate last");
}

/* ---- threads that end without a word to the allocator ---- */

enum { SILENT = 2000 };

static pthread_key_t silent_key;

/* The first malloc of its thread, in the last round: no destructor comes after it. */
static void silent_destructor(void *value)
{
    uintptr_t round = (uintptr_t)value;
    if (round < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(silent_key, (void *)(round + 1));
    else
        free(malloc(100));
}

static void *silent_body(void *unused)
{
    pthread_setspecific(silent_key, (void *)1);
    return unused;
}

static void test_silent(void)
{
    for (int i = 0; i < SILENT; i++)
        thread_result(thread_run(silent_body, NULL));
    heaps_handed_on("threads whose first malloc is in the last round of destructors");
}

/* Frees the blocks of the one before, and leaves as many. */
static void *bare_body(void *blocks)
{
    char **block = blocks;
    for (unsigned i = 0; i < KEY_FREES; i++) {
        if (block[i] != NULL && !content_good(block[i], 40 + i, 40 + i, i))
            key_wrong++;
        free(block[i]);
        content_fill(block[i] = malloc(40 + i), 40 + i, i);
    }
    syscall(SYS_exit, 0);
    return NULL;
}

static void test_bare(void)
{
#ifdef __GLIBC__
    static char *blocks[KEY_FREES];
    for (int i = 0; i < SILENT; i++)
        thread_result(thread_run(bare_body, blocks));
    for (int i = 0; i < KEY_FREES; i++)
        free(blocks[i]);
    tap_ok(key_wrong == 0, "blocks of threads that end by the system call alone are kept");
    heaps_handed_on("threads that end by the system call alone");
#else
    (void)bare_body;
    tap_skip("threads that end by the system call alone", "this C library would wait for them for ever");
#endif
}

/* ---- an owner that sleeps while others free ---- */

static char *slept[LEFT];
static pthread_barrier_t sleep_barrier;

static void *sleep_body(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < LEFT; i++)
        slept[i] = malloc(100);
    pthread_barrier_wait(&sleep_barrier);
    pthread_barrier_wait(&sleep_barrier); /* the others free in between */
    bool good = true;
    static char *again[LEFT];
    size_t before = resident_now();
    for (unsigned i = 0; i < LEFT; i++) {
        again[i] = malloc(100);
        content_fill(again[i], 100, i);
    }
    size_t grown = resident_now() - before;
    for (unsigned i = 0; i < LEFT; i++) {
        good &= content_good(again[i], 100, 100, i);
        free(again[i]);
    }
    return (void *)(uintptr_t)(good && (resident_now() < before || grown < (size_t)1 << 20));
}

static void test_sleeping_owner(void)
{
    pthread_barrier_init(&sleep_barrier, NULL, 2);
    pthread_t owner = thread_run(sleep_body, NULL);
    pthread_barrier_wait(&sleep_barrier);
    for (unsigned i = 0; i < LEFT; i++)
        free(slept[i]);
    pthread_barrier_wait(&sleep_barrier);
    bool good = thread_result(owner) != NULL;
    if (allocator_is_tlfl())
        tap_ok(good, "an owner that slept uses again what others freed");
    else
        tap_skip("an owner that slept uses again what others freed", "a promise of tlfl");
}

int main(void)
{
    tap_start(60);
    pthread_key_create(&silent_key, silent_destructor); /* of the first ones, which take no memory */
    test_stress();
    test_free_only();
    test_outlive();
    test_adoption();
    test_churn();
    test_keys();
    test_silent();
    test_bare();
    test_sleeping_owner();
    return tap_done();
}
