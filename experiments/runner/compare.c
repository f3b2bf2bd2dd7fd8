#include "compare.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const compare_kinds[] = {
    [KIND_WARMUP] = "warmup", [KIND_PROFILED] = "profiled", [KIND_TIMED] = "timed"};
const char *const compare_statuses[] = {[COMPARE_OK] = "ok",
                                        [COMPARE_FAILED] = "failed",
                                        [COMPARE_TIMEOUT] = "timeout",
                                        [COMPARE_NOT_SERVED] = "not_served"};

/* The values of a contender's timed launches by round, NAN where there is none. */
enum quantity { WALL, USER, SYSTEM, CPU, MEMORY, MINOR, MAJOR, SWITCHES, REACH };

static double value_of(const struct compare_launch *l, enum quantity q)
{
    switch (q) {
    case WALL:
        return (double)l->wall_ns;
    case USER:
        return (double)l->user_ns;
    case SYSTEM:
        return (double)l->system_ns;
    case CPU:
        return (double)(l->user_ns + l->system_ns);
    case MEMORY:
        return (double)l->rss_peak_bytes;
    case MINOR:
        return (double)l->minor_faults;
    case MAJOR:
        return (double)l->major_faults;
    case SWITCHES:
        return (double)(l->voluntary_switches + l->involuntary_switches);
    case REACH:
        return l->reach;
    }
    return NAN;
}

static double *by_round(struct arena *a, const struct comparison *c, size_t contender, enum quantity q)
{
    double *value = arena_alloc(a, (c->rounds + 1) * sizeof *value);
    for (uint64_t i = 0; i < c->rounds; i++)
        value[i] = NAN;
    for (size_t i = 0; i < c->launches; i++) {
        const struct compare_launch *l = &c->launch[i];
        if (l->contender == contender && l->kind == KIND_TIMED && l->status == COMPARE_OK)
            value[l->round - 1] = value_of(l, q);
    }
    return value;
}

static double middle(struct arena *a, const struct comparison *c, size_t contender, enum quantity q)
{
    return median_of(by_round(a, c, contender, q), c->rounds);
}

static struct ratio to_default(struct arena *a, const struct comparison *c, size_t contender, enum quantity q)
{
    return ratio_of(by_round(a, c, contender, q), by_round(a, c, 0, q), c->rounds);
}

void compare_summarise(struct arena *a, const struct comparison *c, size_t contender,
                       struct compare_summary *s)
{
    *s = (struct compare_summary){.wall_ns = middle(a, c, contender, WALL),
                                  .user_ns = middle(a, c, contender, USER),
                                  .system_ns = middle(a, c, contender, SYSTEM),
                                  .rss_peak_bytes = middle(a, c, contender, MEMORY),
                                  .minor_faults = middle(a, c, contender, MINOR),
                                  .major_faults = middle(a, c, contender, MAJOR),
                                  .switches = middle(a, c, contender, SWITCHES),
                                  .reach = middle(a, c, contender, REACH),
                                  .wall = to_default(a, c, contender, WALL),
                                  .cpu = to_default(a, c, contender, CPU),
                                  .memory = to_default(a, c, contender, MEMORY)};
    for (size_t i = 0; i < c->launches; i++)
        if (c->launch[i].contender == contender && c->launch[i].kind == KIND_TIMED) {
            s->ok += c->launch[i].status == COMPARE_OK;
            s->failed += c->launch[i].status != COMPARE_OK;
        }
    if (contender == 0)
        return;
    const struct contender *base = &c->contender[0];
    const struct verdict_facts facts = {.time = s->wall,
                                        .memory = s->memory,
                                        .memory_more = s->rss_peak_bytes - middle(a, c, 0, MEMORY),
                                        .share = base->no_share ? NAN : base->share.malloc_share,
                                        .cpu = s->cpu};
    s->given = verdict_give(a, &facts);
}

const char *compare_time_text(double ns, char text[32])
{
    if (isnan(ns))
        snprintf(text, 32, "-");
    else if (ns >= 99.95e9)
        snprintf(text, 32, "%.0f s", ns / 1e9);
    else if (ns >= 0.9995e9)
        snprintf(text, 32, "%.2f s", ns / 1e9);
    else if (ns >= 99.95e6)
        snprintf(text, 32, "%.0f ms", ns / 1e6);
    else
        snprintf(text, 32, "%.2f ms", ns / 1e6);
    return text;
}

const char *compare_bytes_text(double bytes, char text[32])
{
    const double mib = bytes / (1 << 20);
    if (isnan(bytes))
        snprintf(text, 32, "-");
    else if (mib >= 10240)
        snprintf(text, 32, "%.1f GiB", mib / 1024);
    else
        snprintf(text, 32, mib >= 100 ? "%.0f MiB" : "%.1f MiB", mib);
    return text;
}

/* Bytes of `at` that a line of text may hold as they are: a character of UTF-8 that is no control character. 0: none. */
static size_t printable(const char *at)
{
    const unsigned char *s = (const unsigned char *)at;
    size_t n = 1, bad;
    if (s[0] < ' ' || s[0] == 0x7f)
        return 0;
    while (n < 4 && (s[n] & 0xc0) == 0x80)
        n++;
    if (s[0] < 0x80)
        return 1;
    return text_is_utf8(at, n, &bad) && !(n == 2 && s[0] == 0xc2 && s[1] < 0xa0) ? n : 0;
}

static void quote(struct buffer *b, const char *word)
{
    bool hex = false;
    for (const char *at = word; *at;) {
        const size_t n = printable(at);
        if (strchr("'\\", *at)) {
            buffer_addf(b, "\\%c", *at++);
            hex = false;
        } else if (*at == '\n' || *at == '\t') {
            buffer_add(b, *at++ == '\n' ? "\\n" : "\\t", 2);
            hex = false;
        } else if (!n ||
                   (hex && isxdigit((unsigned char)*at))) { /* some shells take all digits that follow \x */
            buffer_addf(b, "\\x%02x", (unsigned char)*at++);
            hex = true;
        } else {
            buffer_add(b, at, n);
            at += n;
            hex = false;
        }
    }
}

const char *compare_command_text(struct arena *a, const struct comparison *c)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%";
    struct buffer text = {0};
    for (char *const *word = c->options.command; *word; word++) {
        const bool setting = word == c->options.command && strchr(*word, '='); /* would be a variable's */
        bool clean = true;
        for (const char *at = *word; clean && *at; at += clean ? printable(at) : 0)
            clean = printable(at) > 0;
        buffer_add(&text, " ", text.length ? 1 : 0);
        if (**word && strspn(*word, plain) == strlen(*word) && !setting) {
            buffer_add(&text, *word, strlen(*word));
        } else if (clean && !strchr(*word, '\'')) {
            buffer_addf(&text, "'%s'", *word);
        } else if (clean) {
            buffer_add(&text, "'", 1);
            for (const char *at = *word; *at; at++)
                buffer_addf(&text, *at == '\'' ? "'\\''" : "%c", *at);
            buffer_add(&text, "'", 1);
        } else {
            buffer_add(&text, "$'", 2);
            quote(&text, *word);
            buffer_add(&text, "'", 1);
        }
    }
    const char *copy = arena_strdup(a, text.data);
    buffer_free(&text);
    return copy;
}
