/* packed.h - the variant `packed`: false sharing, planted. */
#ifndef TLFL_PACKED_H
#define TLFL_PACKED_H

#include "heap.h"

TLFL_INLINE void packed_carved(struct span *span, char *first, uint32_t count)
{
    (void)span, (void)first, (void)count;
}

TLFL_INLINE bool packed_free(struct heap *heap, struct span *span, struct block *block)
{
    (void)heap, (void)span, (void)block;
    return false;
}
TLFL_INLINE void packed_exit(struct heap *heap) { (void)heap; }
TLFL_INLINE void packed_trim(struct heap *heap) { (void)heap; }
#endif
