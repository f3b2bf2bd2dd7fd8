/*
 * blocks.c - what the addresses of live blocks tell: whether they overlap, lie where they should, and which cache lines hold
 * blocks of more than one thread. Nothing here is timed; all threads are parked, or do not change their live sets.
 */
#include <stdalign.h>
#include <string.h>

#include "blocks.h"
#include "kernel.h"
#include "launch.h"

/* A stretch of memory by its start, and what is known of it: a line's number and a thread, or a block's address and size. */
struct stretch { uint64_t start; uint32_t value; };

static bool stretch_less(struct stretch a, struct stretch b)
{
    return a.start != b.start ? a.start < b.start : a.value < b.value;
}

static void heap_sink(struct stretch *heap, uint64_t root, uint64_t count)
{
    for (uint64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && stretch_less(heap[child], heap[child + 1]))
            child++;
        if (!stretch_less(heap[root], heap[child]))
            return;
        struct stretch swap = heap[root];
        heap[root] = heap[child];
        heap[child] = swap;
    }
}

/* Heapsort, since the C library's qsort may allocate, and would then be served by the allocator under test. */
static void stretches_sort(struct stretch *list, uint64_t count)
{
    for (uint64_t i = count / 2; i-- > 0;)
        heap_sink(list, i, count);
    for (uint64_t end = count; end-- > 1;) {
        struct stretch swap = list[0];
        list[0] = list[end];
        list[end] = swap;
        heap_sink(list, 0, end);
    }
}

static uint64_t slots_of_all(void)
{
    uint64_t slots = 0;
    for (unsigned t = 0; t < launch.threads; t++)
        slots += launch.worker[t].ctx.live.slots;
    return slots;
}

uint64_t ak_lines_shared(size_t line, uint64_t *lines)
{
    uint64_t room = 2 * slots_of_all(), count = 0, shared = 0;
    struct stretch *list = ak_map(room * sizeof *list);

    for (unsigned t = 0; t < launch.threads; t++) {
        const struct live_set *live = &launch.worker[t].ctx.live;
        for (uint64_t i = 0; i < live->slots; i++)
            if (live->block[i] != NULL) {
                uint64_t first = (uint64_t)(uintptr_t)live->block[i], last = first + live->size[i] - 1;
                list[count++] = (struct stretch){ first / line, t };
                if (last / line != first / line)
                    list[count++] = (struct stretch){ last / line, t };
            }
    }
    stretches_sort(list, count);
    *lines = 0;
    for (uint64_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && list[next].start == list[i].start;)
            next++;
        *lines += 1;
        shared += list[i].value != list[next - 1].value;
    }
    ak_unmap(list, room * sizeof *list);
    return shared;
}

/* C11 7.22.3: fit for any object of that size; blocks below 16 bytes need not hold a max_align_t. */
static uint64_t alignment_of(uint32_t size)
{
    return size >= alignof(max_align_t) ? alignof(max_align_t) : size >= 8 ? 8 : 1;
}

int blocks_check(void)
{
    uint64_t room = slots_of_all(), count = 0;
    struct stretch *list = ak_map(room * sizeof *list);
    int rc = 0;

    for (unsigned t = 0; t < launch.threads; t++) {
        const struct live_set *live = &launch.worker[t].ctx.live;
        for (uint64_t i = 0; i < live->slots && rc == 0; i++) {
            if (live->block[i] == NULL)
                continue;
            uint64_t address = (uint64_t)(uintptr_t)live->block[i];
            if (address % alignment_of(live->size[i]) != 0)
                rc = ak_fail("a block of %u bytes lies at %p, which is not aligned", live->size[i], live->block[i]);
            else if (served.usable != NULL && ak_usable(live->block[i]) < live->size[i])
                rc = ak_fail("a block of %u bytes has %zu usable ones", live->size[i], ak_usable(live->block[i]));
            list[count++] = (struct stretch){ address, live->size[i] };
        }
    }
    stretches_sort(list, count);
    for (uint64_t i = 1; i < count && rc == 0; i++)
        if (list[i - 1].start + list[i - 1].value > list[i].start)
            rc = ak_fail("live blocks overlap: %u bytes at %#llx and %u at %#llx", list[i - 1].value,
                         (unsigned long long)list[i - 1].start, list[i].value, (unsigned long long)list[i].start);
    ak_unmap(list, room * sizeof *list);
    return rc;
}

#define VERIFIED_BLOCKS 64u

int ak_verify_blocks(struct ctx *c, size_t fixed)
{
    unsigned char *block[VERIFIED_BLOCKS];
    uint32_t size[VERIFIED_BLOCKS];
    int rc = 0;

    for (unsigned i = 0; i < VERIFIED_BLOCKS; i++) {
        size[i] = fixed ? (uint32_t)fixed : c->size_table[i];
        block[i] = c->malloc(size[i]);
        if (block[i] == NULL)
            return ak_no_memory(size[i]);
        if ((uintptr_t)block[i] % alignment_of(size[i]) != 0)
            rc = ak_fail("a block of %u bytes lies at %p, which is not aligned", size[i], (void *)block[i]);
        memset(block[i], (int)i + 1, size[i]);
    }
    for (unsigned i = 0; i < VERIFIED_BLOCKS; i++) {
        for (uint32_t at = 0; at < size[i] && rc == 0; at++)
            if (block[i][at] != i + 1)
                rc = ak_fail("byte %u of a block of %u bytes was overwritten through another block", at, size[i]);
        c->free(block[i]);
    }
    return rc;
}
