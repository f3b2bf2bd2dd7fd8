#include "launches.h"
#include "merged.h"
#include "meta.h"
#include "places.h"
#include "results.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

static const char late[] = "sim_"; /* columns that folders of an older ak lack begin so */

uint64_t launch_key(const char *run_id, const char *row_id)
{
    return hash_mix(hash_text(hash_text(HASH_START, run_id), row_id));
}

static void *grown(void *old, size_t count, size_t size, struct fault *f)
{
    if (count & (count - 1)) /* there is room until the next power of two */
        return old;
    void *array = realloc(old, (count ? 2 * count : 1) * size);
    if (!array)
        fault_set(f, AK_ENVIRONMENT, "out of memory");
    return array;
}

/* ---- runs.csv ---- */

static uint64_t row_key(const struct launches *l)
{
    return launch_key(l->merged ? launches_field(l, column_find("run_id")) : "",
                      launches_field(l, column_find("row_id")));
}

static bool read_header(struct arena *a, struct launches *l, struct fault *f)
{
    struct csv_stream *s = &l->runs;
    if (!csv_stream_next(s, f))
        return f->code == AK_DONE && fault_at(f, s->path, 0, "empty, expected a header line");
    l->columns = s->fields;
    l->column = arena_alloc(a, l->columns * sizeof *l->column);
    for (size_t i = 0; i < s->fields; i++) {
        l->column[i] = arena_strdup(a, s->field[i]);
        for (size_t j = 0; j < i; j++)
            if (strcmp(l->column[i], l->column[j]) == 0)
                return fault_at(f, s->path, 1, "column '%s' twice, expected once", l->column[i]);
    }
    for (size_t c = 0; c < column_count; c++) {
        size_t i = 0;
        while (i < l->columns && strcmp(l->column[i], columns[c].name) != 0)
            i++;
        l->at[c] = i < l->columns ? (int)i : -1;
        if (i == l->columns && strncmp(columns[c].name, late, strlen(late)) != 0)
            return fault_at(f, s->path, 1, "no column '%s', expected those of experiments/schema.md",
                            columns[c].name);
    }
    return true;
}

static int by_key(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_committed(const struct launches *l, uint64_t key)
{
    return l->rows && bsearch(&key, l->key, l->rows, sizeof key, by_key);
}

/* The line of the second row of a key. */
static bool tell_again(struct launches *l, uint64_t key, struct fault *f)
{
    bool seen = false;
    if (!csv_stream_seek(&l->runs, 0, 1, f) || !csv_stream_next(&l->runs, f))
        return false;
    while (launches_next(l, f)) {
        if (row_key(l) == key && seen)
            return fault_at(f, l->runs.path, l->runs.line, "row %s again, expected once", l->runs.field[0]);
        seen |= row_key(l) == key;
    }
    return false;
}

static bool learn_rows(struct launches *l, struct fault *f)
{
    const off_t first = l->runs.next_at;
    const unsigned line = l->runs.next_line;
    while (launches_next(l, f)) {
        uint64_t *key = grown(l->key, l->rows, sizeof *key, f);
        if (!key)
            return false;
        l->key = key;
        l->key[l->rows++] = row_key(l);
    }
    if (f->code != AK_DONE)
        return false;
    if (l->rows)
        qsort(l->key, l->rows, sizeof *l->key, by_key);
    for (size_t i = 1; i < l->rows; i++)
        if (l->key[i] == l->key[i - 1])
            return tell_again(l, l->key[i], f);
    return csv_stream_seek(&l->runs, first, line, f);
}

/* The runs that the folder is of, as its meta.json tells. */
static bool learn_runs(struct arena *a, struct launches *l, const char *folder, struct fault *f)
{
    json_t *meta = meta_read(a, folder, f);
    bool good = meta != NULL;
    if (good && l->merged)
        good = merged_runs(a, folder, meta, &l->run_ids, f);
    else if (good)
        words_add(a, &l->run_ids, arena_strdup(a, meta_text(meta, "run_id")));
    json_decref(meta);
    return good;
}

bool launches_open(struct arena *a, struct launches *l, const char *folder, struct fault *f)
{
    const char *path = arena_printf(a, "%s/%s", folder, FILE_RUNS);
    *l = (struct launches){.merged = folder_is_merged(folder)};
    if (!path_is_folder(folder))
        return fault_at(f, folder, 0, "no folder, expected a results folder");
    return csv_stream_open(&l->runs, path, f) && read_header(a, l, f) && learn_runs(a, l, folder, f) &&
           learn_rows(l, f);
}

static bool is_row_id(const char *text)
{
    return strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
}

static bool check_fields(const struct launches *l, struct fault *f)
{
    const char *row_id = launches_field(l, column_find("row_id")),
               *run_id = launches_field(l, column_find("run_id"));
    if (!is_row_id(row_id))
        return fault_at(f, l->runs.path, l->runs.line, "row_id '%s', expected 16 hex digits", row_id);
    if (!words_have(&l->run_ids, run_id))
        return fault_at(f, l->runs.path, l->runs.line, "run_id '%s', expected that of meta.json", run_id);
    for (int i = 0; i < (int)column_count; i++) {
        const char *text = launches_field(l, i);
        if (*text && !column_fits(&columns[i], text))
            return fault_at(f, l->runs.path, l->runs.line,
                            "%s is '%s', expected a number of the column's type", columns[i].name, text);
    }
    return true;
}

bool launches_next(struct launches *l, struct fault *f)
{
    if (!csv_stream_next(&l->runs, f))
        return false;
    if (l->runs.fields != l->columns)
        return fault_at(f, l->runs.path, l->runs.line, "%zu fields, expected %zu as in the header",
                        l->runs.fields, l->columns);
    return check_fields(l, f);
}

const char *launches_field(const struct launches *l, int column)
{
    return l->at[column] >= 0 ? l->runs.field[l->at[column]] : "";
}

void launches_close(struct launches *l)
{
    csv_stream_close(&l->runs);
    free(l->key);
    l->key = NULL;
}

/* ---- side files ---- */

static uint64_t line_key(const struct side_lines *s)
{
    return launch_key(s->merged ? s->stream.field[side_files[s->side].columns] : "", s->stream.field[0]);
}

static bool check_side_header(struct side_lines *s, struct fault *f)
{
    const char *header = side_files[s->side].header;
    const size_t length = strlen(header) - 1;
    const char *more = s->merged ? MERGED_COLUMN "\n" : "\n";
    if (!csv_stream_next(&s->stream, f))
        return f->code == AK_DONE && fault_at(f, s->stream.path, 0, "empty, expected a header line");
    return (s->stream.length == length + strlen(more) && memcmp(s->stream.text, header, length) == 0 &&
            memcmp(s->stream.text + length, more, strlen(more)) == 0) ||
           fault_at(f, s->stream.path, 1, "another header, expected %.*s%.*s", (int)length, header,
                    (int)strlen(more) - 1, more);
}

/* A word, or a number without exponent; not nan, not infinite. */
static bool is_value(const char *text)
{
    char *end;
    strtod(text, &end);
    return end == text || *end || text_is_number(text, true, true);
}

static bool next_line(struct side_lines *s, struct fault *f)
{
    const size_t expected = side_files[s->side].columns + s->merged;
    if (!csv_stream_next(&s->stream, f))
        return false;
    if (s->stream.fields != expected)
        return fault_at(f, s->stream.path, s->stream.line, "%zu fields, expected %zu", s->stream.fields,
                        expected);
    return s->side != SIDE_METRICS || is_value(s->stream.field[3]) ||
           fault_at(f, s->stream.path, s->stream.line, "%s is '%s', expected decimal digits or a word",
                    s->stream.field[1], s->stream.field[3]);
}

static int by_group(const void *a, const void *b)
{
    const struct side_group *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->at > y->at) - (x->at < y->at);
}

