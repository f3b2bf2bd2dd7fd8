/*
 * ak verify: re-check a results folder from its files alone.
 *
 * What is checked: every column there and of its type; every planned row once, with the plan's values; ok
 * rows consistent within themselves (counts, rates, memory, quantiles) and with what meta.json says of
 * their allocator; rows that are not ok without numbers; side rows belonging to ok rows and agreeing with
 * them.
 */
#include "buildid.h"
#include "columns.h"
#include "command.h"
#include "csv.h"
#include "inifile.h"
#include "meta.h"
#include "results.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_TOLERANCE 0.001

/* What the side files hold of one row. */
struct row_sides {
    uint64_t samples[4]; /* of hist.csv, by call */
    uint64_t rss_max, live_max, lines;
};

struct verify {
    struct arena arena;
    const char *folder;
    json_t *meta;
    struct csv_table plan, runs;
    struct row_sides *sides; /* by row of runs */
    size_t *by_id;           /* rows of runs, sorted by row_id */
    size_t found, notes;     /* violations */
};

static const char *const calls[] = {"malloc", "free", "touch", "pair"};

static void violation(struct verify *v, const char *file, unsigned line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void violation(struct verify *v, const char *file, unsigned line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%s/%s:%u: ", v->folder, file, line);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    v->found++;
}

/* ---- columns ---- */

static bool is_number(const char *text, bool may_be_negative, bool decimals)
{
    text += may_be_negative && *text == '-';
    if (!isdigit((unsigned char)*text))
        return false;
    text += strspn(text, "0123456789");
    if (decimals && *text == '.' && isdigit((unsigned char)text[1]))
        text += 1 + strspn(text + 1, "0123456789");
    return !*text;
}

static bool fits(const struct column *c, const char *text)
{
    double number = strtod(text, NULL);
    switch (c->type) {
    case COLUMN_TEXT:
        return true;
    case COLUMN_COUNT:
        return is_number(text, false, false);
    case COLUMN_SIGNED:
        return is_number(text, true, false);
    case COLUMN_NS:
    case COLUMN_RATE:
    case COLUMN_LOAD:
        return is_number(text, false, true);
    case COLUMN_RATIO:
        return is_number(text, false, true) && number >= 0 && number <= 1;
    }
    return false;
}

static const char *field(const struct csv_row *row, const char *column)
{
    int at = column_find(column);
    return at >= 0 && (size_t)at < row->fields ? row->field[at] : "";
}

/* The value of a column that holds a number; false where it is empty. */
static bool number(const struct csv_row *row, const char *column, double *value)
{
    const char *text = field(row, column);
    *value = strtod(text, NULL);
    return *text != '\0';
}

static bool check_header(struct verify *v)
{
    for (size_t i = 0; i < column_count; i++)
        if (i >= v->runs.columns || strcmp(v->runs.column[i], columns[i].name) != 0) {
            violation(v, FILE_RUNS, 1, "column %zu is '%s', expected '%s'", i + 1,
                      i < v->runs.columns ? v->runs.column[i] : "", columns[i].name);
            return false; /* the rest would be noise */
        }
    return true;
}

/* ---- one row ---- */

static void check_types(struct verify *v, const struct csv_row *row)
{
    for (size_t i = 0; i < column_count; i++)
        if (*row->field[i] && !fits(&columns[i], row->field[i]))
            violation(v, FILE_RUNS, row->line, "%s is '%s', expected %s", columns[i].name, row->field[i],
                      columns[i].type == COLUMN_RATIO ? "a ratio from 0 to 1"
                                                      : "a number of the column's type");
    if (strcmp(field(row, "run_id"), meta_text(v->meta, "run_id")) != 0)
        violation(v, FILE_RUNS, row->line, "run_id '%s', expected '%s'", field(row, "run_id"),
                  meta_text(v->meta, "run_id"));
    if (strcmp(field(row, "sweep"), meta_text(v->meta, "sweep")) != 0)
        violation(v, FILE_RUNS, row->line, "sweep '%s', expected '%s'", field(row, "sweep"),
                  meta_text(v->meta, "sweep"));
}

static void check_not_ok(struct verify *v, const struct csv_row *row)
{
    for (size_t i = 0; i < column_count; i++)
        if (columns[i].role == ROLE_MEASURED && *row->field[i])
            violation(v, FILE_RUNS, row->line, "%s is '%s' in a row of status %s, expected empty",
                      columns[i].name, row->field[i], field(row, "status"));
    if (!*field(row, "status_detail"))
        violation(v, FILE_RUNS, row->line, "status %s without status_detail", field(row, "status"));
}

static void check_work(struct verify *v, const struct csv_row *row)
{
    double ops, threads, each, wall, rate;
    bool have_ops = number(row, "ops", &ops);
    if (have_ops && number(row, "threads", &threads) && number(row, "ops_per_thread", &each) &&
        ops != threads * each)
        violation(v, FILE_RUNS, row->line, "ops %.0f, expected %.0f (%.0f threads of %.0f)", ops,
                  threads * each, threads, each);
    if (have_ops && ops == 0)
        violation(v, FILE_RUNS, row->line, "an ok row without operations");
    if (have_ops && number(row, "wall_ns", &wall) && number(row, "ops_per_s", &rate) && wall > 0) {
        double expected = ops / wall * 1e9;
        if (fabs(rate - expected) > RATE_TOLERANCE * expected)
            violation(v, FILE_RUNS, row->line, "ops_per_s %.3f, expected %.3f from ops and wall_ns", rate,
                      expected);
    }
    double cpus;
    if (number(row, "threads", &threads) && number(row, "cpus", &cpus) &&
        strcmp(field(row, "oversubscribed"), threads > cpus ? "1" : "0") != 0)
        violation(v, FILE_RUNS, row->line, "oversubscribed '%s' with %.0f threads on %.0f CPUs",
                  field(row, "oversubscribed"), threads, cpus);
}

static void check_memory(struct verify *v, const struct csv_row *row, const struct row_sides *sides)
{
    double peak, live, baseline, overhead;
    if (number(row, "rss_peak_bytes", &peak) && number(row, "live_peak_bytes", &live) &&
        number(row, "rss_baseline_bytes", &baseline) && number(row, "rss_overhead_bytes", &overhead) &&
        overhead != peak - live - baseline)
        violation(v, FILE_RUNS, row->line, "rss_overhead_bytes %.0f, expected %.0f = peak - live - baseline",
                  overhead, peak - live - baseline);
    if (number(row, "rss_peak_bytes", &peak) && (double)sides->rss_max > peak)
        violation(v, FILE_RUNS, row->line, "rss_peak_bytes %.0f, but timeline.csv reaches %" PRIu64, peak,
                  sides->rss_max);
    if (number(row, "live_peak_bytes", &live) && (double)sides->live_max > live)
        violation(v, FILE_RUNS, row->line, "live_peak_bytes %.0f, but timeline.csv reaches %" PRIu64, live,
                  sides->live_max);
}

static void check_latency(struct verify *v, const struct csv_row *row, const struct row_sides *sides)
{
    static const struct {
        const char *column;
        double samples; /* 100 beyond the quantile */
    } quantiles[] = {{"lat_p50_ns", 200},  {"lat_p90_ns", 1000},  {"lat_p99_ns", 1e4},
                     {"lat_p999_ns", 1e5}, {"lat_p9999_ns", 1e6}, {"lat_max_ns", 1}};
    double samples, last = 0, value;
    const char *last_name = "0";
    bool have = number(row, "lat_samples", &samples);
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        if (!number(row, quantiles[i].column, &value))
            continue;
        if (!have || samples < quantiles[i].samples)
            violation(v, FILE_RUNS, row->line, "%s from %s samples, expected at least %.0f",
                      quantiles[i].column, have ? field(row, "lat_samples") : "no", quantiles[i].samples);
        if (value < last)
            violation(v, FILE_RUNS, row->line, "%s %.3f is below %s %.3f", quantiles[i].column, value,
                      last_name, last);
        last = value;
        last_name = quantiles[i].column;
    }
    double mean, most;
    if (number(row, "lat_mean_ns", &mean) && number(row, "lat_max_ns", &most) && mean > most)
        violation(v, FILE_RUNS, row->line, "lat_mean_ns %.3f is above lat_max_ns %.3f", mean, most);
    if (have && (double)sides->samples[0] != samples)
        violation(v, FILE_RUNS, row->line, "lat_samples %.0f, but hist.csv holds %" PRIu64 " of malloc",
                  samples, sides->samples[0]);
}

