#include <string.h>

#include "pool.h"
#include "binding.h"

#define BINDINGS_FIRST 64

void bindings_close(struct bindings *bindings)
{
    if (bindings->at != NULL)
        memory_unmap(bindings->at, bindings->capacity * sizeof *bindings->at);
}

/* The first range that ends after a page. */
static size_t find(const struct bindings *bindings, uint64_t page)
{
    size_t low = 0, high = bindings->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (bindings->at[middle].end <= page)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Replaces the ranges [from, to) by `n` others. */
static void splice(struct bindings *bindings, size_t from, size_t to, const struct binding *with, size_t n)
{
    size_t count = bindings->count - (to - from) + n;
    if (count > bindings->capacity) {
        size_t capacity = bindings->capacity != 0 ? 2 * bindings->capacity : BINDINGS_FIRST;
        struct binding *at = memory_need(capacity * sizeof *at);
        if (bindings->count != 0)
            memcpy(at, bindings->at, bindings->count * sizeof *at);
        bindings_close(bindings);
        bindings->at = at;
        bindings->capacity = capacity;
    }
    memmove(bindings->at + from + n, bindings->at + to, (bindings->count - to) * sizeof *bindings->at);
    memcpy(bindings->at + from, with, n * sizeof *with);
    bindings->count = count;
}

void bindings_set(struct bindings *bindings, uint64_t first, uint64_t end, uint64_t nodes)
{
    struct binding with[3];
    size_t n = 0, from = find(bindings, first), to = from;
    if (first >= end)
        return;
    while (to < bindings->count && bindings->at[to].first < end)
        to++;
    /* What the new range leaves of the first and of the last one that it meets. */
    if (from < to && bindings->at[from].first < first) {
        with[n] = bindings->at[from];
        with[n++].end = first;
    }
    if (nodes != 0)
        with[n++] = (struct binding){first, end, first, nodes};
    if (from < to && bindings->at[to - 1].end > end) {
        with[n] = bindings->at[to - 1];
        with[n++].first = end;
    }
    if (from < to || n > 0)
        splice(bindings, from, to, with, n);
}

int bindings_node(const struct bindings *bindings, uint64_t page)
{
    size_t i = find(bindings, page);
    if (i == bindings->count || bindings->at[i].first > page)
        return -1;
    uint64_t left = bindings->at[i].nodes;
    for (uint64_t turn = (page - bindings->at[i].origin) % (unsigned)__builtin_popcountll(left); turn > 0;
         turn--)
        left &= left - 1;
    return __builtin_ctzll(left);
}