static bool sort_groups(struct side_lines *s, struct fault *f)
{
    if (s->groups)
        qsort(s->group, s->groups, sizeof *s->group, by_group);
    for (size_t i = 1; i < s->groups; i++)
        if (s->group[i].key == s->group[i - 1].key)
            return fault_at(f, s->stream.path, s->group[i].line,
                            "further lines of a row, expected all of a row together");
    return true;
}

bool side_lines_open(struct arena *a, struct side_lines *s, const struct launches *l, const char *folder,
                     enum side side, side_visit *visit, void *user, struct fault *f)
{
    const char *path = arena_printf(a, "%s/%s", folder, side_files[side].file);
    *s = (struct side_lines){.side = side, .merged = l->merged};
    if (!csv_stream_open(&s->stream, path, f) || !check_side_header(s, f))
        return false;
    struct side_group *last = NULL;
    for (uint64_t key; next_line(s, f);) {
        key = line_key(s);
        if (!is_committed(l, key)) {
            last = NULL;
            continue;
        }
        if (!last || last->key != key) {
            struct side_group *group = grown(s->group, s->groups, sizeof *group, f);
            if (!group)
                return false;
            s->group = group;
            last = &s->group[s->groups++];
            *last = (struct side_group){key, s->stream.at, s->stream.line, 0};
        }
        last->lines++;
        if (visit && !visit(&s->stream, user, f))
            return false;
    }
    return f->code == AK_DONE && sort_groups(s, f);
}

bool side_lines_of(struct side_lines *s, const struct launches *l, struct fault *f)
{
    const struct side_group key = {.key = row_key(l)};
    size_t low = 0, high = s->groups;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->group[middle].key < key.key)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < s->groups && s->group[low].key == key.key;
    s->left = found ? s->group[low].lines : 0;
    return !found || csv_stream_seek(&s->stream, s->group[low].at, s->group[low].line, f);
}

bool side_lines_next(struct side_lines *s, struct fault *f)
{
    if (!s->left)
        return false;
    s->left--;
    return next_line(s, f);
}

void side_lines_close(struct side_lines *s)
{
    csv_stream_close(&s->stream);
    free(s->group);
    s->group = NULL;
}
