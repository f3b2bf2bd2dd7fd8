/* White box: large blocks of the variant `hardened`, on top of the plain family: guards, what a free leaves, limits.
 *
 * The sources of the variant are part of this file; the rest is built without the flag.
 */
#define TLFL_HARDENED
#include "../../allocators/tlfl/harden_large.c"
#include "../../allocators/tlfl/harden_secret.c"

#include <pthread.h>

#include "aborts.h"
#include "tlfl.h"

#define MIB ((size_t)1 << 20)

static size_t page;

static char *new_block(size_t size)
{
    return tlfl__guarded_new(size, BLOCK_ALIGN, 0);
}

static struct guarded *check_block(char *block)
{
    return tlfl__guarded_check(map_find(block), block, "test");
}

static void free_block(char *block)
{
    tlfl__guarded_free(map_find(block), block, "test");
}

/* Whether a byte can be read: the system looks, so that nothing faults. */
static bool readable(const char *at)
{
    static int ends[2];
    char byte;
    if (ends[1] == 0 && pipe(ends) != 0)
        _exit(1);
    return write(ends[1], at, 1) == 1 && read(ends[0], &byte, 1) == 1;
}

static bool block_good(char *block, size_t size, size_t align, size_t spare)
{
    size_t slack = align <= page ? align : page;
    bool good = block != NULL && aligned_to(block, align);
    if (!good)
        return false;
    struct guarded *guarded = check_block(block);
    good &= guarded->guards && guarded->size == size && guarded->align == align;
    good &= all_zero(block, size < MIB ? size : MIB) && readable(block + size - 1);
    good &= !readable(guarded->end) && !readable((char *)guarded - 1) && readable((char *)guarded);
    good &= (size_t)(guarded->end - block) < size + spare + slack;
    if (align <= GUARDED_ALIGN_MAX)
        good &= !readable(guarded->first - 1) && (size_t)(block - guarded->first) < page;
    return good;
}

static void test_layout(void)
{
    const size_t sizes[] = {1, 40000, 40960, 65536, 100001, 1000000, 5000000, 70000000};
    bool good = true, gone = true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t align = BLOCK_ALIGN; align <= 4 * MIB; align *= 4)
            for (size_t spare = 0; spare <= sizes[i] / 8; spare += sizes[i] / 8 + 1) {
                char *block = tlfl__guarded_new(sizes[i], align, spare);
                good &= block_good(block, sizes[i], align, spare);
                memset(block, 1, sizes[i] < MIB ? sizes[i] : MIB);
                free_block(block);
                gone &= sizes[i] > GUARDED_HELD_BYTES || !readable(block);
            }
    tap_ok(good, "blocks are zero and aligned, end at a guard, and have one in front");
    tap_ok(gone, "after a free nothing of a block can be read");
}

/* Spans when all that is held has been given back. */
static size_t spans_at_rest(void)
{
    tlfl__guarded_clear();
    tlfl_test_malloc_trim(0);
    return tlfl_stat("spans");
}

/* How many spans are held at a time is chance, and what the heap keeps besides; but no round leaves one behind. */
static void test_again(void)
{
    enum { ROUNDS = 1000, MOST = 200 };
    bool good = true;
    size_t mappings = mapping_count(), spans = spans_at_rest();
    for (int round = 0; round < ROUNDS; round++) {
        char *block = new_block(100000);
        good &= block_good(block, 100000, BLOCK_ALIGN, 0);
        memset(block, 1, 100000);
        free_block(block);
    }
    size_t mappings_held = mapping_count(), spans_held = tlfl_stat("spans"), spans_left = spans_at_rest();
    tap_ok(good, "blocks that are used again are as new ones");
    tap_ok(mappings_held < mappings + MOST && spans_held < spans + MOST,
           "%d rounds: %zu mappings and %zu spans more are held than %zu and %zu", ROUNDS,
           mappings_held - mappings, spans_held - spans, mappings, spans);
    tap_ok(spans_left <= spans && mapping_count() <= mappings + 10, "given back: %zu spans, %zu mappings", spans_left,
           mapping_count());
}

