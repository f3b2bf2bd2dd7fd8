#include "csvstream.h"
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORD_BYTES_MAX ((size_t)1 << 20) /* a row takes a few thousand */

bool csv_stream_open(struct csv_stream *s, const char *path, struct fault *f)
{
    struct stat st;
    *s = (struct csv_stream){.path = path, .next_line = 1};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        fault_at(f, path, 0, "%s, expected a readable file", fd < 0 ? strerror(errno) : "not a regular file");
        if (fd >= 0)
            close(fd);
        return false;
    }
    s->file = fdopen(fd, "r");
    if (s->file)
        return true;
    close(fd);
    return fault_set(f, AK_ENVIRONMENT, "%s: out of memory", path);
}

static bool read_on(struct csv_stream *s, int *byte, struct fault *f)
{
    *byte = getc_unlocked(s->file);
    if (*byte != EOF || !ferror(s->file))
        return true;
    if (errno == EINTR && child_interrupts)
        return fault_set(f, AK_FAILED, "interrupted");
    return fault_at(f, s->path, s->line, "cannot be read: %s", strerror(errno));
}

/* Bytes to the line end that no quotes enclose. */
static bool read_record(struct csv_stream *s, struct fault *f)
{
    bool quoted = false;
    int byte = 0;
    s->length = 0;
    while (byte != '\n' || quoted) {
        if (!read_on(s, &byte, f))
            return false;
        if (byte == EOF)
            return true;
        if (s->length == RECORD_BYTES_MAX)
            return fault_at(f, s->path, s->line, "a row of more than %zu bytes, expected RFC 4180",
                            RECORD_BYTES_MAX);
        if (s->length == s->room) {
            s->room = s->room ? 2 * s->room : 4096;
            char *text = realloc(s->text, s->room);
            if (!text)
                return fault_set(f, AK_ENVIRONMENT, "out of memory");
            s->text = text;
        }
        s->text[s->length++] = (char)byte;
        s->next_at++;
        quoted ^= byte == '"';
        s->next_line += byte == '\n';
    }
    return true;
}

bool csv_stream_next(struct csv_stream *s, struct fault *f)
{
    struct csv_reader reader;
    size_t bad;
    s->at = s->next_at;
    s->line = s->next_line;
    if (child_interrupts)
        return fault_set(f, AK_FAILED, "interrupted");
    if (!read_record(s, f))
        return false;
    if (!s->length)
        return false;
    if (memchr(s->text, '\0', s->length))
        return fault_at(f, s->path, s->line, "a NUL byte, expected UTF-8 without");
    if (s->text[s->length - 1] != '\n') {
        s->torn = !memchr(s->text, '\n', s->length);
        return !s->torn && fault_at(f, s->path, s->line, "a quoted field without end, expected RFC 4180");
    }
    csv_open(&reader, &s->arena, s->path, s->text, s->length);
    reader.next_line = s->line;
    if (!csv_next(&reader, f))
        return false;
    if (!text_is_utf8(s->text, s->length, &bad))
        return fault_at(f, s->path, s->line, "byte %zu is not UTF-8, expected UTF-8", bad + 1);
    s->field = reader.field;
    s->fields = reader.fields;
    return true;
}

bool csv_stream_seek(struct csv_stream *s, off_t at, unsigned line, struct fault *f)
{
    s->next_line = line;
    if (s->next_at == at)
        return true;
    s->next_at = at;
    return fseeko(s->file, at, SEEK_SET) == 0 ||
           fault_at(f, s->path, line, "cannot be read: %s", strerror(errno));
}

void csv_stream_close(struct csv_stream *s)
{
    if (s->file)
        fclose(s->file);
    free(s->text);
    arena_free(&s->arena);
    *s = (struct csv_stream){0};
}
