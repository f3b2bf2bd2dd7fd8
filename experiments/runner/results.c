#include "results.h"
#include "committed.h"
#include "csv.h"
#include "inifile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLAN_BYTES_MAX ((size_t)1 << 30)
#define TEMPORARY      ".new" /* suffix of a file until it is renamed */

/* ---- files of the folder ---- */

bool results_own(const char *name)
{
    static const char *const names[] = {FILE_META, FILE_SWEEP, FILE_PLAN, FILE_RUNS};
    char plain[NAME_MAX + 1];
    size_t length = strlen(name), tail = strlen(TEMPORARY);
    if (length > tail && strcmp(name + length - tail, TEMPORARY) == 0)
        length -= tail;
    snprintf(plain, sizeof plain, "%.*s", (int)length, name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(plain, names[i]) == 0)
            return true;
    for (int s = 0; s < SIDES; s++)
        if (strcmp(plain, side_files[s].file) == 0)
            return true;
    return false;
}

enum folder_state results_state(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return errno == ENOENT ? FOLDER_ABSENT : FOLDER_FOREIGN;
    bool any = false, foreign = false, complete = false;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        any = true;
        foreign |= !results_own(entry->d_name);
        complete |= strcmp(entry->d_name, FILE_META) == 0;
    }
    closedir(dir);
    return complete ? FOLDER_COMPLETE : foreign ? FOLDER_FOREIGN : any ? FOLDER_BEGUN : FOLDER_EMPTY;
}

static bool broken(const struct results *r, const char *file, struct fault *f)
{
    return fault_set(f, AK_ENVIRONMENT, "%s/%s: %s", r->folder, file, strerror(errno));
}

static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t wrote = write(fd, bytes, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        bytes += wrote;
        length -= (size_t)wrote;
    }
    return true;
}

