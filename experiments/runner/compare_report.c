#include "compare_report.h"
#include "csv.h"

#include <inttypes.h>
#include <math.h>

static const char *const header[] = {"launch",        "kind",
                                     "round",         "order",
                                     "allocator",     "allocator_version",
                                     "served_by",     "served_build_id",
                                     "status",        "status_detail",
                                     "exit_code",     "signal",
                                     "wall_ns",       "cpu_user_ns",
                                     "cpu_sys_ns",    "rss_peak_bytes",
                                     "minor_faults",  "major_faults",
                                     "ctx_voluntary", "ctx_involuntary",
                                     "processes",     "processes_served",
                                     "cpu_served",    "malloc_share",
                                     "libc_share",    "share_samples",
                                     "share_reason",  "env_bytes",
                                     "seed",          "started_at",
                                     "command"};

static void put_count(struct buffer *b, bool known, uint64_t value)
{
    char text[24] = "";
    if (known)
        snprintf(text, sizeof text, "%" PRIu64, value);
    csv_field(b, text);
}

static void put_ratio(struct buffer *b, bool known, double value)
{
    char text[32] = "";
    if (known && isfinite(value))
        snprintf(text, sizeof text, "%.4f", value);
    csv_field(b, text);
}

/* Numbers of a profiled launch are of the profiler too. */
static void put_numbers(struct buffer *b, const struct compare_launch *l)
{
    const bool known = l->status == COMPARE_OK && l->kind != KIND_PROFILED;
    const uint64_t counts[] = {
        l->wall_ns,      l->user_ns,      l->system_ns,          l->rss_peak_bytes,
        l->minor_faults, l->major_faults, l->voluntary_switches, l->involuntary_switches,
        l->processes,    l->served};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        put_count(b, known, counts[i]);
    put_ratio(b, known, l->reach);
}

static void put_share(struct buffer *b, const struct compare_launch *l, const struct contender *c)
{
    const bool profiled = l->kind == KIND_PROFILED, known = profiled && !c->no_share;
    put_ratio(b, known, c->share.malloc_share);
    put_ratio(b, known, c->share.libc_share);
    put_count(b, known, c->share.samples);
    csv_field(b, profiled && c->no_share ? c->no_share : "");
}

void compare_csv(const struct comparison *cmp, struct buffer *b)
{
    struct arena a = {0};
    const char *command = compare_command_text(&a, cmp);
    for (size_t i = 0; i < sizeof header / sizeof *header; i++)
        csv_field(b, header[i]);
    csv_end_row(b);
    for (size_t i = 0; i < cmp->launches; i++) {
        const struct compare_launch *l = &cmp->launch[i];
        const struct contender *c = &cmp->contender[l->contender];
        put_count(b, true, i + 1);
        csv_field(b, compare_kinds[l->kind]);
        put_count(b, true, l->round);
        put_count(b, true, l->order);
        csv_field(b, c->name);
        csv_field(b, c->version);
        csv_field(b, l->object ? text_clean(&a, l->object) : "");
        csv_field(b, l->build_id ? l->build_id : "");
        csv_field(b, compare_statuses[l->status]);
        csv_field(b, l->detail);
        put_count(b, l->exit_code >= 0, (uint64_t)(l->exit_code >= 0 ? l->exit_code : 0));
        put_count(b, l->signal > 0, (uint64_t)l->signal);
        put_numbers(b, l);
        put_share(b, l, c);
        put_count(b, true, l->env_bytes);
        put_count(b, true, cmp->options.seed);
        csv_field(b, l->started_at);
        csv_field(b, command);
        csv_end_row(b);
    }
    arena_free(&a);
}

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *ratio_json(const struct ratio *r)
{
    return json_pack("{s:o, s:o, s:o, s:I}", "ratio", real_or_null(r->value), "low", real_or_null(r->low),
                     "high", real_or_null(r->high), "pairs", (json_int_t)r->pairs);
}

static json_t *verdict_json(const struct compare_summary *s)
{
    const bool told = s->given.verdict != VERDICT_UNKNOWN;
    return json_pack("{s:s, s:s, s:o}", "verdict", verdict_words[s->given.verdict], "words", s->given.words,
                     "more_launches",
                     told                          ? json_integer(0)
                     : s->given.more == UINT64_MAX ? json_null()
                                                   : json_integer((json_int_t)s->given.more));
}

static json_t *contender_json(struct arena *a, const struct comparison *cmp, size_t i)
{
    const struct contender *c = &cmp->contender[i];
    struct compare_summary s;
    compare_summarise(a, cmp, i, &s);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                  c->name, "version", c->version, "path", text_clean(a, c->real), "build_id", c->build_id,
                  "default", i == 0, "launches_ok", (json_int_t)s.ok, "launches_failed", (json_int_t)s.failed,
                  "wall_ns", real_or_null(s.wall_ns), "cpu_user_ns", real_or_null(s.user_ns), "cpu_sys_ns",
                  real_or_null(s.system_ns), "rss_peak_bytes", real_or_null(s.rss_peak_bytes), "minor_faults",
                  real_or_null(s.minor_faults), "major_faults", real_or_null(s.major_faults),
                  "context_switches", real_or_null(s.switches), "cpu_served", real_or_null(s.reach));
    json_object_set_new(json, "malloc_share",
                        c->no_share ? json_null() : real_or_null(c->share.malloc_share));
    json_object_set_new(json, "share_reason", json_string(c->no_share ? c->no_share : ""));
    json_object_set_new(json, "gone", json_string(c->gone ? c->gone : ""));
    if (i > 0) {
        json_object_set_new(json, "wall", ratio_json(&s.wall));
        json_object_set_new(json, "cpu", ratio_json(&s.cpu));
        json_object_set_new(json, "rss_peak", ratio_json(&s.memory));
        json_object_set_new(json, "verdict", verdict_json(&s));
    }
    return json;
}

static json_t *texts(struct arena *a, const struct words *w)
{
    json_t *list = json_array();
    for (size_t i = 0; i < w->count; i++)
        json_array_append_new(list, json_string(text_clean(a, w->word[i])));
    return list;
}

static json_t *failures(const struct comparison *cmp)
{
    json_t *list = json_array();
    for (size_t i = 0; i < cmp->launches; i++) {
        const struct compare_launch *l = &cmp->launch[i];
        if (l->status != COMPARE_OK)
            json_array_append_new(
                list, json_pack("{s:I, s:s, s:s, s:s, s:s, s:s}", "launch", (json_int_t)(i + 1), "allocator",
                                cmp->contender[l->contender].name, "kind", compare_kinds[l->kind], "status",
                                compare_statuses[l->status], "detail", l->detail, "stderr", l->said));
    }
    return list;
}

json_t *compare_json(struct arena *a, const struct comparison *cmp)
{
    json_t *allocators = json_array();
    for (size_t i = 0; i < cmp->contenders; i++)
        json_array_append_new(allocators, contender_json(a, cmp, i));
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:b, s:s, s:f, s:o, s:o, s:o, s:o}", "command",
                     compare_command_text(a, cmp), "program", text_clean(a, cmp->target.program), "runs",
                     (json_int_t)cmp->options.runs, "warmup", (json_int_t)cmp->options.warmup, "seed",
                     (json_int_t)cmp->options.seed, "stopped", (int)cmp->stopped, "interval", RATIO_METHOD,
                     "confidence", RATIO_CONFIDENCE, "allocators", allocators, "skipped",
                     texts(a, &cmp->skipped), "notes", texts(a, &cmp->notes), "failures", failures(cmp));
}
