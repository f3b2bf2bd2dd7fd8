#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena.h"

#define ARENA_ALIGN      ((size_t)64)
#define CHUNK_BYTES      ((size_t)4 << 20)
#define EXIT_ENVIRONMENT 3

struct chunk {
    _Alignas(ARENA_ALIGN) struct chunk *before;
};

void *memory_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void *memory_need(size_t bytes)
{
    void *memory = memory_map(bytes);
    if (memory == NULL) {
        fprintf(stderr,
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

void arena_open(struct arena *arena, size_t piece)
{
    *arena = (struct arena){.piece = piece};
}

void arena_close(struct arena *arena)
{
    while (arena->last != NULL) {
        struct chunk *chunk = arena->last;
        arena->last = chunk->before;
        memory_unmap(chunk, CHUNK_BYTES);
    }
}

static void grow(struct arena *arena)
{
    struct chunk *chunk = memory_need(CHUNK_BYTES);
    chunk->before = arena->last;
    arena->last = chunk;
    arena->free = (char *)(chunk + 1);
    arena->end = (char *)chunk + CHUNK_BYTES;
}

void *arena_get(struct arena *arena)
{
    void *piece = arena->spare;
    if (piece != NULL) {
        memcpy(&arena->spare, piece, sizeof arena->spare);
        return memset(piece, 0, arena->piece);
    }
    if ((size_t)(arena->end - arena->free) < arena->piece)
        grow(arena);
    piece = arena->free;
    arena->free += arena->piece;
    return piece;
}

void arena_put(struct arena *arena, void *piece)
{
    memcpy(piece, &arena->spare, sizeof arena->spare);
    arena->spare = piece;
}
