/* White box: everything at once, with the invariants looked at: threads that are born and end, exchange blocks of every kind,
 * resize them, trim and fork in between. Contents are checked whenever a block changes hands; in the end the books are empty.
 * Also built as each variant, and meant for the sanitizers. */
#include "../conformance/tap.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "api.h"
#include "check.h"
#include "heap.h"
#include "huge.h"
#include "lock.h"
#include "thread.h"

enum {
    THREADS = 4,
    GENERATIONS = 6,
    GENERATIONS_LONG = 100,
    ROUNDS = 60000,
    SLOTS = 64,   /* blocks that a thread keeps */
    TABLE = 256,  /* blocks in nobody's hands */
    CHECK = 500,  /* rounds between two looks at the invariants */
    TRIM = 10000, /* between two trims */
    FORK = 20000, /* between two forks */
    CHILD = 200,  /* rounds of a child */
};

/* A block says itself how it was filled. */
struct label {
    uint32_t size, tag;
};

static void *_Atomic table[TABLE];
static const char *_Atomic wrong;
static pthread_key_t last_key;

static void expect(bool good, const char *what)
{
    if (!good)
        atomic_store(&wrong, what);
}

/* ---- blocks ---- */

static void block_label(void *block, size_t size, unsigned tag)
{
    *(struct label *)block = (struct label){(uint32_t)size, tag};
    content_fill((char *)block + sizeof(struct label), size - sizeof(struct label), tag);
}

/* Checks what is left of a block after a resize to `keep` bytes. */
static void block_check(const void *block, const struct label *label, size_t keep)
{
    keep = keep < label->size ? keep : label->size;
    expect(content_good((const char *)block + sizeof *label, label->size - sizeof *label,
                        keep - sizeof *label, label->tag),
           "contents");
}

/* Small ones mostly; one in 64 large, one in 512 huge. */
static size_t block_size(uint64_t *seed)
{
    uint64_t kind = random_next(seed) % 512;
    unsigned bits = kind == 0 ? 23 : kind < 8 ? 20 : kind < 64 ? 16 : 9;
    return sizeof(struct label) + random_size(seed, bits);
}

static void *block_new(uint64_t *seed)
{
    size_t size = block_size(seed);
    void *block = NULL;
    switch (random_next(seed) % 8) {
    case 0:
        block = tlfl_test_calloc(1, size);
        expect(block == NULL || all_zero(block, size), "calloc: zero");
        break;
    case 1: {
        size_t align = (size_t)16 << random_next(seed) % 14;
        expect(tlfl_test_posix_memalign(&block, align, size) == 0 && aligned_to(block, align), "alignment");
        break;
    }
    default:
        block = tlfl_test_malloc(size);
    }
    if (block == NULL)
        expect(false, "memory");
    else
        block_label(block, size, (unsigned)random_next(seed) & 0xff);
    return block;
}

static void block_free(void *block)
{
    if (block != NULL)
        block_check(block, block, SIZE_MAX);
    tlfl_test_free(block);
}

static void *block_resized(void *block, uint64_t *seed)
{
    struct label label = *(struct label *)block;
    size_t size = block_size(seed);
    void *moved = tlfl_test_realloc(block, size);
    expect(moved != NULL, "realloc: memory");
    if (moved == NULL)
        return block;
    block_check(moved, &label, size);
    block_label(moved, size, label.tag + 1);
    return moved;
}

/* ---- the invariants ---- */

/* Of the caller's heap. Under the lock, since another thread may clear the shelves. Neither the lists of `packed` nor the
 * free blocks of `unchecked` look as check.c wants them. */
static void heap_check(void)
{
#if !defined TLFL_PACKED && !defined TLFL_UNCHECKED
    struct heap *heap = tlfl__heap;
    if (heap_state(heap) != HEAP_LIVE)
        return;
    tlfl__central_enter();
    if (heap_stolen(heap))
        tlfl__heap_collect(heap);
    const char *found = tlfl__heap_is_valid(heap);
    tlfl__central_leave();
    if (found != NULL)
        atomic_store(&wrong, found);
#endif
}

