/* The model of the simulated machine: known answers level by level, the cases of sharing one by one, and random
 * traces against a second model that searches plain arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../kernels/simulator/model.h"

#define KIB  UINT64_C(1024)
#define MIB  (KIB * 1024)
#define BASE UINT64_C(0x7f1200000000)
#define PAGE UINT64_C(4096)
#define LINE UINT64_C(64)

static struct model *model;

/* The caches of the prototype: four nodes of sixteen. */
static struct machine large(uint32_t nodes, uint32_t cores_per_node)
{
    return (struct machine){
        .nodes = nodes,
        .cores_per_node = cores_per_node,
        .mhz = 2450,
        .l1 = {32 * KIB, 8, 4},
        .l2 = {1 * MIB, 16, 14},
        .l3 = {32 * MIB, 16, 50},
        .cache_local = 60,
        .cache_remote = 300,
        .memory_local = 240,
        .memory_remote = 400,
    };
}

/* Two nodes of two cores whose caches overflow with a handful of lines. */
static struct machine tiny(void)
{
    struct machine machine = large(2, 2);
    machine.l1.size = 8 * LINE;
    machine.l1.ways = 2;
    machine.l2.size = 16 * LINE;
    machine.l2.ways = 4;
    machine.l3.size = 48 * LINE;
    machine.l3.ways = 6;
    return machine;
}

static void make(struct machine machine)
{
    char why[MACHINE_WHY_MAX] = "";
    model = model_new(&machine, why);
    if (model == NULL)
        fail_msg("%s", why);
    for (unsigned core = 0; core < machine_cores(&machine); core++)
        model_count(model, core, true);
}

static int drop(void **state)
{
    (void)state;
    model_free(model);
    model = NULL;
    return 0;
}

static uint32_t load(unsigned core, uint64_t address)
{
    return model_access(model, core, address, 4, MODEL_LOAD);
}

static uint32_t store(unsigned core, uint64_t address)
{
    return model_access(model, core, address, 4, MODEL_STORE);
}

static struct model_counts sum(unsigned cores)
{
    struct model_counts all = {0};
    for (unsigned core = 0; core < cores; core++) {
        const struct model_counts *one = model_counts(model, core);
        for (size_t i = 0; i < sizeof all / sizeof(uint64_t); i++)
            ((uint64_t *)&all)[i] += ((const uint64_t *)one)[i];
    }
    return all;
}

static void assert_near(uint64_t value, uint64_t expected, double tolerance)
{
    double off = (double)value - (double)expected;
    if (off > tolerance * (double)expected || off < -tolerance * (double)expected)
        fail_msg("%llu, expected %llu", (unsigned long long)value, (unsigned long long)expected);
}

/* ---- known answers -------------------------------------------------------------------------------------------- */

/* A second scan of so many bytes, a load a line, by one core. */
static struct model_counts scan(uint64_t bytes)
{
    make(large(4, 16));
    for (int round = 0; round < 2; round++) {
        model_count(model, 0, round == 1);
        for (uint64_t at = 0; at < bytes; at += LINE)
            model_access(model, 0, BASE + at, 8, MODEL_LOAD);
    }
    struct model_counts counts = *model_counts(model, 0);
    assert_int_equal(counts.loads, bytes / LINE);
    drop(NULL);
    return counts;
}

static void scans(void **state)
{
    (void)state;
    struct model_counts c = scan(16 * KIB);
    assert_true(c.l1_miss <= c.loads / 100);
    assert_int_equal(c.cycles, c.loads * 4);

    c = scan(256 * KIB);
    assert_near(c.l1_miss, c.loads, 0.01);
    assert_true(c.l2_miss <= c.loads / 100);
    assert_near(c.cycles, c.loads * 14, 0.01);

    c = scan(8 * MIB);
    assert_near(c.l2_miss, c.loads, 0.01);
    assert_true(c.l3_miss <= c.loads / 100);
    assert_near(c.cycles, c.loads * 50, 0.01);

    c = scan(64 * MIB);
    assert_near(c.l3_miss, c.loads, 0.01);
    assert_near(c.dram_local, c.loads, 0.01);
    assert_int_equal(c.dram_remote + c.cross_node + c.zeroed, 0);
    assert_near(c.cycles, c.loads * 240, 0.01);
}

/* `cores` cores by turns: an increment of a counter of their own, `apart` bytes from the next one's. */
static struct model_counts increments(unsigned cores, uint64_t apart, unsigned rounds, bool atomic)
{
    make(large(4, 32));
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned core = 0; core < cores; core++) {
            uint64_t address = BASE + core * apart;
            if (atomic) {
                model_access(model, core, address, 4, MODEL_ATOMIC);
            } else {
                load(core, address);
                store(core, address);
            }
        }
    }
    struct model_counts counts = sum(128);
    drop(NULL);
    return counts;
}

