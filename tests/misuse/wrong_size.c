/* wrong_size.c - calls with a size that is not the block's, sizes and alignments that cannot be, and pointers that
 * realloc and malloc_usable_size must not take. Missed where they are accepted; of a wrong size at a free, where a
 * later malloc hands out what is in use. */
#include <dlfcn.h>
#include <sys/mman.h>

#include "driver/misuse.h"

static char global_area[4096] __attribute__((aligned(64)));

/* ---- frees that say a size ---- */

/* One block of a row of `size` is taken out; after its free, blocks of the size that was told are allocated too. */
static char *taken(const struct misuse *m)
{
    row_make(m->size);
    char *block = row[row_count / 2];
    row[row_count / 2] = NULL;
    return block;
}

static enum end told_end(const struct misuse *m)
{
    return aftermath(m->size) || aftermath(m->length) || row_changed(-1) ? END_MISSED : END_HARMLESS;
}

static enum end free_sized_wrong(const struct misuse *m)
{
    void (*free_sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    if (free_sized == NULL)
        return END_ABSENT;
    char *block = taken(m);
    if (m->at != 0) {
        row[row_count / 2] = block; /* still in use */
        free_sized(block + m->at, m->length);
    } else {
        free_sized(block, m->length);
    }
    return told_end(m);
}

/* Aligned to 64; told are alignment `at` and size `length`. */
static enum end free_aligned_wrong(const struct misuse *m)
{
    void (*free_aligned_sized)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    if (free_aligned_sized == NULL)
        return END_ABSENT;
    free_aligned_sized(do_aligned(64, m->size), (size_t)m->at, m->length);
    return told_end(m);
}

/* The allocator's operator delete(void *, size_t), or the C++ library's, which calls free. */
static enum end delete_wrong(const struct misuse *m)
{
    const char *name = sizeof(size_t) == sizeof(unsigned long) ? "_ZdlPvm" : "_ZdlPvj";
    dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
    void (*sized_delete)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, name);
    if (sized_delete == NULL)
        return END_ABSENT;
    sized_delete(taken(m), m->length);
    return told_end(m);
}

/* ---- malloc_usable_size ---- */

static enum end usable_end(void *pointer)
{
    return do_usable(pointer) == 0 ? END_PREVENTED : END_MISSED;
}

static enum end usable_stack(const struct misuse *m)
{
    char area[4096] __attribute__((aligned(64)));
    do_memset(area, 0x33, sizeof area);
    return usable_end(area + m->at);
}

static enum end usable_address(const struct misuse *m)
{
    return usable_end((void *)(uintptr_t)m->at);
}

static enum end usable_inside(const struct misuse *m)
{
    row_make(m->size);
    return usable_end(row[row_count / 2] + m->at);
}

static enum end usable_freed(const struct misuse *m)
{
    char *block = taken(m);
    do_free(block);
    return usable_end(block);
}

/* ---- realloc ---- */

static enum end realloc_end(void *pointer, size_t size)
{
    return do_realloc(pointer, size) == NULL ? END_PREVENTED : END_MISSED;
}

static enum end realloc_stack(const struct misuse *m)
{
    char area[4096] __attribute__((aligned(64)));
    do_memset(area, 0x33, sizeof area);
    return realloc_end(area + m->at, m->length);
}

static enum end realloc_global(const struct misuse *m)
{
    return realloc_end(global_area + m->at, m->length);
}

static enum end realloc_mapped(const struct misuse *m)
{
    void *area = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return area == MAP_FAILED ? END_BROKEN : realloc_end(area, m->length);
}

static enum end realloc_inside(const struct misuse *m)
{
    row_make(m->size);
    return realloc_end(row[row_count / 2] + m->at, m->length);
}

static enum end realloc_freed(const struct misuse *m)
{
    char *block = taken(m);
    do_free(block);
    return realloc_end(block, m->length);
}

/* Whoever kept the old pointer resizes once more. */
static enum end realloc_moved(const struct misuse *m)
{
    char *block = taken(m);
    if (do_realloc(block, m->length) == block)
        return END_BROKEN;
    return realloc_end(block, m->length);
}

