/* large.h - blocks above CLASS_MAX that come from the pool.
 *
 * One span each, of one of the LARGE classes, aligned to a granule. A block that the
 * heap frees that took it goes to a shelf, so that the next one of its class costs neither a lock nor
 * a page fault; one that another frees goes back to the pool. What no class fits is huge.h's.
 */
#ifndef TLFL_LARGE_H
#define TLFL_LARGE_H

#include "span.h"

#define LARGE_MAX CLASS_LARGE_MAX

_Static_assert(LARGE_MAX == CHUNK_GRANULES * GRANULE_SIZE, "a chunk holds the top class");

/* `size` bytes above CLASS_MAX; NULL and ENOMEM as below. */
void *tlfl__large_malloc(size_t size);

/* `size` bytes (above CLASS_MAX, or of an alignment above CLASS_MAX) aligned to `align` (a power of
 * two), zeroed if `zero`; NULL and ENOMEM when refused or when size exceeds PTRDIFF_MAX. */
void *tlfl__large_alloc(size_t size, size_t align, bool zero);

/* Frees a block of a large or huge span. */
void tlfl__large_free(struct span *span, void *block);

/* Makes a large or huge block of `size` bytes (above CLASS_MAX) of one, in place or by moving pages;
 * NULL, errno untouched, where that is not possible. */
void *tlfl__large_resize(struct span *span, size_t size);

#endif
