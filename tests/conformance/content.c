/* Contents: blocks do not overlap, realloc keeps them, calloc clears them, usable means usable. */
#include "tap.h"

#include <malloc.h>

static void test_usable(void)
{
    enum { MANY = 2000 };
    static char *blocks[MANY];
    static size_t usable[MANY];
    uint64_t seed = 11;
    bool good = true, enough = true;
    for (unsigned i = 0; i < MANY; i++) {
        size_t size = random_size(&seed, 17);
        blocks[i] = malloc(size);
        usable[i] = malloc_usable_size(blocks[i]);
        enough &= blocks[i] != NULL && usable[i] >= size;
        memset(blocks[i], (int)(i & 255), usable[i]);
    }
    for (unsigned i = 0; i < MANY; i++) {
        for (size_t k = 0; k < usable[i]; k++)
            good &= blocks[i][k] == (char)(i & 255);
        good &= malloc_usable_size(blocks[i]) == usable[i];
        free(blocks[i]);
    }
    tap_ok(enough, "malloc_usable_size covers the request");
    tap_ok(good, "all usable bytes of 2,000 blocks may be written, and none overlap");
}

static void test_calloc(void)
{
    const size_t sizes[] = {1,    8,     16,    17,    24,     100,     500,     1024,    1025,
                            4000, 10000, 65536, 65537, 200000, 1000000, 4000000, 5000000, 20000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bool good = true;
        int rounds = sizes[i] > 500000 ? 2 : 20;
        for (int round = 0; round < rounds; round++) {
            char *dirty[3];
            for (int k = 0; k < 3; k++) {
                dirty[k] = malloc(sizes[i]);
                memset(dirty[k], 0xa5, malloc_usable_size(dirty[k]));
            }
            for (int k = 0; k < 3; k++)
                free(dirty[(k + round) % 3]);
            char *clean[3];
            for (int k = 0; k < 3; k++) {
                clean[k] = calloc(k == 0 ? 1 : sizes[i], k == 0 ? sizes[i] : 1);
                good &= clean[k] != NULL && all_zero(clean[k], sizes[i]);
                memset(clean[k], 0x5a, sizes[i]);
            }
            for (int k = 0; k < 3; k++)
                free(clean[k]);
        }
        tap_ok(good, "calloc of %zu bytes is zero after reuse", sizes[i]);
    }
}

static void test_realloc_steps(void)
{
    const size_t sizes[] = {1,     17,     100,    1024,    1025,    5000,    65536,
                            65537, 200000, 900000, 4194304, 4194305, 20000000};
    enum { N = sizeof sizes / sizeof *sizes };
    bool up = true, any = true;
    char *block = malloc(1);
    content_fill(block, 1, 1);
    for (size_t i = 1; i < N; i++) {
        block = realloc(block, sizes[i]);
        if (block == NULL) {
            up = false;
            break;
        }
        up &= content_good(block, sizes[i - 1], sizes[i - 1], (unsigned)i);
        content_fill(block, sizes[i], (unsigned)i + 1);
    }
    free(block);
    tap_ok(up, "realloc keeps contents growing from 1 byte to 20 MB");
    for (size_t from = 0; from < N; from++)
        for (size_t to = 0; to < N; to++) {
            char *a = malloc(sizes[from]);
            content_fill(a, sizes[from], (unsigned)from);
            a = realloc(a, sizes[to]);
            size_t keep = sizes[from] < sizes[to] ? sizes[from] : sizes[to];
            any &= a != NULL && content_good(a, sizes[from], keep, (unsigned)from) &&
                   malloc_usable_size(a) >= sizes[to];
            content_fill(a, sizes[to], 5);
            any &= content_good(a, sizes[to], sizes[to], 5);
            free(a);
        }
    tap_ok(any, "realloc keeps contents between every two of %d sizes", (int)N);
}

static void test_realloc_by_one(void)
{
    bool good = true;
    size_t moves = 0, size = 1;
    char *block = malloc(1), *before = block;
    block[0] = 0;
    for (; size < 300000; size++) {
        block = realloc(block, size + 1);
        moves += block != before;
        before = block;
        block[size] = (char)(size * 13);
    }
    for (size_t i = 0; i < size; i++)
        good &= block[i] == (char)(i * 13);
    free(block);
    tap_ok(good, "growth by one byte to 300,000 keeps the contents");
    tap_ok(moves < 3000, "growth by one byte moves the block %zu times, below 3,000", moves);
}

static void test_stress(void)
{
    enum { SLOTS = 3000, ROUNDS = 120000 };
    static struct {
        char *block;
        size_t size;
        unsigned tag;
    } slots[SLOTS];
    uint64_t seed = 42;
    bool good = true;
    for (unsigned round = 0; good && round < ROUNDS; round++) {
        unsigned i = (unsigned)(random_next(&seed) % SLOTS);
        unsigned what = (unsigned)(random_next(&seed) % 8);
        size_t size = random_size(&seed, round % 64 == 0 ? 20 : 12);
        if (slots[i].block != NULL &&
            !content_good(slots[i].block, slots[i].size, slots[i].size, slots[i].tag)) {
            good = false;
            break;
        }
        if (slots[i].block != NULL && what < 4) {
            free(slots[i].block);
            slots[i].block = NULL;
            continue;
        }
        if (slots[i].block != NULL) {
            size_t keep = slots[i].size < size ? slots[i].size : size;
            slots[i].block = realloc(slots[i].block, size);
            good &= content_good(slots[i].block, slots[i].size, keep, slots[i].tag);
        } else if (what == 7) {
            slots[i].block = calloc(1, size);
            good &= all_zero(slots[i].block, size);
        } else if (what == 6) {
            slots[i].block = aligned_alloc((size_t)16 << random_next(&seed) % 9, size);
        } else {
            slots[i].block = malloc(size);
        }
        slots[i].size = size;
        slots[i].tag = round;
        content_fill(slots[i].block, size, round);
    }
    for (unsigned i = 0; i < SLOTS; i++)
        free(slots[i].block);
    tap_ok(good, "120,000 random calls keep every content");
}

int main(void)
{
    tap_start(60);
    test_usable();
    test_calloc();
    test_realloc_steps();
    test_realloc_by_one();
    test_stress();
    return tap_done();
}
