#include "record.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAGS_FIRST 2

/* Copy a string of the tree. */
static bool take_text(const json_t *value, struct text *text)
{
    text->length = json_string_length(value);
    text->bytes = json_is_string(value) ? malloc(text->length + 1) : NULL;
    if (text->bytes == NULL)
        return false;
    memcpy(text->bytes, json_string_value(value), text->length + 1);
    return true;
}

/* A text that a line may do without. */
static bool take_optional(const json_t *value, struct text *text)
{
    return value == NULL || take_text(value, text);
}

static bool take_tags(const json_t *list, struct record *r)
{
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value)
    {
        if (r->tags == r->room) {
            size_t room = r->room ? 2 * r->room : TAGS_FIRST;
            struct text *grown = realloc(r->tag, room * sizeof *grown);
            if (grown == NULL)
                return false;
            r->tag = grown;
            r->room = room;
        }
        if (!take_text(value, &r->tag[r->tags]))
            return false;
        r->tags++;
    }
    return json_is_array(list);
}

static bool take_digits(const char *text, size_t count, unsigned *number)
{
    for (*number = 0; count > 0; count--, text++) {
        if (*text < '0' || *text > '9')
            return false;
        *number = *number * 10 + (unsigned)(*text - '0');
    }
    return true;
}

/* The time of day of "2026-03-14T09:26:53.589Z". */
static bool take_clock(const json_t *value, uint64_t *ms)
{
    unsigned hours, minutes, seconds, thousandths;
    const char *text = json_string_value(value);
    if (json_string_length(value) != strlen("2026-03-14T09:26:53.589Z") || text[10] != 'T' || text[13] != ':' ||
        text[16] != ':' || text[19] != '.' || text[23] != 'Z' || !take_digits(text + 11, 2, &hours) ||
        !take_digits(text + 14, 2, &minutes) || !take_digits(text + 17, 2, &seconds) ||
        !take_digits(text + 20, 3, &thousandths))
        return false;
    *ms = (hours * 3600u + minutes * 60u + seconds) * 1000u + thousandths;
    return true;
}

static bool take_level(const char *text, enum level *level)
{
    for (*level = 0; text != NULL && *level < LEVELS; ++*level)
        if (strcmp(text, level_names[*level]) == 0)
            return true;
    return false;
}

static uint64_t number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static bool take_all(const json_t *tree, struct record *r)
{
    const json_t *level = json_object_get(tree, "level"), *user = json_object_get(tree, "user");
    double latency_ms = json_real_value(json_object_get(tree, "ms"));
    r->values = (struct totals_line){ .fields = (unsigned)json_object_size(tree),
                                      .status = number(tree, "status"),
                                      .bytes = number(tree, "bytes"),
                                      .user = number(user, "id"),
                                      .latency_us = (uint64_t)(latency_ms * 1000 + 0.5) };
    return take_clock(json_object_get(tree, "ts"), &r->values.clock_ms) &&
           take_level(json_string_value(level), &r->values.level) && take_text(level, &r->level) &&
           take_optional(json_object_get(tree, "service"), &r->service) && take_text(json_object_get(user, "name"), &r->user) &&
           take_tags(json_object_get(tree, "tags"), r) && take_optional(json_object_get(tree, "trace"), &r->trace) &&
           take_text(json_object_get(tree, "msg"), &r->message);
}

struct record *record_parse(const char *line, size_t length, char why[RECORD_WHY])
{
    json_error_t error;
    json_t *tree = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    struct record *r = tree ? calloc(1, sizeof *r) : NULL;
    bool whole = r != NULL && take_all(tree, r);
    why[0] = '\0';
    if (tree == NULL && error.text[0] != '\0')
        snprintf(why, RECORD_WHY, "%.150s at byte %d", error.text, error.position);
    if (r != NULL && !whole)
        snprintf(why, RECORD_WHY, "a field is missing or of another type, or memory ran out");
    json_decref(tree);
    if (whole)
        return r;
    record_free(r);
    return NULL;
}

static void fold_text(const struct text *text, struct totals *sums)
{
    if (text->bytes != NULL)
        totals_add_text(sums, text->bytes, text->length);
}

void record_fold(const struct record *r, struct totals *sums)
{
    totals_add_line(sums, &r->values);
    fold_text(&r->level, sums);
    fold_text(&r->service, sums);
    fold_text(&r->user, sums);
    fold_text(&r->trace, sums);
    fold_text(&r->message, sums);
    for (size_t i = 0; i < r->tags; i++)
        totals_add_tag(sums, r->tag[i].bytes, r->tag[i].length);
}

void record_free(struct record *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->tags; i++)
        free(r->tag[i].bytes);
    free(r->tag);
    free(r->message.bytes);
    free(r->trace.bytes);
    free(r->user.bytes);
    free(r->service.bytes);
    free(r->level.bytes);
    free(r);
}
