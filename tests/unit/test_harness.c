/* The harness's parts: histogram, sizes, options, names, barrier, topology, policy, lines, clock. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "accounting.h"
#include "barrier.h"
#include "clock.h"
#include "histogram.h"
#include "launch.h"
#include "memory.h"
#include "nearest.h"
#include "options.h"
#include "provenance.h"
#include "sampler.h"
#include "sizes.h"
#include "topology.h"

static int run_nothing(struct ctx *c, uint64_t iters)
{
    (void)c, (void)iters;
    return 0;
}

static int verify_nothing(struct ctx *c)
{
    (void)c;
    return 0;
}

static const struct param own_params[] = {
    { "depth", PARAM_INT, "3", "count", 1, 10, NULL, "a number" },
    { "shape", PARAM_WORD, "round", "", 0, 0, "round|square", "a word" },
    { 0 },
};

const struct kernel kernel = {
    .name = "testkernel", .what = "for tests", .variants = "plain|fancy", .params = own_params,
    .sizes = SIZES_RANGE, .run = run_nothing, .verify = verify_nothing,
};

/* ---- histogram ---- */

static void buckets_tile_the_line(void **state)
{
    (void)state;
    uint64_t expected = 0, lower, upper;
    for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
        hist_bounds(i, &lower, &upper);
        assert_int_equal(lower, expected);
        assert_true(upper > lower);
        assert_int_equal(hist_index(lower), i);
        assert_int_equal(hist_index(upper - 1), i);
        if (upper - lower > 1)
            assert_true((double)(upper - lower) / (double)lower <= 0.01);
        expected = upper;
    }
}

static void huge_values_go_into_the_last_bucket(void **state)
{
    (void)state;
    assert_int_equal(hist_index(UINT64_MAX), HIST_BUCKETS - 1);
}

/* Against exact order statistics of the same values: within the bucket's 1 %. */
static void quantiles_are_within_one_percent(void **state)
{
    static struct hist h;
    static uint64_t value[100000];
    struct rng rng = { 42 };
    (void)state;
    memset(&h, 0, sizeof h);
    for (unsigned i = 0; i < 100000; i++) {
        value[i] = (uint64_t)exp((double)(rng_next(&rng) >> 11) * 0x1p-53 * 14);
        hist_add(&h, value[i]);
    }
    static const double q[] = { 0.5, 0.9, 0.99, 0.999, 0.9999 };
    for (unsigned k = 0; k < 5; k++) {
        /* rank by counting: how many values are at most the estimate, give or take 1 % */
        double estimate = hist_quantile(&h, q[k]);
        uint64_t below = 0, above = 0;
        for (unsigned i = 0; i < 100000; i++) {
            below += (double)value[i] < estimate * 0.99 - 1;
            above += (double)value[i] > estimate * 1.01 + 1;
        }
        assert_true(below <= (uint64_t)ceil(q[k] * 100000));
        assert_true(above <= 100000 - (uint64_t)ceil(q[k] * 100000));
    }
    assert_true(hist_quantile(&h, 0.999999) <= (double)h.max);
}

static void merged_histograms_count_both(void **state)
{
    static struct hist a, b;
    (void)state;
    hist_add(&a, 5);
    hist_add(&b, 5);
    hist_add(&b, 1000000);
    hist_merge(&a, &b);
    assert_int_equal(a.samples, 3);
    assert_int_equal(a.sum, 1000010);
    assert_int_equal(a.max, 1000000);
    assert_int_equal(a.bucket[5], 2);
}

/* ---- sizes ---- */

static uint32_t table[SIZE_TABLE_ENTRIES];
static char why[512];

static void loguniform_covers_octaves_alike(void **state)
{
    (void)state;
    unsigned octave[17] = { 0 };
    assert_int_equal(sizes_fill(table, "loguniform", 16, 65536, 7, why, sizeof why), 0);
    for (unsigned i = 0; i < SIZE_TABLE_ENTRIES; i++) {
        assert_in_range(table[i], 16, 65536);
        octave[31 - __builtin_clz(table[i])]++;
    }
    for (unsigned o = 4; o < 16; o++)
        assert_in_range(octave[o], SIZE_TABLE_ENTRIES / 12 - 3, SIZE_TABLE_ENTRIES / 12 + 3);
}

