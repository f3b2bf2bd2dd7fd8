/* CSV text, and a results folder that is cut at any byte. */
#include "csv.h"
#include "inifile.h"
#include "results.h"
#include "test_runner_fixture.h"

static void quoting(void **state)
{
    (void)state;
    struct buffer b = {0};
    static const char *const fields[] = {"plain", "", "a,b", "say \"hi\"", "two\nlines", " blank "};
    for (size_t i = 0; i < 6; i++)
        csv_field(&b, fields[i]);
    csv_end_row(&b);
    assert_string_equal(b.data, "plain,,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\", blank \n");
    struct arena row = {0};
    struct csv_reader r;
    struct fault f = {0};
    csv_open(&r, &row, "t.csv", b.data, b.length);
    assert_true(csv_next(&r, &f));
    assert_int_equal(r.fields, 6);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(r.field[i], fields[i]);
    assert_false(csv_next(&r, &f));
    assert_int_equal(f.code, AK_DONE);
    arena_free(&row);
    buffer_free(&b);
}

static void broken_csv(void **state)
{
    struct fixture *x = *state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "empty, expected a header"},
        {"a,b\n1,2\n3\n", ":3: 1 fields, expected 2"},
        {"a,b\n1,\"2\n", ":2: a quoted field without end"},
        {"a,b\n1,\"2\"x\n", ":2: text after a closing quote"},
        {"a,b\n1,2\"x\n", ":2: a quote within"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct csv_table t;
        struct fault f = {0};
        assert_false(csv_read(&x->arena, fixture_write(x, "t.csv", cases[i].text), &t, &f));
        assert_int_equal(f.code, AK_USAGE);
        assert_has(f.text, cases[i].message);
    }
}

/* ---- a folder ---- */

struct run {
    struct sweep sweep;
    struct plan plan;
    struct results results;
    json_t *meta;
    char *folder;
};

static void begin(struct fixture *x, struct run *run, const char *name)
{
    assert_true(fixture_plan(x, "kernel = churn\nallocators = aa, bb\n", "quick", &run->sweep, &run->plan));
    run->folder = arena_printf(&x->arena, "%s/%s", x->folder, name);
    run->meta = json_pack("{s:i}", "schema", 1);
    assert_true(results_lock(&run->results, run->folder, &x->fault));
    assert_int_equal(results_state(run->folder), FOLDER_EMPTY);
    assert_true(results_create(&run->results, &run->plan, run->meta, &x->fault));
    assert_int_equal(results_state(run->folder), FOLDER_COMPLETE);
}

static void end(struct run *run)
{
    results_close(&run->results);
    json_decref(run->meta);
}

/* A row as the runner writes it, with two lines in a side file. */
static bool append(struct fixture *x, struct run *run, size_t at)
{
    struct buffer row = {0}, side[SIDES] = {{0}};
    const char *id = run->plan.row[at].row_id;
    csv_field(&row, id);
    for (size_t i = 1; i < column_count; i++)
        csv_field(&row, i == 21 ? "why, \"so\"" : "");
    csv_end_row(&row);
    buffer_addf(&side[SIDE_HIST], "%s,malloc,1.000,2.000,3\n%s,free,1.000,2.000,3\n", id, id);
    bool good = results_append(&run->results, side, &row, &x->fault);
    buffer_free(&row);
    buffer_free(&side[SIDE_HIST]);
    return good;
}

static char *slurp(struct fixture *x, const char *folder, const char *file, size_t *length)
{
    char *text =
        file_read(&x->arena, arena_printf(&x->arena, "%s/%s", folder, file), 1 << 20, length, &x->fault);
    assert_non_null(text);
    return text;
}

static void spill(struct fixture *x, const char *folder, const char *file, const char *bytes, size_t length)
{
    fixture_write_bytes(x, arena_printf(&x->arena, "%s/%s", strrchr(folder, '/') + 1, file), bytes, length);
}

/* Whatever byte runs.csv ends at, resuming keeps the whole rows, drops the side lines of the others, and
 * the rest can be appended: the end is the same as without any interruption. */
static void any_torn_end(void **state)
{
    struct fixture *x = *state;
    struct run run;
    size_t runs_length, hist_length, length;
    begin(x, &run, "whole");
    for (size_t i = 0; i < run.plan.rows; i++)
        assert_true(append(x, &run, i));
    char *runs = slurp(x, run.folder, FILE_RUNS, &runs_length);
    char *hist = slurp(x, run.folder, "hist.csv", &hist_length);
    end(&run);
    begin(x, &run, "torn");
    end(&run);
    for (size_t cut = 0; cut <= runs_length; cut += 1 + cut / 300) {
        spill(x, run.folder, FILE_RUNS, runs, cut);
        spill(x, run.folder, "hist.csv", hist, cut % 3 ? hist_length : hist_length - 7);
        assert_true(results_lock(&run.results, run.folder, &x->fault));
        if (!results_resume(&x->arena, &run.results, &run.plan, &x->fault))
            fail_msg("cut at %zu: %s", cut, x->fault.text);
        size_t whole = 0;
        for (size_t i = 0; i < cut; i++)
            whole += runs[i] == '\n';
        whole -= whole > 0; /* the header */
        /* without its newline the last row was never committed */
        assert_int_equal(run.results.done_count, whole);
        if (cut % 3) /* else a committed row's lines were cut, which no death of ak can do */
            for (size_t i = 0; i < run.plan.rows; i++)
                if (!run.results.done[i])
                    assert_true(append(x, &run, i));
        results_close(&run.results);
        if (cut % 3) {
            assert_memory_equal(slurp(x, run.folder, FILE_RUNS, &length), runs, runs_length);
            assert_int_equal(length, runs_length);
            assert_memory_equal(slurp(x, run.folder, "hist.csv", &length), hist, hist_length);
            assert_int_equal(length, hist_length);
        }
    }
}

