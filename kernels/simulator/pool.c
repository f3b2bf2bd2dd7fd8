#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pool.h"

#define POOL_ALIGN       ((size_t)64)
#define CHUNK_BYTES      ((size_t)4 << 20)
#define EXIT_ENVIRONMENT 3

struct chunk {
    _Alignas(POOL_ALIGN) struct chunk *before;
};

void *memory_map(size_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void *memory_need(size_t bytes)
{
    void *memory = memory_map(bytes);
    if (memory == NULL) {
        fprintf(
            stderr,
            "simulator: no memory for %zu bytes more: simulate fewer cores, or a program with less memory\n",
            bytes);
        _exit(EXIT_ENVIRONMENT);
    }
    return memory;
}

void memory_unmap(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

void pool_open(struct pool *pool, size_t piece)
{
    *pool = (struct pool){.piece = piece};
}

void pool_close(struct pool *pool)
{
    while (pool->last != NULL) {
        struct chunk *chunk = pool->last;
        pool->last = chunk->before;
        memory_unmap(chunk, CHUNK_BYTES);
    }
}

static void grow(struct pool *pool)
{
    struct chunk *chunk = memory_need(CHUNK_BYTES);
    chunk->before = pool->last;
    pool->last = chunk;
    pool->free = (char *)(chunk + 1);
    pool->end = (char *)chunk + CHUNK_BYTES;
}

void *pool_get(struct pool *pool)
{
    void *piece = pool->spare;
    if (piece != NULL) {
        memcpy(&pool->spare, piece, sizeof pool->spare);
        return memset(piece, 0, pool->piece);
    }
    if ((size_t)(pool->end - pool->free) < pool->piece)
        grow(pool);
    piece = pool->free;
    pool->free += pool->piece;
    return piece;
}

void pool_put(struct pool *pool, void *piece)
{
    memcpy(piece, &pool->spare, sizeof pool->spare);
    pool->spare = piece;
}
