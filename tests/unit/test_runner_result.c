/* What a launch comes to: nothing that a kernel prints is believed unchecked, no row that is not ok has
 * numbers. */
#include "csv.h"
#include "result.h"
#include "test_runner_fixture.h"

#include <signal.h>

#define PATH "/lib/liba.so"
#define ID   "0123abcd"
#define ROW(more)                                                                                            \
    "{\"schema\": 1, \"row\": {\"kernel\": \"churn\", \"threads\": 2, \"allocator_path\": \"" PATH           \
    "\", \"allocator_build_id\": \"" ID "\", \"status\": \"ok\"" more "}}"
#define WORK ", \"ops\": 20, \"wall_ns\": 10"

struct launch {
    struct sweep sweep;
    struct plan plan;
    struct result result;
    struct child_outcome outcome;
};

static const struct run_facts facts = {"run-1", "test", "machine", 4};

static void take(struct fixture *x, struct launch *l, enum child_end end, int code, const char *out,
                 const char *err)
{
    assert_true(fixture_plan(x, "kernel = churn\nallocators = aa\nthreads = 2\nops = 10\n", "smoke",
                             &l->sweep, &l->plan));
    struct allocator *al = l->plan.block[0].member[0].allocator;
    al->found = true;
    al->real = PATH;
    al->build_id = ID;
    l->outcome = (struct child_outcome){.end = end, .code = code};
    buffer_add(&l->outcome.out, out, strlen(out));
    buffer_add(&l->outcome.err, err, strlen(err));
    result_begin(&x->arena, &facts, &l->plan.row[0], "2026-01-01T00:00:00Z", &l->result);
    result_take(&x->arena, &l->result, &l->plan.row[0], &l->outcome, 0);
    child_outcome_free(&l->outcome);
}

static const char *value(const struct launch *l, const char *column)
{
    const char *text = l->result.value[column_find(column)];
    return text ? text : "";
}

/* Identity stays, numbers go. */
static void assert_bare(const struct launch *l, enum status status)
{
    assert_int_equal(l->result.status, status);
    assert_string_equal(value(l, "kernel"), "churn");
    assert_string_equal(value(l, "allocator"), "aa");
    assert_string_equal(value(l, "threads"), "2");
    assert_string_equal(value(l, "ops_per_thread"), "10");
    assert_string_equal(value(l, "live_blocks"), "1000");
    assert_true(*l->result.detail != '\0');
    assert_null(strchr(l->result.detail, '\n'));
    for (size_t i = 0; i < column_count; i++)
        if (columns[i].role == ROLE_MEASURED)
            assert_null(l->result.value[i]);
    for (int s = 0; s < SIDES; s++)
        assert_int_equal(l->result.side[s].length, 0);
}

static void good(void **state)
{
    struct fixture *x = *state;
    struct launch l;
    take(x, &l, CHILD_EXITED, 0,
         "{\"schema\": 1, \"row\": {\"status\": \"ok\", \"allocator_path\": \"" PATH
         "\", \"allocator_build_id\": \"" ID
         "\", \"ops\": 20, \"wall_ns\": 10, \"ops_per_s\": 2e9, \"lat_p50_ns\": 12.34567, \"l3_miss\": null,"
         "\"rss_overhead_bytes\": -5, \"steal_ratio\": 0.25, \"counters_reason\": \"a, b\\nc\"},"
         "\"metrics\": [{\"name\": \"param.x\", \"unit\": \"\", \"value\": \"w\", \"reason\": null},"
         "{\"name\": \"m\", \"unit\": \"ns\", \"value\": null, \"reason\": \"no, not here\"}],"
         "\"hist\": [{\"call\": \"malloc\", \"buckets\": [[1, 1.01, 3]]},"
         "{\"call\": \"realloc\", \"buckets\": [[2, 2.02, 4]]}], \"timeline\": [[0, 1, 2, 3]],"
         "\"matrix\": [{\"from_cpu\": 0, \"to_cpu\": 1, \"state\": \"modified\", \"ns\": 80.12345, "
         "\"distance\": \"l3\"}]}",
         "");
    assert_int_equal(l.result.status, STATUS_OK);
    assert_string_equal(value(&l, "ops_per_s"), "2000000000.000");
    assert_string_equal(value(&l, "lat_p50_ns"), "12.346");
    assert_string_equal(value(&l, "l3_miss"), "");
    assert_string_equal(value(&l, "rss_overhead_bytes"), "-5");
    assert_string_equal(value(&l, "steal_ratio"), "0.250000");
    assert_string_equal(value(&l, "counters_reason"), "a, b c");
    assert_has(l.result.side[SIDE_HIST].data, ",malloc,1.000,1.010,3\n");
    assert_has(l.result.side[SIDE_HIST].data, ",realloc,2.000,2.020,4\n");
    assert_has(l.result.side[SIDE_TIMELINE].data, ",0,1,2,3\n");
    assert_has(l.result.side[SIDE_METRICS].data, ",param.x,,w,\n");
    assert_has(l.result.side[SIDE_METRICS].data, ",m,ns,,\"no, not here\"\n");
    assert_has(l.result.side[SIDE_MATRIX].data, ",0,1,modified,80.123,l3\n");
    struct buffer line = {0};
    result_csv(&l.result, &line);
    struct arena row = {0};
    struct csv_reader r;
    csv_open(&r, &row, "runs.csv", line.data, line.length);
    assert_true(csv_next(&r, &x->fault));
    assert_int_equal(r.fields, column_count);
    assert_string_equal(r.field[column_find("status")], "ok");
    arena_free(&row);
    buffer_free(&line);
    result_free(&l.result);
}

