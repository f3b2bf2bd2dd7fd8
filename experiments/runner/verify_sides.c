#include "inifile.h"
#include "trust.h"
#include "merged.h"
#include "results.h"
#include "verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct quantile quantiles[QUANTILES] = {
    {"lat_p50_ns", 0.5, 200},    {"lat_p90_ns", 0.9, 1000},     {"lat_p99_ns", 0.99, 1e4},
    {"lat_p999_ns", 0.999, 1e5}, {"lat_p9999_ns", 0.9999, 1e6}, {"lat_max_ns", 1, 1},
};

static const char *const calls[HIST_CALLS] = {"malloc",  "free",       "touch",   "pair",
                                              "realloc", "sim_malloc", "sim_free"};

/* Fields of a line that must differ from those of the row's other lines; the first is row_id. */
static const size_t key_fields[SIDES] = {
    [SIDE_HIST] = 3, [SIDE_TIMELINE] = 2, [SIDE_METRICS] = 2, [SIDE_MATRIX] = 4};

struct bucket {
    double lower, upper;
    uint64_t count;
};

/* The lines of one row: they stand together. */
struct group {
    struct arena arena;
    const size_t *at; /* row of runs.csv; NULL: none yet */
    const char **key;
    unsigned *line;
    size_t lines;
    struct bucket *bucket; /* of malloc */
    size_t buckets;
};

struct side_check {
    struct verify *v;
    enum side side;
    const char *file;
    struct group group;
};

static int by_lower(const void *a, const void *b)
{
    const struct bucket *x = a, *y = b;
    return (x->lower > y->lower) - (x->lower < y->lower);
}

/* The bucket that holds the sample of each quantile's rank, and the bounds of the mean. */
static void tell_quantiles(struct group *g, struct row_sides *sides)
{
    const uint64_t samples = sides->samples[0];
    double low = 0, high = 0;
    if (!g->buckets || !samples)
        return;
    qsort(g->bucket, g->buckets, sizeof *g->bucket, by_lower);
    for (size_t q = 0; q < QUANTILES; q++) {
        const uint64_t rank = (uint64_t)ceil(quantiles[q].q * (double)samples);
        uint64_t seen = g->bucket[0].count;
        size_t i = 0;
        while (i + 1 < g->buckets && seen < rank)
            seen += g->bucket[++i].count;
        sides->quantile[q] = (struct bounds){g->bucket[i].lower, g->bucket[i].upper};
    }
    for (size_t i = 0; i < g->buckets; i++) {
        low += g->bucket[i].lower * (double)g->bucket[i].count;
        high += g->bucket[i].upper * (double)g->bucket[i].count;
    }
    sides->mean = (struct bounds){low / (double)samples, high / (double)samples};
}

static int by_key(const void *a, const void *b, void *user)
{
    const struct group *g = user;
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    int order = strcmp(g->key[x], g->key[y]);
    return order ? order : (x > y) - (x < y);
}

static void end_group(struct side_check *c)
{
    struct group *g = &c->group;
    if (g->at) {
        size_t *order = arena_alloc(&g->arena, (g->lines + 1) * sizeof *order);
        for (size_t i = 0; i < g->lines; i++)
            order[i] = i;
        if (g->lines)
            qsort_r(order, g->lines, sizeof *order, by_key, g);
        for (size_t i = 1; i < g->lines; i++)
            if (strcmp(g->key[order[i - 1]], g->key[order[i]]) == 0)
                violation(c->v, c->file, g->line[order[i]], "%s of row %s again, expected once",
                          g->key[order[i]], c->v->runs.row[*g->at].field[0]);
        tell_quantiles(g, &c->v->sides[*g->at]);
    }
    arena_free(&g->arena);
    *g = (struct group){0};
}

static void begin_group(struct side_check *c, const struct csv_reader *r, const size_t *at)
{
    end_group(c);
    c->group.at = at;
    if (c->v->sides[*at].lines[c->side])
        violation(c->v, c->file, r->line, "further lines of row %s, expected all of a row together",
                  r->field[0]);
}

static void take_key(struct side_check *c, const struct csv_reader *r)
{
    struct group *g = &c->group;
    char *key = arena_strdup(&g->arena, r->field[1]);
    for (size_t i = 2; i < key_fields[c->side]; i++)
        key = arena_printf(&g->arena, "%s, %s", key, r->field[i]);
    g->key = arena_grow(&g->arena, g->key, g->lines, sizeof *g->key);
    g->line = arena_grow(&g->arena, g->line, g->lines, sizeof *g->line);
    g->key[g->lines] = key;
    g->line[g->lines++] = r->line;
}

static void take_bucket(struct side_check *c, const struct csv_reader *r, struct row_sides *sides)
{
    struct group *g = &c->group;
    struct bucket bucket = {strtod(r->field[2], NULL), strtod(r->field[3], NULL), 0};
    size_t call = 0;
    if (!text_uint(r->field[4], 0, &bucket.count) || !bucket.count || bucket.lower > bucket.upper ||
        !text_is_number(r->field[2], false, true) || !text_is_number(r->field[3], false, true))
        violation(c->v, c->file, r->line, "bucket %s to %s with %s, expected lower <= upper and a count",
                  r->field[2], r->field[3], r->field[4]);
    while (call < HIST_CALLS && strcmp(calls[call], r->field[1]) != 0)
        call++;
    if (call == HIST_CALLS) {
        violation(c->v, c->file, r->line,
                  "call '%s', expected malloc, free, touch, pair, realloc, sim_malloc or sim_free",
                  r->field[1]);
        return;
    }
    sides->samples[call] += bucket.count;
    if (call == 0) {
        g->bucket = arena_grow(&g->arena, g->bucket, g->buckets, sizeof *g->bucket);
        g->bucket[g->buckets++] = bucket;
    }
}