static void uniform_has_the_middle_as_mean(void **state)
{
    double sum = 0;
    (void)state;
    assert_int_equal(sizes_fill(table, "uniform", 1000, 3000, 7, why, sizeof why), 0);
    for (unsigned i = 0; i < SIZE_TABLE_ENTRIES; i++) {
        assert_in_range(table[i], 1000, 3000);
        sum += table[i];
    }
    assert_true(fabs(sum / SIZE_TABLE_ENTRIES - 2000) < 2);
}

static void fixed_is_one_size(void **state)
{
    (void)state;
    assert_int_equal(sizes_fill(table, "fixed", 48, 65536, 7, why, sizeof why), 0);
    for (unsigned i = 0; i < SIZE_TABLE_ENTRIES; i++)
        assert_int_equal(table[i], 48);
}

static void same_seed_same_table_other_seed_other_order(void **state)
{
    static uint32_t again[SIZE_TABLE_ENTRIES];
    (void)state;
    sizes_fill(table, "loguniform", 16, 65536, 7, why, sizeof why);
    sizes_fill(again, "loguniform", 16, 65536, 7, why, sizeof why);
    assert_memory_equal(table, again, sizeof table);
    sizes_fill(again, "loguniform", 16, 65536, 8, why, sizeof why);
    assert_memory_not_equal(table, again, sizeof table);
}

static const char *file_with(const char *text)
{
    static char path[] = "/tmp/ak-sizes-XXXXXX", spec[64];
    memcpy(path + strlen(path) - 6, "XXXXXX", 6);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    snprintf(spec, sizeof spec, "file:%s", path);
    return spec;
}

static void file_weights_are_followed(void **state)
{
    unsigned small = 0;
    (void)state;
    const char *spec = file_with("# sizes of a parser\n\n32 3\n 4096\t1 \n");
    assert_int_equal(sizes_fill(table, spec, 1, 1, 7, why, sizeof why), 0);
    unlink(spec + 5);
    for (unsigned i = 0; i < SIZE_TABLE_ENTRIES; i++) {
        assert_true(table[i] == 32 || table[i] == 4096);
        small += table[i] == 32;
    }
    assert_in_range(small, SIZE_TABLE_ENTRIES * 3 / 4 - 2, SIZE_TABLE_ENTRIES * 3 / 4 + 2);
}

static void bad_size_files_name_their_line(void **state)
{
    static const struct { const char *text, *says; } bad[] = {
        { "32 1\nsixteen 2\n", ":2: expected" }, { "0 1\n", ":1: expected" },   { "32\n", ":1: expected" },
        { "32 -1\n", ":1: expected" },           { "32 nan\n", ":1: expected" }, { "# only this\n", "no 'size weight' line" },
        { "99999999999999999999 1\n", ":1: expected" },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *spec = file_with(bad[i].text);
        assert_int_equal(sizes_fill(table, spec, 1, 1, 7, why, sizeof why), EXIT_USAGE);
        unlink(spec + 5);
        assert_non_null(strstr(why, bad[i].says));
        assert_non_null(strstr(why, spec + 5));
    }
    assert_int_equal(sizes_fill(table, "file:/nonexistent", 1, 1, 7, why, sizeof why), EXIT_USAGE);
    assert_int_equal(sizes_fill(table, "gaussian", 1, 1, 7, why, sizeof why), EXIT_USAGE);
    assert_int_equal(sizes_fill(table, "uniform", 2, 1, 7, why, sizeof why), EXIT_USAGE);
}

/* ---- options ---- */

static int parse(const char *a, const char *b)
{
    char program[] = "testkernel";
    char *argv[] = { program, (char *)(uintptr_t)a, (char *)(uintptr_t)b, NULL };
    return options_parse(1 + (a != NULL) + (b != NULL), argv);
}