static void one_word(void **state)
{
    static const unsigned cores[] = {2, 8, 64, 128};
    (void)state;
    for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++) {
        for (int atomic = 0; atomic < 2; atomic++) {
            struct model_counts c = increments(cores[i], 0, 1000, atomic);
            assert_near(c.true_sharing, cores[i] * 1000, 0.01);
            assert_int_equal(c.false_sharing, 0);
            assert_near(c.invalidations, cores[i] * 1000, 0.01);
            assert_int_equal(c.atomics, atomic ? cores[i] * 1000 : 0);
        }
    }
}

static void words_of_a_line(void **state)
{
    (void)state;
    for (unsigned cores = 2; cores <= 16; cores *= 2) {
        for (int atomic = 0; atomic < 2; atomic++) {
            struct model_counts c = increments(cores, 4, 1000, atomic);
            assert_near(c.false_sharing, cores * 1000, 0.05);
            assert_int_equal(c.true_sharing, 0);
        }
    }
}

static void padded(void **state)
{
    (void)state;
    for (unsigned cores = 2; cores <= 128; cores *= 4) {
        struct model_counts c = increments(cores, LINE, 1000, true);
        assert_true((c.true_sharing + c.false_sharing + c.invalidations) * 1000 <= cores * 1000);
    }
}

static void ping_pong(void **state)
{
    const unsigned turns = 10000;
    (void)state;

    make(large(4, 16));
    for (unsigned t = 0; t < turns; t++)
        store(t % 4, BASE); /* cores 0 to 3 are on node 0 */
    struct model_counts c = sum(64);
    assert_int_equal(c.cross_node + c.hitm_remote + c.dram_remote, 0);
    assert_int_equal(c.hitm_local, turns - 1);
    assert_int_equal(c.l3_miss, 1);
    assert_int_equal(c.cycles, 240 + (turns - 1) * 60);
    drop(NULL);

    make(large(4, 16));
    for (unsigned t = 0; t < turns; t++)
        store(t % 4 * 16, BASE);
    c = sum(64);
    assert_int_equal(c.cross_node, turns - 1);
    assert_int_equal(c.hitm_remote, turns - 1);
    assert_int_equal(c.hitm_local, 0);
    assert_int_equal(c.l3_miss, turns);
    assert_int_equal(c.cycles, 240 + (turns - 1) * 300);
    drop(NULL);

    /* Four cores a node, node by node: one in four takes it from another node. */
    make(large(4, 16));
    for (unsigned t = 0; t < turns; t++)
        store(t % 16 / 4 * 16 + t % 4, BASE);
    c = sum(64);
    assert_near(c.cross_node, turns / 4, 0.01);
    assert_int_equal(c.cross_node + c.hitm_local, turns - 1);
}

/* ---- homes ---------------------------------------------------------------------------------------------------- */

static void homes(void **state)
{
    (void)state;
    make(large(4, 2));
    assert_int_equal(model_home(model, BASE), -1);
    assert_int_equal(load(5, BASE + 100), 240); /* core 5 is on node 2 */
    assert_int_equal(model_home(model, BASE), 2);
    assert_int_equal(model_home(model, BASE + PAGE), -1);
    assert_int_equal(model_counts(model, 5)->zeroed, 64);
    assert_int_equal(model_counts(model, 5)->dram_local, 1);

    assert_int_equal(load(0, BASE + 200), 400);
    assert_int_equal(model_home(model, BASE), 2);
    assert_int_equal(model_counts(model, 0)->dram_remote, 1);
    assert_int_equal(model_counts(model, 0)->cross_node, 1);
    assert_int_equal(model_counts(model, 0)->zeroed, 0);
}

static void forgotten(void **state)
{
    (void)state;
    make(large(4, 2));
    for (uint64_t page = 0; page < 4; page++)
        store(0, BASE + page * PAGE);
    load(7, BASE + PAGE);
    model_forget(model, BASE + PAGE, 2 * PAGE);
    assert_int_equal(model_home(model, BASE), 0);
    assert_int_equal(model_home(model, BASE + PAGE), -1);
    assert_int_equal(model_home(model, BASE + 2 * PAGE), -1);
    assert_int_equal(model_home(model, BASE + 3 * PAGE), 0);
    assert_int_equal(load(0, BASE), 4);
    assert_int_equal(load(7, BASE + PAGE), 240); /* at home where it is touched now, and in no cache */
    assert_int_equal(model_home(model, BASE + PAGE), 3);
    assert_int_equal(model_counts(model, 0)->zeroed, 4 * 64);
    assert_int_equal(model_counts(model, 7)->zeroed, 64);

    /* What was lost before is forgotten with the page. */
    load(0, BASE);
    store(2, BASE);
    model_forget(model, BASE, 1);
    load(0, BASE);
    assert_int_equal(model_counts(model, 0)->true_sharing + model_counts(model, 0)->false_sharing, 0);

    /* All of it, and nothing. */
    model_forget(model, 0, UINT64_MAX);
    assert_int_equal(model_home(model, BASE), -1);
    assert_int_equal(model_home(model, BASE + 3 * PAGE), -1);
    load(0, BASE);
    model_forget(model, BASE, 0);
    assert_int_equal(model_home(model, BASE), 0);
}

