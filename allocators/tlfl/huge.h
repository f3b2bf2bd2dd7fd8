/* huge.h - blocks above LARGE_MAX, and all of an alignment above a granule.
 *
 * A mapping each, resized by mremap. It starts at any page; being larger than a granule, or aligned to
 * one and made of whole ones, it never shares the granule of its start with the start of another.
 *
 * A block that is freed stays mapped until a tick finds it unused for HUGE_IDLE_MS, or until what is in
 * use and what is kept would exceed what was in use at once since the tick before last; then those kept
 * for longest go. There are HUGE_KEEP of them at most. What is kept stays resident, so
 * a loop over huge blocks costs no page faults; it serves threads of the NUMA node for which it was
 * mapped (run.first).
 */
#ifndef TLFL_HUGE_H
#define TLFL_HUGE_H

#include "span.h"

#define HUGE_KEEP    8
#define HUGE_IDLE_MS 200

/* What a huge span has for the granules of its run, which it has none of: too many for any shelf. */
#define HUGE_GRANULES (1u << 30)

/* `size` bytes (up to PTRDIFF_MAX less a page) aligned to `align`, not yet live (span.h); NULL when
 * the OS refuses. */
struct span *tlfl__huge_take(size_t size, size_t align);

/* Frees one that is no longer live. */
void tlfl__huge_give(struct span *span);

/* Resizes a live one, moving it where needed; NULL when refused, the block then is as before. */
void *tlfl__huge_resize(struct span *span, size_t size);

/* Unmaps what has been kept for long enough, or all (true when there was any). Let the central lock
 * go around munmap where they can: to be called with no lock held. */
void tlfl__huge_tick(uint64_t now);
bool tlfl__huge_clear(void);

/* Bytes mapped for huge blocks, kept ones included. Under the central lock. */
size_t tlfl__huge_bytes(void);

#endif
