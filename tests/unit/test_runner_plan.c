/* What a plan promises: counts, seeds, order and ids. */
#include "test_runner_fixture.h"

#define BASE "kernel = churn, null, share\nallocators = glibc, aa, bb\nthreads = 1, 2\nshare.threads = 2\n"

static size_t count(const struct plan *p, const char *kernel, const char *allocator)
{
    size_t n = 0;
    for (size_t i = 0; i < p->rows; i++)
        n +=
            strcmp(p->row[i].block->kernel->name, kernel) == 0 &&
            (!allocator || strcmp(p->row[i].block->member[p->row[i].member].allocator->name, allocator) == 0);
    return n;
}

static void counts(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    assert_true(fixture_plan(x, BASE "live_blocks = 10, 20\nvariant = shared, private\n", "quick", &s, &p));
    assert_int_equal(p.reps, 3);
    assert_int_equal(count(&p, "churn", NULL), 2 * 2 * 3 * 3);
    assert_int_equal(count(&p, "share", NULL), 2 * 3 * 3);
    assert_int_equal(count(&p, "null", NULL), 2 * 3); /* one allocator is enough for a kernel that has none */
    assert_int_equal(count(&p, "null", "glibc"), 2 * 3);
    assert_true(fixture_plan(x, BASE "null.allocators = aa, bb\n", "smoke", &s, &p));
    assert_int_equal(count(&p, "null", NULL), 2 * 2);
    assert_int_equal(p.row[0].block->timeout_s, 300);
}

static void work_is_a_union(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    assert_true(
        fixture_plan(x, "kernel = churn\nallocators = aa\nops = 5, 6\nops_total = 1K\n", "smoke", &s, &p));
    assert_int_equal(p.rows, 3);
    assert_true(fixture_plan(x, "kernel = churn\nallocators = aa\nops_total = 7\n", "quick", &s, &p));
    assert_int_equal(p.rows, 3); /* the preset file's ops = 20 does not join in */
    assert_string_equal(block_option(p.row[0].block, "ops_total"), "7");
    assert_string_equal(block_option(p.row[0].block, "ops"), "");
    assert_true(fixture_plan(x, "kernel = churn\nallocators = aa\n", "quick", &s, &p));
    assert_string_equal(block_option(p.row[0].block, "ops"), "20");
}

static void sizes(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    assert_true(fixture_plan(x, "kernel = churn\nallocators = aa\nsize = 16, 4K\n", "smoke", &s, &p));
    assert_int_equal(p.rows, 2);
    assert_string_equal(block_option(&p.block[1], "size_min"), "4096");
    assert_string_equal(block_option(&p.block[1], "size_max"), "4096");
    assert_string_equal(block_option(&p.block[1], "size_dist"), "fixed");
    assert_true(fixture_plan(x, "kernel = churn\nallocators = aa\nsize_min = 8\n[smoke]\nsize = 32\n",
                             "smoke", &s, &p));
    assert_string_equal(block_option(&p.block[0], "size_max"), "32"); /* the later level wins */
    fixture_write(x, "sizes.txt", "16 1\n");
    assert_true(
        fixture_plan(x, "kernel = churn\nallocators = aa\nsize_dist = file:sizes.txt\n", "smoke", &s, &p));
    for (size_t i = 0; i < p.block->options; i++)
        if (strcmp(p.block->option[i].key, "size_dist") == 0) {
            assert_string_equal(p.block->option[i].stable, "file:sizes.txt");
            assert_has(p.block->option[i].value, "file:/tmp/ak-unit-");
        }
}