static void bound(void **state)
{
    (void)state;
    make(large(4, 2));
    load(0, BASE);
    model_bind(model, BASE, 8 * PAGE, 0xa); /* nodes 1 and 3 */
    for (uint64_t page = 0; page < 9; page++)
        load(0, BASE + page * PAGE);
    assert_int_equal(model_home(model, BASE), 0); /* had one */
    for (uint64_t page = 1; page < 8; page++)
        assert_int_equal(model_home(model, BASE + page * PAGE), page % 2 ? 3 : 1);
    assert_int_equal(model_home(model, BASE + 8 * PAGE), 0);
    assert_int_equal(model_counts(model, 0)->dram_remote, 7);

    /* A hole in the middle; turns go on beyond it as before. */
    model_bind(model, BASE + 3 * PAGE, 2 * PAGE, 0);
    model_bind(model, BASE + 4 * PAGE, PAGE, 4);
    model_forget(model, BASE, 8 * PAGE);
    static const int expected[] = {1, 3, 1, 0, 2, 3, 1, 3};
    for (uint64_t page = 0; page < 8; page++) {
        load(0, BASE + page * PAGE);
        assert_int_equal(model_home(model, BASE + page * PAGE), expected[page]);
    }

    /* Nodes that are not there are nobody's. */
    model_bind(model, BASE + 100 * PAGE, PAGE, 0xf0);
    load(2, BASE + 100 * PAGE);
    assert_int_equal(model_home(model, BASE + 100 * PAGE), 1);
}

/* Many bindings, over and beside each other, against an array. */
static void many_bindings(void **state)
{
    enum { PAGES = 300 };
    uint64_t origin[PAGES] = {0};
    uint8_t nodes[PAGES] = {0};
    (void)state;
    make(large(8, 1));
    srand(1);
    for (int i = 0; i < 2000; i++) {
        unsigned first = (unsigned)rand() % PAGES, end = first + (unsigned)rand() % (i % 7 ? 8 : 100);
        uint8_t mask = (uint8_t)(rand() % 3 ? rand() & 0xff : 0);
        end = end < PAGES ? end : PAGES;
        model_bind(model, BASE + first * PAGE, (end - first) * PAGE, mask);
        for (unsigned page = first; page < end; page++) {
            origin[page] = first;
            nodes[page] = mask;
        }
    }
    for (unsigned page = 0; page < PAGES; page++) {
        int home = 6;
        unsigned turn =
            nodes[page] ? (page - (unsigned)origin[page]) % (unsigned)__builtin_popcount(nodes[page]) : 0;
        for (int node = 0; nodes[page] && node < 8; node++) {
            if (nodes[page] >> node & 1 && turn-- == 0) {
                home = node;
                break;
            }
        }
        load(6, BASE + page * PAGE);
        assert_int_equal(model_home(model, BASE + page * PAGE), home);
    }
}

/* ---- states and levels ---------------------------------------------------------------------------------------- */

static void who_serves(void **state)
{
    (void)state;
    make(large(2, 2)); /* cores 0 1 | 2 3 */
    assert_int_equal(load(0, BASE), 240);
    assert_int_equal(load(1, BASE), 50);   /* its L3 */
    assert_int_equal(load(2, BASE), 400);  /* a clean copy elsewhere does not help */
    assert_int_equal(store(0, BASE), 300); /* an upgrade waits for the farthest */
    assert_int_equal(store(0, BASE), 4);
    assert_int_equal(model_counts(model, 0)->upgrades, 1);
    assert_int_equal(model_counts(model, 0)->invalidations, 2);
    assert_int_equal(load(1, BASE), 60);  /* changed, in the node */
    assert_int_equal(store(1, BASE), 60); /* upgrade, within the node */
    assert_int_equal(load(2, BASE), 300); /* changed, in another */
    assert_int_equal(load(3, BASE), 50);
    assert_int_equal(load(0, BASE), 50); /* written back to the L3 of the node that changed it */
    assert_int_equal(model_counts(model, 1)->hitm_local, 1);
    assert_int_equal(model_counts(model, 2)->hitm_remote, 1);
    assert_int_equal(model_counts(model, 2)->cross_node, 2);
    assert_int_equal(model_counts(model, 2)->l3_miss, 2);
    assert_int_equal(store(2, BASE), 300);
    assert_int_equal(load(0, BASE), 300); /* the copy in its L3 was taken away too */

    assert_int_equal(load(0, BASE + LINE), 240);
    assert_int_equal(store(0, BASE + LINE), 4); /* exclusive: nobody is asked */
    assert_int_equal(model_counts(model, 0)->upgrades, 1);
}

/* What others evicted leaves a core alone with a line in common: the store asks, and there is nothing to take away. */
static void lonely_upgrade(void **state)
{
    struct machine machine = tiny();
    (void)state;
    make(machine);
    load(0, BASE);
    load(1, BASE);
    for (uint64_t i = 1; i <= 4; i++)
        load(1, BASE + i * 4 * LINE); /* the same set of the L2 */
    assert_int_equal(store(0, BASE), 50);
    assert_int_equal(model_counts(model, 0)->upgrades, 1);
    assert_int_equal(model_counts(model, 0)->invalidations, 0);
}

