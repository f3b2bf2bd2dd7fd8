/*
 * ak export: a results folder as one tidy table, for programs that know nothing of this suite.
 *
 * wide: a row a launch; the columns of runs.csv and then every metric as a column of its own.
 * long: a row a launch and measurement; what tells launches apart in front, then metric, unit, value, word, reason.
 */
#include "child.h"
#include "columns.h"
#include "command.h"
#include "committed.h"
#include "csv.h"
#include "launches.h"
#include "output.h"
#include "results.h"
#include "text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A metric as a column of the wide form. */
struct metric {
    const char *name, *unit, *title;
};

struct export
{
    struct arena arena;
    struct launches launches;
    struct side_lines metrics;
    struct output output;
    struct buffer row;
    struct metric *metric;
    size_t metrics_count;
    size_t lines, columns; /* written, the header among them; of the header */
};

/* ---- fields ---- */

static bool is_number(const char *text)
{
    char *end;
    if (!isdigit((unsigned char)text[*text == '-']))
        return false;
    strtod(text, &end);
    return !*end && strspn(text, "0123456789.eE+-") == strlen(text);
}

/* A spreadsheet takes a text that begins so for a formula, and would run it. */
static void add_field(struct export *x, const char *text)
{
    if (*text && strchr("=+-@\t\r", *text) && !is_number(text))
        text = arena_printf(&x->arena, "'%s", text);
    x->columns += !x->lines;
    csv_field(&x->row, text);
}

static bool write_row(struct export *x, struct fault *f)
{
    csv_end_row(&x->row);
    x->lines++;
    return output_write(&x->output, &x->row, f);
}

/* ---- wide ---- */

/* A unit as the end of a name: "_per_op" for 1/op. Counts and shares have none; a name that ends so needs none. */
static const char *unit_ending(struct arena *a, const char *name, const char *unit)
{
    static const char *const plain[] = {"", "count", "0..1"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(unit, plain[i]) == 0)
            return "";
    char *ending =
        strncmp(unit, "1/", 2) == 0 ? arena_printf(a, "_per_%s", unit + 2) : arena_printf(a, "_%s", unit);
    for (char *c = ending; *c; c++)
        if (!isalnum((unsigned char)*c) && !(*c & 0x80))
            *c = '_';
    const size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0 ? "" : ending;
}

static bool is_taken(const struct export *x, const char *title)
{
    if (column_find(title) >= 0)
        return true;
    for (size_t i = 0; i < x->launches.columns; i++)
        if (strcmp(x->launches.column[i], title) == 0)
            return true;
    for (size_t i = 0; i < x->metrics_count; i++)
        if (strcmp(x->metric[i].title, title) == 0)
            return true;
    return false;
}

static size_t metric_find(const struct export *x, const char *name, const char *unit)
{
    size_t i = 0;
    while (i < x->metrics_count &&
           (strcmp(x->metric[i].name, name) != 0 || strcmp(x->metric[i].unit, unit) != 0))
        i++;
    return i;
}

/* A metric that only says why a column is empty is no metric of its own. */
static bool is_reason(char *const *field)
{
    return !*field[3] && *field[4] && column_find(field[1]) >= 0;
}

static bool learn_metric(const struct csv_stream *s, void *user, struct fault *f)
{
    struct export *x = user;
    struct arena *a = &x->arena;
    (void)f;
    if (is_reason((char *const *)(uintptr_t)s->field) ||
        metric_find(x, s->field[1], s->field[2]) < x->metrics_count)
        return true;
    struct metric m = {arena_strdup(a, s->field[1]), arena_strdup(a, s->field[2]), NULL};
    m.title = arena_printf(a, "%s%s", m.name, unit_ending(a, m.name, m.unit));
    while (is_taken(x, m.title))
        m.title = arena_printf(a, "metric.%s", m.title);
    x->metric = arena_grow(a, x->metric, x->metrics_count, sizeof *x->metric);
    x->metric[x->metrics_count++] = m;
    return true;
}

static int by_title(const void *a, const void *b)
{
    return strcmp(((const struct metric *)a)->title, ((const struct metric *)b)->title);
}

