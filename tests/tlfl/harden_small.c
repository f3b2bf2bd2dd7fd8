/* White box: small blocks of the variant `hardened`, on top of the plain family: the pattern, seals, order, quarantine.
 *
 * The sources of the variant are part of this file; the rest is built without the flag.
 */
#define TLFL_HARDENED
#include "../../allocators/tlfl/harden_secret.c"
#include "../../allocators/tlfl/harden_small.c"

#include <pthread.h>

#include "aborts.h"
#include "check.h"
#include "heap.h"

static char *new_block(size_t size)
{
    return tlfl__small_new(size, BLOCK_ALIGN);
}

static struct head *check_block(char *block)
{
    return tlfl__small_check(map_find(block), block, "test");
}

static void free_block(char *block)
{
    tlfl__small_free(map_find(block), block, "test");
}

/* The family lends a larger block where a class is new to a thread; not so where it is built for the variant. */
static void enter(void)
{
    secret_enter();
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        void *block = tlfl_test_malloc(class_size(class));
        while (map_find(block)->class != class)
            block = tlfl_test_malloc(class_size(class));
    }
}

/* ---- the pattern, chance ---- */

enum { AREA = 160 };

static bool pattern_good(char *area, size_t from, size_t to)
{
    memset(area, 0, AREA);
    tlfl__pattern_fill(area + from, area + to);
    bool good = pattern_stands(area + from, area + to);
    for (size_t i = 0; i < AREA; i++) {
        char was = area[i];
        bool inside = i >= from && i < to;
        good &= inside ? (was & 0x80) != 0 : was == 0;
        area[i] = (char)(was ^ 1);
        good &= pattern_stands(area + from, area + to) != inside;
        area[i] = was;
    }
    return good;
}

static void test_pattern(void)
{
    static alignas(16) char area[AREA];
    bool good = true;
    for (size_t from = 0; from < 17; from++)
        for (size_t to = size_round(from, sizeof(pair)); to < AREA; to += sizeof(pair))
            good &= pattern_good(area, from, to);
    tap_ok(good, "the pattern fills exactly what it should, and one bit that differs is seen");
    tlfl__pattern_fill(area, area + AREA);
    good = true;
    for (size_t shift = 8; shift <= 64; shift += 8)
        good &= memcmp(area, area + shift, 64) == 0;
    tap_ok(good, "the pattern depends on the address alone");
}

static void test_chance(void)
{
    enum { DRAWS = 8000, BELOW = 8 };
    unsigned counts[BELOW] = {0};
    bool good = true;
    for (int i = 0; i < DRAWS; i++) {
        uint32_t drawn = chance(BELOW);
        good &= drawn < BELOW;
        counts[drawn % BELOW]++;
    }
    for (int i = 0; i < BELOW; i++)
        good &= counts[i] > DRAWS / BELOW / 2 && counts[i] < DRAWS / BELOW * 2;
    tap_ok(good, "random numbers are below their limit, all alike");
}

/* ---- blocks ---- */

static void test_contents(void)
{
    bool good = true;
    for (size_t align = BLOCK_ALIGN; align <= 8192; align *= 2)
        for (size_t size = 1; size <= SMALL_MAX; size = size * 3 / 2 + 1)
            for (int round = 0; round < 3; round++) {
                char *block = tlfl__small_new(size, align);
                good &= aligned_to(block, align) && all_zero(block, size);
                memset(block, 0x5a, size);
                struct head *head = check_block(block);
                good &= head->size == size && head->align == size_log2(align);
                free_block(block);
                good &= pattern_holds(block, block + size_round(size, sizeof(pair)));
            }
    tap_ok(good, "blocks are aligned and zero, and hold the pattern once freed");
}

static void test_resize(void)
{
    char *block = new_block(100);
    const struct span *span = map_find(block);
    struct head *head = check_block(block);
    memset(block, 1, 100);
    bool good = !tlfl__small_resize(span, head, span->size) && check_block(block)->size == 100;
    good &= tlfl__small_resize(span, head, 60) && check_block(block)->size == 60;
    good &= tlfl__small_resize(span, head, 90) && check_block(block)->size == 90 && block[59] == 1;
    good &= all_zero(block + 60, 30);
    free_block(block);
    tap_ok(good, "a block shrinks and grows where it is; what it grows by is zero");
}

static void test_order(void)
{
    enum { COUNT = 64 };
    char *blocks[COUNT];
    int up = 0, down = 0;
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = new_block(48);
        up += i > 0 && blocks[i] > blocks[i - 1];
        down += i > 0 && blocks[i] < blocks[i - 1];
    }
    tap_ok(up > COUNT / 8 && down > COUNT / 8, "blocks come in no order: %d times upwards, %d downwards", up,
           down);
    for (int i = 0; i < COUNT; i++)
        free_block(blocks[i]);
}