/* What a kernel has for its sizes where a sweep gives none. */
static void sizes_of_the_kernel(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    fixture_kernel(x, "big", "\"sizes\": true, \"size_min\": \"64K\", \"size_max\": \"4M\", \"params\": []");
    assert_true(fixture_plan(x, "kernel = big\nallocators = aa\n", "smoke", &s, &p));
    assert_string_equal(block_option(p.block, "size_min"), "65536");
    assert_string_equal(block_option(p.block, "size_max"), "4194304");
    assert_true(fixture_plan(x, "kernel = big\nallocators = aa\nsize_max = 8M\n", "smoke", &s, &p));
    assert_string_equal(block_option(p.block, "size_max"), "8388608");
    assert_true(fixture_plan(x, "kernel = churn\nallocators = aa\n", "smoke", &s, &p));
    assert_string_equal(block_option(p.block, "size_max"), "65536");
    static const char bad[] = "{\"name\": \"k\", \"sizes\": true, \"size_min\": \"many\"}";
    struct kernel_info k = {.name = "k"};
    assert_false(kernel_description(&x->arena, bad, sizeof bad - 1, &k));
    assert_has(k.trouble, "no size");
}

static void seeds(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    assert_true(fixture_plan(x, BASE "reps = 20\n", "quick", &s, &p));
    for (size_t i = 0; i < p.rows; i++)
        for (size_t j = 0; j < i; j++) {
            bool same = p.row[i].block == p.row[j].block && p.row[i].rep == p.row[j].rep;
            assert_int_equal(same, p.row[i].seed == p.row[j].seed);
            assert_string_not_equal(p.row[i].row_id, p.row[j].row_id);
        }
    for (size_t i = 0; i < p.rows; i++)
        assert_in_range(p.row[i].seed, 1, INT32_MAX);
}

/* Repetition outermost; the allocators of a cell next to each other; neither order always the same. */
static void order(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    size_t first[3] = {0}, moved = 0;
    assert_true(fixture_plan(x, BASE "reps = 60\n", "quick", &s, &p));
    for (size_t i = 1; i < p.rows; i++)
        assert_true(p.row[i].rep >= p.row[i - 1].rep);
    for (size_t i = 0; i < p.rows; i += p.row[i].block->members) {
        for (size_t m = 0; m < p.row[i].block->members; m++)
            assert_ptr_equal(p.row[i + m].block, p.row[i].block);
        if (p.row[i].block->members == 3)
            first[p.row[i].member]++;
        moved += p.row[i].block != &p.block[0];
    }
    for (int m = 0; m < 3; m++)
        assert_in_range(first[m], 30, 90); /* 180 blocks of three: 60 each */
    assert_true(moved > 60);
}

static const struct planned *find(const struct plan *p, const char *row_id)
{
    for (size_t i = 0; i < p->rows; i++)
        if (strcmp(p->row[i].row_id, row_id) == 0)
            return &p->row[i];
    return NULL;
}

/* Ids name the cell, not its place: other orders of lists, other allocators beside it, more repetitions. */
static void ids_are_stable(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p, q;
    assert_true(fixture_plan(x, BASE "seed = 3\n", "quick", &s, &p));
    assert_true(
        fixture_plan(x,
                     "seed = 3\nthreads = 2, 1\nkernel = share, null, churn\nallocators = cc, bb, glibc, aa\n"
                     "share.threads = 2\nreps = 4\n",
                     "quick", &s, &q));
    for (size_t i = 0; i < p.rows; i++) {
        const struct planned *same = find(&q, p.row[i].row_id);
        assert_non_null(same);
        assert_int_equal(same->rep, p.row[i].rep);
        assert_int_equal(same->seed, p.row[i].seed);
    }
    assert_true(fixture_plan(x, BASE "seed = 4\n", "quick", &s, &q));
    for (size_t i = 0; i < p.rows; i++)
        assert_null(find(&q, p.row[i].row_id));
}