static void crossing(void **state)
{
    (void)state;
    make(large(1, 1));
    assert_int_equal(model_access(model, 0, BASE + 60, 8, MODEL_LOAD), 480);
    assert_int_equal(model_access(model, 0, BASE + 60, 8, MODEL_STORE), 8);
    assert_int_equal(model_access(model, 0, BASE + 1, 64, MODEL_LOAD), 8);
    assert_int_equal(model_access(model, 0, BASE, 64, MODEL_LOAD), 4);
    const struct model_counts *c = model_counts(model, 0);
    assert_int_equal(c->loads, 5);
    assert_int_equal(c->stores, 2);
    assert_int_equal(c->l1_miss, 2);
    assert_int_equal(c->cycles, 500);

    /* Addresses of every height. */
    load(0, 0);
    assert_int_equal(load(0, 0), 4);
    load(0, UINT64_MAX - 3);
    assert_int_equal(load(0, UINT64_MAX - 3), 4);
    assert_int_equal(model_access(model, 0, UINT64_MAX, 2, MODEL_LOAD), 8);
}

static void counting(void **state)
{
    struct model_counts zero = {0};
    (void)state;
    make(large(1, 2));
    model_count(model, 0, false);
    store(0, BASE);
    store(1, BASE);
    store(0, BASE); /* a coherence miss that nobody counts */
    assert_memory_equal(model_counts(model, 0), &zero, sizeof zero);
    assert_int_equal(model_counts(model, 1)->stores, 1);
    model_count(model, 0, true);
    load(0, BASE);
    assert_int_equal(model_counts(model, 0)->loads, 1);
    assert_int_equal(model_counts(model, 0)->l1_miss, 0);
    assert_int_equal(model_counts(model, 0)->true_sharing, 0);

    /* One that was counted gets its class after the end of counting too. */
    store(1, BASE);
    load(0, BASE + 4);
    model_count(model, 0, false);
    load(0, BASE);
    assert_int_equal(model_counts(model, 0)->loads, 2);
    assert_int_equal(model_counts(model, 0)->true_sharing, 1);
}

/* Who goes to another core takes the counts along, and finds cold caches there. */
static void moving(void **state)
{
    struct model_counts zero = {0};
    (void)state;
    make(large(1, 3));
    model_count(model, 1, false);
    store(0, BASE);
    store(2, BASE);
    load(0, BASE + 8); /* a coherence miss, not settled yet */
    model_move(model, 0, 1);
    assert_memory_equal(model_counts(model, 0), &zero, sizeof zero);
    load(0, BASE); /* nobody is counted there any more */
    assert_memory_equal(model_counts(model, 0), &zero, sizeof zero);
    load(1, BASE);
    assert_int_equal(model_counts(model, 1)->stores, 1);
    assert_int_equal(model_counts(model, 1)->loads, 2);
    assert_int_equal(model_counts(model, 1)->l1_miss, 3);
    assert_int_equal(model_counts(model, 1)->false_sharing, 1);
    model_move(model, 1, 1);
    assert_int_equal(model_counts(model, 1)->loads, 2);
    model_count(model, 1, false);
    model_move(model, 1, 0); /* counting is off, and stays so */
    load(0, BASE);
    assert_int_equal(model_counts(model, 0)->loads, 2);
    assert_int_equal(model_counts(model, 2)->stores, 1);
}

/* ---- the cases of sharing ------------------------------------------------------------------------------------- */

static void assert_sharing(unsigned core, uint64_t is_true, uint64_t is_false)
{
    const struct model_counts *counts = model_counts(model, core);
    assert_int_equal(counts->true_sharing, is_true);
    assert_int_equal(counts->false_sharing, is_false);
}

static void lost_and_read(void **state)
{
    (void)state;
    make(large(1, 4));
    load(0, BASE);
    store(1, BASE);
    load(0, BASE);
    assert_sharing(0, 1, 0);
    assert_sharing(1, 0, 0); /* its first store was a cold miss */
}

static void lost_and_read_later_in_the_stay(void **state)
{
    (void)state;
    make(large(1, 4));
    load(0, BASE);
    store(1, BASE + 8);
    load(0, BASE);
    load(0, BASE + 4);
    load(0, BASE + 8); /* only now */
    load(0, BASE + 8);
    assert_sharing(0, 1, 0);
}

static void lost_other_word_lost_again(void **state)
{
    (void)state;
    make(large(1, 4));
    load(0, BASE);
    store(1, BASE + 4);
    load(0, BASE);
    store(1, BASE + 4);
    load(0, BASE + 4); /* true, by the second loss; the first stay was useless */
    assert_sharing(0, 1, 1);
}

