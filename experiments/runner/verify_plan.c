#include "inifile.h"
#include "meta.h"
#include "plan.h"
#include "stopping.h"
#include "text.h"
#include "results.h"
#include "sweep.h"
#include "verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- meta.json ---- */

/* The value of an option on the recorded command line; NULL where it was not given. */
static const char *command_option(const json_t *command, const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < json_array_size(command); i++) {
        const char *word = json_string_value(json_array_get(command, i));
        if (!word || strncmp(word, name, length) != 0)
            continue;
        if (word[length] == '=')
            return word + length + 1;
        if (!word[length])
            return json_string_value(json_array_get(command, i + 1));
    }
    return NULL;
}

static void check_number(struct verify *v, const char *key, uint64_t expected)
{
    json_int_t value = json_integer_value(json_object_get(v->meta, key));
    if ((uint64_t)value != expected)
        violation(v, FILE_META, 0, "%s %" JSON_INTEGER_FORMAT ", but %s has %" PRIu64, key, value, FILE_PLAN,
                  expected);
}

static void check_sweep_text(struct verify *v)
{
    struct fault f = {0};
    size_t length;
    const json_t *then = json_object_get(v->meta, "sweep_text");
    const char *path = verify_path(v, FILE_SWEEP);
    const char *text = file_read(&v->arena, path, (size_t)1 << 30, &length, &f);
    if (!text)
        violation_fault(v, &f);
    else if (!json_is_string(then) || json_string_length(then) != length ||
             memcmp(json_string_value(then), text, length) != 0)
        violation(v, FILE_SWEEP, 0, "not the text that %s has as sweep_text", FILE_META);
}

/* meta.json tells the build of every kernel of the plan. */
static void check_kernels(struct verify *v)
{
    const int at = csv_column(&v->plan, "kernel");
    const char *last = "";
    for (size_t i = 0; at >= 0 && i < v->plan.rows; i++) {
        const char *kernel = v->plan.row[i].field[at];
        size_t k;
        bool known = strcmp(kernel, last) == 0;
        json_t *entry;
        json_array_foreach(json_object_get(v->meta, "kernels"), k, entry) known |=
            strcmp(meta_text(entry, "name"), kernel) == 0;
        if (!known)
            violation(v, FILE_META, 0, "no kernel '%s', which %s:%u plans", kernel, FILE_PLAN,
                      v->plan.row[i].line);
        last = kernel;
    }
}

void verify_meta(struct verify *v)
{
    const json_t *command = json_object_get(v->meta, "command_line");
    const int rep = csv_column(&v->plan, "rep");
    uint64_t reps = 0, value;
    for (size_t i = 0; rep >= 0 && i < v->plan.rows; i++)
        if (text_uint(v->plan.row[i].field[rep], 0, &value) && value > reps)
            reps = value;
    check_number(v, "planned_rows", v->plan.rows);
    check_number(v, "reps", reps);
    if (json_is_array(command)) {
        const char *preset = command_option(command, "--preset");
        preset = preset ? preset : PRESET_DEFAULT;
        if (strcmp(meta_text(v->meta, "preset"), preset) != 0)
            violation(v, FILE_META, 0, "preset '%s', but the command line says '%s'",
                      meta_text(v->meta, "preset"), preset);
    }
    check_kernels(v);
    check_sweep_text(v);
}

/* ---- plan.csv ---- */

/* Columns of plan.csv by name. */
static const char *plan_field(const struct verify *v, const struct csv_row *planned, const char *column)
{
    int at = csv_column(&v->plan, column);
    return at >= 0 ? planned->field[at] : "";
}

/* The row's id and seed are hashes of what is planned: they tell whether that was changed. */
static void check_identity(struct verify *v, const struct csv_row *planned, const struct option_pair *option,
                           size_t options)
{
    uint64_t rep = 0, seed = (uint64_t)json_integer_value(json_object_get(v->meta, "seed")), row_seed;
    char row_id[ROW_ID_LENGTH + 1];
    text_uint(plan_field(v, planned, "rep"), 0, &rep);
    uint64_t hash = plan_hash(meta_text(v->meta, "sweep"), plan_field(v, planned, "kernel"), option, options);
    plan_identify(hash, plan_field(v, planned, "allocator"), rep, seed, row_id, &row_seed);
    if (strcmp(row_id, plan_field(v, planned, "row_id")) != 0)
        violation(v, FILE_PLAN, planned->line,
                  "row_id %s, expected %s from sweep, kernel, options, allocator, rep and the seed of %s",
                  plan_field(v, planned, "row_id"), row_id, FILE_META);
    else if (strcmp(plan_field(v, planned, "seed"), arena_printf(&v->arena, "%" PRIu64, row_seed)) != 0)
        violation(v, FILE_PLAN, planned->line, "seed %s, expected %" PRIu64 " from the same",
                  plan_field(v, planned, "seed"), row_seed);
}

