/* large.h - blocks above CLASS_MAX.
 *
 * LARGE, up to LARGE_MAX: one span out of the pool, aligned to a granule. The pool keeps freed
 * granules resident for its purge delay and hands them out first.
 * HUGE, above it, and every alignment above a granule: a mapping of its own, unmapped by free,
 * resized by mremap. It starts at any page; being larger than a granule or aligned to more than
 * one, it never shares the granule of its start with the start of another.
 */
#ifndef TLFL_LARGE_H
#define TLFL_LARGE_H

#include "span.h"

#define LARGE_MAX (CHUNK_GRANULES * GRANULE_SIZE)

/* `size` bytes aligned to `align` (a power of two), zeroed if `zero`; NULL and ENOMEM when refused
 * or when size exceeds PTRDIFF_MAX. */
void *tlfl__large_alloc(size_t size, size_t align, bool zero);

/* Frees a block of a large or huge span; `call` names the caller in case it is no such block. */
void tlfl__large_free(struct span *span, void *block, const char *call);

/* Resizes a huge block to `size` (above LARGE_MAX, up to PTRDIFF_MAX), moving it where needed; NULL
 * and ENOMEM when refused, the block then is as before. */
void *tlfl__huge_resize(struct span *span, size_t size);

#endif