/* ---- sizes that cannot be ---- */

static enum end malloc_negative(const struct misuse *m)
{
    return do_malloc((size_t)m->at) == NULL ? END_PREVENTED : END_MISSED;
}

static enum end calloc_overflow(const struct misuse *m)
{
    return do_calloc(SIZE_MAX / m->size + 2, m->size) == NULL ? END_PREVENTED : END_MISSED;
}

static enum end realloc_negative(const struct misuse *m)
{
    row_make(m->size);
    return do_realloc(row[0], (size_t)m->at) == NULL && !row_changed(-1) ? END_PREVENTED : END_MISSED;
}

static enum end aligned_odd(const struct misuse *m)
{
    return do_aligned(m->length, m->size) == NULL ? END_PREVENTED : END_MISSED;
}

#define TOLD  "the size told is compared"
#define OWNS  "the owner of an address is looked up"
#define START "a block's start is told from its inside"
#define MARK  "free blocks are marked"
#define RANGE "sizes are checked"

const struct misuse misuses[] = {
    {"free_sized_smaller", free_sized_wrong, 4096, 0, 64, TOLD, "free_sized of 4,096 bytes told 64"},
    {"free_sized_larger", free_sized_wrong, 64, 0, 4096, TOLD, "free_sized of 64 bytes told 4,096"},
    {"free_sized_inside", free_sized_wrong, 64, 16, 64, START, "free_sized 16 bytes into a block"},
    {"free_aligned_align", free_aligned_wrong, 128, 4096, 128, TOLD, "free_aligned_sized told 4,096 for 64"},
    {"delete_smaller", delete_wrong, 4096, 0, 64, TOLD, "operator delete of 4,096 bytes told 64"},
    {"delete_larger", delete_wrong, 64, 0, 4096, TOLD, "operator delete of 64 bytes told 4,096"},
    {"usable_stack", usable_stack, 0, 256, 0, OWNS, "malloc_usable_size of the stack"},
    {"usable_null_field", usable_address, 0, 16, 0, OWNS, "malloc_usable_size of a field of NULL"},
    {"usable_inside", usable_inside, 256, 16, 0, START, "malloc_usable_size 16 bytes into a block"},
    {"usable_freed", usable_freed, 64, 0, 0, MARK, "malloc_usable_size of a freed block of 64"},
    {"usable_freed_large", usable_freed, 400000, 0, 0, OWNS,
     "malloc_usable_size of a freed block of 400,000"},
    {"realloc_stack", realloc_stack, 0, 256, 100, OWNS, "realloc of the stack"},
    {"realloc_global", realloc_global, 0, 256, 100, OWNS, "realloc of a static array"},
    {"realloc_mapped", realloc_mapped, 1 << 20, 0, 2 << 20, OWNS, "realloc of a mapping"},
    {"realloc_inside", realloc_inside, 256, 16, 1000, START, "realloc 16 bytes into a block"},
    {"realloc_freed_larger", realloc_freed, 64, 0, 5000, MARK, "realloc of a freed block of 64 to 5,000"},
    {"realloc_freed_same", realloc_freed, 64, 0, 60, MARK, "realloc of a freed block of 64 to 60"},
    {"realloc_freed_large", realloc_freed, 400000, 0, 800000, OWNS, "realloc of a freed block of 400,000"},
    {"realloc_moved", realloc_moved, 64, 0, 5000, MARK, "realloc of a block that realloc has moved"},
    {"malloc_negative", malloc_negative, 0, -16, 0, RANGE, "malloc of -16 bytes"},
    {"calloc_overflow", calloc_overflow, 8, 0, 0, RANGE, "calloc whose product overflows to 8 bytes"},
    {"realloc_negative", realloc_negative, 64, -1, 0, RANGE, "realloc to -1 byte"},
    {"aligned_odd", aligned_odd, 96, 0, 48, RANGE, "aligned_alloc with an alignment of 48"},
    {0}};