static const char *option_value(const struct option_pair *option, size_t options, const char *key)
{
    for (size_t i = 0; i < options; i++)
        if (strcmp(option[i].key, key) == 0)
            return option[i].value;
    return NULL;
}

/* For columns that stay empty where the kernel takes no such option. */
static const char *option_or_empty(const struct option_pair *option, size_t options, const char *key)
{
    const char *value = option_value(option, options, key);
    return value ? value : "";
}

static void expect(struct verify *v, const struct csv_row *row, const char *column, const char *planned)
{
    if (planned && strcmp(planned, row_field(row, column)) != 0)
        violation(v, FILE_RUNS, row->line, "%s '%s', planned was '%s'", column, row_field(row, column),
                  planned);
}

/* Sizes from a table are the table's, whose path is not the same on every machine. */
static void check_sizes(struct verify *v, const struct csv_row *row, const struct option_pair *option,
                        size_t options)
{
    static const char file[] = "file:";
    const char *dist = option_or_empty(option, options, "size_dist");
    if (strncmp(dist, file, strlen(file)) == 0) {
        if (strncmp(row_field(row, "size_dist"), file, strlen(file)) != 0)
            violation(v, FILE_RUNS, row->line, "size_dist '%s', planned was '%s'",
                      row_field(row, "size_dist"), dist);
        return;
    }
    expect(v, row, "size_dist", dist);
    expect(v, row, "size_min", option_or_empty(option, options, "size_min"));
    if (strcmp(dist, "fixed") != 0 || strcmp(row_field(row, "size_max"), row_field(row, "size_min")) != 0)
        expect(v, row, "size_max", option_or_empty(option, options, "size_max"));
}

