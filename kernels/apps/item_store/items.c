#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "items.h"

#define NUMBER_MAX 32
#define NOTE_MAX   400
#define TAGS_MAX   5u

/* Where text goes. It never runs over: items are far smaller than ITEM_BODY_MAX. */
struct writer {
    char *at;
    const char *end;
    bool partiql; /* 'name':'text' instead of "name":{"S":"text"} */
    bool first;   /* of its list or map: no comma before it */
};

static const char *const first_names[] = {
    "Ana", "Zo\u00eb", "\u0141ukasz", "O'Neill", "Mar\u00eda \"Nina\"", "Wei", "\u5f20\u4f1f", "Jos"};
static const char *const cities[] = {"K\u00f6ln", "L'Aquila", "Reykjav\u00edk", "Porto",
                                     "Xi'an",     "Lima",     "Oslo",           "\u6771\u4eac"};
static const char *const words[] = {
    "order", "late", "\"urgent\"", "fra\u00eeche", "box\\crate", "don't", "return", "ship\nto",
    "gift",  "blue", "caf\u00e9",  "fragile",      "\u2713",     "twice", "left",   "north"};

/* ---- draws ---- */

/* wyrand, as in kernel.h. */
static uint64_t draw(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    __uint128_t product = (__uint128_t)*state * (*state ^ 0xd1b54a32d192ed03u);
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

static uint64_t below(uint64_t *state, uint64_t bound)
{
    return (draw(state) >> 32) * bound >> 32;
}

static uint64_t item_state(uint64_t seed, uint64_t n)
{
    return (seed + 1) * 0xbf58476d1ce4e5b9u ^ (n + 1) * 0x94d049bb133111ebu;
}

/* ---- writing ---- */

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *format, ...)
{
    va_list arguments;
    size_t room = (size_t)(w->end - w->at);

    va_start(arguments, format);
    int length = vsnprintf(w->at, room, format, arguments);
    va_end(arguments);
    w->at += length < (int)room ? length : (int)room - 1;
}

/* Text within quotes of JSON; what lies outside ASCII stays as it is. */
static void put_json_text(struct writer *w, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            put(w, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            put(w, "\\u%04x", (unsigned)*text);
        else
            put(w, "%c", *text);
    }
}

static void put_partiql_text(struct writer *w, const char *text)
{
    for (; *text != '\0'; text++)
        put(w, *text == '\'' ? "''" : "%c", *text);
}

static void separate(struct writer *w)
{
    put(w, "%s", w->first ? "" : ",");
    w->first = false;
}

static void put_name(struct writer *w, const char *name)
{
    separate(w);
    put(w, w->partiql ? "'%s':" : "\"%s\":", name);
}

static void put_string(struct writer *w, const char *text)
{
    put(w, "%s", w->partiql ? "'" : "{\"S\":\"");
    (w->partiql ? put_partiql_text : put_json_text)(w, text);
    put(w, "%s", w->partiql ? "'" : "\"}");
}

static void put_number(struct writer *w, const char *number)
{
    put(w, w->partiql ? "%s" : "{\"N\":\"%s\"}", number);
}

static void put_truth(struct writer *w, bool truth)
{
    put(w, w->partiql ? "%s" : "{\"BOOL\":%s}", truth ? "true" : "false");
}

static void put_nothing(struct writer *w)
{
    put(w, "%s", w->partiql ? "null" : "{\"NULL\":true}");
}

static void list_begin(struct writer *w)
{
    put(w, "%s", w->partiql ? "[" : "{\"L\":[");
    w->first = true;
}

static void list_end(struct writer *w)
{
    put(w, "%s", w->partiql ? "]" : "]}");
    w->first = false;
}

static void map_begin(struct writer *w)
{
    put(w, "%s", w->partiql ? "{" : "{\"M\":{");
    w->first = true;
}

static void map_end(struct writer *w)
{
    put(w, "%s", w->partiql ? "}" : "}}");
    w->first = false;
}

/* ---- items ---- */

static void put_address(struct writer *w, uint64_t *state)
{
    char text[64];

    map_begin(w);
    put_name(w, "street");
    snprintf(text, sizeof text, "%s street %u", words[below(state, 16)], (unsigned)below(state, 300));
    put_string(w, text);
    put_name(w, "city");
    put_string(w, cities[below(state, 8)]);
    put_name(w, "zip");
    snprintf(text, sizeof text, "%u", 10000 + (unsigned)below(state, 90000));
    put_number(w, text);
    map_end(w);
}

