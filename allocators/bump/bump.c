/* bump.c - the floor: a malloc that advances a pointer and a free that does nothing.
 *
 * What is left of a malloc/free pair when no block is ever reused: the call, a compare, an addition
 * and the first touch of fresh memory. Not an allocator to run a program with: memory only grows,
 * by BUMP_CHUNK a thread.
 *
 * A block is preceded by BUMP_HEAD bytes that hold its size, for realloc and malloc_usable_size.
 * Each thread has one chunk, [at, end); the rest of a chunk that is too short for a request is given
 * up. Memory comes from mmap and is never reused, so calloc needs not clear it.
 */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUMP_API         __attribute__((visibility("default")))
#define BUMP_ALIGN       ((size_t)16)
#define BUMP_HEAD        BUMP_ALIGN
#define BUMP_CHUNK       ((size_t)64 << 20) /* 64 MiB: few calls; only touched pages count */
#define BUMP_CHUNK_LEAST ((size_t)1 << 20)
#define BUMP_PAGE        ((size_t)64 << 10) /* at least the page size of any machine this runs on */

const char *bump_version(void);
void free_sized(void *pointer, size_t size);
void free_aligned_sized(void *pointer, size_t align, size_t size);

static _Thread_local struct {
    char *at, *end;
} bump;

static char *bump_map(size_t bytes)
{
    int before = errno;
    long start = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, (off_t)0);
    errno = before;
    return start == -1 ? NULL : (char *)start;
}

/* Places a block of `size` bytes (a multiple of BUMP_ALIGN) into the chunk. */
static char *bump_place(char *block, size_t size)
{
    *(size_t *)(block - BUMP_HEAD) = size;
    return block;
}

static __attribute__((noinline)) void *bump_slow(size_t align, size_t size)
{
    if (size > (size_t)PTRDIFF_MAX - align - BUMP_CHUNK) {
        errno = ENOMEM;
        return NULL;
    }
    size = (size + BUMP_ALIGN - 1) & -BUMP_ALIGN;
    if (size == 0)
        size = BUMP_ALIGN;
    size_t needed = (size + align + BUMP_HEAD + BUMP_PAGE - 1) & -BUMP_PAGE;
    uintptr_t block = ((uintptr_t)bump.at + BUMP_HEAD + align - 1) & -align;
    if (bump.at == NULL || (uintptr_t)bump.end < block || (uintptr_t)bump.end - block < size) {
        bool own = needed > BUMP_CHUNK / 4; /* a mapping of its own: the chunk is still of use */
        char *start = NULL;
        size_t bytes = own ? needed : BUMP_CHUNK;
        while ((start = bump_map(bytes)) == NULL && bytes / 2 >= needed && bytes > BUMP_CHUNK_LEAST)
            bytes /= 2;
        if (start == NULL) {
            errno = ENOMEM;
            return NULL;
        }
        block = ((uintptr_t)start + BUMP_HEAD + align - 1) & -align;
        if (own)
            return bump_place((char *)block, size);
        bump.end = start + bytes;
    }
    bump.at = (char *)block + size;
    return bump_place((char *)block, size);
}

static inline __attribute__((always_inline)) void *bump_fast(size_t size)
{
    size_t whole = (size + BUMP_HEAD + BUMP_ALIGN - 1) & -BUMP_ALIGN;
    if (__builtin_expect(size - 1 >= BUMP_CHUNK || whole > (size_t)(bump.end - bump.at), 0))
        return bump_slow(BUMP_ALIGN, size);
    char *block = bump.at + BUMP_HEAD;
    bump.at += whole;
    return bump_place(block, whole - BUMP_HEAD);
}

static void *bump_aligned(size_t align, size_t size)
{
    if (align == 0 || (align & (align - 1)) != 0) {
        errno = EINVAL;
        return NULL;
    }
    if (align > (size_t)PTRDIFF_MAX / 2) {
        errno = ENOMEM;
        return NULL;
    }
    return bump_slow(align < BUMP_ALIGN ? BUMP_ALIGN : align, size);
}

BUMP_API void *malloc(size_t size)
{
    return bump_fast(size);
}

BUMP_API void free(void *pointer)
{
    (void)pointer;
}

BUMP_API void *calloc(size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return bump_fast(total);
}

BUMP_API size_t malloc_usable_size(void *pointer)
{
    return pointer == NULL ? 0 : *(size_t *)((char *)pointer - BUMP_HEAD);
}

BUMP_API void *realloc(void *pointer, size_t size)
{
    size_t old = malloc_usable_size(pointer);
    if (pointer != NULL && size <= old)
        return size == 0 ? NULL : pointer;
    void *moved = bump_fast(size);
    if (moved != NULL && pointer != NULL)
        memcpy(moved, pointer, old);
    return moved;
}

BUMP_API void *reallocarray(void *pointer, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(pointer, total);
}

BUMP_API void *aligned_alloc(size_t align, size_t size)
{
    return bump_aligned(align, size);
}

BUMP_API void *memalign(size_t align, size_t size)
{
    return bump_aligned(align, size);
}

BUMP_API int posix_memalign(void **pointer, size_t align, size_t size)
{
    if (align < sizeof(void *) || (align & (align - 1)) != 0)
        return EINVAL;
    int before = errno;
    void *block = bump_aligned(align, size);
    errno = before;
    if (block == NULL)
        return ENOMEM;
    *pointer = block;
    return 0;
}

BUMP_API void *valloc(size_t size)
{
    return bump_aligned((size_t)sysconf(_SC_PAGESIZE), size);
}

BUMP_API void *pvalloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size > (size_t)PTRDIFF_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    size = size == 0 ? 1 : size;
    return bump_aligned(page, (size + page - 1) & -page);
}

BUMP_API int malloc_trim(size_t pad)
{
    (void)pad;
    return 0;
}

BUMP_API void free_sized(void *pointer, size_t size)
{
    (void)pointer, (void)size;
}

BUMP_API void free_aligned_sized(void *pointer, size_t align, size_t size)
{
    (void)pointer, (void)align, (void)size;
}

/* A static string. */
BUMP_API const char *bump_version(void)
{
    return "0.1.0";
}
