/* The malloc family by its manual pages: NULL, zero, overflow, errno, bad alignments. */
#include "tap.h"

#include <malloc.h>

/* Sizes the compiler must not see through. */
static volatile size_t size_max = SIZE_MAX, past_max = (size_t)PTRDIFF_MAX + 1, zero = 0,
                       half_bits = (size_t)1 << sizeof(size_t) * 4;

/* A size that is legal and that no 64-bit address space has room for; a 32-bit one may. */
#define LEGAL(size) (sizeof(size_t) > 4 ? (size) : SIZE_MAX)

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
    const size_t sizes[] = {size_max,
                            size_max - 15,
                            size_max - 4095,
                            past_max,
                            past_max + 4096,
                            size_max / 2 + 17,
                            LEGAL(past_max - 1),
                            LEGAL(past_max - 17),
                            LEGAL(past_max - 65536)};
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
    const size_t bad[] = {zero, 1, 2, 3, sizeof(void *) / 2, 7, 12, 24, 48, 100, 4095};
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

static void *get(size_t align, size_t size)
{
    return align == 0 ? malloc(size) : aligned_alloc(align, size);
}

/* Whether a block of this size and class comes back among many; out of the quarantine of tlfl-hardened it does when many
 * others have been freed. */
static bool comes_back(const void *block, size_t align, size_t size)
{
    enum { TRIES = 4096, PASSES = 20000 };
    static void *held[TRIES];
    int count = 0;
    bool back = false;
    for (int i = 0; i < PASSES && !back && allocator_is_hardened(); i++) {
        void *other = get(align, size);
        back = other == block;
        free(other);
    }
    while (count < TRIES && !back) {
        held[count] = get(align, size);
        back = held[count++] == block;
    }
    while (count > 0)
        free(held[--count]);
    return back;
}

/* C23. The sizes are those of the request, also where the alignment made the block larger: 8 bytes at 16 KiB. */
static void test_sized(void)
{
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    void (*aligned)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    if (!allocator_has("free_sized") || !allocator_has("free_aligned_sized")) {
        tap_skip("free_sized, free_aligned_sized", "the allocator has none");
        return;
    }
    sized(NULL, 0);
    sized(NULL, 100);
    aligned(NULL, 64, 100);
    errno = 1234;
    void *block = malloc(40);
    sized(block, 40);
    tap_promise(comes_back(block, 0, 40) && errno == 1234, "free_sized frees");
    block = aligned_alloc(16384, 8);
    aligned(block, 16384, 8);
    tap_promise(comes_back(block, 16384, 8), "free_aligned_sized frees 8 bytes at 16 KiB");
    bool good = true;
    for (size_t align = 16; align <= (size_t)1 << 21; align *= 2)
        for (size_t size = 0; size < 3000000; size = size * 3 + 7) {
            char *one = aligned_alloc(align, size), *two = malloc(size), *zeroed = calloc(1, size);
            content_fill(one, size, 1);
            content_fill(two, size, 2);
            good &= all_zero(zeroed, size) && content_good(one, size, size, 1) &&
                    content_good(two, size, size, 2);
            aligned(one, align, size);
            sized(two, size);
            sized(zeroed, size);
        }
    tap_ok(good, "sized frees of the grid of size by alignment");
}

/* The family as glibc 2.36 and C23 have it. cfree, malloc_get_state and the hooks are gone there too. */
static const char *const family[] = {"malloc",
                                     "free",
                                     "calloc",
                                     "realloc",
                                     "reallocarray",
                                     "aligned_alloc",
                                     "memalign",
                                     "posix_memalign",
                                     "valloc",
                                     "pvalloc",
                                     "malloc_usable_size",
                                     "malloc_trim",
                                     "mallopt",
                                     "mallinfo",
                                     "mallinfo2",
                                     "malloc_stats",
                                     "malloc_info",
                                     "free_sized",
                                     "free_aligned_sized"};

/* A call that the C library serves for another allocator's blocks would read what is not there. */
static void test_family(void)
{
    char missing[400] = "";
    for (size_t i = 0; i < sizeof family / sizeof *family; i++)
        if (!allocator_has(family[i]))
            strcat(strcat(missing, " "), family[i]);
    tap_promise(missing[0] == '\0', "the allocator serves the whole family itself%s%s",
                missing[0] == '\0' ? "" : ", but not", missing);
}

/* What the pages say of arguments at the border, call by call. */
static void test_matrix(void)
{
    void *a = reallocarray(NULL, 3, 5), *b = reallocarray(NULL, zero, 8), *c = realloc(NULL, zero);
    tap_ok(a && malloc_usable_size(a) >= 15 && b && c && b != c,
           "reallocarray and realloc of NULL are malloc");
    a = reallocarray(a, 0, 8);
    tap_ok(a == NULL || malloc_usable_size(a) < 4096, "reallocarray(p, 0, n) lets go of the block");
    free(a);
    free(b);
    free(c);
    a = calloc(size_max, zero);
    b = calloc(zero, size_max);
    tap_ok(a != NULL && b != NULL && a != b, "calloc of nothing, however large its parts");
    free(a);
    free(b);
    a = valloc(zero);
    b = memalign(4096, zero);
    c = aligned_alloc(64, zero);
    tap_ok(a && b && c && a != b && aligned_to(a, 4096) && aligned_to(b, 4096) && aligned_to(c, 64),
           "valloc, memalign and aligned_alloc of size 0 give unique aligned pointers");
    free(a);
    free(b);
    free(c);
    bool good = true;
    for (size_t size = 0; size < 70000; size += 1 + size / 3) {
        char *block = malloc(size);
        size_t usable = malloc_usable_size(block);
        content_fill(block, usable, 4);
        char *same = realloc(block, usable);
        good &= same == block && malloc_usable_size(same) >= usable && content_good(same, usable, usable, 4);
        free(same);
    }
    tap_promise(good, "realloc to the usable size leaves the block where it is");
}

int main(void)
{
    tap_start(60);
    test_zero();
    test_too_large();
    test_overflow();
    test_alignment_checks();
    test_errno();
    test_sized();
    test_matrix();
    test_family();
    return tap_done();
}