static void numbers_take_suffixes_and_refuse_the_rest(void **state)
{
    uint64_t n;
    (void)state;
    assert_int_equal(parse_number("64K", 1024, 0, UINT64_MAX, &n), 0);
    assert_int_equal(n, 65536);
    assert_int_equal(parse_number("2M", 1000, 0, UINT64_MAX, &n), 0);
    assert_int_equal(n, 2000000);
    static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "1k", "0x10", "1e3", "K", "99999999999999999999",
                                       "18446744073709551615K", "11" };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(parse_number(bad[i], 1024, 0, 10, &n), -1);
}

static void options_set_common_and_own_values(void **state)
{
    (void)state;
    assert_int_equal(parse("--size-max=1M", "--depth=7"), 0);
    assert_int_equal(param_int("size_max"), 1048576);
    assert_int_equal(param_int("depth"), 7);
    assert_string_equal(param_word("shape"), "round");
    assert_string_equal(param_word("variant"), "plain");
    assert_true(variant_is("plain"));
    assert_int_equal(parse("--variant", "fancy"), 0);
    assert_true(variant_is("fancy"));
}

static void bad_options_are_usage_errors(void **state)
{
    static const char *const bad[][2] = {
        { "--threads", "0" }, { "--threads", "4097" }, { "--threads", NULL }, { "--depth=11", NULL }, { "--shape=oval", NULL },
        { "--variant=x", NULL }, { "--nosuch", "1" }, { "stray", NULL }, { "--passes", "throughput,sleep" },
        { "--counters", "all" }, { "--ops", "-5" }, { "--json=1", NULL },
    };
    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(parse(bad[i][0], bad[i][1]), EXIT_USAGE);
}

static void nearest_finds_a_slip_and_refuses_a_stranger(void **state)
{
    static const char *const names[] = { "churn", "chase", "fastpath", NULL };
    (void)state;
    assert_string_equal(nearest("chrun", names), "churn");
    assert_string_equal(nearest("fastpaht", names), "fastpath");
    assert_null(nearest("zzzzzzzzzzzz", names));
    assert_null(nearest("", names));
}

/* ---- barrier ---- */

#define ROUNDS 2000
static struct barrier bar;
static atomic_int in_round[ROUNDS];
static atomic_int early;

static void *barrier_thread(void *arg)
{
    (void)arg;
    for (int r = 0; r < ROUNDS; r++) {
        atomic_fetch_add(&in_round[r], 1);
        barrier_wait(&bar);
        if (atomic_load(&in_round[r]) != 4)
            atomic_fetch_add(&early, 1);
    }
    return NULL;
}

static void nobody_leaves_a_barrier_early(void **state)
{
    (void)state;
    for (unsigned spins = 0; spins <= 100; spins += 100) {
        pthread_t t[4];
        memset(in_round, 0, sizeof in_round);
        barrier_init(&bar, 4, spins);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&t[i], NULL, barrier_thread, NULL), 0);
        for (int i = 0; i < 4; i++)
            pthread_join(t[i], NULL);
        assert_int_equal(atomic_load(&early), 0);
    }
}

/* ---- machine ---- */

static void placements_use_allowed_cpus_and_wrap(void **state)
{
    (void)state;
    for (const char *const *policy = (const char *const[]){ "compact", "scatter", "node:0", NULL }; *policy; policy++) {
        const struct placement *p = placement_plan(*policy, 9, why, sizeof why);
        if (p == NULL)
            fail_msg("%s: %s", *policy, why);
        assert_int_equal(p->threads, 9);
        for (unsigned i = 0; i < 9; i++) {
            bool known = false;
            for (unsigned k = 0; k < p->cpus; k++)
                known |= p->place[k].os == p->cpu[i];
            assert_true(known);
        }
    }
    const struct placement *none = placement_plan("none", 9, why, sizeof why);
    assert_non_null(none);
    assert_int_equal(none->threads, 0);
}

static void compact_and_scatter_use_each_cpu_once_before_wrapping(void **state)
{
    (void)state;
    for (const char *const *policy = (const char *const[]){ "compact", "scatter", NULL }; *policy; policy++) {
        const struct placement *p = placement_plan(*policy, 0, why, sizeof why);
        assert_non_null(p);
        assert_int_equal(p->threads, p->cpus);
        for (unsigned i = 0; i < p->threads; i++)
            for (unsigned j = 0; j < i; j++)
                assert_int_not_equal(p->cpu[i], p->cpu[j]);
    }
}

