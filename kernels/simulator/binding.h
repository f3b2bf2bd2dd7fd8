/* binding.h - where pages that nobody has touched yet are to be: ranges of addresses, each with its nodes. */
#ifndef AK_SIM_BINDING_H
#define AK_SIM_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct binding {
    uint64_t first, end; /* pages, by number; the end is not in it */
    uint64_t origin;     /* the page that is on the lowest node; turns are counted from it */
    uint64_t nodes;      /* a bit each; not 0 */
};

/* Ranges in order of addresses; they do not overlap. */
struct bindings {
    struct binding *at;
    size_t count, capacity;
};

void bindings_close(struct bindings *bindings);

/* From now on the pages [first, end) are on `nodes` by turns; 0: unbound. */
void bindings_set(struct bindings *bindings, uint64_t first, uint64_t end, uint64_t nodes);

/* The node of a page, or -1: unbound. */
int bindings_node(const struct bindings *bindings, uint64_t page);

#endif
