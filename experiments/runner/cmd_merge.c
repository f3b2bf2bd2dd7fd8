/*
 * ak merge: several results folders, of one machine or of many, as one.
 *
 * The new folder is made under another name and renamed at the end: it is there as a whole, or not at all. A row is known
 * by its run and its row_id; one that lies in two folders is taken once, if all its lines are the same.
 */
#include "child.h"
#include "command.h"
#include "committed.h"
#include "csv.h"
#include "inifile.h"
#include "launches.h"
#include "merged.h"
#include "meta.h"
#include "output.h"
#include "results.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_BYTES_MAX ((size_t)1 << 30)

/* A folder to be merged. */
struct source {
    const char *folder;
    dev_t device;
    ino_t inode;
    int lock_fd;
};

/* A run, as the first folder that holds it has it; and its meta.json, of the folder that knows most of it. */
struct run {
    const char *run_id, *folder; /* folder: of meta.json, plan.csv and sweep.ini */
    json_t *meta;
    size_t rows;
};

/* A row that was taken. */
struct taken {
    uint64_t key, content;
    unsigned source, line;
};

struct merge {
    struct arena arena;
    struct source *source;
    size_t sources;
    struct run *run;
    size_t runs;
    struct taken *taken;
    size_t taken_count, sorted;
    size_t again; /* rows that lay in two folders */
    const char *out, *temporary;
    struct output tables[SIDES + 1];
    const char **column; /* of the first folder's runs.csv */
    size_t columns;
};

/* ---- the folders ---- */