static void check_counters(struct verify *v, const struct csv_row *row)
{
    static const char *const names[] = {"cycles",  "instructions",  "l1d_access", "l1d_miss",    "l3_access",
                                        "l3_miss", "l3_miss_ratio", "hitm_local", "hitm_remote", "dtlb_miss"};
    double enabled, running, miss, access, ratio;
    for (size_t i = 0; strcmp(field(row, "counters"), "none") == 0 && i < sizeof names / sizeof *names; i++)
        if (*field(row, names[i]))
            violation(v, FILE_RUNS, row->line, "%s is '%s' where nothing counted, expected empty", names[i],
                      field(row, names[i]));
    if (number(row, "counter_enabled_ns", &enabled) && number(row, "counter_running_ns", &running) &&
        running > enabled)
        violation(v, FILE_RUNS, row->line, "counter_running_ns %.0f is above counter_enabled_ns %.0f",
                  running, enabled);
    if (number(row, "l3_miss", &miss) && number(row, "l3_access", &access) && access > 0 &&
        number(row, "l3_miss_ratio", &ratio) && fabs(ratio - miss / access) > 1e-5)
        violation(v, FILE_RUNS, row->line, "l3_miss_ratio %.6f, expected %.6f", ratio, miss / access);
    if (strcmp(field(row, "counters"), "sim") == 0 &&
        (*field(row, "wall_ns") || *field(row, "ops_per_s") || *field(row, "lat_mean_ns")))
        violation(v, FILE_RUNS, row->line, "a time of the host in a row that the simulator counted");
}

