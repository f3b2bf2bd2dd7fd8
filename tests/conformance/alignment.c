/* Alignment: that of any type for malloc, and the grid of size by alignment for the rest. */
#include "tap.h"

#include <malloc.h>

#define TOP_BITS 22 /* the grid: alignments of 8 bytes to 4 MiB */

static const size_t sizes[] = {0,      1,      7,       8,       15,      16,     17,    31,    33,
                               48,     63,     65,      100,     127,     129,    200,   255,   257,
                               500,    1000,   1024,    1025,    2000,    4095,   4096,  4097,  8191,
                               8193,   10000,  16384,   20000,   32769,   65535,  65536, 65537, 100000,
                               131073, 262145, 1048577, 2097153, 4194303, 4194305};
#define SIZES (sizeof sizes / sizeof *sizes)

/* C asks no more of a block than its own size allows: 8 for one of 8 to 15 bytes. tlfl promises 16
 * throughout. */
static size_t align_of(size_t size)
{
    return size >= 16 || allocator_is_tlfl() ? 16 : 8;
}

static void test_malloc(void)
{
    bool good = true;
    for (size_t size = 0; size < 4200; size++) {
        void *a = malloc(size), *b = calloc(1, size), *c = realloc(NULL, size);
        size_t align = size < 16 ? align_of(size) : 16;
        good &= aligned_to(a, align) && aligned_to(b, align) && aligned_to(c, align);
        good &= a != b && b != c && malloc_usable_size(a) >= size;
        free(a);
        free(b);
        free(c);
    }
    tap_ok(good, "malloc, calloc, realloc: aligned for any type, sizes 0 to 4199");
    good = true;
    for (size_t i = 0; i < SIZES; i++) {
        void *a = malloc(sizes[i]);
        good &= a != NULL && aligned_to(a, align_of(sizes[i])) && malloc_usable_size(a) >= sizes[i];
        free(a);
    }
    tap_ok(good, "malloc: aligned for any type, sizes to 4 MiB");
}

/* All sizes at one alignment, live at the same time, full of their own contents. */
static bool test_row(size_t align)
{
    bool good = true;
    char *blocks[SIZES][2];
    for (size_t i = 0; i < SIZES; i++) {
        void *block = NULL;
        good &= posix_memalign(&block, align < 8 ? 8 : align, sizes[i]) == 0;
        blocks[i][0] = block;
        blocks[i][1] = aligned_alloc(align, sizes[i]);
        for (int k = 0; k < 2; k++) {
            if (blocks[i][k] == NULL || !aligned_to(blocks[i][k], align) ||
                malloc_usable_size(blocks[i][k]) < sizes[i])
                return false;
            content_fill(blocks[i][k], sizes[i], (unsigned)(i * 2) + (unsigned)k);
        }
    }
    for (size_t i = 0; i < SIZES; i++)
        for (int k = 0; k < 2; k++) {
            good &= content_good(blocks[i][k], sizes[i], sizes[i], (unsigned)(i * 2) + (unsigned)k);
            free(blocks[i][k]);
        }
    return good;
}

static void test_beyond(void)
{
    bool good = true;
    for (unsigned bits = TOP_BITS + 1; bits <= 27; bits++) {
        void *small = NULL, *large = NULL;
        good &= posix_memalign(&small, (size_t)1 << bits, 100) == 0;
        good &= posix_memalign(&large, (size_t)1 << bits, 5000000) == 0;
        if (small == NULL || large == NULL) {
            good = false;
            break;
        }
        good &= aligned_to(small, (size_t)1 << bits) && aligned_to(large, (size_t)1 << bits);
        content_fill(small, 100, bits);
        content_fill(large, 5000000, bits);
        good &= content_good(small, 100, 100, bits) && content_good(large, 5000000, 5000000, bits);
        free(small);
        free(large);
    }
    tap_ok(good, "alignments of 8 MiB to 128 MiB");
}