static bool add_source(struct merge *m, const char *folder, struct fault *f)
{
    struct stat st;
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    folder = arena_strndup(&m->arena, folder, length);
    if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
        return fault_at(f, folder, 0, "no folder, expected a results folder");
    for (size_t i = 0; i < m->sources; i++)
        if (m->source[i].device == st.st_dev && m->source[i].inode == st.st_ino)
            return fault_set(f, AK_USAGE, "%s and %s are one folder, expected each once", m->source[i].folder,
                             folder);
    m->source = arena_grow(&m->arena, m->source, m->sources, sizeof *m->source);
    struct source *s = &m->source[m->sources++];
    *s = (struct source){folder, st.st_dev, st.st_ino, open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (s->lock_fd < 0)
        return fault_at(f, folder, 0, "%s, expected a readable folder", strerror(errno));
    return flock(s->lock_fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK ||
           fault_set(f, AK_USAGE, "%s: another ak writes this folder", folder);
}

static bool check_out(struct merge *m, const char *out, struct fault *f)
{
    struct stat st;
    size_t length = strlen(out);
    while (length > 1 && out[length - 1] == '/')
        length--;
    m->out = arena_strndup(&m->arena, out, length);
    const char *parent = path_real(&m->arena, path_folder(&m->arena, m->out));
    if (!*out || !parent)
        return fault_set(f, AK_USAGE, "--out %s: %s, expected a new folder in one that is there", out,
                         *out ? strerror(errno) : "empty");
    for (size_t i = 0; i < m->sources; i++) {
        const char *source = path_real(&m->arena, m->source[i].folder);
        size_t under = source ? strlen(source) : 0;
        if (source && strncmp(parent, source, under) == 0 && (!parent[under] || parent[under] == '/'))
            return fault_set(f, AK_USAGE, "--out %s lies in %s, expected a folder beside it", out,
                             m->source[i].folder);
    }
    if (lstat(m->out, &st) == 0 && (!S_ISDIR(st.st_mode) || results_state(m->out) != FOLDER_EMPTY))
        return fault_set(f, AK_USAGE, "%s is there already, expected a new folder", out);
    return true;
}

/* ---- the runs ---- */

static bool same_json(const json_t *a, const json_t *b, const char *key)
{
    return json_equal(json_object_get(a, key), json_object_get(b, key));
}

/* Whether two parts are of one run: made by one command on one machine at one moment, by one plan. */
static bool same_run(const struct run *run, const char *folder, const json_t *meta, bool *same,
                     struct fault *f)
{
    static const char *const keys[] = {"machine_id", "begun_at",   "seed",
                                       "sweep",      "sweep_text", "command_line"};
    struct arena memory = {0};
    size_t a, b;
    *same = true;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        *same = *same && same_json(run->meta, meta, keys[i]);
    const char *ours =
        file_read(&memory, arena_printf(&memory, "%s/" FILE_PLAN, run->folder), PART_BYTES_MAX, &a, f);
    const char *theirs =
        ours ? file_read(&memory, arena_printf(&memory, "%s/" FILE_PLAN, folder), PART_BYTES_MAX, &b, f)
             : NULL;
    *same = *same && theirs && a == b && memcmp(ours, theirs, a) == 0;
    arena_free(&memory);
    return theirs != NULL;
}

static size_t knows(const json_t *meta)
{
    return 2 * json_array_size(json_object_get(meta, "starts")) +
           !json_is_null(json_object_get(meta, "finished_at"));
}

/* Learn a run that lies in a folder; meta.json, plan.csv and sweep.ini are in `part`. */
static bool add_run(struct merge *m, const char *part, struct fault *f)
{
    json_t *meta = meta_read(&m->arena, part, f);
    bool same;
    if (!meta)
        return false;
    const char *run_id = meta_text(meta, "run_id");
    if (!run_id_is_name(run_id)) {
        fault_at(f, arena_printf(&m->arena, "%s/" FILE_META, part), 0,
                 "run_id '%s', expected letters, digits, '.', '_' and '-'", run_id);
        json_decref(meta);
        return false;
    }
    for (size_t i = 0; i < m->runs; i++) {
        struct run *run = &m->run[i];
        if (strcmp(run->run_id, run_id) != 0)
            continue;
        bool read = same_run(run, part, meta, &same, f);
        if (read && !same)
            fault_set(f, AK_USAGE,
                      "%s and %s hold different runs of one run_id (%s), expected parts of one run or two "
                      "ids",
                      run->folder, part, run_id);
        if (read && same && knows(meta) > knows(run->meta)) {
            json_decref(run->meta);
            run->meta = json_incref(meta);
            run->folder = part;
        }
        json_decref(meta);
        return read && same;
    }
    m->run = arena_grow(&m->arena, m->run, m->runs, sizeof *m->run);
    m->run[m->runs++] = (struct run){arena_strdup(&m->arena, run_id), part, meta, 0};
    return true;
}

static bool add_runs_of(struct merge *m, const char *folder, struct fault *f)
{
    struct words ids;
    if (!folder_is_merged(folder))
        return add_run(m, folder, f) && committed_rows_whole(folder, f);
    json_t *meta = meta_read(&m->arena, folder, f);
    bool good = meta && merged_runs(&m->arena, folder, meta, &ids, f);
    for (size_t i = 0; good && i < ids.count; i++)
        good = add_run(m, merged_part(&m->arena, folder, ids.word[i]), f);
    json_decref(meta);
    return good;
}

static struct run *find_run(const struct merge *m, const char *run_id)
{
    for (size_t i = 0; i < m->runs; i++)
        if (strcmp(m->run[i].run_id, run_id) == 0)
            return &m->run[i];
    return NULL;
}

/* ---- rows ---- */

static int by_key(const void *a, const void *b)
{
    const struct taken *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* All runs.csv have the columns of this ak, and the same ones after them. */
static bool check_columns(struct merge *m, const struct launches *l, struct fault *f)
{
    for (size_t i = 0; i < column_count; i++)
        if (i >= l->columns || strcmp(l->column[i], columns[i].name) != 0)
            return fault_at(f, l->runs.path, 1, "column %zu is '%s', expected '%s'", i + 1,
                            i < l->columns ? l->column[i] : "", columns[i].name);
    if (!m->column) {
        m->column = l->column;
        m->columns = l->columns;
        return true;
    }
    for (size_t i = column_count; i < l->columns || i < m->columns; i++) {
        const char *own = i < l->columns ? l->column[i] : "", *first = i < m->columns ? m->column[i] : "";
        if (strcmp(own, first) != 0)
            return fault_at(f, l->runs.path, 1, "column %zu is '%s', expected '%s' as in %s", i + 1, own,
                            first, m->source[0].folder);
    }
    return true;
}

static bool write_headers(struct merge *m, struct fault *f)
{
    struct buffer b = {0};
    bool good = true;
    for (size_t i = 0; i < m->columns; i++)
        csv_field(&b, m->column[i]);
    csv_end_row(&b);
    good = output_write(&m->tables[SIDES], &b, f);
    for (int s = 0; s < SIDES && good; s++) {
        const char *header = side_files[s].header;
        buffer_addf(&b, "%.*s" MERGED_COLUMN "\n", (int)strlen(header) - 1, header);
        good = output_write(&m->tables[s], &b, f);
    }
    buffer_free(&b);
    return good;
}

/* The lines of the row at hand in a side file, each with its run. */
static bool gather(struct side_lines *s, const struct launches *l, const char *run_id, struct buffer *lines,
                   struct fault *f)
{
    if (!side_lines_of(s, l, f))
        return false;
    while (side_lines_next(s, f)) {
        buffer_add(lines, s->stream.text, s->stream.length - 1);
        buffer_addf(lines, s->merged ? "\n" : ",%s\n", run_id);
    }
    return f->code == AK_DONE;
}

/* Take the row at hand, or see that it was taken as it is. */
static bool take_row(struct merge *m, unsigned source, const struct launches *l,
                     struct buffer lines[SIDES + 1], struct fault *f)
{
    const char *run_id = launches_field(l, column_find("run_id")),
               *row_id = launches_field(l, column_find("row_id"));
    struct taken row = {launch_key(run_id, row_id), HASH_START, source, l->runs.line};
    struct run *run = find_run(m, run_id);
    if (!run)
        return fault_at(f, l->runs.path, l->runs.line, "run_id '%s', expected that of meta.json", run_id);
    for (int s = 0; s <= SIDES; s++)
        row.content = hash_bytes(row.content, lines[s].length ? lines[s].data : "", lines[s].length);
    const struct taken *before = m->sorted ? bsearch(&row, m->taken, m->sorted, sizeof row, by_key) : NULL;
    if (before && before->content == row.content) {
        m->again++;
        return true;
    }
    if (before)
        return fault_at(f, l->runs.path, l->runs.line,
                        "row %s of run %s is another one at %s/" FILE_RUNS ":%u", row_id, run_id,
                        m->source[before->source].folder, before->line);
    m->taken = arena_grow(&m->arena, m->taken, m->taken_count, sizeof *m->taken);
    m->taken[m->taken_count++] = row;
    run->rows++;
    for (int s = 0; s <= SIDES; s++)
        if (!output_write(&m->tables[s], &lines[s], f))
            return false;
    return true;
}

static bool take_rows(struct merge *m, unsigned source, struct launches *l, struct side_lines side[SIDES],
                      struct fault *f)
{
    struct buffer lines[SIDES + 1] = {0};
    bool good = true;
    while (good && launches_next(l, f)) {
        const char *run_id = launches_field(l, column_find("run_id"));
        for (int s = 0; s <= SIDES; s++)
            lines[s].length = 0;
        buffer_add(&lines[SIDES], l->runs.text, l->runs.length);
        for (int s = 0; s < SIDES && good; s++)
            good = gather(&side[s], l, run_id, &lines[s], f);
        good = good && take_row(m, source, l, lines, f);
    }
    for (int s = 0; s <= SIDES; s++)
        buffer_free(&lines[s]);
    return good && f->code == AK_DONE;
}

static bool take_source(struct merge *m, unsigned source, struct fault *f)
{
    const char *folder = m->source[source].folder;
    struct launches l = {0};
    struct side_lines side[SIDES] = {0};
    bool good = launches_open(&m->arena, &l, folder, f) && check_columns(m, &l, f) &&
                (source > 0 || write_headers(m, f));
    for (int s = 0; s < SIDES && good; s++)
        good = side_lines_open(&m->arena, &side[s], &l, folder, s, NULL, NULL, f);
    if (good && l.runs.torn)
        fprintf(stderr, "ak: note: %s: the last line is torn and left out\n", l.runs.path);
    good = good && take_rows(m, source, &l, side, f);
    launches_close(&l);
    for (int s = 0; s < SIDES; s++)
        side_lines_close(&side[s]);
    if (m->taken_count)
        qsort(m->taken, m->taken_count, sizeof *m->taken, by_key);
    m->sorted = m->taken_count;
    return good;
}

/* ---- the new folder ---- */

static bool cannot(const char *path, struct fault *f)
{
    return fault_set(f, AK_ENVIRONMENT, "%s: %s", path, strerror(errno));
}

static bool make_folder(const char *path, struct fault *f)
{
    return mkdir(path, 0777) == 0 || cannot(path, f);
}

static bool write_file(struct merge *m, const char *path, struct buffer *b, struct fault *f)
{
    struct output o;
    bool good = output_open(&m->arena, &o, path, f) && output_write(&o, b, f) && output_commit(&o, f);
    if (!good)
        output_discard(&o);
    return good;
}

static bool copy_file(struct merge *m, const char *from, const char *to, const char *name, struct fault *f)
{
    struct arena memory = {0};
    struct buffer b = {0};
    size_t length;
    const char *text =
        file_read(&memory, arena_printf(&memory, "%s/%s", from, name), PART_BYTES_MAX, &length, f);
    if (text)
        buffer_add(&b, text, length);
    bool good = text && write_file(m, arena_printf(&m->arena, "%s/%s", to, name), &b, f);
    buffer_free(&b);
    arena_free(&memory);
    return good;
}

static bool write_parts(struct merge *m, struct fault *f)
{
    static const char *const files[] = {FILE_META, FILE_PLAN, FILE_SWEEP};
    if (!make_folder(arena_printf(&m->arena, "%s/" MERGED_PARTS, m->temporary), f))
        return false;
    for (size_t i = 0; i < m->runs; i++) {
        const char *part = merged_part(&m->arena, m->temporary, m->run[i].run_id);
        if (!make_folder(part, f))
            return false;
        for (size_t n = 0; n < sizeof files / sizeof *files; n++)
            if (!copy_file(m, m->run[i].folder, part, files[n], f))
                return false;
    }
    return true;
}

static bool write_list(struct merge *m, struct fault *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < m->runs; i++) {
        const struct run *run = &m->run[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:O?, s:O?, s:I}", "run_id", run->run_id, "machine_id",
                                        json_object_get(run->meta, "machine_id"), "sweep",
                                        json_object_get(run->meta, "sweep"), "rows", (json_int_t)run->rows));
    }
    json_t *meta = json_pack("{s:i, s:s, s:s, s:o}", "schema", META_SCHEMA, "merged_at",
                             time_stamp(&m->arena), "suite_version", SUITE_VERSION, "merged", list);
    char *text = meta ? json_dumps(meta, JSON_INDENT(2)) : NULL;
    struct buffer b = {0};
    buffer_addf(&b, "%s\n", text ? text : "");
    bool good = text ? write_file(m, arena_printf(&m->arena, "%s/" FILE_META, m->temporary), &b, f)
                     : fault_set(f, AK_ENVIRONMENT, "%s/" FILE_META ": cannot be formed", m->out);
    buffer_free(&b);
    free(text);
    json_decref(meta);
    return good;
}