static const json_t *allocator_of(const struct verify *v, const char *name)
{
    size_t i;
    json_t *allocator;
    json_array_foreach(json_object_get(v->meta, "allocators"), i,
                       allocator) if (strcmp(meta_text(allocator, "name"), name) == 0) return allocator;
    return NULL;
}

static void check_provenance(struct verify *v, const struct csv_row *row)
{
    static const struct {
        const char *column, *key;
    } facts[] = {
        {"allocator_path", "path"}, {"allocator_build_id", "build_id"}, {"allocator_version", "version"}};
    const json_t *meta = allocator_of(v, field(row, "allocator"));
    if (!meta) {
        violation(v, FILE_RUNS, row->line, "allocator '%s' is not in %s", field(row, "allocator"), FILE_META);
        return;
    }
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (strcmp(field(row, facts[i].column), meta_text(meta, facts[i].key)) != 0)
            violation(v, FILE_RUNS, row->line, "%s '%s', but %s has '%s' for %s", facts[i].column,
                      field(row, facts[i].column), FILE_META, meta_text(meta, facts[i].key),
                      field(row, "allocator"));
}

static void check_row(struct verify *v, size_t i)
{
    const struct csv_row *row = &v->runs.row[i];
    const struct row_sides *sides = &v->sides[i];
    enum status status = status_find(field(row, "status"));
    check_types(v, row);
    if (status == STATUSES) {
        violation(v, FILE_RUNS, row->line, "status '%s' is none of the eight", field(row, "status"));
        return;
    }
    if (status != STATUS_OK) {
        check_not_ok(v, row);
        if (sides->lines)
            violation(v, FILE_RUNS, row->line,
                      "status %s, but the side files hold %" PRIu64 " lines of the row", field(row, "status"),
                      sides->lines);
        return;
    }
    check_work(v, row);
    check_memory(v, row, sides);
    check_latency(v, row, sides);
    check_counters(v, row);
    check_provenance(v, row);
}

/* ---- the plan ---- */

static int compare_rows(const void *a, const void *b, void *user)
{
    const struct verify *v = user;
    return strcmp(v->runs.row[*(const size_t *)a].field[0], v->runs.row[*(const size_t *)b].field[0]);
}

