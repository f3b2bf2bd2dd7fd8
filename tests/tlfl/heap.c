/* White box: the invariants of spans and heaps, checked in full between random calls. */
#include "../conformance/tap.h"

#include "api.h"
#include "check.h"
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

static void check_heap(struct heap *heap)
{
    const char *found = tlfl__heap_is_valid(heap);
    if (wrong == NULL)
        wrong = found;
}

enum { SLOTS = 4000 };
static void *slots[SLOTS];

static void check_full(struct heap *heap)
{
    for (int i = 0; i < SLOTS; i++) {
        struct span *span = slots[i] == NULL ? NULL : map_find(slots[i]);
        if (span != NULL && span->kind == SPAN_SMALL && span_state(span) == SPAN_FULL && wrong == NULL)
            wrong = tlfl__span_is_valid(heap, span);
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
    expect(span_state(span) == SPAN_CURRENT, "new: CURRENT");
    expect(span->carved < capacity, "new: carved in part");
    for (uint32_t i = 1; i <= capacity; i++)
        blocks[i] = tlfl_test_malloc(1000);
    expect(span_state(span) == SPAN_FULL && span->carved == capacity, "exhausted: FULL");
    struct span *next = map_find(blocks[capacity]);
    expect(next != span && span_state(next) == SPAN_CURRENT, "the next is CURRENT");
    for (uint32_t i = 0; i < wake; i++) {
        expect(span_state(span) == SPAN_FULL, "before the wake: FULL");
        tlfl_test_free(blocks[i]);
    }
    expect(span_state(span) == SPAN_AVAIL && tlfl__heap->bin[span->class].avail == span, "woken: AVAIL");
    for (uint32_t i = wake; i < capacity; i++) {
        expect(span_state(span) == SPAN_AVAIL, "before the last: AVAIL");
        tlfl_test_free(blocks[i]);
    }
    expect(span_state(span) == SPAN_EMPTY && map_find(blocks[0]) == span, "last free: EMPTY, kept");
    check_heap(tlfl__heap);
    tlfl_test_malloc_trim(0);
    expect(map_find(blocks[0]) == NULL, "trimmed: gone");
    expect(map_find(blocks[capacity]) == next && span_state(next) == SPAN_AVAIL,
           "trimmed: what is live stays");
    tlfl_test_free(blocks[capacity]);
    check_heap(tlfl__heap);
    tap_ok(wrong == NULL, "one span through all its states (%s)", wrong == NULL ? "as written" : wrong);
}

/* Large blocks that change their size in place: what is in use is counted as it is. */
static void test_resized(void)
{
    enum { TIMES = 300 };
    wrong = NULL;
    tlfl_test_malloc_trim(0);
    int32_t before = tlfl__heap->used;
    for (int i = 0; i < TIMES; i++) {
        size_t from = i % 2 == 0 ? 70000 : 1000000, to = 1070000 - from;
        void *block = tlfl_test_malloc(from), *other = tlfl_test_realloc(block, to);
        expect(other != NULL, "memory");
        check_heap(tlfl__heap);
        tlfl_test_free(other);
        check_heap(tlfl__heap);
    }
    tap_ok(wrong == NULL && tlfl__heap->used == before, "large blocks resized in place (%s)",
           wrong == NULL ? "all holds" : wrong);
}

static void test_sentinels(void)
{
    bool good = tlfl__heap == &tlfl__heap_none; /* main has not allocated yet */
    tlfl_test_free(NULL);
    good &= tlfl__heap == &tlfl__heap_none;
    void *large = tlfl_test_malloc(1000000);
    tlfl_test_free(large);
    good &= large != NULL && heap_state(tlfl__heap) == HEAP_LIVE;
    for (size_t i = 0; i < CLASS_DIRECT; i++)
        good &= tlfl__heap_none.direct[i] == SPAN_NONE;
    tap_ok(good, "a heap is made by the first malloc, and not by a free of NULL");
}

int main(void)
{
    tap_start(100);
    test_sentinels();
    test_states();
    test_resized();
    test_random(5, 4000, 100000);
    test_random(10, 4000, 100000);
    test_random(16, 1000, 60000);
    test_random(21, 200, 20000);
    return tap_done();
}
