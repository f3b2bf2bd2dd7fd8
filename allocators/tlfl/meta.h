/* meta.h - the store that spans, heaps and chunks come from.
 *
 * Metadata lies apart from blocks, so that a write past a block does not reach it and so that
 * walking it touches few pages. The store only grows: the structures are type-stable, which lets a
 * thread read or push to one that has just been given back (see remote.h). Every user keeps a free
 * list of its own.
 */
#ifndef TLFL_META_H
#define TLFL_META_H

#include "base.h"

/* Returns `bytes` of zeroed memory aligned to LINE_PAIR, or NULL when the OS refuses. Under the
 * central lock. `bytes` is at most META_STEP. */
void *tlfl__meta_take(size_t bytes);

/* Books memory that another file mapped for metadata (map leaves). Under the central lock. */
void tlfl__meta_count(size_t bytes);

/* Bytes of address space that metadata holds. Under the central lock. */
size_t tlfl__meta_bytes(void);

/* Mapped at a time: 2,000 spans, of which only touched pages become resident. */
#define META_STEP ((size_t)256 << 10)

#endif
