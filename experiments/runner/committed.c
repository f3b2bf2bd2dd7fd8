#include "committed.h"
#include "columns.h"
#include "csv.h"
#include "inifile.h"
#include "result.h"
#include "results.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What an ok row says that the side files hold of it, and what they do hold. */
struct whole {
    const char *row_id;
    unsigned line;
    uint64_t samples, rss_peak;
    uint64_t samples_there, rss_there;
    uint64_t high_water; /* an application's peak, which may come between two looks */
    bool launched; /* the last metric of every row is there */
};

struct whole_rows {
    struct arena arena;
    struct whole *row;
    size_t rows;
};

static int by_row_id(const void *a, const void *b)
{
    return strcmp(((const struct whole *)a)->row_id, ((const struct whole *)b)->row_id);
}

static int by_line(const void *a, const void *b)
{
    const struct whole *x = a, *y = b;
    return (x->line > y->line) - (x->line < y->line);
}

static bool read_rows(struct whole_rows *w, const char *folder, struct fault *f)
{
    struct csv_table runs;
    const int status = column_find("status"), samples = column_find("lat_samples"),
              peak = column_find("rss_peak_bytes");
    if (!csv_read(&w->arena, arena_printf(&w->arena, "%s/%s", folder, FILE_RUNS), &runs, f))
        return false;
    w->row = arena_alloc(&w->arena, (runs.rows + 1) * sizeof *w->row);
    for (size_t i = 0; i < runs.rows; i++) {
        const char **field = runs.row[i].field;
        if (runs.columns < column_count || strcmp(field[status], status_names[STATUS_OK]) != 0)
            continue;
        struct whole *row = &w->row[w->rows++];
        *row = (struct whole){.row_id = field[0], .line = runs.row[i].line};
        text_uint(field[samples], 0, &row->samples);
        text_uint(field[peak], 0, &row->rss_peak);
    }
    if (w->rows)
        qsort(w->row, w->rows, sizeof *w->row, by_row_id);
    return true;
}

static void take_line(struct whole *row, enum side s, const struct csv_reader *r)
{
    uint64_t value = 0;
    if (s == SIDE_HIST && strcmp(r->field[1], "malloc") == 0 && text_uint(r->field[4], 0, &value))
        row->samples_there += value;
    else if (s == SIDE_TIMELINE && text_uint(r->field[2], 0, &value) && value > row->rss_there)
        row->rss_there = value;
    else if (s == SIDE_METRICS && strcmp(r->field[1], "rss_high_water_bytes") == 0)
        text_uint(r->field[3], 0, &row->high_water);
    else if (s == SIDE_METRICS)
        row->launched |= strcmp(r->field[1], RESULT_LAST_METRIC) == 0;
}

static bool timeline_is_whole(const struct whole *row)
{
    return row->rss_there == row->rss_peak || (row->rss_there > 0 && row->high_water == row->rss_peak);
}

static bool read_side(struct whole_rows *w, const char *folder, enum side s, struct fault *f)
{
    struct arena memory = {0}, line = {0};
    struct csv_reader reader;
    struct fault torn = {0};
    size_t length;
    const char *path = arena_printf(&memory, "%s/%s", folder, side_files[s].file);
    char *text = file_read(&memory, path, SIZE_MAX / 4, &length, f);
    while (text && length && text[length - 1] != '\n')
        length--;
    if (text) {
        csv_open(&reader, &line, path, text, length);
        while (csv_next(&reader, &torn)) {
            struct whole key = {.row_id = reader.field[0]};
            struct whole *row = w->rows ? bsearch(&key, w->row, w->rows, sizeof *w->row, by_row_id) : NULL;
            if (row && reader.fields == side_files[s].columns)
                take_line(row, s, &reader);
        }
    }
    arena_free(&line);
    arena_free(&memory);
    return text != NULL;
}

bool committed_rows_whole(const char *folder, struct fault *f)
{
    struct whole_rows w = {0};
    bool good = read_rows(&w, folder, f) && read_side(&w, folder, SIDE_HIST, f) &&
                read_side(&w, folder, SIDE_TIMELINE, f) && read_side(&w, folder, SIDE_METRICS, f);
    if (good && w.rows)
        qsort(w.row, w.rows, sizeof *w.row, by_line);
    for (size_t i = 0; good && i < w.rows; i++) {
        const struct whole *row = &w.row[i];
        const char *file = row->samples_there != row->samples ? side_files[SIDE_HIST].file
                           : !timeline_is_whole(row)          ? side_files[SIDE_TIMELINE].file
                           : !row->launched                   ? side_files[SIDE_METRICS].file
                                                              : NULL;
        if (file)
            good = fault_set(
                f, AK_USAGE,
                "%s/%s lacks lines of row %s, which %s:%u holds: the folder was damaged; put the file "
                "back, or begin a new run",
                folder, file, row->row_id, FILE_RUNS, row->line);
    }
    arena_free(&w.arena);
    return good;
}