static void bad_output(void **state)
{
    struct fixture *x = *state;
    static const struct {
        const char *out, *detail;
    } cases[] = {
        {"", "no result"},
        {"{\"schema\": 1, \"row\": {", "no result"},
        {"[1, 2]", "no row"},
        {"{\"schema\": 2, \"row\": {}}", "schema is not 1"},
        {"{\"schema\": 1, \"row\": {\"ops\": NaN}}", "no result"},
        {"{\"schema\": 1, \"row\": {\"a\": 1, \"a\": 2}}", "duplicate"},
        {"{\"schema\": 1, \"row\": {\"ops\": 99999999999999999999999}}", "too big"},
        {ROW(WORK) " trailing", "no result"},
        {ROW(", \"ops\": \"20\""), "ops is \"20\", expected a whole number"},
        {ROW(", \"ops\": 20.5"), "ops is 20.5, expected a whole number"},
        {ROW(", \"ops\": -1"), "expected a whole number"},
        {ROW(WORK ", \"steal_ratio\": 1.5"), "expected a ratio"},
        {ROW(WORK ", \"ops_per_s\": 1e300"), "expected a number"},
        {ROW(WORK ", \"counters\": 5"), "expected text"},
        {ROW(""), "did no operation"},
        {ROW(", \"ops\": 0"), "did no operation"},
        {ROW(WORK ", \"seed\": 99"), "answered for seed '99'"},
        {ROW(WORK ", \"size_min\": 1"), "answered for size_min '1', planned was '16'"},
        {ROW(WORK ", \"live_blocks\": 1"), "answered for live_blocks"},
        {"{\"schema\": 1, \"row\": {\"status\": \"crash\"}}", "status 'crash'"},
        {"{\"schema\": 1, \"row\": {}}", "status ''"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct launch l;
        take(x, &l, CHILD_EXITED, 0, cases[i].out, "");
        assert_bare(&l, STATUS_ERROR);
        assert_has(l.result.detail, cases[i].detail);
    }
}

static void bad_sides(void **state)
{
    struct fixture *x = *state;
    static const char *const sides[] = {
        "\"hist\": [{\"call\": \"mallocs\", \"buckets\": []}]",
        "\"hist\": [{\"call\": \"malloc\", \"buckets\": [[1, 2]]}]",
        "\"hist\": [{\"call\": \"malloc\", \"buckets\": [[2, 1, 1]]}]",
        "\"timeline\": [[1, 2, 3]]",
        "\"timeline\": [[1, 2, 3, -4]]",
        "\"metrics\": [{\"unit\": \"ns\"}]",
        "\"metrics\": [{\"name\": \"a\", \"value\": [1]}]",
        "\"matrix\": [{\"from_cpu\": 0}]",
    };
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        struct launch l;
        char *out = arena_printf(&x->arena,
                                 "{\"schema\": 1, \"row\": {\"status\": \"ok\", \"allocator_path\": \"" PATH
                                 "\", \"allocator_build_id\": \"" ID "\"" WORK "}, %s}",
                                 sides[i]);
        take(x, &l, CHILD_EXITED, 0, out, "");
        assert_bare(&l, STATUS_ERROR);
    }
}

