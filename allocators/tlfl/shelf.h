/* shelf.h - a stack of free spans of one kind that a heap keeps for itself, through span->next.
 *
 * The memory of a span on a shelf is as it was left: resident, and for small blocks still cut and
 * carved. Only the owner of the heap puts spans; any thread may take the whole stack (remote.h), so
 * the owner takes it out as well to get at the first one. Between its exchange and its store others
 * see an empty shelf.
 */
#ifndef TLFL_SHELF_H
#define TLFL_SHELF_H

#include "span.h"

struct shelf {
    struct span *_Atomic head;
};

/* All of it, through next. */
TLFL_INLINE struct span *shelf_take_all(struct shelf *shelf)
{
    return atomic_exchange_explicit(&shelf->head, NULL, memory_order_acquire);
}

/* The span put last, or NULL. */
TLFL_INLINE struct span *shelf_take(struct shelf *shelf)
{
    if (atomic_load_explicit(&shelf->head, memory_order_relaxed) == NULL)
        return NULL;
    struct span *span = shelf_take_all(shelf);
    if (TLFL_LIKELY(span != NULL))
        atomic_store_explicit(&shelf->head, span->next, memory_order_release);
    return span;
}

TLFL_INLINE void shelf_put(struct shelf *shelf, struct span *span)
{
    span->next = shelf_take_all(shelf);
    atomic_store_explicit(&shelf->head, span, memory_order_release);
}

#endif
