#include "aggregate.h"

#define HASH_FACTOR 0x100000001b3u

const char *const level_names[LEVELS] = { "debug", "info", "warn", "error" };

/* Every member is a sum. */
#define MEMBERS (sizeof(struct totals) / sizeof(uint64_t))
_Static_assert(sizeof(struct totals) % sizeof(uint64_t) == 0, "all members are uint64_t");
static const char *const member_names[] = { "lines", "fields", "debug", "info", "warn", "error", "clock_ms", "status", "bytes",
                                            "users", "latency_us", "tags", "text_bytes", "text" };
_Static_assert(sizeof member_names / sizeof member_names[0] == MEMBERS, "a name for each member");

void totals_add_line(struct totals *t, const struct totals_line *line)
{
    t->lines++;
    t->fields += line->fields;
    t->by_level[line->level]++;
    t->clock_ms += line->clock_ms;
    t->status += line->status;
    t->bytes += line->bytes;
    t->users += line->user;
    t->latency_us += line->latency_us;
}

void totals_add_text(struct totals *t, const char *text, size_t length)
{
    uint64_t hash = length + 1;
    for (size_t i = 0; i < length; i++)
        hash = hash * HASH_FACTOR + (unsigned char)text[i];
    t->text_bytes += length;
    t->text += hash;
}

void totals_add_tag(struct totals *t, const char *text, size_t length)
{
    t->tags++;
    totals_add_text(t, text, length);
}

void totals_add_all(struct totals *t, const struct totals *from, uint64_t times)
{
    uint64_t *to = (uint64_t *)t;
    const uint64_t *of = (const uint64_t *)from;
    for (size_t i = 0; i < MEMBERS; i++)
        to[i] += of[i] * times;
}

const char *totals_differ(const struct totals *a, const struct totals *b)
{
    const uint64_t *x = (const uint64_t *)a, *y = (const uint64_t *)b;
    for (size_t i = 0; i < MEMBERS; i++)
        if (x[i] != y[i])
            return member_names[i];
    return 0;
}