static bool wide_row(struct export *x, const char **value, struct fault *f)
{
    struct arena texts = {0};
    memset(value, 0, x->metrics_count * sizeof *value);
    bool good = side_lines_of(&x->metrics, &x->launches, f);
    while (good && side_lines_next(&x->metrics, f)) {
        const char **field = x->metrics.stream.field;
        size_t at = metric_find(x, field[1], field[2]);
        if (at < x->metrics_count)
            value[at] = arena_strdup(&texts, field[3]);
    }
    good = good && f->code == AK_DONE;
    for (size_t i = 0; good && i < column_count; i++)
        add_field(x, launches_field(&x->launches, (int)i));
    for (size_t i = 0; good && i < x->launches.columns; i++)
        if (column_find(x->launches.column[i]) < 0)
            add_field(x, x->launches.runs.field[i]);
    for (size_t i = 0; good && i < x->metrics_count; i++)
        add_field(x, value[i] ? value[i] : "");
    good = good && write_row(x, f);
    arena_free(&texts);
    return good;
}

static bool export_wide(struct export *x, struct fault *f)
{
    const char **value = arena_alloc(&x->arena, (x->metrics_count + 1) * sizeof *value);
    if (x->metrics_count)
        qsort(x->metric, x->metrics_count, sizeof *x->metric, by_title);
    for (size_t i = 0; i < column_count; i++)
        add_field(x, columns[i].name);
    for (size_t i = 0; i < x->launches.columns; i++) /* of a later ak */
        if (column_find(x->launches.column[i]) < 0)
            add_field(x, x->launches.column[i]);
    for (size_t i = 0; i < x->metrics_count; i++)
        add_field(x, x->metric[i].title);
    if (!write_row(x, f))
        return false;
    while (launches_next(&x->launches, f))
        if (!wide_row(x, value, f))
            return false;
    return f->code == AK_DONE;
}

/* ---- long ---- */

/* What tells launches apart, and what the reading of their numbers hangs on. */
static bool is_key(const struct column *c)
{
    if (c->role == ROLE_MEASURED)
        return strcmp(c->name, "counters") == 0 || strcmp(c->name, "allocator_version") == 0;
    return c->role != ROLE_SERVED && strcmp(c->name, "status_detail") != 0;
}

static bool is_measurement(const struct column *c)
{
    return c->role == ROLE_MEASURED && c->type != COLUMN_TEXT;
}

/* What metrics.csv says of columns of the row at hand that are empty. */
struct reasons {
    struct arena arena;
    const char *of[COLUMNS_MAX];
};

static bool learn_reasons(struct export *x, struct reasons *r, struct fault *f)
{
    if (!side_lines_of(&x->metrics, &x->launches, f))
        return false;
    while (side_lines_next(&x->metrics, f)) {
        const char **field = x->metrics.stream.field;
        const int column = column_find(field[1]);
        if (column >= 0 && *field[4])
            r->of[column] = arena_strdup(&r->arena, field[4]);
    }
    return f->code == AK_DONE;
}

static const char *reason_of(const struct export *x, const struct reasons *r, int column)
{
    const struct launches *l = &x->launches;
    const char *name = columns[column].name, *detail = launches_field(l, column_find("status_detail"));
    if (strcmp(launches_field(l, column_find("status")), status_names[STATUS_OK]) != 0)
        return *detail ? detail : launches_field(l, column_find("status"));
    if (r->of[column])
        return r->of[column];
    if (column_is_counted(name))
        return launches_field(l, column_find("counters_reason"));
    if (strncmp(name, "sim_", strlen("sim_")) == 0)
        return "no machine was simulated";
    if (strncmp(name, "lat_", strlen("lat_")) == 0)
        return "no latency pass";
    const char *rss = r->of[column_find("rss_peak_bytes")];
    return rss ? rss : "";
}

static bool long_row(struct export *x, const struct buffer *keys, const char *metric, const char *unit,
                     const char *value, const char *reason, struct fault *f)
{
    const bool number = is_number(value);
    if (keys->length)
        buffer_add(&x->row, keys->data, keys->length);
    add_field(x, metric);
    add_field(x, unit);
    add_field(x, number ? value : "");
    add_field(x, number ? "" : value);
    add_field(x, *value ? "" : reason);
    return write_row(x, f);
}

static bool long_rows(struct export *x, struct fault *f)
{
    struct reasons reasons = {0};
    struct buffer keys = {0};
    for (size_t i = 0; i < column_count; i++)
        if (is_key(&columns[i]))
            add_field(x, launches_field(&x->launches, (int)i));
    buffer_add(&keys, x->row.data, x->row.length);
    x->row.length = 0;
    bool good = learn_reasons(x, &reasons, f);
    for (int i = 0; good && i < (int)column_count; i++)
        if (is_measurement(&columns[i])) {
            const char *value = launches_field(&x->launches, i);
            good = long_row(x, &keys, columns[i].name, columns[i].unit, value,
                            *value ? "" : reason_of(x, &reasons, i), f);
        }
    good = good && side_lines_of(&x->metrics, &x->launches, f);
    while (good && side_lines_next(&x->metrics, f)) {
        const char **field = x->metrics.stream.field;
        if (!is_reason((char *const *)(uintptr_t)field))
            good = long_row(x, &keys, field[1], field[2], field[3], field[4], f);
    }
    buffer_free(&keys);
    arena_free(&reasons.arena);
    return good && f->code == AK_DONE;
}

