/*
 * pool.h - where the server's memory comes from: straight from malloc, or from a pool that all threads share.
 *
 * The pool has a list of free blocks for each power of two, each under a lock of its own, and asks malloc for slabs
 * of many blocks only while it grows. That is how servers are built that do not want to depend on the allocator: with
 * it the allocator has next to nothing to do.
 */
#ifndef HTTP_POOL_H
#define HTTP_POOL_H

#include <stdbool.h>
#include <stddef.h>

/* Before any other call: true for the pool. */
void pool_choose(bool shared);
/* As malloc, realloc and free are; NULL where there is no memory. */
void *pool_get(size_t size);
void *pool_grow(void *block, size_t size);
void  pool_put(void *block);
/* Give the slabs back; no block may be in use. */
void pool_end(void);

#endif
