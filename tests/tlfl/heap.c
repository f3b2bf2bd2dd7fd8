/* White box: the invariants of spans and heaps, checked in full between random calls. */
#include "../conformance/tap.h"

#include "api.h"
#include "heap.h"
#include "map.h"
#include "remote.h"
#include "thread.h"

static const char *wrong;

static bool expect(bool good, const char *what)
{
    if (!good && wrong == NULL)
        wrong = what;
    return good;
}

/* The free list holds distinct, marked blocks of the span. */
static void check_list(const struct span *span)
{
    static bool seen[GRANULE_SIZE / BLOCK_ALIGN];
    memset(seen, 0, sizeof seen);
    uint32_t count = 0;
    for (const struct block *block = span->free; block != NULL; block = block->next, count++) {
        size_t offset = (size_t)((const char *)block - span->base), index = offset / span->size;
        if (!expect(offset % span->size == 0 && index < span->carved, "list: a block of the span") ||
            !expect(!seen[index], "list: no block twice"))
            return;
        seen[index] = true;
        expect(block->mark == span_mark(span, block), "list: marked");
    }
    expect(count == tlfl__span_free_count(span), "span_free_count");
}

static void check_span(struct heap *heap, struct span *span, unsigned state)
{
    expect(span->state == state, "state");
    expect(span->kind == SPAN_SMALL, "kind");
    expect(atomic_load(&span->owner) == heap, "owner");
    expect(span->size == class_size(span->class), "size");
    expect(map_find(span->base) == span, "map: first granule");
    expect(map_find(span->base + (span->run.granules - 1) * GRANULE_SIZE) == span, "map: last granule");
    check_list(span);
    uint32_t live = span->carved - tlfl__span_free_count(span);
    if (state == SPAN_AVAIL)
        expect(span->out == live && live > 0 && (span->free != NULL || span->carved < span->capacity),
               "AVAIL: out");
    if (state == SPAN_EMPTY)
        expect(live == 0, "EMPTY: nothing live");
    if (state == SPAN_CURRENT)
        expect(span->out > 0 && span->out <= span->capacity, "CURRENT: out");
    if (state == SPAN_FULL)
        expect(span->carved == span->capacity && span->out == span->wake - tlfl__span_free_count(span),
               "FULL: out");
}

/* Everything but the FULL spans, which only the map knows. */
static void check_heap(struct heap *heap)
{
    uint32_t listed = 0, empties = 0;
    for (size_t i = 0; i < CLASS_DIRECT; i++)
        expect(heap->direct[i] == heap->bin[class_of(i * BLOCK_ALIGN)].current, "direct");
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        struct span *span = heap->bin[class].current;
        if (span != SPAN_NONE) {
            check_span(heap, span, SPAN_CURRENT);
            expect(span->class == class, "CURRENT: class");
            listed += span->run.granules;
        }
        struct span *prev = NULL;
        for (span = heap->bin[class].avail; span != NULL; prev = span, span = span->next) {
            check_span(heap, span, SPAN_AVAIL);
            expect(span->class == class && span->prev == prev, "avail: links");
            listed += span->run.granules;
        }
    }
    for (unsigned order = 0; order < CLASS_ORDERS; order++) {
        struct shelf *shelf = &heap->empty[order];
        struct span *prev = NULL;
        uint32_t count = 0;
        for (struct span *span = shelf->head; span != NULL; prev = span, span = span->next, count++) {
            check_span(heap, span, SPAN_EMPTY);
            expect(span->prev == prev && class_order(span->class) == order, "empty: links");
            empties += span->run.granules;
        }
        expect(shelf->tail == prev && shelf->count == count && shelf->low <= count, "empty: count");
    }
    expect(heap->empty_granules == empties, "empty_granules");
    expect(heap->granules >= listed + empties, "granules");
}

enum { SLOTS = 4000 };
static void *slots[SLOTS];

static void check_full(struct heap *heap)
{
    for (int i = 0; i < SLOTS; i++) {
        struct span *span = slots[i] == NULL ? NULL : map_find(slots[i]);
        if (span != NULL && span->kind == SPAN_SMALL && span->state == SPAN_FULL)
            check_span(heap, span, SPAN_FULL);
    }
}