static bool export_long(struct export *x, struct fault *f)
{
    static const char *const own[] = {"metric", "unit", "value", "word", "reason"};
    for (size_t i = 0; i < column_count; i++)
        if (is_key(&columns[i]))
            add_field(x, columns[i].name);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        add_field(x, own[i]);
    if (!write_row(x, f))
        return false;
    while (launches_next(&x->launches, f))
        if (!long_rows(x, f))
            return false;
    return f->code == AK_DONE;
}

/* ---- the command ---- */

/* The export must not take the place of what it is made from, nor of another file that nobody said to replace. */
static bool check_target(struct arena *a, const char *folder, const char *out, bool force, struct fault *f)
{
    struct stat old;
    const char *file = out ? path_real(a, out) : NULL;
    file = file ? file : out;
    const char *there = file ? path_real(a, path_folder(a, file)) : NULL, *own = path_real(a, folder);
    if (there && own && strcmp(there, own) == 0 && results_own(path_name(file)))
        return fault_set(f, AK_USAGE, "%s is a file of the results folder, expected another --out", out);
    return force || !out || stat(out, &old) != 0 || !S_ISREG(old.st_mode) ||
           fault_set(f, AK_USAGE, "%s is there already; replace it with --force, or choose another --out",
                     out);
}

static bool export_folder(struct export *x, const char *folder, const char *out, bool wide, bool force,
                          struct fault *f)
{
    if (!check_target(&x->arena, folder, out, force, f))
        return false;
    if (!launches_open(&x->arena, &x->launches, folder, f) ||
        !side_lines_open(&x->arena, &x->metrics, &x->launches, folder, SIDE_METRICS,
                         wide ? learn_metric : NULL, x, f))
        return false;
    if (!x->launches.merged && !x->launches.runs.torn && !committed_rows_whole(folder, f))
        return false;
    if (x->launches.runs.torn)
        fprintf(stderr, "ak: note: %s: the last line is torn and left out\n", x->launches.runs.path);
    if (!output_open(&x->arena, &x->output, out, f))
        return false;
    bool good = (wide ? export_wide(x, f) : export_long(x, f)) && output_commit(&x->output, f);
    if (!good)
        output_discard(&x->output);
    else if (out)
        fprintf(stderr, "ak: wrote %s: %zu rows, %zu columns\n", out, x->lines - 1, x->columns);
    return good;
}

static int cmd_export(int argc, char **argv)
{
    struct export x = {0};
    struct fault fault = {0};
    const char *tidy = NULL, *out = NULL;
    bool force = false;
    const struct command_option known[] = {
        {"--tidy", &tidy, NULL}, {"--out", &out, NULL}, {"--force", NULL, &force}, {NULL, NULL, NULL}};
    int left;
    bool wide;
    child_watch_interrupts();
    bool good = command_options(&x.arena, argc, argv, known, &left, &fault);
    if (good && left != 2)
        good = fault_set(&fault, AK_USAGE, "export: expected one results folder");
    wide = tidy && strcmp(tidy, "wide") == 0;
    if (good && !wide && (!tidy || strcmp(tidy, "long") != 0))
        good = fault_set(&fault, AK_USAGE, "export: --tidy %s, expected --tidy wide or --tidy long",
                         tidy ? tidy : "is missing");
    good = good && export_folder(&x, argv[1], out, wide, force, &fault);
    launches_close(&x.launches);
    side_lines_close(&x.metrics);
    buffer_free(&x.row);
    arena_free(&x.arena);
    return good ? AK_DONE : fault_print(&fault);
}

AK_COMMAND(command_export, "export", "RUN --tidy wide|long [--out FILE [--force]]",
           "a results folder as one tidy table, for R, pandas-like tools and spreadsheets",
           "  --tidy wide   a row a launch: the columns of runs.csv, then every metric as a column\n"
           "  --tidy long   a row a launch and measurement: keys, metric, unit, value, word, reason\n"
           "  --out FILE    written whole or not at all; default: standard output\n"
           "  --force       replace the file if it is there\n"
           "experiments/schema.md and schema.json (a Frictionless data package) say what the columns are.\n",
           cmd_export);