/* The runner proves the allocator by itself. */
static void who_served(void **state)
{
    struct fixture *x = *state;
    struct launch l;
    take(x, &l, CHILD_EXITED, 0,
         "{\"schema\": 1, \"row\": {\"status\": \"ok\", \"allocator_path\": \"/lib/libc.so.6\"" WORK "}}",
         "");
    assert_bare(&l, STATUS_WRONG_ALLOCATOR);
    assert_has(l.result.detail, "served by /lib/libc.so.6, expected " PATH);
    assert_string_equal(value(&l, "allocator_path"), "/lib/libc.so.6");
    take(x, &l, CHILD_EXITED, 0,
         "{\"schema\": 1, \"row\": {\"status\": \"ok\", \"allocator_path\": \"" PATH
         "\", \"allocator_build_id\": \"ff\"" WORK "}}",
         "");
    assert_bare(&l, STATUS_WRONG_ALLOCATOR);
    assert_has(l.result.detail, "build-id ff");
    /* a path that differs in nothing that a line of text could carry */
    take(x, &l, CHILD_EXITED, 0,
         "{\"schema\": 1, \"row\": {\"status\": \"ok\", \"allocator_path\": \"" PATH
         "\\u0001\", \"allocator_build_id\": \"" ID "\"" WORK "}}",
         "");
    assert_bare(&l, STATUS_WRONG_ALLOCATOR);
    take(x, &l, CHILD_EXITED, 0, "{\"schema\": 1, \"row\": {\"status\": \"ok\"" WORK "}}", "");
    assert_bare(&l, STATUS_WRONG_ALLOCATOR);
    take(x, &l, CHILD_EXITED, 1,
         "{\"schema\": 1, \"row\": {\"status\": \"wrong_allocator\", \"status_detail\": \"x\\ny\", \"ops\": "
         "5}}",
         "");
    assert_bare(&l, STATUS_WRONG_ALLOCATOR);
    assert_string_equal(l.result.detail, "x y");
}

static void ends(void **state)
{
    struct fixture *x = *state;
    struct launch l;
    take(x, &l, CHILD_SIGNALLED, SIGSEGV, ROW(WORK), "some\nlast words\n");
    assert_bare(&l, STATUS_CRASH);
    assert_has(l.result.detail, "SIGSEGV");
    assert_has(l.result.detail, "last words");
    take(x, &l, CHILD_SIGNALLED, SIGKILL, "", "");
    assert_bare(&l, STATUS_CRASH); /* by whom nobody knows: no out-of-memory kill was counted */
    assert_has(l.result.detail, "signal 9");
    take(x, &l, CHILD_TIMED_OUT, SIGKILL, ROW(WORK), "");
    assert_bare(&l, STATUS_TIMEOUT);
    take(x, &l, CHILD_EXITED, 1,
         "{\"schema\": 1, \"row\": {\"status\": \"verify_failed\", \"status_detail\": \"sum\"}}", "");
    assert_bare(&l, STATUS_VERIFY_FAILED);
    take(x, &l, CHILD_EXITED, 2, "", "churn: unknown option\n");
    assert_bare(&l, STATUS_ERROR);
    assert_string_equal(l.result.detail, "exit status 2: churn: unknown option");
    take(x, &l, CHILD_EXITED, 1, ROW(WORK), "");
    assert_bare(&l, STATUS_ERROR); /* says ok, exits 1 */
    take(x, &l, CHILD_EXITED, 0, "{\"schema\": 1, \"row\": {\"status\": \"verify_failed\"}}", "");
    assert_bare(&l, STATUS_ERROR);
    take(x, &l, CHILD_OVERFLOW, 0, "", "");
    assert_bare(&l, STATUS_ERROR);
    take(x, &l, CHILD_NO_EXEC, 2, "", "");
    assert_bare(&l, STATUS_ERROR);
    take(x, &l, CHILD_LOST, 0, "", "\033[2J\x01\xff");
    assert_bare(&l, STATUS_ERROR);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)
    const struct CMUnitTest tests[] = {WITH(good), WITH(bad_output), WITH(bad_sides), WITH(who_served),
                                       WITH(ends)};
    return cmocka_run_group_tests_name("runner_result", tests, NULL, NULL);
}