static void test_random(unsigned bits, unsigned slots_used, unsigned rounds)
{
    uint64_t seed = bits;
    wrong = NULL;
    for (unsigned round = 0; wrong == NULL && round < rounds; round++) {
        unsigned i = (unsigned)(random_next(&seed) % slots_used);
        tlfl_test_free(slots[i]);
        slots[i] = random_next(&seed) % 3 == 0 ? NULL : tlfl_test_malloc(random_size(&seed, bits));
        if (round % 1000 == 0) {
            check_heap(tlfl__heap);
            check_full(tlfl__heap);
        }
        if (round % 20000 == 19999)
            tlfl_test_malloc_trim(0);
    }
    for (unsigned i = 0; i < slots_used; i++) {
        tlfl_test_free(slots[i]);
        slots[i] = NULL;
    }
    check_heap(tlfl__heap);
    tlfl_test_malloc_trim(0);
    check_heap(tlfl__heap);
    tap_ok(wrong == NULL, "invariants, sizes up to 2^%u (%s)", bits, wrong == NULL ? "all hold" : wrong);
    tap_ok(tlfl__heap->granules == 0, "after all frees and a trim the heap has no granule, up to 2^%u", bits);
}

/* Fills and empties one span by hand, watching its states. */
static void test_states(void)
{
    enum { MOST = 4096 };
    static void *blocks[MOST];
    wrong = NULL;
    tlfl_test_malloc_trim(0);
    blocks[0] = tlfl_test_malloc(1000);
    struct span *span = map_find(blocks[0]);
    uint32_t capacity = span->capacity, wake = span->wake;
    expect(span->state == SPAN_CURRENT, "new: CURRENT");
    expect(span->carved < capacity, "new: carved in part");
    for (uint32_t i = 1; i <= capacity; i++)
        blocks[i] = tlfl_test_malloc(1000);
    expect(span->state == SPAN_FULL && span->carved == capacity, "exhausted: FULL");
    struct span *next = map_find(blocks[capacity]);
    expect(next != span && next->state == SPAN_CURRENT, "the next is CURRENT");
    for (uint32_t i = 0; i < wake; i++) {
        expect(span->state == SPAN_FULL, "before the wake: FULL");
        tlfl_test_free(blocks[i]);
    }
    expect(span->state == SPAN_AVAIL && tlfl__heap->bin[span->class].avail == span, "woken: AVAIL");
    for (uint32_t i = wake; i < capacity; i++) {
        expect(span->state == SPAN_AVAIL, "before the last: AVAIL");
        tlfl_test_free(blocks[i]);
    }
    expect(span->state == SPAN_EMPTY && map_find(blocks[0]) == span, "last free: EMPTY, kept");
    check_heap(tlfl__heap);
    tlfl_test_malloc_trim(0);
    expect(map_find(blocks[0]) == NULL, "trimmed: gone");
    expect(map_find(blocks[capacity]) == next && next->state == SPAN_AVAIL, "trimmed: what is live stays");
    tlfl_test_free(blocks[capacity]);
    check_heap(tlfl__heap);
    tap_ok(wrong == NULL, "one span through all its states (%s)", wrong == NULL ? "as written" : wrong);
}

static void test_sentinels(void)
{
    bool good = tlfl__heap == &tlfl__heap_before; /* main has not allocated yet */
    tlfl_test_free(NULL);
    good &= tlfl__heap == &tlfl__heap_before;
    void *large = tlfl_test_malloc(1000000);
    tlfl_test_free(large);
    good &= large != NULL && tlfl__heap == &tlfl__heap_before;
    void *small = tlfl_test_malloc(1);
    good &= small != NULL && heap_state(tlfl__heap) == HEAP_LIVE;
    tlfl_test_free(small);
    for (size_t i = 0; i < CLASS_DIRECT; i++)
        good &= tlfl__heap_before.direct[i] == SPAN_NONE && tlfl__heap_after.direct[i] == SPAN_NONE;
    tap_ok(good, "a heap is made by the first small malloc, and by nothing else");
}

int main(void)
{
    tap_start(100);
    test_sentinels();
    test_states();
    test_random(5, 4000, 100000);
    test_random(10, 4000, 100000);
    test_random(16, 1000, 60000);
    test_random(21, 200, 20000);
    return tap_done();
}