static bool make_folders(const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

bool results_lock(struct results *r, const char *folder, struct fault *f)
{
    *r = (struct results){.folder = folder, .lock_fd = -1, .runs_fd = -1};
    for (int s = 0; s < SIDES; s++)
        r->side_fd[s] = -1;
    if (!make_folders(folder) || (r->lock_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return fault_set(f, AK_ENVIRONMENT, "%s: %s", folder, strerror(errno));
    if (flock(r->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return fault_set(f, AK_USAGE, "%s: another ak writes this folder", folder);
    return true;
}

/* Put `bytes` into the folder under `name`, whole or not at all. */
static bool replace_file(const struct results *r, const char *name, const char *bytes, size_t length,
                         struct fault *f)
{
    char temporary[64];
    snprintf(temporary, sizeof temporary, "%s" TEMPORARY, name);
    int fd = openat(r->lock_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return broken(r, temporary, f);
    bool written = write_all(fd, bytes, length) && fsync(fd) == 0;
    int error = errno;
    close(fd);
    if (written && renameat(r->lock_fd, temporary, r->lock_fd, name) == 0 && fsync(r->lock_fd) == 0)
        return true;
    if (!written)
        errno = error;
    broken(r, name, f);
    unlinkat(r->lock_fd, temporary, 0);
    return false;
}

bool results_write_meta(const struct results *r, const json_t *meta, struct fault *f)
{
    char *text = json_dumps(meta, JSON_INDENT(2));
    if (!text)
        return fault_set(f, AK_ENVIRONMENT, "%s/%s: cannot be formed", r->folder, FILE_META);
    struct buffer b = {0};
    buffer_addf(&b, "%s\n", text);
    free(text);
    bool written = replace_file(r, FILE_META, b.data, b.length, f);
    buffer_free(&b);
    return written;
}

static void runs_header(struct buffer *b)
{
    for (size_t i = 0; i < column_count; i++)
        csv_field(b, columns[i].name);
    csv_end_row(b);
}

static bool open_tables(struct results *r, struct fault *f)
{
    r->runs_fd = openat(r->lock_fd, FILE_RUNS, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (r->runs_fd < 0)
        return broken(r, FILE_RUNS, f);
    for (int s = 0; s < SIDES; s++) {
        r->side_fd[s] = openat(r->lock_fd, side_files[s].file, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (r->side_fd[s] < 0)
            return broken(r, side_files[s].file, f);
    }
    return true;
}

/* True if runs.csv is absent or a part of its header: nothing was ever measured into the folder. */
static bool nothing_committed(const struct results *r, const struct buffer *header, struct fault *f)
{
    char start[4096]; /* the header is shorter */
    int fd = openat(r->lock_fd, FILE_RUNS, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || broken(r, FILE_RUNS, f);
    ssize_t length = read(fd, start, sizeof start);
    close(fd);
    if (length < 0)
        return broken(r, FILE_RUNS, f);
    return ((size_t)length <= header->length && memcmp(start, header->data, (size_t)length) == 0) ||
           fault_set(
               f, AK_USAGE,
               "%s/%s holds rows, but %s is missing: nothing can tell whose they are; put %s back, or choose "
               "another --out",
               r->folder, FILE_RUNS, FILE_META, FILE_META);
}

bool results_create(struct results *r, const struct plan *plan, const json_t *meta, struct fault *f)
{
    struct buffer text = {0}, header = {0};
    plan_csv(plan, &text);
    runs_header(&header);
    bool made = nothing_committed(r, &header, f) &&
                replace_file(r, FILE_SWEEP, plan->sweep->text, plan->sweep->length, f) &&
                replace_file(r, FILE_PLAN, text.data, text.length, f) &&
                replace_file(r, FILE_RUNS, header.data, header.length, f);
    for (int s = 0; s < SIDES && made; s++)
        made = replace_file(r, side_files[s].file, side_files[s].header, strlen(side_files[s].header), f);
    made = made && open_tables(r, f) && results_write_meta(r, meta, f);
    buffer_free(&text);
    buffer_free(&header);
    r->done = calloc(plan->rows, sizeof *r->done);
    if (!r->done)
        return fault_set(f, AK_ENVIRONMENT, "out of memory");
    return made;
}

/* ---- resuming ---- */

/* An index of the plan's row ids, sorted, to find rows by id. */
struct index_entry {
    const char *row_id;
    size_t at;
};
struct plan_index {
    struct index_entry *entry;
    size_t count;
};

static int by_row_id(const void *a, const void *b)
{
    return strcmp(((const struct index_entry *)a)->row_id, ((const struct index_entry *)b)->row_id);
}

static struct plan_index index_plan(struct arena *a, const struct plan *p)
{
    struct plan_index index = {arena_alloc(a, p->rows * sizeof(struct index_entry)), p->rows};
    for (size_t i = 0; i < p->rows; i++)
        index.entry[i] = (struct index_entry){p->row[i].row_id, i};
    qsort(index.entry, index.count, sizeof *index.entry, by_row_id);
    return index;
}

static const struct index_entry *index_find(const struct plan_index *index, const char *row_id)
{
    struct index_entry key = {row_id, 0};
    return bsearch(&key, index->entry, index->count, sizeof key, by_row_id);
}

/* The same plan: else say in words what differs, as far as the first different line tells. */
static bool same_plan(struct arena *a, const struct results *r, const struct plan *plan, struct fault *f)
{
    struct buffer mine = {0};
    size_t length;
    const char *path = arena_printf(a, "%s/%s", r->folder, FILE_PLAN);
    char *theirs = file_read(a, path, PLAN_BYTES_MAX, &length, f);
    if (!theirs)
        return false;
    plan_csv(plan, &mine);
    unsigned line = 1;
    size_t at = 0;
    while (at < length && at < mine.length && theirs[at] == mine.data[at])
        line += theirs[at++] == '\n';
    bool same = length == mine.length && at == length;
    buffer_free(&mine);
    return same || fault_at(f, path, line,
                            "planned otherwise than now, expected the same sweep, preset, seed and options "
                            "as when the run began");
}

/* Cut what follows the last line end. A table without its whole header is begun anew. */
static bool cut_torn_line(struct arena *a, const struct results *r, const char *file, const char *header,
                          size_t header_length, struct fault *f)
{
    struct arena memory = {0};
    size_t length;
    char *text = file_read(&memory, arena_printf(a, "%s/%s", r->folder, file), SIZE_MAX / 4, &length, f);
    bool good = text != NULL;
    if (good) {
        size_t keep = length;
        while (keep && text[keep - 1] != '\n')
            keep--;
        if (keep < header_length &&
            memcmp(text, header, length < header_length ? length : header_length) == 0)
            good = replace_file(r, file, header, header_length, f);
        else if (length < header_length || memcmp(text, header, header_length) != 0)
            good = fault_at(f, arena_printf(a, "%s/%s", r->folder, file), 1,
                            "another header, expected that of this ak");
        else if (keep < length) {
            int fd = openat(r->lock_fd, file, O_WRONLY | O_CLOEXEC);
            good = fd >= 0 && ftruncate(fd, (off_t)keep) == 0 && fsync(fd) == 0;
            if (!good)
                broken(r, file, f);
            if (fd >= 0)
                close(fd);
        }
    }
    arena_free(&memory);
    return good;
}

static bool learn_done(struct arena *a, struct results *r, const struct plan_index *index, struct fault *f)
{
    struct arena memory = {0};
    struct csv_table runs;
    const char *path = arena_printf(a, "%s/%s", r->folder, FILE_RUNS);
    bool good = csv_read(&memory, path, &runs, f);
    for (size_t i = 0; good && i < runs.rows; i++) {
        const struct index_entry *e = index_find(index, runs.row[i].field[0]);
        if (!e)
            good = fault_at(f, path, runs.row[i].line, "row %s is not in the plan, expected rows of %s only",
                            runs.row[i].field[0], FILE_PLAN);
        else if (r->done[e->at])
            good = fault_at(f, path, runs.row[i].line, "row %s again, expected once", runs.row[i].field[0]);
        else {
            r->done[e->at] = true;
            r->done_count++;
        }
    }
    arena_free(&memory);
    return good;
}

/* Drop the lines of rows that were never committed. Lines begin with the row's id. */
static bool drop_uncommitted(struct arena *a, const struct results *r, const struct plan_index *index,
                             const char *file, struct fault *f)
{
    struct arena memory = {0};
    struct buffer kept = {0};
    size_t length;
    char *text = file_read(&memory, arena_printf(a, "%s/%s", r->folder, file), SIZE_MAX / 4, &length, f);
    bool good = text != NULL, header = true;
    for (const char *line = text; good && line < text + length;) {
        const char *end = memchr(line, '\n', (size_t)(text + length - line));
        size_t bytes = (size_t)(end - line) + 1;
        char id[ROW_ID_LENGTH + 1] = "";
        if (bytes > ROW_ID_LENGTH && line[ROW_ID_LENGTH] == ',')
            memcpy(id, line, ROW_ID_LENGTH);
        const struct index_entry *e = index_find(index, id);
        if (header || (e && r->done[e->at]))
            buffer_add(&kept, line, bytes);
        header = false;
        line += bytes;
    }
    if (good && kept.length != length)
        good = replace_file(r, file, kept.data, kept.length, f);
    buffer_free(&kept);
    arena_free(&memory);
    return good;
}

bool results_resume(struct arena *a, struct results *r, const struct plan *plan, struct fault *f)
{
    struct buffer header = {0};
    r->done = calloc(plan->rows, sizeof *r->done);
    if (!r->done)
        return fault_set(f, AK_ENVIRONMENT, "out of memory");
    if (!same_plan(a, r, plan, f))
        return false;
    struct plan_index index = index_plan(a, plan);
    runs_header(&header);
    bool good = cut_torn_line(a, r, FILE_RUNS, header.data, header.length, f) &&
                learn_done(a, r, &index, f) && committed_rows_whole(r->folder, f);
    for (int s = 0; good && s < SIDES; s++)
        good =
            cut_torn_line(a, r, side_files[s].file, side_files[s].header, strlen(side_files[s].header), f) &&
            drop_uncommitted(a, r, &index, side_files[s].file, f);
    buffer_free(&header);
    return good && open_tables(r, f);
}

/* ---- a row ---- */

bool results_in_place(const struct results *r, struct fault *f)
{
    struct stat ours, there;
    if (fstat(r->lock_fd, &ours) != 0 || stat(r->folder, &there) != 0 || ours.st_dev != there.st_dev ||
        ours.st_ino != there.st_ino)
        return fault_set(f, AK_ENVIRONMENT, "%s was %s while the run went on; stopped", r->folder,
                         ours.st_nlink ? "renamed or replaced, its rows are where it went," : "removed");
    if (fstat(r->runs_fd, &ours) != 0 || fstatat(r->lock_fd, FILE_RUNS, &there, 0) != 0 ||
        ours.st_dev != there.st_dev || ours.st_ino != there.st_ino)
        return fault_set(f, AK_ENVIRONMENT, "%s/%s was replaced or removed while the run went on; stopped",
                         r->folder, FILE_RUNS);
    return true;
}

bool results_append(struct results *r, const struct buffer side[SIDES], const struct buffer *row,
                    struct fault *f)
{
    if (!results_in_place(r, f))
        return false;
    off_t before[SIDES + 1];
    const char *failed = NULL;
    int error = 0;
    for (int s = 0; s <= SIDES && !failed; s++) {
        int fd = s < SIDES ? r->side_fd[s] : r->runs_fd;
        const struct buffer *bytes = s < SIDES ? &side[s] : row;
        before[s] = lseek(fd, 0, SEEK_END);
        if (!bytes->length)
            continue;
        if (before[s] < 0 || !write_all(fd, bytes->data, bytes->length) || fdatasync(fd) != 0) {
            error = errno;
            failed = s < SIDES ? side_files[s].file : FILE_RUNS;
            for (int back = s; back >= 0; back--)
                if (before[back] >= 0 &&
                    ftruncate(back < SIDES ? r->side_fd[back] : r->runs_fd, before[back]) != 0)
                    break; /* resume cuts it */
        }
    }
    if (!failed) {
        r->done_count++;
        return true;
    }
    return fault_set(f, AK_ENVIRONMENT, "%s/%s: %s; %zu rows are safe, go on with --resume", r->folder,
                     failed, strerror(error), r->done_count);
}

void results_close(struct results *r)
{
    if (r->runs_fd >= 0)
        close(r->runs_fd);
    for (int s = 0; s < SIDES; s++)
        if (r->side_fd[s] >= 0)
            close(r->side_fd[s]);
    if (r->lock_fd >= 0)
        close(r->lock_fd);
    free(r->done);
    r->done = NULL;
}