/* Words that were written before the loss, read in an earlier stay or not, do not count. */
static void written_before_the_loss(void **state)
{
    (void)state;
    make(large(1, 4));
    store(1, BASE);
    load(0, BASE);
    store(1, BASE + 4);
    load(0, BASE);
    assert_sharing(0, 0, 1);
}

/* Several others write several words, one after another, while the core is away. */
static void many_writers(void **state)
{
    (void)state;
    for (int word = 0; word < 6; word++) {
        make(large(1, 4));
        load(0, BASE);
        store(1, BASE + 4);
        store(2, BASE + 8);
        store(1, BASE + 8);
        store(1, BASE + 12);
        store(3, BASE + 16);
        load(0, BASE + 4 * (uint64_t)word);
        assert_sharing(0, word >= 1 && word <= 4, word < 1 || word > 4);
        drop(NULL);
    }
}

/* A store touches words as a load does; what the core itself writes is not what others wrote. */
static void stores_touch(void **state)
{
    (void)state;
    make(large(1, 4));
    load(0, BASE);
    store(1, BASE);
    store(0, BASE);
    assert_sharing(0, 1, 0);
    drop(NULL);

    make(large(1, 4));
    load(0, BASE);
    store(1, BASE);
    store(0, BASE + 4);
    load(0, BASE + 4);
    store(0, BASE + 8);
    load(0, BASE + 8);
    assert_sharing(0, 0, 1);
    drop(NULL);

    /* In common with another, then written: an upgrade in an open stay. */
    make(large(1, 4));
    load(0, BASE);
    store(1, BASE);
    load(0, BASE + 4);
    store(0, BASE);
    assert_sharing(0, 1, 0);
    assert_int_equal(model_counts(model, 0)->upgrades, 1);
}

/* A wide access touches all its words; bytes of one word are the same word. */
static void wide(void **state)
{
    (void)state;
    make(large(1, 4));
    load(0, BASE);
    model_access(model, 1, BASE + 31, 1, MODEL_STORE);
    model_access(model, 0, BASE + 16, 12, MODEL_LOAD);
    model_access(model, 0, BASE + 32, 32, MODEL_LOAD);
    model_count(model, 0, false);
    model_access(model, 0, BASE + 28, 1, MODEL_LOAD);
    assert_sharing(0, 1, 0);
    model_access(model, 1, BASE, 64, MODEL_STORE);
    model_count(model, 0, true);
    load(0, BASE + 60);
    assert_sharing(0, 2, 0);
}

/* The line leaves unread: by eviction, by munmap, by the end of the measurement. */
static void leaves_unread(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        make(tiny());
        load(0, BASE);
        store(1, BASE + 4);
        load(0, BASE);
        if (how == 0)
            for (uint64_t i = 1; i <= 4; i++)
                load(0, BASE + i * 4 * LINE);
        else if (how == 1)
            model_forget(model, BASE, PAGE);
        else
            assert_sharing(0, 0, 1);
        load(0, BASE + 4);
        assert_sharing(0, 0, 1);
        drop(NULL);
    }
}

static void replacement_is_no_coherence(void **state)
{
    (void)state;
    make(tiny());
    load(0, BASE);
    for (uint64_t i = 1; i <= 4; i++)
        load(0, BASE + i * 4 * LINE);
    store(1, BASE); /* takes nothing away from core 0 */
    assert_int_equal(model_counts(model, 1)->invalidations, 0);
    load(0, BASE);
    assert_sharing(0, 0, 0);
    assert_int_equal(model_counts(model, 0)->hitm_local, 1);
}

/* ---- against a second model ----------------------------------------------------------------------------------- */

/*
 * The same machine by other means: every cache is an array over all lines with the time of last use, the victim is
 * found by looking at all of them, and sharing goes by the times of writes instead of sets of words.
 */
enum { REF_CORES = 4, REF_NODES = 2, REF_PAGES = 3, REF_LINES = REF_PAGES * 64 };
enum ref_state { REF_I, REF_S, REF_E, REF_M };

static struct {
    struct machine machine;
    uint64_t now; /* accesses so far */
    uint64_t l1[REF_CORES][REF_LINES], l2[REF_CORES][REF_LINES],
        l3[REF_NODES][REF_LINES]; /* last use; 0: not in */
    enum ref_state state[REF_CORES][REF_LINES];
    uint64_t lost[REF_CORES][REF_LINES]; /* when; 0: not lost */
    uint64_t open[REF_CORES][REF_LINES]; /* when the line of this stay had been lost; 0: not open */
    uint64_t written[REF_LINES][16];     /* when last */
    unsigned writer[REF_LINES][16];
    int home[REF_PAGES];
    uint64_t bound[REF_PAGES];
    bool counted[REF_CORES];
    struct model_counts counts[REF_CORES];
} ref;

#define REF_COUNT(core, what) (ref.counted[core] ? ref.counts[core].what++ : 0)

static unsigned ref_node(unsigned core)
{
    return core / 2;
}

