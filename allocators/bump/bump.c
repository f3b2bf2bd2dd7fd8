/* bump.c - the floor: a malloc that advances a pointer and a free that does nothing.
 *
 * What is left of a malloc/free pair when no block is ever reused and none is touched: the call, a compare and an
 * addition. Not an allocator to run a program with: address space only grows, by BUMP_CHUNK a thread, and no request
 * may be larger than a chunk.
 *
 * Blocks have no header, so that malloc writes nothing and no page of an untouched block is ever faulted in. realloc
 * therefore does not know the old size and copies up to the new one, or to the chunk's end; malloc_usable_size cannot
 * be had at all. Each thread has one chunk, [at, end), aligned to its own size, so that a block's address tells where
 * its chunk ends. Memory is never reused, so calloc needs not clear it.
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
#define BUMP_CHUNK       ((size_t)1 << 30) /* 1 GiB of address space; only touched pages cost memory */

const char *bump_version(void);
void free_sized(void *pointer, size_t size);
void free_aligned_sized(void *pointer, size_t align, size_t size);

static _Thread_local struct {
    char *at, *end;
} bump;

/* A chunk aligned to its size: twice as much is mapped, and what lies around it given back. NULL where refused. */
static char *chunk_map(void)
{
    int before = errno;
    long start = syscall(SYS_mmap, NULL, 2 * BUMP_CHUNK, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, (off_t)0);
    if (start == -1)
        return NULL;
    size_t head = -(size_t)start & (BUMP_CHUNK - 1);
    if (head > 0)
        syscall(SYS_munmap, start, head);
    syscall(SYS_munmap, start + (long)(head + BUMP_CHUNK), BUMP_CHUNK - head);
    errno = before;
    return (char *)start + head;
}

static __attribute__((noinline)) void *bump_slow(size_t align, size_t size)
{
    if (size > BUMP_CHUNK || align > BUMP_CHUNK) {
        errno = ENOMEM;
        return NULL;
    }
    size = size == 0 ? BUMP_ALIGN : (size + BUMP_ALIGN - 1) & -BUMP_ALIGN;
    uintptr_t block = ((uintptr_t)bump.at + align - 1) & -align;
    if (bump.at == NULL || (uintptr_t)bump.end < block || (uintptr_t)bump.end - block < size) {
        char *start = chunk_map();
        if (start == NULL) {
            errno = ENOMEM;
            return NULL;
        }
        block = (uintptr_t)start;
        bump.end = start + BUMP_CHUNK;
    }
    bump.at = (char *)block + size;
    return (void *)block;
}

static inline __attribute__((always_inline)) void *bump_fast(size_t size)
{
    size_t whole = (size + BUMP_ALIGN - 1) & -BUMP_ALIGN;
    if (__builtin_expect(size - 1 >= BUMP_CHUNK || whole > (size_t)(bump.end - bump.at), 0))
        return bump_slow(BUMP_ALIGN, size);
    char *block = bump.at;
    bump.at += whole;
    return block;
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

BUMP_API void *realloc(void *pointer, size_t size)
{
    if (pointer != NULL && size == 0)
        return NULL;
    void *moved = bump_fast(size);
    if (moved != NULL && pointer != NULL) {
        size_t rest = BUMP_CHUNK - ((uintptr_t)pointer & (BUMP_CHUNK - 1));
        memcpy(moved, pointer, size < rest ? size : rest);
    }
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