static void bad_placements_say_what_was_expected(void **state)
{
    (void)state;
    assert_null(placement_plan("sideways", 1, why, sizeof why));
    assert_non_null(strstr(why, "compact, scatter, none or node:N"));
    assert_null(placement_plan("node:999", 1, why, sizeof why));
    assert_null(placement_plan("node:x", 1, why, sizeof why));
    assert_int_equal(memory_policy("everywhere", why, sizeof why), EXIT_USAGE);
    assert_int_equal(memory_policy("bind:x", why, sizeof why), EXIT_USAGE);
    assert_int_equal(memory_policy("local", why, sizeof why), 0);
}

static void the_clock_advances_with_the_system_clock(void **state)
{
    (void)state;
    clock_init();
    assert_true(clock_facts.ns_per_tick > 0 && clock_facts.overhead_ticks > 0);
    assert_in_range(clock_facts.granularity, 1, 1000000);
    uint64_t outer = clock_raw_ns(), ticks = clock_stop(), inner = clock_raw_ns();
    while (clock_raw_ns() - inner < 50000000)
        ;
    uint64_t inner_end = clock_raw_ns(), ticks_end = clock_stop(), outer_end = clock_raw_ns();
    /* Bracketed by the system clock on both sides, so that preemption cannot fail it. */
    double measured = clock_ns((double)(ticks_end - ticks));
    assert_true(measured <= (double)(outer_end - outer) * 1.001);
    assert_true(measured >= (double)(inner_end - inner) * 0.999);
}

static void resident_memory_follows_a_touch(void **state)
{
    enum { BYTES = 8 << 20 };
    (void)state;
    struct resident before = resident_now();
    if (!before.known)
        skip();
    void *memory = ak_map(BYTES);
    struct resident after = resident_now();
    assert_true(after.rss >= before.rss + BYTES * 9 / 10);
    ak_unmap(memory, BYTES);
    assert_true(resident_now().rss <= before.rss + BYTES / 10);
}

static void accounts_grow_with_work(void **state)
{
    (void)state;
    struct thread_account before = account_now();
    volatile uint64_t sum = 0;
    for (uint64_t i = 0; i < 30000000; i++)
        sum += i;
    assert_true(sum > 0);
    void *memory = ak_map(64 * PAGE_BYTES);
    struct thread_account used = account_difference(account_now(), before);
    assert_true(used.cpu_ns > 0);
    assert_true(used.user_ns + used.sys_ns > 0);
    assert_true(used.minor_faults >= 64);
    ak_unmap(memory, 64 * PAGE_BYTES);
}

