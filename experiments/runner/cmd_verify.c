/*
 * ak verify: re-check a results folder from its files alone.
 *
 * What is checked: every column there and of its type; the plan, its hashes, meta.json and the sweep's text agree; every
 * planned row once, with the plan's values; ok rows consistent within themselves (counts, rates, times, memory, quantiles),
 * with what meta.json says of their allocator and with their side rows; what is empty explained; rows that are not ok
 * without numbers; side rows once, and of rows that are there.
 */
#include "buildid.h"
#include "columns.h"
#include "command.h"
#include "csv.h"
#include "merged.h"
#include "meta.h"
#include "results.h"
#include "verify.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *verify_path(struct verify *v, const char *file)
{
    static const char *const own[] = {FILE_META, FILE_PLAN, FILE_SWEEP};
    bool of_part = false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        of_part |= v->part && strcmp(own[i], file) == 0;
    return of_part ? arena_printf(&v->arena, "%s/%s", merged_part(&v->arena, v->folder, v->part), file)
                   : arena_printf(&v->arena, "%s/%s", v->folder, file);
}

void violation(struct verify *v, const char *file, unsigned line, const char *format, ...)
{
    char what[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    text_one_line(what); /* a damaged file may hold anything */
    if (line)
        printf("%s:%u: %s\n", verify_path(v, file), line, what);
    else
        printf("%s: %s\n", verify_path(v, file), what);
    v->found++;
}

void violation_fault(struct verify *v, struct fault *f)
{
    printf("%s\n", f->text);
    v->found++;
    *f = (struct fault){0};
}

const char *row_field(const struct csv_row *row, const char *column)
{
    int at = column_find(column);
    return at >= 0 && (size_t)at < row->fields ? row->field[at] : "";
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

const size_t *verify_find(const struct verify *v, const char *row_id)
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

static void note_changed_file(struct verify *v, const char *path, const char *build_id, const char *name)
{
    const char *why;
    const char *id = *path ? elf_build_id(&v->arena, path, &why) : NULL;
    if (*path && (!id || strcmp(id, build_id) != 0))
        printf("note: %s of %s is %s by now\n", path, name, id ? "another build" : "gone");
}

/* Libraries and static programs that are another build by now: worth saying, no fault of the folder. */
static void note_changed_files(struct verify *v)
{
    size_t i;
    json_t *allocator;
    json_array_foreach(json_object_get(v->meta, "allocators"), i, allocator)
    {
        const char *path = meta_text(allocator, "path"), *name = meta_text(allocator, "name"), *kernel;
        json_t *programs = json_object_get(allocator, "programs"), *id;
        if (!json_is_object(programs))
            note_changed_file(v, path, meta_text(allocator, "build_id"), name);
        json_object_foreach(programs, kernel, id) note_changed_file(
            v, arena_printf(&v->arena, "%s/%s", path, kernel), meta_text(programs, kernel), name);
    }
}

static size_t count_ok(const struct verify *v)
{
    size_t ok = 0;
    for (size_t i = 0; i < v->runs.rows; i++)
        ok += strcmp(row_field(&v->runs.row[i], "status"), "ok") == 0;
    return ok;
}

/* The run at hand: its meta.json, its plan, and those rows of the folder that are its own. */
static bool verify_run(struct verify *v, struct fault *f)
{
    if (!csv_read(&v->arena, verify_path(v, FILE_PLAN), &v->plan, f))
        return false;
    v->sides = arena_alloc(&v->arena, (v->runs.rows + 1) * sizeof *v->sides);
    verify_meta(v);
    verify_plan(v);
    for (int s = 0; s < SIDES; s++)
        verify_side(v, s);
    for (size_t i = 0; i < v->runs.rows; i++)
        verify_row(v, i);
    v->rows += v->runs.rows;
    v->ok += count_ok(v);
    v->planned += v->plan.rows;
    return true;
}

/* The rows of one run, out of all. */
static struct csv_table rows_of(struct verify *v, const struct csv_table *all, const char *run_id)
{
    struct csv_table own = *all;
    const int run = column_find("run_id");
    own.rows = 0;
    own.row = arena_alloc(&v->arena, (all->rows + 1) * sizeof *own.row);
    for (size_t i = 0; i < all->rows; i++)
        if (strcmp(all->row[i].field[run], run_id) == 0)
            own.row[own.rows++] = all->row[i];
    return own;
}

/* What meta.json of the whole says of a run. */
static void check_listed(struct verify *v, const json_t *listed)
{
    static const char *const texts[] = {"machine_id", "sweep"};
    const char *part = v->part;
    v->part = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(meta_text(listed, texts[i]), meta_text(v->meta, texts[i])) != 0)
            violation(v, FILE_META, 0, "%s '%s' of run %s, expected '%s'", texts[i],
                      meta_text(listed, texts[i]), part, meta_text(v->meta, texts[i]));
    if (strcmp(meta_text(v->meta, "run_id"), part) != 0)
        violation(v, FILE_META, 0, "run %s, but its own " FILE_META " is of run '%s'", part,
                  meta_text(v->meta, "run_id"));
    if ((size_t)json_integer_value(json_object_get(listed, "rows")) != v->runs.rows)
        violation(v, FILE_META, 0, "%" JSON_INTEGER_FORMAT " rows of run %s, but " FILE_RUNS " holds %zu",
                  json_integer_value(json_object_get(listed, "rows")), part, v->runs.rows);
    v->part = part;
}

static bool verify_merged(struct verify *v, const json_t *list, struct fault *f)
{
    const struct csv_table all = v->runs;
    const int run = column_find("run_id");
    bool good = merged_runs(&v->arena, v->folder, list, &v->parts, f);
    for (size_t i = 0; good && i < all.rows; i++)
        if (!words_have(&v->parts, all.row[i].field[run]))
            violation(v, FILE_RUNS, all.row[i].line, "run_id '%s' is not in " FILE_META,
                      all.row[i].field[run]);
    for (size_t i = 0; good && i < v->parts.count; i++) {
        v->part = v->parts.word[i];
        v->meta = meta_read(&v->arena, merged_part(&v->arena, v->folder, v->part), f);
        v->runs = rows_of(v, &all, v->part);
        if (v->meta)
            check_listed(v, json_array_get(json_object_get(list, "merged"), i));
        good = v->meta && verify_run(v, f);
        json_decref(v->meta);
        v->meta = NULL;
    }
    return good;
}

static bool verify_folder(struct verify *v, struct fault *f)
{
    if (!path_is_folder(v->folder))
        return fault_at(f, v->folder, 0, "no folder, expected a results folder");
    v->meta = meta_read(&v->arena, v->folder, f);
    if (!v->meta)
        return false;
    if (!csv_read(&v->arena, verify_path(v, FILE_RUNS), &v->runs, f)) {
        if (!v->runs.column)
            return false;
        violation_fault(v, f); /* a torn or damaged line: the rows before it are checked all the same */
    }
    if (!check_header(v))
        return true;
    if (!folder_is_merged(v->folder)) {
        bool good = verify_run(v, f);
        note_changed_files(v);
        return good;
    }
    json_t *list = v->meta;
    v->meta = NULL;
    bool good = verify_merged(v, list, f);
    json_decref(list);
    return good;
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
        printf("%s: %zu rows (%zu ok), %zu planned, %zu violation%s\n", v.folder, v.rows, v.ok, v.planned,
               v.found, v.found == 1 ? "" : "s");
        code = v.found ? AK_FAILED : AK_DONE;
    }
    json_decref(v.meta);
    arena_free(&v.arena);
    return code;
}

AK_COMMAND(command_verify, "verify", "RUN", "re-check a results folder: schema, plan, numbers, provenance", "",
           cmd_verify);
