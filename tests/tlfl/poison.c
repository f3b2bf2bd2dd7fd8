/* White box, built with AddressSanitizer: what is free is poisoned, and what is live is not. */
#include "../conformance/tap.h"

#include "api.h"
#include "heap.h"
#include "huge.h"
#include "large.h"
#include "map.h"
#include "poison.h"

#if POISON_ON

#include "aborts.h"

static bool poisoned(const void *start, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += BLOCK_ALIGN)
        if (!__asan_address_is_poisoned((const char *)start + i))
            return false;
    return true;
}

static bool usable(void *start, size_t bytes)
{
    return __asan_region_is_poisoned(start, bytes) == NULL;
}

/* ---- what is where ---- */

static void test_small(void)
{
    enum { SIZE = 96, COUNT = 500 };
    static char *blocks[COUNT];
    bool good = true;
    for (int i = 0; i < COUNT; i++)
        blocks[i] = tlfl_test_malloc(SIZE);
    struct span *span = map_find(blocks[COUNT - 1]);
    char *end = span->base + (size_t)span->carved * span->size;
    for (int i = 0; i < COUNT; i++)
        good &= usable(blocks[i], SIZE);
    tap_ok(good, "live blocks are not poisoned");
    tap_ok(poisoned(end, span->run.granules * GRANULE_SIZE - (size_t)(end - span->base)),
           "what is not carved is");
    for (int i = 1; i < COUNT; i += 2) {
        tlfl_test_free(blocks[i]);
        good &= poisoned(blocks[i] + sizeof(struct block), SIZE - sizeof(struct block));
        good &= usable(blocks[i], sizeof(struct block)) && usable(blocks[i - 1], SIZE);
    }
    tap_ok(good, "free blocks are, but for mark and link");
    for (int i = 0; i < COUNT; i += 2)
        tlfl_test_free(blocks[i]);
}

static void test_large(void)
{
    const size_t sizes[] = {LARGE_MAX / 4, LARGE_MAX * 2};
    for (int i = 0; i < 2; i++) {
        char *block = tlfl_test_malloc(sizes[i]);
        bool good = usable(block, sizes[i]);
        tlfl_test_free(block);
        good &= map_find(block) == NULL || poisoned(block, sizes[i]);
        char *again = tlfl_test_calloc(1, sizes[i]);
        good &= usable(again, sizes[i]) && all_zero(again, sizes[i]);
        tlfl_test_free(again);
        tap_ok(good, "a block of %zu bytes, and when it is free", sizes[i]);
    }
}

static void test_given_back(void)
{
    char *block = tlfl_test_malloc(1000), *other = tlfl_test_malloc(100000);
    struct span *span = map_find(block);
    tlfl_test_free(block);
    tlfl_test_malloc_trim(0);
    tap_ok(poisoned(block, 1000) && poisoned(span, sizeof *span),
           "granules of the pool and structures in no use");
    tlfl_test_free(other);
    tlfl_test_malloc_trim(0);
    tap_ok(tlfl__pool_books().mapped == 0 && usable(block, 1000),
           "memory that went to the OS is nobody's to poison");
}

/* ---- what a program is told ---- */

static char *volatile dead;

static void read_small(void)
{
    dead = tlfl_test_malloc(100);
    tlfl_test_free(dead);
    (void)*(volatile char *)(dead + 50);
}

static void write_large(void)
{
    dead = tlfl_test_malloc(100000);
    tlfl_test_free(dead);
    dead[70000] = 1;
}

static void read_behind(void)
{
    dead = tlfl_test_malloc(32000);
    (void)*(volatile char *)(dead + 32768 + 100); /* the next block, which nobody has */
}

static void read_structure(void)
{
    char *block = tlfl_test_malloc(1000);
    struct span *span = map_find(block);
    tlfl_test_free(block);
    tlfl_test_malloc_trim(0);
    dead = (char *)&span->size;
    (void)*(volatile char *)dead;
}

/* Whether the sanitizer ends a process that runs `body`, for use of poisoned memory. */
static bool is_told(void (*body)(void))
{
    static char text[ABORTS_TEXT];
    int status = ended(body, text);
    return status != 0 && strstr(text, "use-after-poison") != NULL;
}

int main(void)
{
    tap_start(100);
    test_small();
    test_large();
    test_given_back();
    tap_ok(is_told(read_small), "a read of a small block after its free is reported");
    tap_ok(is_told(write_large), "a write to a large block after its free is reported");
    tap_ok(is_told(read_behind), "a read of a block that nobody has is reported");
    tap_ok(is_told(read_structure), "a read of a structure in no use is reported");
    return tap_done();
}

#else

int main(void)
{
    tap_skip("what is free is poisoned", "this build has no AddressSanitizer; the sanitized one runs it");
    return tap_done();
}

#endif
