/*
 * pool.h - memory straight from the system, for a process whose malloc belongs to someone else.
 *
 * A pool hands out pieces of one size, zeroed, and takes them back. Pieces never move, and are aligned to 64 bytes
 * where their size is a multiple of that.
 */
#ifndef AK_SIM_POOL_H
#define AK_SIM_POOL_H

#include <stddef.h>

/* Zeroed pages, which cost nothing until they are touched; NULL where there are none. */
void *memory_map(size_t bytes);

/* The same, and where there are none ends the process (exit 3): within an access there is no other way on. */
void *memory_need(size_t bytes);

void memory_unmap(void *memory, size_t bytes);

struct pool {
    size_t piece;       /* bytes; at least a pointer */
    void *spare;        /* pieces that came back, each with a pointer to the next */
    char *free, *end;   /* of the last chunk */
    struct chunk *last; /* all chunks, from the last to the first */
};

void pool_open(struct pool *pool, size_t piece);
void pool_close(struct pool *pool);

/* A piece of zeros, by memory_need. */
void *pool_get(struct pool *pool);
void pool_put(struct pool *pool, void *piece);

#endif
