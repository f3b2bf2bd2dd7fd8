/* lines.c - which cache lines hold blocks of more than one thread: false sharing by address alone. */
#include "kernel.h"
#include "launch.h"

/* One line touched by one thread's block. Sorted by line, then thread. */
struct touched { uint64_t line; uint32_t thread; };

static bool touched_less(struct touched a, struct touched b)
{
    return a.line != b.line ? a.line < b.line : a.thread < b.thread;
}

static void heap_sink(struct touched *heap, uint64_t root, uint64_t count)
{
    for (uint64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && touched_less(heap[child], heap[child + 1]))
            child++;
        if (!touched_less(heap[root], heap[child]))
            return;
        struct touched swap = heap[root];
        heap[root] = heap[child];
        heap[child] = swap;
    }
}

/* Heapsort, since the C library's qsort may allocate, and would then be served by the allocator under test. */
static void touched_sort(struct touched *list, uint64_t count)
{
    for (uint64_t i = count / 2; i-- > 0;)
        heap_sink(list, i, count);
    for (uint64_t end = count; end-- > 1;) {
        struct touched swap = list[0];
        list[0] = list[end];
        list[end] = swap;
        heap_sink(list, 0, end);
    }
}

uint64_t ak_lines_shared(size_t line, uint64_t *lines)
{
    uint64_t room = 0, count = 0, shared = 0;

    for (unsigned t = 0; t < launch.threads; t++)
        room += 2 * launch.worker[t].ctx.live.slots;
    struct touched *list = ak_map(room * sizeof *list);
    for (unsigned t = 0; t < launch.threads; t++) {
        const struct live_set *live = &launch.worker[t].ctx.live;
        for (uint64_t i = 0; i < live->slots; i++)
            if (live->block[i] != NULL) {
                uint64_t first = (uint64_t)(uintptr_t)live->block[i], last = first + live->size[i] - 1;
                list[count++] = (struct touched){ first / line, t };
                if (last / line != first / line)
                    list[count++] = (struct touched){ last / line, t };
            }
    }
    touched_sort(list, count);
    *lines = 0;
    for (uint64_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && list[next].line == list[i].line;)
            next++;
        *lines += 1;
        shared += list[i].thread != list[next - 1].thread;
    }
    ak_unmap(list, room * sizeof *list);
    return shared;
}
