/*
 * csvstream.h - a CSV file of any length, record by record, in the memory of its longest record.
 *
 * csv.h reads a file as a whole; this is for files that may not fit: exports and merges.
 */
#ifndef AK_CSVSTREAM_H
#define AK_CSVSTREAM_H

#include "arena.h"
#include "csv.h"
#include "fault.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct csv_stream {
    const char *path;
    FILE *file;
    char *text; /* the record as it stands in the file, its line end included */
    size_t length, room;
    off_t at, next_at;  /* where the record begins, and the one after it */
    unsigned line;      /* its line */
    unsigned next_line; /* of the one after it */
    struct arena arena; /* its fields */
    const char **field;
    size_t fields;
    bool torn; /* the file ends within a line, which is left out */
};

/* False with AK_USAGE where it is no readable file. `path` must stay. */
bool csv_stream_open(struct csv_stream *, const char *path, struct fault *);
/* The next record; false at the end, at a torn last line, or with a fault: no CSV, not UTF-8, endless, interrupted. */
bool csv_stream_next(struct csv_stream *, struct fault *);
/* Go on with the record that begins there. */
bool csv_stream_seek(struct csv_stream *, off_t at, unsigned line, struct fault *);
void csv_stream_close(struct csv_stream *);

#endif