static const size_t *find_row(const struct verify *v, const char *row_id)
{
    size_t low = 0, high = v->runs.rows;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(v->runs.row[v->by_id[middle]].field[0], row_id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->runs.rows && strcmp(v->runs.row[v->by_id[low]].field[0], row_id) == 0 ? &v->by_id[low]
                                                                                          : NULL;
}

static void check_plan(struct verify *v)
{
    static const char *const same[] = {"kernel", "variant", "allocator", "threads", "rep", "seed"};
    size_t matched = 0;
    int id = csv_column(&v->plan, "row_id");
    for (size_t i = 1; i < v->runs.rows; i++)
        if (strcmp(v->runs.row[v->by_id[i - 1]].field[0], v->runs.row[v->by_id[i]].field[0]) == 0)
            violation(v, FILE_RUNS, v->runs.row[v->by_id[i]].line, "row %s again, expected once",
                      v->runs.row[v->by_id[i]].field[0]);
    for (size_t i = 0; i < v->plan.rows && id >= 0; i++) {
        const struct csv_row *planned = &v->plan.row[i];
        const size_t *at = find_row(v, planned->field[id]);
        if (!at) {
            violation(v, FILE_PLAN, planned->line, "row %s is planned, but not in %s%s", planned->field[id],
                      FILE_RUNS,
                      json_is_null(json_object_get(v->meta, "finished_at")) ? " (the run is not finished)"
                                                                            : "");
            continue;
        }
        matched++;
        const struct csv_row *row = &v->runs.row[*at];
        for (size_t c = 0; c < sizeof same / sizeof *same; c++) {
            int column = csv_column(&v->plan, same[c]);
            const char *wanted = column >= 0 ? planned->field[column] : "";
            bool own = strcmp(same[c], "threads") == 0 && !*wanted; /* the kernel takes its own */
            if (!own && strcmp(wanted, field(row, same[c])) != 0)
                violation(v, FILE_RUNS, row->line, "%s '%s', planned was '%s'", same[c], field(row, same[c]),
                          wanted);
        }
    }
    for (size_t i = 0; i < v->runs.rows && matched < v->runs.rows; i++) {
        bool planned = false;
        for (size_t p = 0; p < v->plan.rows && !planned && id >= 0; p++)
            planned = strcmp(v->plan.row[p].field[id], v->runs.row[i].field[0]) == 0;
        if (!planned)
            violation(v, FILE_RUNS, v->runs.row[i].line, "row %s is not planned", v->runs.row[i].field[0]);
    }
}

/* ---- side files ---- */

static void take_side_row(struct verify *v, enum side s, const struct csv_reader *r, struct row_sides *sides)
{
    sides->lines++;
    if (s == SIDE_HIST) {
        uint64_t count = 0;
        double lower = strtod(r->field[2], NULL), upper = strtod(r->field[3], NULL);
        bool known = false;
        if (!text_uint(r->field[4], 0, &count) || !count || lower > upper ||
            !is_number(r->field[2], false, true) || !is_number(r->field[3], false, true))
            violation(v, side_files[s].file, r->line,
                      "bucket %s to %s with %s, expected lower <= upper and a count", r->field[2],
                      r->field[3], r->field[4]);
        for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
            if (strcmp(calls[c], r->field[1]) == 0) {
                sides->samples[c] += count;
                known = true;
            }
        if (!known)
            violation(v, side_files[s].file, r->line, "call '%s', expected malloc, free, touch or pair",
                      r->field[1]);
    } else if (s == SIDE_TIMELINE) {
        uint64_t value[4] = {0};
        for (int i = 0; i < 4; i++)
            if (!text_uint(r->field[i + 1], 0, &value[i]))
                violation(v, side_files[s].file, r->line, "'%s', expected a whole number", r->field[i + 1]);
        sides->rss_max = value[1] > sides->rss_max ? value[1] : sides->rss_max;
        sides->live_max = value[2] > sides->live_max ? value[2] : sides->live_max;
    } else if (s == SIDE_MATRIX && !is_number(r->field[4], false, true)) {
        violation(v, side_files[s].file, r->line, "ns '%s', expected a number", r->field[4]);
    } else if (s == SIDE_METRICS && !*r->field[1]) {
        violation(v, side_files[s].file, r->line, "a metric without name");
    }
}

static bool check_side(struct verify *v, enum side s, struct fault *f)
{
    struct arena memory = {0}, row = {0};
    struct csv_reader reader;
    size_t length;
    const char *path = arena_printf(&v->arena, "%s/%s", v->folder, side_files[s].file);
    char *text = file_read(&memory, path, SIZE_MAX / 4, &length, f);
    if (text) {
        csv_open(&reader, &row, path, text, length);
        if (strncmp(text, side_files[s].header, strlen(side_files[s].header)) != 0)
            violation(v, side_files[s].file, 1, "another header, expected %.*s",
                      (int)strlen(side_files[s].header) - 1, side_files[s].header);
        else
            for (bool header = true; csv_next(&reader, f); header = false) {
                if (header)
                    continue;
                const size_t *at = find_row(v, reader.field[0]);
                if (reader.fields != side_files[s].columns)
                    violation(v, side_files[s].file, reader.line, "%zu fields, expected %zu", reader.fields,
                              side_files[s].columns);
                else if (!at)
                    violation(v, side_files[s].file, reader.line, "row_id %s is not in %s", reader.field[0],
                              FILE_RUNS);
                else
                    take_side_row(v, s, &reader, &v->sides[*at]);
            }
    }
    arena_free(&row);
    arena_free(&memory);
    return f->code == AK_DONE;
}

/* Libraries that are another build by now: worth saying, no fault of the folder. */
static void note_changed_files(struct verify *v)
{
    size_t i;
    json_t *allocator;
    json_array_foreach(json_object_get(v->meta, "allocators"), i, allocator)
    {
        const char *why, *path = meta_text(allocator, "path");
        const char *id = *path ? elf_build_id(&v->arena, path, &why) : NULL;
        if (*path && (!id || strcmp(id, meta_text(allocator, "build_id")) != 0)) {
            printf("note: %s of %s is %s by now\n", path, meta_text(allocator, "name"),
                   id ? "another build" : "gone");
            v->notes++;
        }
    }
}

static bool verify_folder(struct verify *v, struct fault *f)
{
    if (!path_is_folder(v->folder))
        return fault_at(f, v->folder, 0, "no folder, expected a results folder");
    v->meta = meta_read(&v->arena, v->folder, f);
    if (!v->meta || !csv_read(&v->arena, arena_printf(&v->arena, "%s/%s", v->folder, FILE_PLAN), &v->plan, f))
        return false;
    if (!csv_read(&v->arena, arena_printf(&v->arena, "%s/%s", v->folder, FILE_RUNS), &v->runs, f)) {
        if (!v->runs.column)
            return false;
        printf("%s\n", f->text); /* a torn or damaged line: the rows before it are checked all the same */
        v->found++;
        *f = (struct fault){0};
    }
    if (!check_header(v))
        return true;
    v->sides = arena_alloc(&v->arena, (v->runs.rows + 1) * sizeof *v->sides);
    v->by_id = arena_alloc(&v->arena, (v->runs.rows + 1) * sizeof *v->by_id);
    for (size_t i = 0; i < v->runs.rows; i++)
        v->by_id[i] = i;
    if (v->runs.rows)
        qsort_r(v->by_id, v->runs.rows, sizeof *v->by_id, compare_rows, v);
    check_plan(v);
    for (int s = 0; s < SIDES; s++)
        if (!check_side(v, s, f))
            return false;
    for (size_t i = 0; i < v->runs.rows; i++)
        check_row(v, i);
    note_changed_files(v);
    return true;
}

static size_t count_ok(const struct verify *v)
{
    size_t ok = 0;
    for (size_t i = 0; i < v->runs.rows; i++)
        ok += strcmp(field(&v->runs.row[i], "status"), "ok") == 0;
    return ok;
}

static int cmd_verify(int argc, char **argv)
{
    struct verify v = {0};
    struct fault fault = {0};
    const struct command_option known[] = {{NULL, NULL, NULL}};
    int left, code;
    bool good = command_options(&v.arena, argc, argv, known, &left, &fault);
    if (good && left != 2)
        good = fault_set(&fault, AK_USAGE, "verify: expected one results folder");
    v.folder = good ? argv[1] : "";
    size_t length = strlen(v.folder);
    if (length > 1 && v.folder[length - 1] == '/')
        v.folder = arena_strndup(&v.arena, v.folder, length - 1);
    if (!good || !verify_folder(&v, &fault)) {
        code = fault_print(&fault);
    } else {
        printf("%s: %zu rows (%zu ok), %zu planned, %zu violation%s\n", v.folder, v.runs.rows, count_ok(&v), v.plan.rows,
               v.found, v.found == 1 ? "" : "s");
        code = v.found ? AK_FAILED : AK_DONE;
    }
    json_decref(v.meta);
    arena_free(&v.arena);
    return code;
}

AK_COMMAND(command_verify, "verify", "RUN", "re-check a results folder: schema, plan, counts, provenance", "",
           cmd_verify);