/* The line of the same set that was used longest ago if the set is full, or -1. */
static int ref_victim(const uint64_t *used, const struct machine_cache *shape, unsigned line)
{
    unsigned sets = (unsigned)(shape->size / LINE / shape->ways), there = 0;
    int victim = -1;
    for (unsigned other = 0; other < REF_LINES; other++) {
        if (used[other] == 0 || other % sets != line % sets)
            continue;
        there++;
        if (victim < 0 || used[other] < used[victim])
            victim = (int)other;
    }
    return there >= shape->ways ? victim : -1;
}

static uint64_t ref_tick; /* orders uses finer than accesses */

static void ref_l3_fill(unsigned node, unsigned line)
{
    if (ref.l3[node][line] == 0) {
        int victim = ref_victim(ref.l3[node], &ref.machine.l3, line);
        if (victim >= 0)
            ref.l3[node][victim] = 0;
    }
    ref.l3[node][line] = ++ref_tick;
}

static void ref_leave(unsigned core, unsigned line)
{
    if (ref.open[core][line] != 0)
        ref.counts[core].false_sharing++;
    ref.open[core][line] = 0;
    ref.state[core][line] = REF_I;
    ref.l1[core][line] = ref.l2[core][line] = 0;
}

static uint32_t ref_take_away(unsigned core, unsigned line)
{
    uint32_t wait = 0;
    for (unsigned other = 0; other < REF_CORES; other++) {
        if (other == core || ref.state[other][line] == REF_I)
            continue;
        uint32_t far = ref_node(other) == ref_node(core) ? ref.machine.cache_local : ref.machine.cache_remote;
        wait = far > wait ? far : wait;
        ref_leave(other, line);
        ref.lost[other][line] = ref.now;
        REF_COUNT(core, invalidations);
    }
    for (unsigned node = 0; node < REF_NODES; node++)
        if (node != ref_node(core))
            ref.l3[node][line] = 0;
    return wait;
}

static uint32_t ref_fetch(unsigned core, unsigned line, bool is_store)
{
    const struct machine *m = &ref.machine;
    unsigned node = ref_node(core);
    uint32_t latency;
    int changed = -1;
    bool in_node = false, held = false;

    if (ref.home[line / 64] < 0) {
        uint64_t bound = ref.bound[line / 64];
        ref.home[line / 64] = bound == 0 ? (int)node : (int)bound - 1;
        if (ref.counted[core])
            ref.counts[core].zeroed += 64;
    }
    for (unsigned other = 0; other < REF_CORES; other++) {
        if (ref.state[other][line] == REF_M)
            changed = (int)other;
        if (ref.state[other][line] != REF_I && ref_node(other) == node)
            in_node = true;
    }
    if (changed >= 0 && ref_node((unsigned)changed) == node) {
        REF_COUNT(core, hitm_local);
        latency = m->cache_local;
    } else if (changed >= 0) {
        REF_COUNT(core, hitm_remote);
        REF_COUNT(core, l3_miss);
        REF_COUNT(core, cross_node);
        latency = m->cache_remote;
    } else if (ref.l3[node][line] != 0) {
        latency = m->l3.latency;
    } else if (in_node) {
        latency = m->cache_local;
    } else if (ref.home[line / 64] == (int)node) {
        REF_COUNT(core, l3_miss);
        REF_COUNT(core, dram_local);
        latency = m->memory_local;
    } else {
        REF_COUNT(core, l3_miss);
        REF_COUNT(core, dram_remote);
        REF_COUNT(core, cross_node);
        latency = m->memory_remote;
    }

    if (is_store) {
        uint32_t wait = ref_take_away(core, line);
        latency = wait > latency ? wait : latency;
    } else {
        for (unsigned other = 0; other < REF_CORES; other++) {
            if (ref.state[other][line] == REF_M)
                ref_l3_fill(ref_node(other), line);
            if (ref.state[other][line] != REF_I) {
                ref.state[other][line] = REF_S;
                held = true;
            }
        }
    }
    ref_l3_fill(node, line);
    ref.state[core][line] = held ? REF_S : REF_E;
    if (ref.lost[core][line] != 0 && ref.counted[core])
        ref.open[core][line] = ref.lost[core][line];
    ref.lost[core][line] = 0;
    return latency;
}

static void ref_outer_evict(unsigned core, const uint64_t *used, const struct machine_cache *shape,
                            unsigned line)
{
    int victim = ref_victim(used, shape, line);
    if (victim < 0)
        return;
    bool changed = ref.state[core][victim] == REF_M;
    ref_leave(core, (unsigned)victim);
    if (changed)
        ref_l3_fill(ref_node(core), (unsigned)victim);
}

