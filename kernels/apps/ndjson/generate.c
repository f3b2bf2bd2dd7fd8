#include "generate.h"

#include <stdio.h>
#include <string.h>

/* What stands in a JSON string, and what it means. */
struct piece {
    const char *written, *meant;
};

static const struct piece words[] = {
    { "GET", "GET" },           { "POST", "POST" },     { "cart", "cart" },       { "timeout", "timeout" },
    { "upstream", "upstream" }, { "retry", "retry" },   { "\\/v1\\/items", "/v1/items" }, { "/health", "/health" },
    { "\\\"ok\\\"", "\"ok\"" }, { "\\t", "\t" },        { "C:\\\\tmp", "C:\\tmp" }, { "line\\nbreak", "line\nbreak" },
    { "caf\\u00e9", "caf\u00e9" }, { "M\u00fcnchen", "M\u00fcnchen" }, { "\u6771\u4eac", "\u6771\u4eac" },
    { "\\ud83d\\ude80", "\U0001f680" }, { "\u0434\u0430", "\u0434\u0430" }, { "500ms", "500ms" }, { "of", "of" },
    { "connection", "connection" },
};
static const struct piece names[] = {
    { "Ada", "Ada" },        { "Zo\\u00eb", "Zo\u00eb" },     { "Jos\u00e9", "Jos\u00e9" }, { "Mary Ann", "Mary Ann" },
    { "O\\u0027Neil", "O'Neil" }, { "\u674e\u5a1c", "\u674e\u5a1c" }, { "Bj\u00f6rn", "Bj\u00f6rn" }, { "Sam", "Sam" },
};
static const struct piece services[] = {
    { "checkout", "checkout" }, { "search", "search" }, { "auth", "auth" }, { "inventory", "inventory" }, { "edge", "edge" },
};
static const struct piece tag_words[] = {
    { "eu-west", "eu-west" }, { "retry", "retry" }, { "canary", "canary" }, { "slow", "slow" },
    { "\u00fcber", "\u00fcber" }, { "a\\/b", "a/b" },
};
static const unsigned statuses[] = { 200, 200, 200, 200, 201, 204, 301, 304, 400, 404, 429, 500, 503 };

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define DAY_MS      86400000u
#define TAGS_MAX    2u
#define WORDS_MIN   1u
#define WORDS_MAX   3u

/* splitmix64: enough for text, and the same on every machine. */
static uint64_t draw(struct generator *g)
{
    uint64_t z = g->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t below(struct generator *g, uint64_t bound)
{
    return (draw(g) >> 16) % bound;
}

void generator_start(struct generator *g, uint64_t seed)
{
    g->state = seed;
    draw(g);
}

/* A line as it grows, and a string of it as it is meant. */
struct writing {
    char *at;
    char meant[LINE_BYTES_MAX];
    size_t meant_length;
};

static void put(struct writing *w, const char *text)
{
    size_t length = strlen(text);
    memcpy(w->at, text, length);
    w->at += length;
}

static void put_piece(struct writing *w, const struct piece *p)
{
    size_t length = strlen(p->meant);
    put(w, p->written);
    memcpy(w->meant + w->meant_length, p->meant, length);
    w->meant_length += length;
}

/* What was meant since the last time is a whole string. */
static void end_string(struct writing *w, struct totals *sums)
{
    totals_add_text(sums, w->meant, w->meant_length);
    w->meant_length = 0;
}

static void put_string(struct writing *w, const struct piece *p, struct totals *sums)
{
    put(w, "\"");
    put_piece(w, p);
    put(w, "\"");
    end_string(w, sums);
}

static void put_message(struct writing *w, struct generator *g, struct totals *sums)
{
    static const struct piece blank = { " ", " " };
    uint64_t count = WORDS_MIN + below(g, WORDS_MAX - WORDS_MIN + 1);
    put(w, "\"");
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0)
            put_piece(w, &blank);
        put_piece(w, &words[below(g, COUNT(words))]);
    }
    put(w, "\"");
    end_string(w, sums);
}

static void put_tags(struct writing *w, struct generator *g, struct totals *sums)
{
    uint64_t count = below(g, TAGS_MAX + 1);
    put(w, "[");
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0)
            put(w, ",");
        put_string(w, &tag_words[below(g, COUNT(tag_words))], sums);
    }
    put(w, "]");
    sums->tags += count;
}

static void put_trace(struct writing *w, struct generator *g, struct totals *sums)
{
    char hex[17];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)draw(g));
    put_string(w, &(struct piece){ hex, hex }, sums);
}

#define PUTF(w, ...) ((w)->at += sprintf((w)->at, __VA_ARGS__))

size_t generate_line(struct generator *g, char *line, struct totals *sums)
{
    struct writing w = { .at = line };
    uint64_t clock = below(g, DAY_MS), optional = below(g, 8);
    struct totals_line values = { .level = (enum level)below(g, LEVELS),
                                  .fields = 7,
                                  .clock_ms = clock,
                                  .status = statuses[below(g, COUNT(statuses))],
                                  .user = below(g, 10000000),
                                  .latency_us = below(g, 1u << (8 + below(g, 16))) };

    PUTF(&w, "{\"ts\":\"2026-03-%02uT%02u:%02u:%02u.%03uZ\",\"level\":", 1 + (unsigned)below(g, 28), (unsigned)(clock / 3600000),
         (unsigned)(clock / 60000 % 60), (unsigned)(clock / 1000 % 60), (unsigned)(clock % 1000));
    put_string(&w, &(struct piece){ level_names[values.level], level_names[values.level] }, sums);
    if (optional & 1) {
        put(&w, ",\"service\":");
        put_string(&w, &services[below(g, COUNT(services))], sums);
    }
    PUTF(&w, ",\"status\":%u,\"ms\":%u.%03u,\"user\":{\"id\":%u,\"name\":", (unsigned)values.status,
         (unsigned)(values.latency_us / 1000), (unsigned)(values.latency_us % 1000), (unsigned)values.user);
    put_string(&w, &names[below(g, COUNT(names))], sums);
    put(&w, "},\"tags\":");
    put_tags(&w, g, sums);
    if (optional & 2) {
        values.bytes = below(g, 1u << 20);
        PUTF(&w, ",\"bytes\":%u", (unsigned)values.bytes);
    }
    if (optional & 4) {
        put(&w, ",\"trace\":");
        put_trace(&w, g, sums);
    }
    put(&w, ",\"msg\":");
    put_message(&w, g, sums);
    put(&w, "}\n");
    values.fields += (unsigned)__builtin_popcountll(optional);
    totals_add_line(sums, &values);
    return (size_t)(w.at - line);
}