/* At least as many frees as the queue is long lie between a free and the next use of the block. */
static void test_quarantine(void)
{
    enum { SIZE = 40, MOST = 100000 };
    bool good = true;
    int least = MOST;
    for (int trial = 0; trial < 5; trial++) {
        char *block = new_block(SIZE), *other = NULL;
        int frees = 0;
        free_block(block);
        while (frees < MOST && other != block) {
            other = new_block(SIZE);
            if (other != block) {
                free_block(other);
                frees++;
            }
        }
        least = frees < least ? frees : least;
        good &= other == block;
    }
    tap_ok(good && least >= SMALL_HELD, "a freed block is used again after %d other frees at least", least);
    tlfl__small_clear();
    tap_ok(!tlfl__small_clear(), "cleared, there is nothing to clear");
}

/* ---- misuse ---- */

static void twice(void)
{
    char *block = new_block(64);
    free_block(block);
    check_block(block);
}

/* Two threads that have both looked at the block. */
static pthread_barrier_t both;

static void *free_body(void *block)
{
    secret_enter();
    uint64_t live;
    struct head *head = head_check(map_find(block), block, "test", &live);
    pthread_barrier_wait(&both);
    head_end(map_find(block), head, live, "test");
    pthread_barrier_wait(&both);
    return NULL;
}

static void twice_at_once(void)
{
    pthread_t thread;
    char *block = new_block(64);
    pthread_barrier_init(&both, NULL, 2);
    if (pthread_create(&thread, NULL, free_body, block) == 0)
        free_body(block);
}

static void inside(void)
{
    check_block(new_block(200) + 48);
}

static void odd(void)
{
    check_block(new_block(200) + 4);
}

static void first_of_span(void)
{
    char *block = new_block(64);
    check_block(map_find(block)->base);
}

static void before(void)
{
    char *block = new_block(64);
    block[-1] ^= 1;
    check_block(block);
}

static void far_before(void)
{
    char *block = tlfl__small_new(64, 256);
    head_start((struct head *)block - 1)[3] ^= 1;
    check_block(block);
}

static void behind(void)
{
    char *block = new_block(61);
    block[61] = 0;
    check_block(block);
}

static void stale(void)
{
    char *block = new_block(64);
    free_block(block);
    block[63] = 0;
    tlfl__small_clear();
}

static void stale_head(void)
{
    char *block = new_block(64);
    free_block(block);
    block[-1] ^= 1;
    tlfl__small_clear();
}

/* A head with its seal, copied to where another block is. */
static void copied_head(void)
{
    char *one = new_block(64), *other = new_block(64);
    memcpy(one - sizeof(struct head), other - sizeof(struct head), sizeof(struct head));
    check_block(one);
}

static void unused(void)
{
    unsigned class = class_of(sizeof(struct head) + 64 + SMALL_CANARY);
    for (;;) {
        new_block(64);
        for (int i = 0; i < SMALL_STOCK; i++) {
            char *waiting = stocks[tlfl__thread_number % SMALL_STOCKS][class][i];
            if (waiting != NULL)
                waiting[20] = 0;
        }
    }
}

static void test_misuse(void)
{
    const struct {
        void (*body)(void);
        const char *why, *name;
    } misuses[] = {
        {twice, WHY_FREE, "a second free"},
        {twice_at_once, WHY_FREE, "two frees at once"},
        {inside, WHY_HEAD, "a pointer into a block"},
        {odd, WHY_INSIDE, "a misaligned pointer"},
        {first_of_span, WHY_HEAD, "the first byte of a span"},
        {before, WHY_HEAD, "a write before a block"},
        {far_before, WHY_BEFORE, "a write far before a block"},
        {behind, WHY_BEHIND, "a zero past a block"},
        {stale, WHY_STALE, "a write after a free"},
        {stale_head, WHY_STALE, "a write before a freed block"},
        {copied_head, WHY_HEAD, "a head from elsewhere"},
        {unused, WHY_UNUSED, "a write to a block that was never handed out"},
    };
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++)
        tap_ok(aborts(misuses[i].body, misuses[i].why), "%s: %s", misuses[i].name, misuses[i].why);
}

/* ---- threads ---- */

enum { THREADS = 4, SHARED = 512, ROUNDS = 40000 };

static char *_Atomic shared[SHARED];
static _Atomic int wrong;

/* Swaps blocks with whoever had the slot; the contents tell whose they were. */
static void *share_body(void *argument)
{
    uint64_t seed = (uintptr_t)argument + 1;
    enter();
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = random_size(&seed, 11);
        char *block = new_block(size);
        wrong += !all_zero(block, size);
        content_fill(block, size, (unsigned)size);
        block = atomic_exchange(&shared[random_next(&seed) % SHARED], block);
        if (block != NULL) {
            size = check_block(block)->size;
            wrong += !content_good(block, size, size, (unsigned)size);
            free_block(block);
        }
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, share_body, (void *)i) != 0)
            _exit(1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SHARED; i++)
        if (shared[i] != NULL)
            free_block(shared[i]);
    tlfl__small_clear();
    const char *invalid = tlfl__heap_is_valid(tlfl__heap);
    tap_ok(wrong == 0 && invalid == NULL, "%d threads free each other's blocks%s%s", THREADS,
           invalid == NULL ? "" : ": ", invalid == NULL ? "" : invalid);
}

int main(void)
{
    tap_start(100);
    enter();
    test_pattern();
    test_chance();
    test_order();
    test_resize();
    test_quarantine();
    test_misuse();
    test_contents();
    test_threads();
    return tap_done();
}