static void raise_to(uint64_t *most, uint64_t value)
{
    *most = value > *most ? value : *most;
}

static void take_sample(struct side_check *c, const struct csv_reader *r, struct row_sides *sides)
{
    uint64_t value[4] = {0};
    for (int i = 0; i < 4; i++)
        if (!text_uint(r->field[i + 1], 0, &value[i]))
            violation(c->v, c->file, r->line, "'%s', expected a whole number", r->field[i + 1]);
    raise_to(&sides->rss_max, value[1]);
    raise_to(&sides->live_max, value[2]);
    raise_to(&sides->usable_max, value[3]);
}

/* What the simulated machine tells in metrics.csv, against the mode and the histogram of the row. */
static void check_simulated(struct side_check *c, const struct csv_reader *r, const struct row_sides *sides)
{
    const struct csv_row *row = &c->v->runs.row[*c->group.at];
    const char *mode = row_field(row, "sim_mode"), *name = r->field[1], *value = r->field[3];
    const struct trust_metric *trust = *mode && *value ? trust_find(name) : NULL;
    uint64_t samples;
    if (trust && trust_in(trust, mode) == TRUST_NONE)
        violation(c->v, c->file, r->line, "%s is '%s', but %s", name, value, trust->why);
    if (strcmp(name, "sim_lat_samples") == 0 && text_uint(value, 0, &samples) &&
        samples != sides->samples[SIM_MALLOC])
        violation(c->v, c->file, r->line, "%s is %s, but hist.csv holds %" PRIu64, name, value,
                  sides->samples[SIM_MALLOC]);
}

static void take_metric(struct side_check *c, const struct csv_reader *r, struct row_sides *sides)
{
    int column = column_find(r->field[1]);
    if (!*r->field[1])
        violation(c->v, c->file, r->line, "a metric without name");
    check_simulated(c, r, sides);
    if (strcmp(r->field[1], "rss_high_water_bytes") == 0)
        text_uint(r->field[3], 0, &sides->high_water);
    if (!*r->field[4])
        return;
    if (*r->field[3])
        violation(c->v, c->file, r->line, "%s is '%s', and a reason says why it is empty", r->field[1],
                  r->field[3]);
    if (column >= 0)
        sides->reason[column] = true;
}

static void take_line(struct side_check *c, const struct csv_reader *r)
{
    const size_t *at = verify_find(c->v, r->field[0]);
    const size_t own = side_files[c->side].columns, expected = own + (c->v->part != NULL);
    if (r->fields != expected) {
        violation(c->v, c->file, r->line, "%zu fields, expected %zu", r->fields, expected);
        return;
    }
    if (c->v->part && strcmp(r->field[own], c->v->part) != 0) {
        if (c->v->part == c->v->parts.word[0] && !words_have(&c->v->parts, r->field[own]))
            violation(c->v, c->file, r->line, "run_id '%s' is not in " FILE_META, r->field[own]);
        return;
    }
    if (!at) {
        violation(c->v, c->file, r->line, "row_id %s is not in runs.csv", r->field[0]);
        return;
    }
    struct row_sides *sides = &c->v->sides[*at];
    if (c->group.at != at)
        begin_group(c, r, at);
    sides->lines[c->side]++;
    take_key(c, r);
    if (c->side == SIDE_HIST)
        take_bucket(c, r, sides);
    else if (c->side == SIDE_TIMELINE)
        take_sample(c, r, sides);
    else if (c->side == SIDE_METRICS)
        take_metric(c, r, sides);
    else if (!text_is_number(r->field[4], false, true))
        violation(c->v, c->file, r->line, "ns '%s', expected a number", r->field[4]);
}

void verify_side(struct verify *v, enum side s)
{
    struct arena memory = {0}, row = {0};
    struct side_check c = {.v = v, .side = s, .file = side_files[s].file};
    struct csv_reader reader;
    struct fault f = {0};
    size_t length;
    const char *path = verify_path(v, c.file);
    const char *header = arena_printf(&v->arena, "%.*s%s\n", (int)strlen(side_files[s].header) - 1,
                                      side_files[s].header, v->part ? MERGED_COLUMN : "");
    char *text = file_read(&memory, path, SIZE_MAX / 4, &length, &f);
    if (text) {
        csv_open(&reader, &row, path, text, length);
        if (strncmp(text, header, strlen(header)) != 0)
            violation(v, c.file, 1, "another header, expected %.*s", (int)strlen(header) - 1, header);
        else
            for (bool first = true; csv_next(&reader, &f); first = false)
                if (!first)
                    take_line(&c, &reader);
        end_group(&c);
    }
    if (f.code != AK_DONE)
        violation_fault(v, &f);
    arena_free(&row);
    arena_free(&memory);
}