static void same_seed_same_text(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    struct buffer one = {0}, two = {0}, other = {0};
    assert_true(fixture_plan(x, BASE, "quick", &s, &p));
    plan_csv(&p, &one);
    assert_true(fixture_plan(x, BASE, "quick", &s, &p));
    plan_csv(&p, &two);
    assert_string_equal(one.data, two.data);
    assert_true(fixture_plan(x, BASE "seed = 2\n", "quick", &s, &p));
    plan_csv(&p, &other);
    assert_string_not_equal(one.data, other.data);
    buffer_free(&one);
    buffer_free(&two);
    buffer_free(&other);
}

static void what_cannot_run(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    assert_true(fixture_plan(x, "kernel = share\nallocators = aa\nthreads = 1, 2\n", "smoke", &s, &p));
    assert_int_equal(p.rows, 2);
    size_t skipped = 0;
    for (size_t i = 0; i < p.rows; i++)
        if (p.row[i].block->member[0].skip) {
            skipped++;
            assert_has(p.row[i].block->member[0].skip, "at least 2 threads");
        }
    assert_int_equal(skipped, 1);
    assert_true(
        fixture_plan(x, "kernel = churn, share\nallocators = aa, floor\nthreads = 2\n", "smoke", &s, &p));
    assert_int_equal(count(&p, "churn", "floor"), 1);
    assert_int_equal(count(&p, "share", "floor"), 0); /* the registry keeps it out */
    assert_true(fixture_sweep(x, "kernel = churn, share\nallocators = aa\nthreads = 2\n", "smoke", &s));
    sweep_override(&x->arena, &s, "allocators", "floor");
    assert_true(plan_make(&x->arena, &x->paths, &s, &x->kernels, &x->registry, 4, &p, &x->fault));
    assert_int_equal(count(&p, "share", "floor"), 1); /* asked for by name: planned, with the reason */
    for (size_t i = 0; i < p.rows; i++)
        if (strcmp(p.row[i].block->kernel->name, "share") == 0)
            assert_has(p.row[i].block->member[0].skip, "does not run in share");
    assert_true(fixture_plan(x, "kernel = churn\nallocators = aa, floor\nops = 1G\n", "smoke", &s, &p));
    assert_int_equal(count(&p, "churn", "floor"), 1); /* would need terabytes: planned, with the reason */
    for (size_t i = 0; i < p.rows; i++)
        for (size_t m = 0; m < p.row[i].block->members; m++)
            if (strcmp(p.row[i].block->member[m].allocator->name, "floor") == 0)
                assert_has(p.row[i].block->member[m].skip, "never frees");
}