/* Up to 1 GiB, where there is room for it; above, and for sizes that do not fit beside the alignment, refused or right. */
static void test_far_beyond(void)
{
    bool given = true, right = true, refused = true;
    for (unsigned bits = 28; bits < sizeof(size_t) * 8; bits++) {
        size_t align = (size_t)1 << bits;
        for (int k = 0; k < 3; k++) {
            size_t size = k == 0 ? 1 : k == 1 ? 100000 : 5000000;
            errno = 0;
            char *block = aligned_alloc(align, size);
            if (block == NULL) {
                right &= errno == ENOMEM || errno == EINVAL;
                given &= sizeof(size_t) < 8 || bits > 30;
            } else {
                right &= aligned_to(block, align) && malloc_usable_size(block) >= size;
                block[0] = block[size - 1] = 1;
            }
            free(block);
        }
        errno = 0;
        void *block = memalign(align, (size_t)PTRDIFF_MAX - align / 2);
        refused &= block == NULL && errno == ENOMEM;
        free(block);
        block = &block;
        refused &= posix_memalign(&block, align, (size_t)PTRDIFF_MAX - 100) == ENOMEM;
    }
    tap_ok(given && right, "alignments of 256 MiB to 1 GiB; beyond, an aligned block or an error");
    tap_promise(refused, "alignment and size that do not fit together: ENOMEM");
}

/* Small blocks at large alignments and huge blocks with no alignment in particular, side by side: none overlaps, each is
 * found again. In a child, since an allocator that confuses them ends the process. */
static void test_beside_huge(void)
{
    enum { PAIRS = 64, ROUNDS = 30 };
    static char *small[PAIRS], *huge[PAIRS];
    pid_t child = fork();
    if (child == 0) {
        uint64_t seed = 3;
        bool good = true;
        for (int round = 0; round < ROUNDS && good; round++) {
            for (unsigned i = 0; i < PAIRS; i++) {
                size_t size = ((size_t)4 << 20) + 4096 * (1 + random_next(&seed) % 64);
                small[i] = aligned_alloc((size_t)1 << (17 + i % 4), 100);
                huge[i] = malloc(size);
                good &= malloc_usable_size(huge[i]) >= size;
                content_fill(small[i], 100, i);
                huge[i][0] = huge[i][size - 1] = (char)i;
            }
            for (unsigned i = 0; i < PAIRS; i++) {
                good &= malloc_usable_size(small[i]) >= 100 && malloc_usable_size(huge[i]) > (size_t)4 << 20;
                good &= content_good(small[i], 100, 100, i) && huge[i][0] == (char)i;
                free(small[i]);
            }
            for (unsigned i = 0; i < PAIRS; i++)
                free(huge[(i * 7 + 3) % PAIRS]);
        }
        _exit(!good);
    }
    tap_ok(child > 0 && child_good(child), "100 bytes at 128 KiB to 1 MiB beside huge blocks");
}

/* 8 bytes at 16 KiB, many of them: over-aligned blocks must not overlap, nor plain ones theirs. */
static void test_many(void)
{
    enum { MANY = 300 };
    static char *wide[MANY], *plain[MANY];
    bool good = true;
    for (unsigned i = 0; i < MANY; i++) {
        wide[i] = aligned_alloc(16384, 8);
        plain[i] = malloc(8 + i);
        if (wide[i] == NULL || plain[i] == NULL || !aligned_to(wide[i], 16384)) {
            good = false;
            break;
        }
        content_fill(wide[i], 8, i);
        content_fill(plain[i], 8 + i, i);
    }
    for (unsigned i = 0; good && i < MANY; i++)
        good &= content_good(wide[i], 8, 8, i) && content_good(plain[i], 8 + i, 8 + i, i);
    for (unsigned i = 0; i < MANY; i++) {
        free(wide[i]);
        free(plain[i]);
    }
    tap_ok(good, "300 blocks of 8 bytes at 16 KiB");
}

static void test_realloc(void)
{
    bool good = true;
    for (unsigned bits = 4; bits <= TOP_BITS; bits += 3) {
        char *block = aligned_alloc((size_t)1 << bits, 1000);
        content_fill(block, 1000, bits);
        block = realloc(block, 70000);
        good &= block != NULL && content_good(block, 1000, 999, bits);
        block = realloc(block, 6000000);
        good &= block != NULL && content_good(block, 1000, 999, bits);
        block = realloc(block, 20);
        good &= block != NULL && content_good(block, 1000, 20, bits);
        free(block);
    }
    tap_ok(good, "realloc of aligned blocks keeps the contents");
}

int main(void)
{
    tap_start(60);
    test_malloc();
    for (unsigned bits = 3; bits <= TOP_BITS; bits++)
        tap_ok(test_row((size_t)1 << bits), "alignment %zu, sizes 0 to 4 MiB", (size_t)1 << bits);
    test_beyond();
    test_far_beyond();
    test_beside_huge();
    test_many();
    test_realloc();
    return tap_done();
}