static bool open_tables(struct merge *m, struct fault *f)
{
    for (int s = 0; s <= SIDES; s++) {
        const char *name = s < SIDES ? side_files[s].file : FILE_RUNS;
        if (!output_open(&m->arena, &m->tables[s], arena_printf(&m->arena, "%s/%s", m->temporary, name), f))
            return false;
    }
    return true;
}

static bool write_folder(struct merge *m, struct fault *f)
{
    if (!open_tables(m, f))
        return false;
    for (size_t i = 0; i < m->sources; i++)
        if (!take_source(m, (unsigned)i, f))
            return false;
    for (int s = 0; s <= SIDES; s++)
        if (!output_commit(&m->tables[s], f))
            return false;
    if (!write_parts(m, f) || !write_list(m, f))
        return false;
    if (child_interrupts)
        return fault_set(f, AK_FAILED, "interrupted");
    return rename(m->temporary, m->out) == 0 || cannot(m->out, f);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static bool merge(struct merge *m, struct fault *f)
{
    for (size_t i = 0; i < m->sources; i++)
        if (!add_runs_of(m, m->source[i].folder, f))
            return false;
    m->temporary = arena_printf(&m->arena, "%s.new-%d", m->out, (int)getpid());
    if (mkdir(m->temporary, 0777) != 0)
        return cannot(m->out, f); /* the name that the user gave */
    if (write_folder(m, f))
        return true;
    for (int s = 0; s <= SIDES; s++)
        output_discard(&m->tables[s]);
    nftw(m->temporary, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return false;
}

/* ---- the command ---- */

static void report(const struct merge *m)
{
    for (size_t i = 0; i < m->runs; i++) {
        const struct run *run = &m->run[i];
        const bool finished = !json_is_null(json_object_get(run->meta, "finished_at"));
        printf("run %s of %s on machine %s: %zu rows%s\n", run->run_id, meta_text(run->meta, "sweep"),
               meta_text(run->meta, "machine_id"), run->rows, finished ? "" : " (not finished)");
    }
    printf("%zu rows of %zu run%s in %s", m->taken_count, m->runs, m->runs == 1 ? "" : "s", m->out);
    if (m->again)
        printf("; %zu lay in more than one folder and were taken once", m->again);
    putchar('\n');
}

static int cmd_merge(int argc, char **argv)
{
    struct merge m = {0};
    struct fault fault = {0};
    const char *out = NULL;
    const struct command_option known[] = {{"--out", &out, NULL}, {NULL, NULL, NULL}};
    int left;
    child_watch_interrupts();
    bool good = command_options(&m.arena, argc, argv, known, &left, &fault);
    if (good && (left < 3 || !out))
        good = fault_set(&fault, AK_USAGE, "merge: %s",
                         out ? "expected two results folders or more" : "expected --out DIR");
    for (int i = 1; good && i < left; i++)
        good = add_source(&m, argv[i], &fault);
    good = good && check_out(&m, out, &fault) && merge(&m, &fault);
    if (good)
        report(&m);
    for (size_t i = 0; i < m.runs; i++)
        json_decref(m.run[i].meta);
    for (size_t i = 0; i < m.sources; i++)
        if (m.source[i].lock_fd >= 0)
            close(m.source[i].lock_fd);
    arena_free(&m.arena);
    return good ? AK_DONE : fault_print(&fault);
}

AK_COMMAND(command_merge, "merge", "RUN RUN... --out DIR",
           "several results folders as one, machine and run kept apart",
           "  --out DIR   a new folder, made whole or not at all: rows and side files of all; what each run "
           "was made with\n"
           "              is kept in DIR/parts/RUN_ID. `ak verify`, `ak export` and analysis/ read it.\n",
           cmd_merge);