/* What a launch takes is the kernel's to tell; without that it is what it was before kernels could. */
static void estimates(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    fixture_kernel(x, "lines", "\"start_s\": 0.5, \"op_ns\": 2e3, \"params\": []");
    fixture_kernel(x, "file",
                   "\"start_s\": 1, \"op_ns\": 2, \"op_times\": \"file_bytes\", \"params\": [{\"name\": "
                   "\"file_bytes\", \"type\": \"size\", \"default\": \"1K\"}]");
    fixture_kernel(
        x, "server",
        "\"timed\": true, \"start_s\": 0.25, \"params\": [{\"name\": \"seconds\", \"type\": \"int\", "
        "\"default\": \"5\"}, {\"name\": \"rest_s\", \"type\": \"int\", \"default\": \"10\"}]");
    static const struct {
        const char *kernel, *more;
        double seconds; /* of the first row, by the text above */
        uint64_t launches;
    } cases[] = {
        {"churn", "ops = 1M\n", 0.06 + 1e6 * 400e-9, 1},
        {"lines", "ops = 1M\n", 0.5 + 1e6 * 2e-6, 1},
        {"lines", "ops_total = 1M\nthreads = 2\n", 0.5 + 0.5e6 * 2e-6, 1},
        {"lines", "ops = 1M\nwarmup = 2\n", 3 * (0.5 + 1e6 * 2e-6), 3},
        {"lines", "ops = 1G\ntimeout = 9\n", 9, 1},
        {"file", "ops = 3\nfile_bytes = 1M\n", 1 + 3 * 1048576 * 2e-9, 1},
        {"server", "ops = 1G\nseconds = 3\n", 0.25 + 3 + 10, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text =
            arena_printf(&x->arena, "kernel = %s\nallocators = aa\n%s", cases[i].kernel, cases[i].more);
        assert_true(fixture_plan(x, text, "smoke", &s, &p));
        assert_int_equal(plan_row_launches(&p.row[0]), cases[i].launches);
        assert_float_equal(plan_row_ns(&p.row[0]) / 1e9, cases[i].seconds, 1e-6);
    }
    assert_true(fixture_plan(x, "kernel = lines\nallocators = aa\nwarmup = 2\n", "quick", &s, &p));
    for (size_t i = 0; i < p.rows; i++) /* only the first repetition has warm-ups */
        assert_int_equal(plan_row_launches(&p.row[i]), p.row[i].rep == 1 ? 3 : 1);
}

static void own_threads(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    assert_true(fixture_plan(x, "kernel = c2c\nallocators = aa, bb\nthreads = 1, 2, 4\n", "smoke", &s, &p));
    assert_int_equal(p.rows, 1);
    assert_int_equal(p.block[0].threads, 0);
    assert_string_equal(block_option(&p.block[0], "threads"), "");
}

static void too_large(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    struct buffer text = {0};
    buffer_addf(&text, "kernel = churn\nallocators = aa\nreps = 100000\nthreads = 1");
    for (int i = 2; i < 40; i++)
        buffer_addf(&text, ", %d", i);
    buffer_addf(&text, "\n");
    assert_false(fixture_plan(x, text.data, "smoke", &s, &p));
    assert_int_equal(x->fault.code, AK_USAGE);
    assert_has(x->fault.text, "expected at most 1000000");
    buffer_free(&text);
}

/* What plan.csv says of a row is enough to tell its id and seed again, whatever the path of a table of sizes. */
static void told_again(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    fixture_write(x, "a b=c placement=x.sizes", "16 1\n");
    assert_true(fixture_plan(x,
                             "kernel = churn, share\nallocators = aa, bb\nthreads = 2\nseed = 7\n"
                             "churn.size_dist = file:a b=c placement=x.sizes\n",
                             "quick", &s, &p));
    for (size_t i = 0; i < p.rows; i++) {
        const struct block *b = p.row[i].block;
        struct buffer text = {0};
        struct option_pair *option;
        size_t count;
        char id[ROW_ID_LENGTH + 1];
        uint64_t seed;
        for (size_t o = 0; o < b->options; o++)
            buffer_addf(&text, "%s%s=%s", o ? " " : "", b->option[o].key, b->option[o].stable);
        assert_true(plan_options(&x->arena, text.data, &option, &count));
        assert_int_equal(count, b->options);
        for (size_t o = 0; o < count; o++)
            assert_string_equal(option[o].value, b->option[o].stable);
        plan_identify(plan_hash(s.name, b->kernel->name, option, count),
                      b->member[p.row[i].member].allocator->name, p.row[i].rep, p.seed, id, &seed);
        assert_string_equal(id, p.row[i].row_id);
        assert_int_equal(seed, p.row[i].seed);
        buffer_free(&text);
    }
    struct option_pair *none;
    size_t count;
    assert_false(plan_options(&x->arena, "threads=1 nothing", &none, &count));
    assert_true(plan_options(&x->arena, "", &none, &count) && count == 0);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)
    const struct CMUnitTest tests[] = {
        WITH(counts),          WITH(work_is_a_union), WITH(sizes),          WITH(sizes_of_the_kernel),
        WITH(seeds),           WITH(order),           WITH(ids_are_stable), WITH(same_seed_same_text),
        WITH(what_cannot_run), WITH(own_threads),     WITH(told_again),     WITH(too_large),
        WITH(estimates),
    };
    return cmocka_run_group_tests_name("runner_plan", tests, NULL, NULL);
}
