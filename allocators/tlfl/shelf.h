/* shelf.h - a stack of free spans of one kind that a heap keeps for itself, through span->next.
 *
 * The memory of a span on a shelf is as it was left: resident, and for small blocks still cut and
 * carved.
 */
#ifndef TLFL_SHELF_H
#define TLFL_SHELF_H

#include "span.h"

struct shelf {
    struct span *head;
};

/* The span put last, or NULL. */
TLFL_INLINE struct span *shelf_take(struct shelf *shelf)
{
    struct span *span = shelf->head;
    if (TLFL_LIKELY(span != NULL))
        shelf->head = span->next;
    return span;
}

TLFL_INLINE void shelf_put(struct shelf *shelf, struct span *span)
{
    span->next = shelf->head;
    shelf->head = span;
}

#endif