static void test_resize(void)
{
    char *block = tlfl__guarded_new(100000, BLOCK_ALIGN, 10000);
    struct guarded *guarded = check_block(block);
    memset(block, 1, 100000);
    bool good = tlfl__guarded_resize(guarded, 108000) && check_block(block)->size == 108000;
    good &= block[99999] == 1 && all_zero(block + 100000, 8000);
    good &= tlfl__guarded_resize(guarded, 100001) && check_block(block)->size == 100001;
    good &= !tlfl__guarded_resize(guarded, 200000) && !tlfl__guarded_resize(guarded, 50000);
    good &= check_block(block)->size == 100001;
    free_block(block);
    tap_ok(good, "a block grows into its spare room, and shrinks by a little");
}

/* As after a realloc for which there was no memory. */
static void test_shrink(void)
{
    const size_t sizes[] = {50000, 20 * page - 100, 1, 99000, 100000};
    bool good = true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *block = new_block(100000);
        struct guarded *guarded = check_block(block);
        content_fill(block, 100000, 7);
        tlfl__guarded_shrink(guarded, sizes[i]);
        good &= check_block(block)->size == sizes[i] && content_good(block, 100000, sizes[i], 7);
        good &= readable(block + sizes[i] - 1) && !readable(guarded->end) && guarded->end < block + sizes[i] + page;
        free_block(block);
        good &= !readable(block);
    }
    tap_ok(good, "a block that cannot move shrinks by much: what lies behind is part of the guard");
}

static void test_held(void)
{
    bool good = true;
    for (int i = 0; i < 40; i++) {
        free_block(new_block(7 * MIB));
        good &= held.bytes <= GUARDED_HELD_BYTES;
    }
    tap_ok(good, "freed blocks are held up to %zu MiB", GUARDED_HELD_BYTES / MIB);
    tlfl__guarded_clear();
    tap_ok(held.bytes == 0 && guards == 0 && !tlfl__guarded_clear(), "cleared, there is nothing to clear");
}

/* More blocks than have guards. */
static void test_many(void)
{
    enum { MANY = GUARDED_MAX + 500 };
    static char *blocks[MANY];
    size_t size = 10 * page, before = mapping_count(), guarded = 0;
    bool good = true;
    for (int i = 0; i < MANY; i++) {
        blocks[i] = new_block(size);
        content_fill(blocks[i], size, (unsigned)i);
        guarded += check_block(blocks[i])->guards;
    }
    size_t mappings = mapping_count() - before;
    for (int i = 0; i < MANY; i++) {
        good &= content_good(blocks[i], size, size, (unsigned)i);
        free_block(blocks[i]);
    }
    tap_ok(good && guarded == GUARDED_MAX && mappings <= 4 * GUARDED_MAX + 10,
           "%d blocks: %zu have guards, %zu mappings", MANY, guarded, mappings);
    tlfl__guarded_clear();
    tap_ok(guards == 0 && mapping_count() < before + 100, "all of them go back");
}

/* ---- misuse ---- */

static void twice(void)
{
    char *block = new_block(100000);
    free_block(block);
    free_block(block);
}

static pthread_barrier_t both;

static void *free_body(void *block)
{
    struct guarded *guarded = check_block(block);
    pthread_barrier_wait(&both);
    guarded_end(guarded, "test");
    pthread_barrier_wait(&both);
    return NULL;
}

static void twice_at_once(void)
{
    pthread_t thread;
    char *block = new_block(100000);
    pthread_barrier_init(&both, NULL, 2);
    if (pthread_create(&thread, NULL, free_body, block) == 0)
        free_body(block);
}

static void inside(void)
{
    check_block(new_block(100000) + 16);
}

static void before(void)
{
    char *block = new_block(100000);
    block[-1] ^= 1;
    check_block(block);
}

static void behind(void)
{
    char *block = new_block(100001);
    block[100001] = 0;
    check_block(block);
}

static void test_misuse(void)
{
    tap_ok(aborts(twice, WHY_FREE), "a second free: " WHY_FREE);
    tap_ok(aborts(twice_at_once, WHY_FREE), "two frees at once: " WHY_FREE);
    tap_ok(aborts(inside, WHY_INSIDE), "a pointer into a block: " WHY_INSIDE);
    tap_ok(aborts(before, WHY_BEFORE), "a write before a block: " WHY_BEFORE);
    tap_ok(aborts(behind, WHY_BEHIND), "a zero past a block: " WHY_BEHIND);
}

int main(void)
{
    tap_start(100);
    page = tlfl__os_page();
    secret_enter();
    test_layout();
    test_again();
    test_resize();
    test_shrink();
    test_held();
    test_misuse();
    test_many();
    return tap_done();
}