static void put_tags(struct writer *w, uint64_t *state)
{
    list_begin(w);
    for (uint64_t left = 1 + below(state, TAGS_MAX); left > 0; left--) {
        separate(w);
        put_string(w, words[below(state, 16)]);
    }
    list_end(w);
}

static void put_note(struct writer *w, uint64_t *state)
{
    char note[NOTE_MAX] = "";
    size_t length = 0;

    for (uint64_t left = 8 + below(state, 24); left > 0; left--)
        length += (size_t)snprintf(note + length, sizeof note - length, "%s%s", length ? " " : "",
                                   words[below(state, 16)]);
    put_string(w, note);
}

/* The attributes between the braces. */
static void put_item(struct writer *w, uint64_t seed, uint64_t n)
{
    char key[ITEM_KEY_MAX], text[64];
    uint64_t state = item_state(seed, n), who = below(&state, 100000);
    const char *name = first_names[below(&state, 8)];

    w->first = true;
    item_key(key, seed, n);
    put_name(w, ITEM_KEY);
    put_string(w, key);
    put_name(w, "created");
    snprintf(text, sizeof text, "%llu", 1700000000000ull + (unsigned long long)below(&state, 1u << 31));
    put_number(w, text);
    put_name(w, "name");
    put_string(w, name);
    put_name(w, "mail");
    snprintf(text, sizeof text, "user%llu@example.org", (unsigned long long)who);
    put_string(w, text);
    put_name(w, "score");
    snprintf(text, sizeof text, "-%u.%02u", (unsigned)below(&state, 1000), (unsigned)below(&state, 100));
    put_number(w, text);
    put_name(w, "active");
    put_truth(w, below(&state, 2) == 0);
    put_name(w, "parent");
    if (below(&state, 4) == 0)
        put_string(w, words[below(&state, 16)]);
    else
        put_nothing(w);
    put_name(w, "tags");
    put_tags(w, &state);
    put_name(w, "address");
    put_address(w, &state);
    put_name(w, "note");
    put_note(w, &state);
}

void item_key(char key[ITEM_KEY_MAX], uint64_t seed, uint64_t n)
{
    uint64_t state = item_state(seed, n);
    snprintf(key, ITEM_KEY_MAX, "%016llx-%016llx", (unsigned long long)draw(&state), (unsigned long long)n);
}

bool item_number(const char *key, uint64_t seed, uint64_t *n)
{
    char again[ITEM_KEY_MAX];
    const char *dash = strchr(key, '-');

    if (dash == NULL)
        return false;
    *n = strtoull(dash + 1, NULL, 16);
    item_key(again, seed, *n);
    return strcmp(again, key) == 0;
}

static struct writer writer_on(char *text, bool partiql)
{
    return (struct writer){text, text + ITEM_BODY_MAX, partiql, true};
}

size_t item_json(char text[ITEM_BODY_MAX], uint64_t seed, uint64_t n)
{
    struct writer w = writer_on(text, false);
    put(&w, "{");
    put_item(&w, seed, n);
    put(&w, "}");
    return (size_t)(w.at - text);
}

static size_t put_item_body(char text[ITEM_BODY_MAX], uint64_t seed, uint64_t n)
{
    struct writer w = writer_on(text, false);
    put(&w, "{\"TableName\":\"" ITEM_TABLE "\",\"ConditionExpression\":\"attribute_not_exists(" ITEM_KEY
            ")\",\"Item\":{");
    put_item(&w, seed, n);
    put(&w, "}}");
    return (size_t)(w.at - text);
}

/* The statement is a string of JSON: what it quotes is quoted again. */
static size_t insert_body(char text[ITEM_BODY_MAX], uint64_t seed, uint64_t n)
{
    char statement[ITEM_BODY_MAX];
    struct writer inner = writer_on(statement, true), w = writer_on(text, false);

    put(&inner, "INSERT INTO \"" ITEM_TABLE "\" VALUE {");
    put_item(&inner, seed, n);
    put(&inner, "}");
    put(&w, "{\"Statement\":\"");
    put_json_text(&w, statement);
    put(&w, "\"}");
    return (size_t)(w.at - text);
}

size_t item_body(char text[ITEM_BODY_MAX], enum item_form form, uint64_t seed, uint64_t n)
{
    return form == ITEM_PUT ? put_item_body(text, seed, n) : insert_body(text, seed, n);
}
