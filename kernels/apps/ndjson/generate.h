/*
 * generate.h - log lines as a server writes them, one JSON object each, from a seed.
 *
 *   {"ts":"2026-03-14T09:26:53.589Z","level":"info","service":"checkout","status":200,"ms":12.345,
 *    "user":{"id":4211,"name":"Zo\u00eb M\u00fcller"},"tags":["eu-west","retry"],"bytes":5120,"trace":"4bf92f35a3ce929d",
 *    "msg":"GET /cart/42 \"ok\" caf\u00e9"}
 *
 * 7 to 10 fields, about 180 B: service, bytes and trace are left out of some. Strings hold escapes and characters outside
 * ASCII, both as they are and as \u, with surrogates. The same seed gives the same lines.
 */
#ifndef AK_NDJSON_GENERATE_H
#define AK_NDJSON_GENERATE_H

#include "aggregate.h"

#define LINE_BYTES_MAX 512 /* no line is longer, its newline included */

struct generator {
    uint64_t state;
};

void generator_start(struct generator *, uint64_t seed);
/* Write a line with its newline into LINE_BYTES_MAX bytes, and add what it holds to `sums`. Returns its length. */
size_t generate_line(struct generator *, char *line, struct totals *sums);

#endif
