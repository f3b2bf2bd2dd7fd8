#include "csv.h"
#include "inifile.h"

#include <string.h>

#define CSV_BYTES_MAX ((size_t)4 << 30)

void csv_field(struct buffer *b, const char *value)
{
    if (!strpbrk(value, ",\"\r\n")) {
        buffer_add(b, value, strlen(value));
    } else {
        buffer_add(b, "\"", 1);
        for (; *value; value++)
            buffer_add(b, *value == '"' ? "\"\"" : value, *value == '"' ? 2 : 1);
        buffer_add(b, "\"", 1);
    }
    buffer_add(b, ",", 1);
}

void csv_end_row(struct buffer *b)
{
    if (b->length && b->data[b->length - 1] == ',')
        b->data[b->length - 1] = '\n';
}

void csv_open(struct csv_reader *r, struct arena *row_arena, const char *path, const char *text,
              size_t length)
{
    *r = (struct csv_reader){
        .arena = row_arena, .path = path, .text = text, .end = text + length, .next = text, .next_line = 1};
}

/* One field from r->next on, without its end (',' or '\n'). */
static const char *read_field(struct csv_reader *r, struct fault *f)
{
    const char *start = r->next;
    if (start == r->end || *start != '"') {
        while (r->next < r->end && *r->next != ',' && *r->next != '\n')
            if (*r->next++ == '"') {
                fault_at(f, r->path, r->line, "a quote within an unquoted field, expected RFC 4180");
                return NULL;
            }
        return arena_strndup(r->arena, start, (size_t)(r->next - start));
    }
    const char *close = ++start;
    while (close < r->end && (*close != '"' || (close + 1 < r->end && close[1] == '"')))
        close += *close == '"' ? 2 : 1;
    if (close >= r->end) {
        fault_at(f, r->path, r->line, "a quoted field without end, expected RFC 4180");
        return NULL;
    }
    char *field = arena_alloc(r->arena, (size_t)(close - start) + 1);
    char *to = field;
    for (const char *from = start; from < close; from++) {
        *to++ = *from;
        r->next_line += *from == '\n';
        from += *from == '"';
    }
    r->next = close + 1;
    if (r->next < r->end && *r->next != ',' && *r->next != '\n') {
        fault_at(f, r->path, r->line, "text after a closing quote, expected RFC 4180");
        return NULL;
    }
    return field;
}

bool csv_next(struct csv_reader *r, struct fault *f)
{
    if (r->next >= r->end)
        return false;
    arena_free(r->arena);
    struct words fields = {0};
    const char *start = r->next;
    r->line = r->next_line++;
    for (;;) {
        const char *field = read_field(r, f);
        if (!field)
            return false;
        words_add(r->arena, &fields, field);
        if (r->next == r->end || *r->next++ == '\n')
            break;
    }
    if (memchr(start, '\0', (size_t)(r->next - start)))
        return fault_at(f, r->path, r->line, "a NUL byte, expected text");
    r->field = fields.word;
    r->fields = fields.count;
    return true;
}

bool csv_read(struct arena *a, const char *path, struct csv_table *t, struct fault *f)
{
    struct arena row = {0};
    struct csv_reader reader;
    size_t length;
    *t = (struct csv_table){.path = arena_strdup(a, path)};
    char *text = file_read(a, path, CSV_BYTES_MAX, &length, f);
    if (!text)
        return false;
    csv_open(&reader, &row, t->path, text, length);
    while (csv_next(&reader, f)) {
        const char **field = arena_alloc(a, reader.fields * sizeof *field);
        for (size_t i = 0; i < reader.fields; i++)
            field[i] = arena_strdup(a, reader.field[i]);
        if (!t->column) {
            t->column = field;
            t->columns = reader.fields;
            continue;
        }
        if (reader.fields != t->columns) {
            fault_at(f, path, reader.line, "%zu fields, expected %zu as in the header", reader.fields,
                     t->columns);
            break;
        }
        t->row = arena_grow(a, t->row, t->rows, sizeof *t->row);
        t->row[t->rows++] = (struct csv_row){reader.line, field, reader.fields};
    }
    arena_free(&row);
    if (f->code == AK_DONE && !t->column)
        fault_at(f, path, 0, "empty, expected a header line");
    return f->code == AK_DONE;
}

int csv_column(const struct csv_table *t, const char *name)
{
    for (size_t i = 0; i < t->columns; i++)
        if (strcmp(t->column[i], name) == 0)
            return (int)i;
    return -1;
}
