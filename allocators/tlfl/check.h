/* check.h - the invariants of a heap, checked in full. For tests: built with -DTLFL_TEST only. */
#ifndef TLFL_CHECK_H
#define TLFL_CHECK_H

#include "heap.h"

/* NULL if all invariants of the heap and its spans hold, else the one that does not, in words. To be
 * called by who owns the heap. Sees FULL spans only through tlfl__span_is_valid. Walks everything. */
const char *tlfl__heap_is_valid(struct heap *heap);

/* The same for one small span of the heap. */
const char *tlfl__span_is_valid(struct heap *heap, const struct span *span);

#endif
