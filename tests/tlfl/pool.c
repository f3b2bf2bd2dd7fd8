/* White box: the pool, its chunks and the map. */
#include "../conformance/tap.h"

#include "lock.h"
#include "map.h"
#include "pool.h"

static void test_map(void)
{
    struct run run;
    tlfl__central_enter();
    bool good = tlfl__pool_take(4, 0, &run);
    char *start = run_start(&run);
    struct span *span = (struct span *)&run;
    good &= map_find(start) == NULL;
    tlfl__map_set(start, 4, span);
    good &= map_find(start) == span && map_find(start + 4 * GRANULE_SIZE - 16) == span;
    good &= map_find(start + 4 * GRANULE_SIZE) == NULL || run.first + 4 == CHUNK_GRANULES;
    tap_ok(good, "the map finds what was entered, to the last block");
    uintptr_t wild = (uintptr_t)start;
    good = map_find((void *)(wild | (uintptr_t)1 << 63)) == NULL &&
           map_find((void *)(wild | (uintptr_t)1 << 48)) == NULL;
    good &= map_find(NULL) == NULL && map_find((void *)(UINTPTR_MAX & ~(uintptr_t)15)) == NULL;
    tap_ok(good, "non-canonical addresses and NULL have no span");
    tlfl__map_set(start, 4, NULL);
    tap_ok(map_find(start) == NULL, "an entry is taken back");
    tlfl__pool_give(&run);
    tlfl__central_leave();
}

/* The books, from the outside: every granule of every run is written with its owner's number. */
enum { RUNS = 400, ROUNDS = 20000 };

static struct run runs[RUNS];

static bool run_zero(const struct run *run)
{
    for (unsigned i = 0; i < run->granules; i++)
        for (size_t at = 0; at < GRANULE_SIZE; at += 4096)
            if (run_start(run)[i * GRANULE_SIZE + at] != 0)
                return false;
    return true;
}

static void run_write(const struct run *run, char number)
{
    for (unsigned i = 0; i < run->granules; i++)
        for (size_t at = 0; at < GRANULE_SIZE; at += 4096)
            run_start(run)[i * GRANULE_SIZE + at] = number;
}

static bool run_holds(const struct run *run, char number)
{
    for (unsigned i = 0; i < run->granules; i++)
        for (size_t at = 0; at < GRANULE_SIZE; at += 4096)
            if (run_start(run)[i * GRANULE_SIZE + at] != number)
                return false;
    return true;
}

static void test_random(void)
{
    uint64_t seed = 3;
    bool held = true, zero = true, books = true, seen_zero = false, seen_dirty = false;
    size_t taken = 0, free_before = tlfl__pool_books().mapped - tlfl__pool_books().free;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned i = (unsigned)(random_next(&seed) % RUNS);
        char number = (char)(1 + i % 120);
        tlfl__central_enter();
        if (runs[i].granules != 0) {
            held &= run_holds(&runs[i], number);
            taken -= runs[i].granules;
            tlfl__pool_give(&runs[i]);
            runs[i].granules = 0;
        } else {
            unsigned granules = (unsigned)(random_size(&seed, 5));
            held &= tlfl__pool_take(granules, 0, &runs[i]) && runs[i].granules == granules;
            if (runs[i].zero)
                zero &= run_zero(&runs[i]);
            seen_zero |= runs[i].zero;
            seen_dirty |= !runs[i].zero;
            run_write(&runs[i], number);
            taken += granules;
        }
        struct pool_books now = tlfl__pool_books();
        books &= now.mapped - now.free - free_before == taken * GRANULE_SIZE && now.dirty <= now.free;
        tlfl__central_leave();
        if (round % 500 == 0)
            tlfl__pool_tick();
        if (round % 5000 == 4999)
            tlfl__pool_trim();
    }
    tap_ok(held, "no granule belongs to two runs");
    tap_ok(zero && seen_zero && seen_dirty, "a run that says so reads as zero");
    tap_ok(books, "mapped, free and dirty agree with what was taken");
    tlfl__central_enter();
    for (int i = 0; i < RUNS; i++)
        if (runs[i].granules != 0)
            tlfl__pool_give(&runs[i]);
    size_t mapped = tlfl__pool_books().mapped;
    struct run whole;
    bool good = tlfl__pool_take(CHUNK_GRANULES, 0, &whole) && tlfl__pool_books().mapped == mapped;
    tlfl__pool_give(&whole);
    tlfl__central_leave();
    tap_ok(good, "free neighbours make up a whole chunk again");
    size_t given = tlfl__pool_trim();
    tap_ok(given == mapped - free_before && tlfl__pool_books().mapped == free_before &&
               tlfl__pool_trim() == 0,
           "trim unmaps all that is free, once");
}

static void test_sizes(void)
{
    bool good = true;
    for (unsigned granules = 1; granules <= CHUNK_GRANULES; granules++) {
        struct run one, two;
        tlfl__central_enter();
        good &= tlfl__pool_take(granules, 0, &one) && tlfl__pool_take(granules, 0, &two);
        char *a = run_start(&one), *b = run_start(&two);
        good &= a + granules * GRANULE_SIZE <= b || b + granules * GRANULE_SIZE <= a;
        good &= one.first + granules <= CHUNK_GRANULES && ((uintptr_t)a & (GRANULE_SIZE - 1)) == 0;
        run_write(&one, 1);
        run_write(&two, 2);
        tlfl__pool_give(&one);
        tlfl__pool_give(&two);
        tlfl__central_leave();
    }
    tap_ok(good, "runs of 1 to 64 granules");
}

static void test_reuse(void)
{
    struct run one, two;
    tlfl__pool_trim();
    tlfl__central_enter();
    bool good = tlfl__pool_take(8, 0, &one);
    run_write(&one, 1);
    tlfl__pool_give(&one);
    good &= tlfl__pool_books().dirty == 8 * GRANULE_SIZE;
    good &= tlfl__pool_take(3, 0, &two) && run_start(&two) == run_start(&one) && !two.zero;
    good &= tlfl__pool_books().dirty == 5 * GRANULE_SIZE;
    tlfl__pool_give(&two);
    tlfl__central_leave();
    tap_ok(good, "dirty granules are handed out first");
    /* Two ticks, forced by time. */
    for (int i = 0; i < 3; i++) {
        usleep(POOL_TICK_MS * 1200);
        tlfl__pool_tick();
    }
    tap_ok(tlfl__pool_books().dirty == 0, "dirty granules are purged after two ticks");
}

int main(void)
{
    tap_start(60);
    test_map();
    test_sizes();
    test_random();
    test_reuse();
    return tap_done();
}