/* ---- threads ---- */

static void round_any(void **slots, uint64_t *seed)
{
    void **slot = &slots[random_next(seed) % SLOTS];
    uint64_t what = random_next(seed) % 8;
    if (*slot == NULL || what < 3) {
        block_free(*slot);
        *slot = block_new(seed);
    } else if (what < 6) {
        *slot = atomic_exchange(&table[random_next(seed) % TABLE], *slot);
    } else if (what == 6) {
        *slot = block_resized(*slot, seed);
    } else {
        block_free(*slot);
        *slot = NULL;
    }
}

/* The child has the heap of its one thread, and blocks of others that it may free. */
static void fork_once(void **slots, uint64_t *seed)
{
    pid_t child = fork();
    if (child == 0) {
        atomic_store(&wrong, NULL);
        for (int i = 0; i < CHILD; i++)
            round_any(slots, seed);
        heap_check();
        tlfl_test_malloc_trim(0);
        heap_check();
        _exit(atomic_load(&wrong) != NULL);
    }
    expect(child > 0 && child_good(child), "fork: the child");
}

static void *body(void *number)
{
    void *slots[SLOTS] = {NULL};
    uint64_t seed = (uintptr_t)number * 0x9e3779b97f4a7c15 + 1;
    for (int round = 1; round <= ROUNDS && atomic_load(&wrong) == NULL; round++) {
        round_any(slots, &seed);
        if (round % CHECK == 0)
            heap_check();
        if (round % TRIM == (int)((uintptr_t)number * 997 % TRIM))
            tlfl_test_malloc_trim(0);
        if (round % FORK == (int)((uintptr_t)number * 1999 % FORK))
            fork_once(slots, &seed);
    }
    for (int i = 0; i < SLOTS; i++) /* half of them outlive the thread */
        block_free(i % 2 == 0 ? slots[i] : atomic_exchange(&table[i], slots[i]));
    pthread_setspecific(last_key, number);
    return NULL;
}

/* ThreadSanitizer takes its own books of a thread away in the last round of destructors. */
#ifdef __SANITIZE_THREAD__
#define LAST_CALLS (PTHREAD_DESTRUCTOR_ITERATIONS - 1)
#else
#define LAST_CALLS PTHREAD_DESTRUCTOR_ITERATIONS
#endif

/* Runs in every round of destructors after the allocator's own, so also when the thread has no heap any more. */
static void last_calls(void *number)
{
    static _Thread_local int calls;
    uint64_t seed = (uintptr_t)number + 1;
    block_free(atomic_exchange(&table[random_next(&seed) % TABLE], block_new(&seed)));
    if (++calls < LAST_CALLS)
        pthread_setspecific(last_key, number);
}

int main(void)
{
    tap_start(200);
    tlfl_test_free(tlfl_test_malloc(1)); /* the allocator's key is the first */
    pthread_key_create(&last_key, last_calls);
    uintptr_t born = 0;
    for (int generation = 0; generation < (tap_long() ? GENERATIONS_LONG : GENERATIONS); generation++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, body, (void *)++born) != 0)
                _exit(1);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    const char *found = atomic_load(&wrong);
    tap_ok(found == NULL, "%d threads, one after another and at once (%s)", (int)born,
           found == NULL ? "all holds" : found);
    for (int i = 0; i < TABLE; i++)
        block_free(atomic_exchange(&table[i], NULL));
    heap_check();
    found = atomic_load(&wrong);
    tap_ok(found == NULL, "what they left behind (%s)", found == NULL ? "all holds" : found);
    tlfl_test_malloc_trim(0);
    tlfl_test_malloc_trim(0); /* `packed` sends some home only then */
    struct pool_books books = tlfl__pool_books();
    tap_ok(tlfl__span_count() == 0, "no span is left: %zu", tlfl__span_count());
    tap_ok(books.mapped == 0 && books.dirty == 0 && books.free == 0, "no memory is left: %zu bytes",
           books.mapped);
    tap_ok(tlfl__huge_bytes() == 0, "no huge block is left: %zu bytes", tlfl__huge_bytes());
    return tap_done();
}