static uint32_t ref_line(unsigned core, unsigned line, unsigned first, unsigned last, enum model_kind kind)
{
    const struct machine *m = &ref.machine;
    bool two = m->l2.size != 0;
    uint32_t latency = m->l1.latency;

    ref.now++;
    REF_COUNT(core, loads); /* put right below */
    if (ref.counted[core] && kind != MODEL_LOAD) {
        ref.counts[core].loads--;
        if (kind == MODEL_STORE)
            ref.counts[core].stores++;
        else
            ref.counts[core].atomics++;
    }
    if (ref.l1[core][line] == 0) {
        REF_COUNT(core, l1_miss);
        if (two && ref.l2[core][line] != 0) {
            latency = m->l2.latency;
        } else {
            REF_COUNT(core, l2_miss);
            latency = ref_fetch(core, line, kind != MODEL_LOAD);
            if (two)
                ref_outer_evict(core, ref.l2[core], &m->l2, line);
            else
                ref_outer_evict(core, ref.l1[core], &m->l1, line);
        }
        if (two) {
            ref.l2[core][line] = ++ref_tick;
            int victim = ref_victim(ref.l1[core], &m->l1, line);
            if (victim >= 0)
                ref.l1[core][victim] = 0;
        }
    }
    ref.l1[core][line] = ++ref_tick;

    for (unsigned word = first / 4; word <= last / 4; word++) {
        uint64_t since = ref.open[core][line];
        if (since != 0 && ref.written[line][word] >= since && ref.writer[line][word] != core) {
            ref.counts[core].true_sharing++;
            ref.open[core][line] = 0;
        }
    }
    if (kind != MODEL_LOAD) {
        if (ref.state[core][line] == REF_S) {
            uint32_t wait = ref_take_away(core, line);
            REF_COUNT(core, upgrades);
            wait = wait > m->l3.latency ? wait : m->l3.latency;
            latency = wait > latency ? wait : latency;
        }
        ref.state[core][line] = REF_M;
        for (unsigned word = first / 4; word <= last / 4; word++) {
            ref.written[line][word] = ref.now;
            ref.writer[line][word] = core;
        }
    }
    if (ref.counted[core])
        ref.counts[core].cycles += latency;
    return latency;
}

static uint32_t ref_access(unsigned core, unsigned offset, unsigned size, enum model_kind kind)
{
    unsigned line = offset / 64, first = offset % 64;
    if (first + size <= 64)
        return ref_line(core, line, first, first + size - 1, kind);
    return ref_line(core, line, first, 63, kind) + ref_line(core, line + 1, 0, first + size - 65, kind);
}

static const struct model_counts *ref_counts(unsigned core)
{
    for (unsigned line = 0; line < REF_LINES; line++) {
        if (ref.open[core][line] != 0)
            ref.counts[core].false_sharing++;
        ref.open[core][line] = 0;
    }
    return &ref.counts[core];
}

static void ref_forget(unsigned page)
{
    for (unsigned line = page * 64; line < page * 64 + 64; line++) {
        for (unsigned core = 0; core < REF_CORES; core++) {
            ref_leave(core, line);
            ref.lost[core][line] = 0;
        }
        for (unsigned node = 0; node < REF_NODES; node++)
            ref.l3[node][line] = 0;
    }
    ref.home[page] = -1;
}

static uint64_t dice;

static unsigned roll(unsigned sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (unsigned)(dice >> 20) % sides;
}

/* One trace. `lines`: how many are in play; few of them are hot. */
static void trace(struct machine machine, unsigned lines, unsigned steps, uint64_t seed)
{
    dice = seed * 0x9e3779b97f4a7c15 | 1;
    memset(&ref, 0, sizeof ref);
    ref.machine = machine;
    for (unsigned page = 0; page < REF_PAGES; page++)
        ref.home[page] = -1;
    make(machine);
    for (unsigned core = 0; core < REF_CORES; core++)
        ref.counted[core] = true;

    for (unsigned step = 0; step < steps; step++) {
        unsigned core = roll(REF_CORES), what = roll(2000);
        if (what == 0) {
            unsigned page = roll(REF_PAGES);
            model_forget(model, BASE + page * PAGE, PAGE);
            ref_forget(page);
        } else if (what == 1) {
            unsigned page = roll(REF_PAGES), node = roll(REF_NODES + 1);
            model_bind(model, BASE + page * PAGE, PAGE, node == 0 ? 0 : 1u << (node - 1));
            ref.bound[page] = node;
        } else if (what < 4) {
            ref.counted[core] = what == 2 || roll(2);
            model_count(model, core, ref.counted[core]);
        } else if (what < 8) {
            assert_memory_equal(model_counts(model, core), ref_counts(core), sizeof ref.counts[core]);
        } else {
            unsigned line = roll(roll(3) || lines < 4 ? lines : 4),
                     size = roll(4) ? 1 + roll(8) : 1 + roll(64);
            unsigned offset = line * 64 + roll(64);
            enum model_kind kind = roll(3) ? MODEL_LOAD : roll(4) ? MODEL_STORE : MODEL_ATOMIC;
            if (offset + size > lines * 64)
                size = lines * 64 - offset;
            assert_int_equal(model_access(model, core, BASE + offset, size, kind),
                             ref_access(core, offset, size, kind));
        }
    }
    for (unsigned core = 0; core < REF_CORES; core++)
        assert_memory_equal(model_counts(model, core), ref_counts(core), sizeof ref.counts[core]);
    for (unsigned page = 0; page < REF_PAGES; page++)
        assert_int_equal(model_home(model, BASE + page * PAGE), ref.home[page]);
    drop(NULL);
}

