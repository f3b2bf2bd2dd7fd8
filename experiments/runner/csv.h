/*
 * csv.h - RFC 4180 with LF line ends: writing into a buffer, reading back with line numbers.
 */
#ifndef AK_CSV_H
#define AK_CSV_H

#include "arena.h"
#include "fault.h"
#include "text.h"

#include <stdbool.h>
#include <stddef.h>

/* Append a field, quoted where needed, and a comma. */
void csv_field(struct buffer *, const char *value);
/* The last comma becomes the line's end. */
void csv_end_row(struct buffer *);

/* A table read from a file. Fields beyond a row's own are "". */
struct csv_row {
    unsigned line; /* of the file, from 1 */
    const char **field;
    size_t fields;
};
struct csv_table {
    const char *path;
    const char **column;
    size_t columns;
    struct csv_row *row;
    size_t rows;
};

/* Rows are handed out one at a time, so that a large file needs no table. */
struct csv_reader {
    struct arena *arena; /* of one row; emptied at each next */
    const char *path;
    const char *text, *end, *next;
    unsigned line; /* of the row last read */
    unsigned next_line;
    const char **field;
    size_t fields;
};
/* Start to read `text`; it must outlive the reader. */
void csv_open(struct csv_reader *, struct arena *row_arena, const char *path, const char *text,
              size_t length);
/* The next row. False at the end, or with a fault where quoting is broken. */
bool csv_next(struct csv_reader *, struct fault *);

/* The whole file; the first row is the header, every row has as many fields. All in the arena. */
bool csv_read(struct arena *, const char *path, struct csv_table *, struct fault *);
/* Column by name, or -1. */
int csv_column(const struct csv_table *, const char *name);

#endif
