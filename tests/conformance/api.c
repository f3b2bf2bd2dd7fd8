/* The malloc family by its manual pages: NULL, zero, overflow, errno, bad alignments. */
#include "tap.h"

#include <malloc.h>

/* Sizes the compiler must not see through. */
static volatile size_t size_max = SIZE_MAX, past_max = (size_t)PTRDIFF_MAX + 1, zero = 0,
                       half_bits = (size_t)1 << 32;

static bool refused(void *block, int error)
{
    bool good = block == NULL && errno == error;
    free(block);
    return good;
}

static void test_zero(void)
{
    void *a = malloc(zero), *b = malloc(zero), *c = calloc(zero, 8), *d = calloc(8, zero);
    tap_ok(a && b && c && d && a != b && a != c && b != c && c != d, "size 0 gives unique pointers");
    free(a);
    free(b);
    free(c);
    free(d);
    free(NULL);
    void *e = realloc(NULL, 100);
    tap_ok(e != NULL && malloc_usable_size(e) >= 100, "realloc(NULL, n) is malloc");
    void *f = realloc(e, zero);
    tap_ok(f == NULL || malloc_usable_size(f) < 100, "realloc(p, 0) lets go of the block");
    free(f);
    tap_ok(malloc_usable_size(NULL) == 0, "malloc_usable_size(NULL) is 0");
}

static void test_too_large(void)
{
    const size_t sizes[] = {size_max,     size_max - 15,   size_max - 4095,
                            past_max,     past_max + 4096, size_max / 2 + 17,
                            past_max - 1, past_max - 17,   past_max - 65536};
    bool good = true, good_memalign = true, good_posix = true, good_realloc = true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        errno = 0;
        good &= refused(malloc(sizes[i]), ENOMEM);
        errno = 0;
        good &= refused(calloc(1, sizes[i]), ENOMEM);
        errno = 0;
        good_memalign &= refused(memalign(64, sizes[i]), ENOMEM);
        errno = 0;
        good_memalign &= refused(aligned_alloc(4096, sizes[i]), ENOMEM);
        void *untouched = &good;
        errno = 77;
        good_posix &= posix_memalign(&untouched, 64, sizes[i]) == ENOMEM && untouched == &good;
        good_posix &= posix_memalign(&untouched, (size_t)1 << 21, sizes[i]) == ENOMEM;
        char *kept = malloc(200);
        content_fill(kept, 200, 3);
        errno = 0;
        void *moved = realloc(kept, sizes[i]);
        good_realloc &= moved == NULL && errno == ENOMEM && content_good(kept, 200, 200, 3);
        free(kept);
    }
    tap_ok(good, "malloc and calloc refuse sizes near and above PTRDIFF_MAX with ENOMEM");
    tap_ok(good_memalign, "memalign and aligned_alloc refuse them too");
    tap_ok(good_posix, "posix_memalign returns ENOMEM for them and writes nothing");
    tap_ok(good_realloc, "realloc refuses them and leaves the block as it was");
}

static void test_overflow(void)
{
    errno = 0;
    bool good = refused(calloc(size_max, 2), ENOMEM);
    errno = 0;
    good &= refused(calloc(half_bits * 2, half_bits), ENOMEM);
    errno = 0;
    good &= refused(calloc(past_max, 4), ENOMEM);
    tap_ok(good, "calloc refuses a product that overflows");
    char *kept = malloc(64);
    content_fill(kept, 64, 9);
    errno = 0;
    void *moved = reallocarray(kept, half_bits * 2, half_bits);
    tap_ok(moved == NULL && errno == ENOMEM && content_good(kept, 64, 64, 9),
           "reallocarray refuses a product that overflows and leaves the block");
    if (moved == NULL)
        moved = kept;
    kept = reallocarray(moved, 10, 100);
    tap_ok(kept != NULL && malloc_usable_size(kept) >= 1000 && content_good(kept, 64, 63, 9),
           "reallocarray grows a block");
    free(kept);
    if (!allocator_has("pvalloc")) {
        tap_skip("pvalloc", "the allocator has none");
        return;
    }
    errno = 0;
    good = refused(pvalloc(size_max), ENOMEM);
    errno = 0;
    good &= refused(pvalloc(size_max - 4094), ENOMEM);
    tap_ok(good, "pvalloc refuses a size that wraps when rounded");
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *one = pvalloc(1), *more = pvalloc(page + 1), *v = valloc(10);
    tap_ok(one && more && v && aligned_to(one, page) && aligned_to(more, page) && aligned_to(v, page) &&
               malloc_usable_size(one) >= page && malloc_usable_size(more) >= 2 * page,
           "pvalloc and valloc give pages, pvalloc whole ones");
    free(one);
    free(more);
    free(v);
}

static void test_alignment_checks(void)
{
    const size_t bad[] = {zero, 1, 2, 3, 4, 7, 12, 24, 48, 100, 4095};
    bool good = true;
    int mark = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *block = &mark;
        errno = 77;
        good &= posix_memalign(&block, bad[i], 8) == EINVAL && block == &mark && errno == 77;
    }
    tap_ok(good, "posix_memalign refuses bad alignments with EINVAL, errno and pointer untouched");
    good = true;
    for (size_t i = 4; i < sizeof bad / sizeof *bad; i++) {
        errno = 0;
        void *block = aligned_alloc(bad[i], 64);
        size_t power = 1;
        while (power < bad[i])
            power *= 2;
        good &= block == NULL ? errno == EINVAL : aligned_to(block, bad[i] == 4 ? 4 : power);
        free(block);
    }
    tap_ok(good, "aligned_alloc refuses a bad alignment or rounds it up");
    void *block = NULL;
    good = true;
    for (size_t align = 1; align <= 8; align *= 2) {
        block = memalign(align, 24);
        good &= block != NULL && aligned_to(block, 16);
        free(block);
    }
    tap_ok(good, "memalign takes alignments below that of a pointer");
    errno = 77;
    good = posix_memalign(&block, 64, zero) == 0 && errno == 77;
    void *other = NULL;
    good &= posix_memalign(&other, 64, zero) == 0 && block != other;
    tap_ok(good, "posix_memalign of size 0 succeeds");
    free(block);
    free(other);
}

static void test_errno(void)
{
    bool good = true;
    const size_t sizes[] = {1, 100, 5000, 70000, 300000, 10u << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *blocks[50];
        for (int k = 0; k < 50; k++)
            blocks[k] = malloc(sizes[i]);
        errno = 1234;
        for (int k = 0; k < 50; k++)
            free(blocks[k]);
        good &= errno == 1234;
    }
    errno = 1234;
    free(NULL);
    tap_ok(good && errno == 1234, "free leaves errno alone");
}

static void test_c23(void)
{
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    if (!allocator_has("free_sized")) {
        tap_skip("free_sized", "the allocator has none");
        return;
    }
    void *block = malloc(40), *again = NULL;
    bool back = false;
    sized(block, 40);
    void *held[4096];
    for (int i = 0; i < 4096; i++) {
        held[i] = malloc(40);
        back |= held[i] == block;
    }
    for (int i = 0; i < 4096; i++)
        free(held[i]);
    tap_ok(again == NULL && back, "free_sized frees");
}

int main(void)
{
    tap_start(60);
    test_zero();
    test_too_large();
    test_overflow();
    test_alignment_checks();
    test_errno();
    test_c23();
    return tap_done();
}