static void random_traces(void **state)
{
    static const unsigned lines[] = {2, 8, 24, 60, REF_LINES};
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
            struct machine machine = tiny();
            if (seed % 4 == 0)
                machine.l2.size = 0;
            if (seed % 4 == 1)
                machine.l1 = (struct machine_cache){2 * LINE, 1, 4};
            trace(machine, lines[i], 3000, seed);
        }
    }
}

/* Every trace of six accesses by two cores on two words of a line, with an eviction and a munmap among the choices. */
static void all_short_traces(void **state)
{
    enum { LENGTH = 5, CHOICES = 11 };
    unsigned total = 1;
    (void)state;
    for (int i = 0; i < LENGTH; i++)
        total *= CHOICES;

    struct machine machine = tiny();
    for (unsigned code = 0; code < total; code++) {
        unsigned left = code;
        if (code % 1000 == 0) { /* a model costs more than a trace: it is used again, forgetting all */
            if (model != NULL)
                drop(NULL);
            make(machine);
        }
        memset(&ref, 0, sizeof ref);
        ref.machine = machine;
        for (unsigned page = 0; page < REF_PAGES; page++)
            ref.home[page] = -1;
        for (unsigned core = 0; core < REF_CORES; core++)
            ref.counted[core] = true;
        model_forget(model, BASE, REF_PAGES * PAGE);
        struct model_counts before[2] = {*model_counts(model, 0), *model_counts(model, 2)};

        for (int i = 0; i < LENGTH; i++, left /= CHOICES) {
            unsigned choice = left % CHOICES;
            if (choice < 8) { /* core 0 or 2, word 0 or 1, load or store */
                unsigned core = choice & 4 ? 2 : 0, word = choice & 2 ? 4 : 0;
                enum model_kind kind = choice & 1 ? MODEL_STORE : MODEL_LOAD;
                assert_int_equal(model_access(model, core, BASE + word, 4, kind),
                                 ref_access(core, word, 4, kind));
            } else if (choice < 10) {
                unsigned core = choice == 8 ? 0 : 2;
                for (unsigned k = 1; k <= 4; k++)
                    assert_int_equal(load(core, BASE + k * 4 * LINE),
                                     ref_access(core, k * 256, 4, MODEL_LOAD));
            } else {
                model_forget(model, BASE, PAGE);
                ref_forget(0);
            }
        }
        for (unsigned i = 0; i < 2; i++) {
            const uint64_t *now = (const uint64_t *)model_counts(model, 2 * i);
            const uint64_t *expected = (const uint64_t *)ref_counts(2 * i);
            for (size_t k = 0; k < sizeof(struct model_counts) / sizeof(uint64_t); k++)
                if (now[k] - ((uint64_t *)&before[i])[k] != expected[k])
                    fail_msg("trace %u, core %u, count %zu", code, 2 * i, k);
        }
    }
}

/* ---- bounds --------------------------------------------------------------------------------------------------- */

/* Resident kilobytes of this process. */
static long resident(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return pages * 4;
}

/* 64 cores that touch 100 MiB together and lose every line of a tenth of it to another. */
static void memory_stays_small(void **state)
{
    (void)state;
    long before = resident();
    make(large(4, 16));
    for (uint64_t at = 0; at < 100 * MIB; at += LINE)
        store((unsigned)(at / MIB % 64), BASE + at);
    for (uint64_t at = 0; at < 10 * MIB; at += LINE)
        store((unsigned)((at / MIB + 1) % 64), BASE + at);
    long used = resident() - before;
#ifdef __SANITIZE_ADDRESS__
    (void)used; /* the sanitizer's own books are among it */
#else
    assert_in_range(used, 0, 300 * 1024);
#endif
}

static void refused(void **state)
{
    char why[MACHINE_WHY_MAX] = "";
    struct machine machine = tiny();
    (void)state;
    machine.l1.ways = 3;
    assert_null(model_new(&machine, why));
    assert_non_null(strstr(why, "power of two"));
    model_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, drop)
    const struct CMUnitTest tests[] = {
        TEST(scans),
        TEST(one_word),
        TEST(words_of_a_line),
        TEST(padded),
        TEST(ping_pong),
        TEST(homes),
        TEST(forgotten),
        TEST(bound),
        TEST(many_bindings),
        TEST(who_serves),
        TEST(lonely_upgrade),
        TEST(crossing),
        TEST(counting),
        TEST(moving),
        TEST(lost_and_read),
        TEST(lost_and_read_later_in_the_stay),
        TEST(lost_other_word_lost_again),
        TEST(written_before_the_loss),
        TEST(many_writers),
        TEST(stores_touch),
        TEST(wide),
        TEST(leaves_unread),
        TEST(replacement_is_no_coherence),
        TEST(random_traces),
        TEST(all_short_traces),
        TEST(memory_stays_small),
        TEST(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
