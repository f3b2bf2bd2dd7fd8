/*
 * record.h - a line parsed by jansson, and copied into a record of its own types.
 *
 * The record and all that it points to come from malloc: the record, each string, the list of tags (which grows as vectors
 * do, by doubling) and each tag. jansson allocates besides, for the tree that is dropped when the record stands.
 * No part of the harness: a static program of another C library shares it.
 */
#ifndef AK_NDJSON_RECORD_H
#define AK_NDJSON_RECORD_H

#include "aggregate.h"

#define RECORD_WHY 200 /* bytes of a reason */

struct text {
    char *bytes; /* NULL: the line had none */
    size_t length;
};

struct record {
    struct totals_line values;
    struct text level, service, user, trace, message;
    struct text *tag;
    size_t tags, room;
};

/* The record of a line of `length` bytes, without its newline. NULL with `why` where it is no such line, or where memory ran
 * out (then `why` is "", or what jansson takes that for). */
struct record *record_parse(const char *line, size_t length, char why[RECORD_WHY]);
/* Add what it holds to the totals. */
void record_fold(const struct record *, struct totals *);
void record_free(struct record *);

#endif