static void check_options(struct verify *v, const struct csv_row *row, const struct option_pair *option,
                          size_t options)
{
    static const struct {
        const char *column, *key;
    } same[] = {{"placement", "placement"},         {"numa_policy", "numa"}, {"live_blocks", "live_blocks"},
                {"lifetime_dist", "lifetime_dist"}, {"touch", "touch"},      {"heap_state", "heap_state"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        expect(v, row, same[i].column, option_or_empty(option, options, same[i].key));
    check_sizes(v, row, option, options);
    expect(v, row, "sim_mode", option_or_empty(option, options, "sim_mode"));
    expect(v, row, "sim_quantum", option_or_empty(option, options, "sim_quantum"));
    const char *threads = option_value(option, options, "threads");
    const char *total = option_value(option, options, "ops_total");
    uint64_t each, count;
    if (!threads)
        return; /* the kernel takes its own, and says how it divides the work */
    expect(v, row, "ops_per_thread", option_value(option, options, "ops"));
    if (total && text_uint(total, 0, &each) && text_uint(threads, 0, &count) && count)
        expect(v, row, "ops_per_thread", arena_printf(&v->arena, "%" PRIu64, (each + count - 1) / count));
}

static bool asks_no_latency(const struct verify *v, const char *kernel, const struct option_pair *option,
                            size_t options)
{
    const char *passes = option_value(option, options, "passes");
    return (passes && !strstr(passes, "latency")) || meta_kernel_is(v->meta, kernel, "no_alloc");
}

static void check_planned(struct verify *v, const struct csv_row *planned, const struct csv_row *row)
{
    static const char *const same[] = {"kernel", "variant", "allocator", "threads", "rep", "seed"};
    struct option_pair *option;
    size_t options;
    bool read = plan_options(&v->arena, plan_field(v, planned, "options"), &option, &options);
    if (!read)
        violation(v, FILE_PLAN, planned->line, "options '%s', expected key=value key=value",
                  plan_field(v, planned, "options"));
    else
        check_identity(v, planned, option, options);
    if (!row)
        return;
    for (size_t c = 0; c < sizeof same / sizeof *same; c++) {
        const char *wanted = plan_field(v, planned, same[c]);
        if (strcmp(same[c], "threads") != 0 || *wanted) /* else the kernel takes its own */
            expect(v, row, same[c], wanted);
    }
    if (*plan_field(v, planned, "skip"))
        expect(v, row, "status", status_names[STATUS_SKIPPED]);
    if (read)
        check_options(v, row, option, options);
    if (read)
        v->sides[row - v->runs.row].no_latency =
            asks_no_latency(v, plan_field(v, planned, "kernel"), option, options);
}

static int by_row_id(const void *a, const void *b, void *user)
{
    const struct csv_table *t = user;
    return strcmp(t->row[*(const size_t *)a].field[0], t->row[*(const size_t *)b].field[0]);
}

/* Lines of a table in the order of their ids; those that come again are told. */
static size_t *sort_rows(struct verify *v, struct csv_table *t, const char *file)
{
    size_t *order = arena_alloc(&v->arena, (t->rows + 1) * sizeof *order);
    for (size_t i = 0; i < t->rows; i++)
        order[i] = i;
    if (t->rows)
        qsort_r(order, t->rows, sizeof *order, by_row_id, t);
    for (size_t i = 1; i < t->rows; i++)
        if (strcmp(t->row[order[i - 1]].field[0], t->row[order[i]].field[0]) == 0)
            violation(v, file, t->row[order[i]].line, "row %s again, expected once",
                      t->row[order[i]].field[0]);
    return order;
}

/* ---- launches that a rule made needless ---- */

/* Planned rows in the order of their cells. */
struct cell_rows {
    const uint64_t *cell; /* by row */
    size_t *order;
};

static int by_cell(const void *a, const void *b, void *user)
{
    const struct cell_rows *c = user;
    const uint64_t x = c->cell[*(const size_t *)a], y = c->cell[*(const size_t *)b];
    return (x > y) - (x < y);
}

static struct cell_rows sort_cells(struct verify *v, const uint64_t *cell)
{
    struct cell_rows c = {cell, arena_alloc(&v->arena, (v->plan.rows + 1) * sizeof *c.order)};
    for (size_t i = 0; i < v->plan.rows; i++)
        c.order[i] = i;
    if (v->plan.rows)
        qsort_r(c.order, v->plan.rows, sizeof *c.order, by_cell, &c);
    return c;
}

/* What --ci-width was given, or else the sweep's lines of ci_width: whether one of them is the rule's. */
static bool width_is_given(struct verify *v, double width)
{
    const json_t *line = json_object_get(v->meta, "command_line");
    bool given = false;
    double last = NAN;
    for (size_t i = 0; i < json_array_size(line); i++) {
        const char *word = json_string_value(json_array_get(line, i)), *option = "--ci-width";
        const size_t length = strlen(option);
        if (!word || strncmp(word, option, length) != 0 || (word[length] && word[length] != '='))
            continue;
        const char *value = word[length] ? word + length + 1 : json_string_value(json_array_get(line, i + 1));
        given = true;
        last = value ? strtod(value, NULL) : NAN;
    }
    if (given)
        return fabs(last - width) <= 1e-12 * width;
    const char *text = meta_text(v->meta, "sweep_text");
    for (const char *key = "ci_width"; (text = strstr(text, key));) {
        text += strlen(key);
        const char *value = text + strspn(text, " \t");
        if (*value == '=' && fabs(strtod(value + 1, NULL) - width) <= 1e-12 * width)
            return true;
    }
    return false;
}

/* The rule against the plan and what the run was asked for. */
static bool check_rule(struct verify *v, const struct stopping *rule)
{
    const uint64_t most = rule->look[rule->looks - 1];
    uint64_t rep, reps = 0;
    for (size_t i = 0; i < v->plan.rows; i++)
        if (text_uint(plan_field(v, &v->plan.row[i], "rep"), 0, &rep) && rep > reps)
            reps = rep;
    if (most != reps)
        violation(v, FILE_META, 0,
                  "stopping is none that this ak writes: the last of at is %" PRIu64 ", expected %" PRIu64
                  " as " FILE_PLAN " has repetitions",
                  most, reps);
    const bool given = width_is_given(v, rule->width);
    if (!given)
        violation(
            v, FILE_META, 0,
            "stopping.width is %g, expected that of --ci-width in command_line, or ci_width of the sweep",
            rule->width);
    return most == reps && given;
}

/* The last repetition that the cell of each planned row needs, told from the rows. */
static uint64_t *needed_reps(struct verify *v)
{
    const size_t rows = v->plan.rows;
    uint64_t *last = arena_alloc(&v->arena, (rows + 1) * sizeof *last);
    uint64_t *cell = arena_alloc(&v->arena, (rows + 1) * sizeof *cell);
    struct stopping rule;
    if (!stopping_read(json_object_get(v->meta, "stopping"), &rule))
        violation(v, FILE_META, 0,
                  "stopping is none that this ak writes, expected {rule, width, looks, confidence, at}");
    for (size_t i = 0; i < rows; i++)
        last[i] = UINT64_MAX;
    if (!rule.looks)
        return last;
    const uint64_t most = rule.look[rule.looks - 1];
    if (!check_rule(v, &rule))
        return last;
    for (size_t i = 0; i < rows; i++) {
        static const char *const identity[] = {"kernel", "allocator", "options"};
        cell[i] = HASH_START;
        for (size_t k = 0; k < sizeof identity / sizeof *identity; k++)
            cell[i] = hash_text(cell[i], plan_field(v, &v->plan.row[i], identity[k]));
    }
    struct cell_rows sorted = sort_cells(v, cell);
    for (size_t i = 0, end; i < rows; i = end) {
        double *times = arena_alloc(&v->arena, most * sizeof *times);
        for (uint64_t rep = 0; rep < most; rep++)
            times[rep] = NAN;
        for (end = i; end < rows && sorted.cell[sorted.order[end]] == sorted.cell[sorted.order[i]]; end++) {
            const struct csv_row *planned = &v->plan.row[sorted.order[end]];
            const size_t *at = verify_find(v, planned->field[0]);
            uint64_t rep;
            if (at && text_uint(plan_field(v, planned, "rep"), 0, &rep) && rep >= 1 && rep <= most)
                times[rep - 1] = stopping_value(
                    plan_field(v, planned, "kernel"), row_field(&v->runs.row[*at], "status"),
                    row_field(&v->runs.row[*at], "wall_ns"), row_field(&v->runs.row[*at], "ops"));
        }
        for (size_t j = i; j < end; j++)
            last[sorted.order[j]] = stopping_last(&rule, times, most);
    }
    return last;
}

void verify_plan(struct verify *v)
{
    bool *planned = arena_alloc(&v->arena, (v->runs.rows + 1) * sizeof *planned);
    const bool finished = !json_is_null(json_object_get(v->meta, "finished_at"));
    v->by_id = sort_rows(v, &v->runs, FILE_RUNS);
    if (csv_column(&v->plan, "row_id") != 0) {
        violation(v, FILE_PLAN, 1, "the first column is '%s', expected row_id", v->plan.column[0]);
        return;
    }
    sort_rows(v, &v->plan, FILE_PLAN);
    const uint64_t *last = needed_reps(v);
    for (size_t i = 0; i < v->plan.rows; i++) {
        const struct csv_row *row = &v->plan.row[i];
        const size_t *at = verify_find(v, row->field[0]);
        uint64_t rep = 0;
        text_uint(plan_field(v, row, "rep"), 0, &rep);
        check_planned(v, row, at ? &v->runs.row[*at] : NULL);
        if (at)
            planned[*at] = true;
        if (at && rep > last[i])
            violation(v, FILE_RUNS, v->runs.row[*at].line,
                      "row %s is repetition %" PRIu64 ", but its cell was done after %" PRIu64, row->field[0],
                      rep, last[i]);
        if (!at && rep <= last[i])
            violation(v, FILE_PLAN, row->line, "row %s is planned, but not in %s%s", row->field[0], FILE_RUNS,
                      finished ? "" : " (the run is not finished)");
    }
    for (size_t i = 0; i < v->runs.rows; i++) {
        const size_t *at = verify_find(v, v->runs.row[i].field[0]);
        if (!planned[i] && at && !planned[*at])
            violation(v, FILE_RUNS, v->runs.row[i].line, "row %s is not planned", v->runs.row[i].field[0]);
    }
}