/* Burns CPU time, and says how much by its own clock. */
static void *burn(void *ns)
{
    struct timespec used = { 0, 0 };
    while (used.tv_sec == 0 && used.tv_nsec < 20000000)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    *(int64_t *)ns = (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
    return NULL;
}

static void the_process_accounts_for_threads_that_ended(void **state)
{
    pthread_t thread;
    int64_t burnt = 0;
    (void)state;
    struct thread_account before = account_of_process();
    assert_int_equal(pthread_create(&thread, NULL, burn, &burnt), 0);
    pthread_join(thread, NULL);
    struct thread_account used = account_difference(account_of_process(), before);
    assert_true(burnt >= 20000000 && used.cpu_ns >= burnt);
    assert_false(used.delay_known);
}

static void provenance_names_what_serves(void **state)
{
    static struct provenance p;
    (void)state;
    provenance_find(&p, "", "string:gnu_get_libc_version");
    assert_string_equal(p.trouble, "");
    assert_true(p.path[0] == '/');
    assert_non_null(served.malloc);
    assert_non_null(served.free);
    assert_non_null(served.realloc);
    assert_non_null(served.calloc);
    assert_non_null(served.aligned_alloc);
    provenance_find(&p, "/nonexistent/libmalloc.so", "");
    assert_non_null(strstr(p.trouble, "expected /nonexistent/libmalloc.so"));
    assert_string_equal(p.version, "");
}

/* ---- lines ---- */

static void shared_lines_are_found_by_address(void **state)
{
    static char arena[4096] __attribute__((aligned(4096)));
    static void *block[2][3];
    static uint32_t size[2][3];
    static struct worker worker[2];
    uint64_t lines;
    (void)state;
    launch.worker = worker;
    launch.threads = 2;
    for (unsigned t = 0; t < 2; t++)
        worker[t].ctx.live = (struct live_set){ block[t], size[t], 3 };
    /* line 0 of both; line 1 of thread 0 alone; a block of thread 1 over lines 4 and 5; NULLs do not count */
    block[0][0] = arena, size[0][0] = 8;
    block[0][1] = arena + 64, size[0][1] = 8;
    block[0][2] = arena + 5 * 64 + 32, size[0][2] = 8;
    block[1][0] = arena + 32, size[1][0] = 8;
    block[1][1] = arena + 4 * 64 + 60, size[1][1] = 8;
    assert_int_equal(ak_lines_shared(64, &lines), 2);
    assert_int_equal(lines, 4);
    assert_int_equal(ak_lines_shared(128, &lines), 2);
    assert_int_equal(lines, 2);
}

/* ---- sampler ---- */

static uint64_t calls;

static void *counted_malloc(size_t n)
{
    static char block[64];
    (void)n;
    calls++;
    return block;
}

static void counted_free(void *p)
{
    (void)p;
    calls++;
}

/* No call is lost or made twice, about one in `gap` is sampled, and the gaps are not all alike. */
static void sampling_is_random_and_complete(void **state)
{
    static struct hist hists[HIST_CALLS];
    static struct sampler sampler;
    (void)state;
    clock_init();
    served.malloc = counted_malloc;
    served.free = counted_free;
    sampler_init(&sampler, hists, 99, 8);
    sampler_use(&sampler);
    calls = 0;
    for (unsigned i = 0; i < 80000; i++)
        timed_free(timed_malloc(16));
    assert_int_equal(calls, 160000);
    uint64_t mallocs = hists[HIST_MALLOC].samples + hists[HIST_TOUCH].samples;
    assert_in_range(mallocs, 9500, 10500);
    assert_in_range(hists[HIST_FREE].samples, 9500, 10500);
    assert_in_range(hists[HIST_TOUCH].samples * 4, mallocs - 4, mallocs + 4);
    assert_int_not_equal(mallocs, 10000);
}

static void *counted_realloc(void *p, size_t n)
{
    (void)p;
    return counted_malloc(n);
}

static void *counted_calloc(size_t n, size_t size)
{
    return counted_malloc(n * size);
}

static void *counted_aligned_alloc(size_t align, size_t size)
{
    (void)align;
    return counted_malloc(size);
}

/* Each call is made once, with a histogram of its own for realloc; what gives a fresh block counts as malloc. */
static void the_whole_family_is_sampled(void **state)
{
    static struct hist hists[HIST_CALLS];
    static struct sampler sampler;
    (void)state;
    clock_init();
    served.realloc = counted_realloc;
    served.calloc = counted_calloc;
    served.aligned_alloc = counted_aligned_alloc;
    sampler_init(&sampler, hists, 7, 1);
    sampler_use(&sampler);
    calls = 0;
    for (unsigned i = 0; i < 400; i++) {
        timed_realloc(NULL, 16);
        timed_calloc(2, 8);
        timed_aligned_alloc(64, 64);
    }
    assert_int_equal(calls, 1200);
    assert_int_equal(hists[HIST_REALLOC].samples, 400);
    assert_int_equal(hists[HIST_MALLOC].samples + hists[HIST_TOUCH].samples, 800);
    assert_int_equal(hists[HIST_TOUCH].samples, 200);
    assert_int_equal(hists[HIST_FREE].samples, 0);
}

/* Two threads that run one after the other for a worker share its gaps and histograms; a stranger's are its own. */
static void *take_over(void *sampler)
{
    sampler_use(sampler);
    for (unsigned i = 0; i < 100; i++)
        timed_free(timed_malloc(16));
    return NULL;
}

static void a_successor_goes_on_with_the_samples(void **state)
{
    static struct hist hists[HIST_CALLS], other_hists[HIST_CALLS];
    static struct sampler sampler, other;
    pthread_t thread;
    (void)state;
    served.malloc = counted_malloc;
    served.free = counted_free;
    sampler_init(&sampler, hists, 7, 1);
    sampler_init(&other, other_hists, 7, 1);
    sampler_use(&other);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread, NULL, take_over, &sampler), 0);
        pthread_join(thread, NULL);
    }
    assert_int_equal(hists[HIST_FREE].samples, 200);
    assert_int_equal(other_hists[HIST_FREE].samples, 0);
}

