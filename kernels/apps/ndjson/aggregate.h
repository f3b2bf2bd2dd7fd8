/*
 * aggregate.h - what all lines together come to. The generator adds up what it writes, the parser what it reads: they agree
 * if, and only if, every field of every line came through.
 *
 * No allocation, and nothing of the harness: a static program of another C library shares it.
 */
#ifndef AK_NDJSON_AGGREGATE_H
#define AK_NDJSON_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR, LEVELS };
extern const char *const level_names[LEVELS];

/* Sums are modulo 2^64, so that any two halves of some lines come to the same as the whole. */
struct totals {
    uint64_t lines, fields;        /* fields: of the outer object */
    uint64_t by_level[LEVELS];
    uint64_t clock_ms;             /* of the time of day */
    uint64_t status, bytes, users; /* users: their ids */
    uint64_t latency_us;
    uint64_t tags;                 /* how many */
    uint64_t text_bytes, text;     /* of every string, decoded: its length and a hash */
};

/* One line's values, as either side has them. */
struct totals_line {
    enum level level;
    unsigned fields;
    uint64_t clock_ms, status, bytes, user, latency_us;
};
void totals_add_line(struct totals *, const struct totals_line *);
void totals_add_text(struct totals *, const char *text, size_t length);
void totals_add_tag(struct totals *, const char *text, size_t length);
/* `times` times what `from` holds. */
void totals_add_all(struct totals *, const struct totals *from, uint64_t times);
/* NULL if they are equal, else the name of the first that is not. */
const char *totals_differ(const struct totals *, const struct totals *);

#endif