static void foreign_rows_and_plans(void **state)
{
    struct fixture *x = *state;
    struct run run;
    size_t length;
    begin(x, &run, "run");
    assert_true(append(x, &run, 0));
    char *runs = slurp(x, run.folder, FILE_RUNS, &length);
    end(&run);
    /* the same row twice */
    char *line = strchr(runs, '\n') + 1;
    char *twice = arena_printf(&x->arena, "%s%s", runs, line);
    spill(x, run.folder, FILE_RUNS, twice, strlen(twice));
    assert_true(results_lock(&run.results, run.folder, &x->fault));
    assert_false(results_resume(&x->arena, &run.results, &run.plan, &x->fault));
    assert_int_equal(x->fault.code, AK_USAGE);
    assert_has(x->fault.text, "runs.csv:3: row");
    results_close(&run.results);
    /* a row of another plan */
    x->fault = (struct fault){0};
    memset(line, 'f', ROW_ID_LENGTH);
    spill(x, run.folder, FILE_RUNS, runs, length);
    assert_true(results_lock(&run.results, run.folder, &x->fault));
    assert_false(results_resume(&x->arena, &run.results, &run.plan, &x->fault));
    assert_has(x->fault.text, "is not in the plan");
    results_close(&run.results);
    /* another plan */
    x->fault = (struct fault){0};
    struct sweep sweep;
    struct plan other;
    assert_true(fixture_plan(x, "kernel = churn\nallocators = aa, cc\n", "quick", &sweep, &other));
    assert_true(results_lock(&run.results, run.folder, &x->fault));
    assert_false(results_resume(&x->arena, &run.results, &other, &x->fault));
    assert_int_equal(x->fault.code, AK_USAGE);
    assert_has(x->fault.text, "planned otherwise than now");
    results_close(&run.results);
}

/* Without meta.json only a table that holds nothing may be begun anew. */
static void rows_are_not_erased(void **state)
{
    struct fixture *x = *state;
    struct run run;
    size_t length, after;
    begin(x, &run, "run");
    assert_true(append(x, &run, 0));
    end(&run);
    char *runs = slurp(x, run.folder, FILE_RUNS, &length);
    const size_t header = (size_t)(strchr(runs, '\n') - runs) + 1;
    unlink(arena_printf(&x->arena, "%s/%s", run.folder, FILE_META));
    for (size_t cut = 0; cut <= length; cut += cut + 1 < header ? header / 3 : 1) {
        struct fault f = {0};
        const bool empty = cut <= header;
        json_t *meta = json_pack("{s:i}", "schema", 1);
        spill(x, run.folder, FILE_RUNS, runs, cut);
        assert_int_equal(results_state(run.folder), FOLDER_BEGUN);
        assert_true(results_lock(&run.results, run.folder, &f));
        assert_int_equal(results_create(&run.results, &run.plan, meta, &f), empty);
        results_close(&run.results);
        json_decref(meta);
        slurp(x, run.folder, FILE_RUNS, &after);
        assert_int_equal(f.code, empty ? AK_DONE : AK_USAGE);
        assert_int_equal(after, empty ? header : cut);
        unlink(arena_printf(&x->arena, "%s/%s", run.folder, FILE_META));
    }
}

static void one_writer(void **state)
{
    struct fixture *x = *state;
    struct run run;
    struct results second;
    begin(x, &run, "run");
    assert_false(results_lock(&second, run.folder, &x->fault));
    assert_int_equal(x->fault.code, AK_USAGE);
    assert_has(x->fault.text, "another ak");
    results_close(&second);
    end(&run);
}

static void states(void **state)
{
    struct fixture *x = *state;
    assert_int_equal(results_state(arena_printf(&x->arena, "%s/none", x->folder)), FOLDER_ABSENT);
    assert_int_equal(results_state(x->folder), FOLDER_FOREIGN);
    mkdir(arena_printf(&x->arena, "%s/half", x->folder), 0777);
    fixture_write(x, "half/plan.csv", "");
    fixture_write(x, "half/runs.csv.new", "");
    assert_int_equal(results_state(arena_printf(&x->arena, "%s/half", x->folder)), FOLDER_BEGUN);
    struct results r;
    assert_false(results_lock(&r, "/proc/nowhere/x", &x->fault));
    assert_int_equal(x->fault.code, AK_ENVIRONMENT);
    results_close(&r);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quoting), WITH(broken_csv), WITH(any_torn_end),        WITH(foreign_rows_and_plans),
        WITH(one_writer),          WITH(states),     WITH(rows_are_not_erased),
    };
    return cmocka_run_group_tests_name("runner_results", tests, NULL, NULL);
}
