/*
 * ndjson - parse log lines: many small, short-lived strings and vectors, and little else.
 *
 * One op is one line of about 180 B: jansson parses it, its fields are copied into a record, and the record is folded into
 * sums and dropped, at once or after `retain` further lines of its thread. About 60 calls of malloc and as many of free a line,
 * most of them jansson's. The sums must be those of the generator.
 *
 * Each thread has `text` bytes of lines of its own, written before the pass, and reads them again and again: so that any
 * number of lines needs no more memory, and none is generated while time is taken. They are part of the resident memory.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "ndjson/generate.h"
#include "ndjson/record.h"

static const struct param params[] = {
    { "retain", PARAM_INT, "0", "count", 0, 1000000000, NULL, "records that a thread keeps before it drops the oldest" },
    { "text", PARAM_SIZE, "4M", "bytes", 4096, 1073741824, NULL, "lines that a thread has to read, in bytes" },
    { 0 },
};

/* A thread's lines, its records, and what they come to. */
struct state {
    char *text;
    size_t length, at;    /* of the text; where the next line begins */
    uint64_t seed, lines; /* of the text */
    struct totals all;    /* of the text */
    struct totals sums;   /* of the records that were dropped */
    struct record **kept; /* a ring, in harness memory; NULL: none yet */
    uint64_t retain, next;
};

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    struct generator g;
    size_t room = param_int("text");

    if (c->thread == 0)
        json_object_seed((size_t)param_int("seed")); /* else jansson seeds itself, by the clock */
    s->seed = rng_next(&c->rng);
    s->retain = param_int("retain");
    s->text = ak_map(room + LINE_BYTES_MAX);
    s->kept = ak_map(s->retain * sizeof s->kept[0]);
    generator_start(&g, s->seed);
    while (s->length < room) {
        s->length += generate_line(&g, s->text + s->length, &s->all);
        s->lines++;
    }
    return 0;
}

static void drop(struct state *s, struct record *r)
{
    record_fold(r, &s->sums);
    record_free(r);
}

/* The oldest makes room. */
static void keep(struct state *s, struct record *r)
{
    struct record *oldest = s->kept[s->next];
    s->kept[s->next] = r;
    s->next = s->next + 1 < s->retain ? s->next + 1 : 0;
    if (oldest != NULL)
        drop(s, oldest);
}

static void drop_kept(struct state *s)
{
    for (uint64_t i = 0; i < s->retain; i++)
        if (s->kept[i] != NULL) {
            drop(s, s->kept[i]);
            s->kept[i] = NULL;
        }
}

/* jansson calls a malloc that failed a syntax error in places. The lines are none: what parses once the records are gone
 * lacked memory. */
static int refuse(struct ctx *c, const char *line, size_t length, const char *why)
{
    struct state *s = c->priv;
    char again[RECORD_WHY];

    drop_kept(s);
    struct record *r = record_parse(line, length, again);
    record_free(r);
    if (r != NULL || why[0] == '\0')
        return ak_no_memory(sizeof *r);
    return ak_fail("line at byte %zu of thread %u: %s", (size_t)(line - s->text), c->thread, why);
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    char why[RECORD_WHY];

    for (uint64_t i = 0; i < iters; i++) {
        const char *line = s->text + s->at, *end = memchr(line, '\n', s->length - s->at);
        struct record *r = record_parse(line, (size_t)(end - line), why);
        if (r == NULL)
            return refuse(c, line, (size_t)(end - line), why);
        s->at = end + 1 < s->text + s->length ? (size_t)(end + 1 - s->text) : 0;
        if (s->retain > 0)
            keep(s, r);
        else
            drop(s, r);
    }
    return 0;
}

/* What so many lines must come to: the whole text some times over, and its beginning once more. */
static void totals_expect(const struct ctx *c, struct totals *expected)
{
    const struct state *s = c->priv;
    struct generator g;
    char line[LINE_BYTES_MAX];

    totals_add_all(expected, &s->all, c->iters_done / s->lines);
    generator_start(&g, s->seed);
    for (uint64_t i = 0; i < c->iters_done % s->lines; i++)
        generate_line(&g, line, expected);
}

static int verify(struct ctx *c)
{
    struct state *s = c->priv;
    struct totals expected = { 0 };

    drop_kept(s);
    totals_expect(c, &expected);
    const char *name = totals_differ(&s->sums, &expected);
    if (name != NULL)
        return ak_fail("thread %u: the sums of %s are not those of the lines", c->thread, name);
    return 0;
}

static void report(void)
{
    const struct state *s = ak_ctx(0)->priv;
    ak_metric("line_bytes", "bytes", (double)s->length / (double)s->lines, NULL);
}

const struct kernel kernel = {
    .name = "ndjson",
    .what = "parse log lines into records: small, short-lived strings and vectors",
    .params = params,
    .op = "one line of JSON parsed, folded into sums and dropped",
    .app = true,
    .sizes = SIZES_NONE,
    .default_ops = 100000,
    .start_s = 0.1, /* measured under glibc on two cores: 2000 lines 0.12 s, 100,000 with 10,000 kept 0.8 s */
    .op_ns = 7e3,
    .priv_bytes = sizeof(struct state),
    .setup = setup,
    .run = run,
    .verify = verify,
    .report = report,
};