static void stubs_stay_inside_their_pool(void **state)
{
    static _Alignas(4096) char pool[STUB_REACH + STUB_SPREAD + CACHE_LINE];
    (void)state;
    stub_init(pool);
    for (size_t size = 1; size <= STUB_REACH; size = size * 3 / 2 + 1) {
        char *blocks[] = { stub_malloc(size), stub_calloc(1, size), stub_realloc(pool, size), stub_aligned_alloc(64, size),
                           stub_aligned_alloc(4096, size) };
        for (unsigned i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
            assert_true(blocks[i] >= pool && blocks[i] + size <= pool + sizeof pool);
        assert_int_equal((uintptr_t)blocks[3] % 64, 0);
        assert_int_equal((uintptr_t)blocks[4] % 4096, 0);
    }
}

/* ---- looks ---- */

static void looks_are_those_of_the_timeline(void **state)
{
    static struct sample timeline[8];
    struct look look;
    (void)state;
    assert_int_equal(parse("--mem-steps=3", NULL), 0);
    launch.timeline = timeline;
    launch.samples = 8;
    launch.memory_first = 3;
    launch.ran_memory = true;
    timeline[4] = (struct sample){ .t_ns = 9, .resident = { .known = true, .rss = 700 }, .live = 30, .usable = 40 };
    for (unsigned i = 0; i < 8; i++) {
        assert_true(ak_look(i, &look));
        assert_int_equal(look.memory_pass, i >= 3 && i < 6);
    }
    assert_false(ak_look(8, &look));
    assert_true(ak_look(4, &look));
    assert_true(look.t_ns == 9 && look.rss == 700 && look.live == 30 && look.usable == 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_tile_the_line),
        cmocka_unit_test(huge_values_go_into_the_last_bucket),
        cmocka_unit_test(quantiles_are_within_one_percent),
        cmocka_unit_test(merged_histograms_count_both),
        cmocka_unit_test(loguniform_covers_octaves_alike),
        cmocka_unit_test(uniform_has_the_middle_as_mean),
        cmocka_unit_test(fixed_is_one_size),
        cmocka_unit_test(same_seed_same_table_other_seed_other_order),
        cmocka_unit_test(file_weights_are_followed),
        cmocka_unit_test(bad_size_files_name_their_line),
        cmocka_unit_test(numbers_take_suffixes_and_refuse_the_rest),
        cmocka_unit_test(options_set_common_and_own_values),
        cmocka_unit_test(bad_options_are_usage_errors),
        cmocka_unit_test(nearest_finds_a_slip_and_refuses_a_stranger),
        cmocka_unit_test(nobody_leaves_a_barrier_early),
        cmocka_unit_test(placements_use_allowed_cpus_and_wrap),
        cmocka_unit_test(compact_and_scatter_use_each_cpu_once_before_wrapping),
        cmocka_unit_test(bad_placements_say_what_was_expected),
        cmocka_unit_test(the_clock_advances_with_the_system_clock),
        cmocka_unit_test(resident_memory_follows_a_touch),
        cmocka_unit_test(accounts_grow_with_work),
        cmocka_unit_test(the_process_accounts_for_threads_that_ended),
        cmocka_unit_test(provenance_names_what_serves),
        cmocka_unit_test(shared_lines_are_found_by_address),
        cmocka_unit_test(sampling_is_random_and_complete),
        cmocka_unit_test(the_whole_family_is_sampled),
        cmocka_unit_test(a_successor_goes_on_with_the_samples),
        cmocka_unit_test(stubs_stay_inside_their_pool),
        cmocka_unit_test(looks_are_those_of_the_timeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
