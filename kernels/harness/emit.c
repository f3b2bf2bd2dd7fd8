#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "counters.h"
#include "emit.h"
#include "launch.h"
#include "options.h"
#include "profile.h"
#include "simclock.h"

#define SAMPLES_BEYOND 100u /* no quantile without so many samples beyond it */
#define OF_THE_HOST    "in the simulated machine the host's clocks and accounts tell nothing"
#define NOT_SAMPLED    "no call was sampled"
#define NO_THROUGHPUT_PASS "the throughput pass was not asked for"
#define NO_CLOCK       "weave mode of the simulated machine has no clock: use timed mode"

/* Parameters that are columns of their own; all others become metrics `param.NAME`. */
static const char *const column_params[] = { "live_blocks", "lifetime_dist", "touch", "heap_state" };

/* ---- identity ---- */

static uint64_t fnv1a(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

static void machine_identify(char out[17])
{
    static char text[8192];
    uint64_t hash = 0xcbf29ce484222325u;

    if (proc_read("/etc/machine-id", text, sizeof text) > 0)
        hash = fnv1a(hash, text);
    else if (gethostname(text, sizeof text) == 0)
        hash = fnv1a(hash, text);
    if (proc_read("/proc/cpuinfo", text, sizeof text) > 0) {
        char *model = strstr(text, "model name");
        if (model != NULL) {
            model[strcspn(model, "\n")] = '\0';
            hash = fnv1a(hash, model);
        }
    }
    snprintf(out, 17, "%016llx", (unsigned long long)hash);
}

void identity_find(struct identity *id, const char *expect, const char *version_call)
{
    provenance_find(&id->provenance, expect, version_call);
    machine_identify(id->machine_id);
    for (char **e = environ; *e != NULL; e++)
        id->env_bytes += strlen(*e) + 1;
    id->load = load_one_minute();
}

/* ---- the row ---- */

static json_t *row, *metric_list;

static void put_text(const char *column, const char *text)
{
    json_object_set_new(row, column, json_string(text));
}

static void put_int(const char *column, int64_t value)
{
    json_object_set_new(row, column, json_integer(value));
}

static void put_real(const char *column, double value)
{
    json_object_set_new(row, column, json_real(value));
}

static void put_metric(const char *name, const char *unit, json_t *value, const char *why)
{
    json_t *m = json_object();
    json_object_set_new(m, "name", json_string(name));
    json_object_set_new(m, "unit", json_string(unit));
    json_object_set_new(m, "value", value);
    json_object_set_new(m, "reason", why && why[0] ? json_string(why) : json_null());
    json_array_append_new(metric_list, m);
}

/* A column that stays empty, and why. */
static void put_absent(const char *column, const char *unit, const char *why)
{
    json_object_set_new(row, column, json_null());
    put_metric(column, unit, json_null(), why);
}

static bool is_column_param(const char *name)
{
    for (unsigned i = 0; i < sizeof column_params / sizeof column_params[0]; i++)
        if (strcmp(column_params[i], name) == 0)
            return true;
    return false;
}

static void put_params(void)
{
    const struct option_value *v;
    for (unsigned i = 0; (v = option_own(i)) != NULL; i++) {
        bool word = v->param->type == PARAM_WORD;
        json_t *value = word ? json_string(v->text) : json_integer((json_int_t)v->number);
        if (is_column_param(v->param->name)) {
            json_object_set_new(row, v->param->name, value);
        } else {
            char name[64];
            snprintf(name, sizeof name, "param.%s", v->param->name);
            put_metric(name, v->param->unit, value, NULL);
        }
    }
}

static void put_plan(const struct identity *id)
{
    bool stub = launch.no_alloc && !kernel.no_alloc;
    put_text("kernel", kernel.name);
    put_text("variant", param_word("variant"));
    put_text("allocator_path", stub ? "" : id->provenance.path);
    put_text("allocator_build_id", stub ? "" : id->provenance.build_id);
    put_text("allocator_version", stub ? "" : id->provenance.version);
    if (stub)
        put_metric("served_by", "", json_string("a stub (--no-alloc)"), NULL);
    put_int("threads", launch.threads);
    if (launch.placement != NULL) {
        put_int("cpus", launch.placement->cpus);
        put_int("oversubscribed", launch.oversubscribed);
    }
    put_text("placement", param_word("placement"));
    put_text("numa_policy", param_word("numa"));
    if (kernel.sizes != SIZES_NONE) {
        bool from_file = strncmp(param_word("size_dist"), "file:", 5) == 0;
        put_int("size_min", (int64_t)(from_file ? launch.size_min : param_int("size_min")));
        put_int("size_max", (int64_t)(from_file ? launch.size_max : param_int("size_max")));
        put_text("size_dist", param_word("size_dist"));
    }
    if (kernel.thread_count != NULL)
        put_absent("ops_per_thread", "count", "the threads do not all do the same number");
    else
        put_int("ops_per_thread", (int64_t)launch.ops);
    put_int("seed", (int64_t)param_int("seed"));
    put_int("env_bytes", (int64_t)id->env_bytes);
    put_text("machine_id", id->machine_id);
    if (id->load >= 0)
        put_real("load_1min", id->load);
    else
        put_absent("load_1min", "", "/proc/loadavg cannot be read");
    put_params();
}

/* What only clocks and the kernel's accounts tell of the throughput pass. */
static const char *const pass_columns[] = { "wall_ns", "ops_per_s", "cpu_user_ns", "cpu_sys_ns", "minor_faults",
                                            "major_faults", "ctx_voluntary", "ctx_involuntary", "run_delay_ns",
                                            "blocked_ns", "steal_ratio" };

static void put_pass_absent(const char *why)
{
    for (unsigned i = 0; i < sizeof pass_columns / sizeof pass_columns[0]; i++)
        put_absent(pass_columns[i], "", why);
}

static void put_throughput(void)
{
    double wall_ns = clock_ns((double)launch.wall_ticks);
    put_int("ops", (int64_t)launch.ops_done);
    if (launch.simulated) {
        put_pass_absent(OF_THE_HOST);
        return;
    }
    int64_t wall = (int64_t)(wall_ns + 0.5);
    put_int("wall_ns", wall);
    if (wall > 0)
        put_real("ops_per_s", (double)launch.ops_done / (double)wall * 1e9);
    put_int("cpu_user_ns", launch.used.user_ns);
    put_int("cpu_sys_ns", launch.used.sys_ns);
    put_int("minor_faults", launch.used.minor_faults);
    put_int("major_faults", launch.used.major_faults);
    put_int("ctx_voluntary", launch.used.voluntary);
    put_int("ctx_involuntary", launch.used.involuntary);
    if (launch.used.delay_known) {
        put_int("run_delay_ns", launch.used.run_delay_ns);
        put_int("blocked_ns", launch.blocked_ns);
    } else {
        put_absent("run_delay_ns", "ns", kernel.subject         ? "not kept for another process"
                                         : kernel.makes_threads ? "not kept for the threads that this kernel makes"
                                                                : "/proc/thread-self/schedstat cannot be read (CONFIG_SCHED_INFO)");
        put_absent("blocked_ns", "ns", "needs run_delay_ns");
    }
    if (launch.machine.known && launch.machine.total > 0)
        put_real("steal_ratio", (double)launch.machine.steal / (double)launch.machine.total);
    else
        put_absent("steal_ratio", "0..1", "the pass was shorter than a clock tick of /proc/stat");
}

/* In ticks of the clock that the allocator reads. */
static void put_lock_time(const char *name, double ticks, double ns_per_tick, const char *why)
{
    put_metric(name, "ns", why == NULL ? json_real(ticks * ns_per_tick) : json_null(), why);
}

/* Times of some takes stand for all: in fewer than so many, one thread off its CPU would stand for the whole pass. */
#define LOCK_CLOCKED_LEAST 100

/* What the allocator's lock came to in the throughput pass; nothing where it does not tell. Times are of some takes. */
static void put_locks(void)
{
    const struct lock_times *before = &launch.pass_before->locks_out, *after = &launch.pass_after->locks_in;
    const struct lock_times *first = &launch.baseline.locks_in, *last = &launch.end.locks_in;
    uint64_t takes = after->takes - before->takes, clocked = after->clocked - before->clocked;
    bool stands = last->now <= first->now;
    char few[96];
    snprintf(few, sizeof few, "%llu takes were clocked, %d needed", (unsigned long long)clocked, LOCK_CLOCKED_LEAST);

    if (served.locks == NULL || launch.no_alloc || kernel.subject)
        return;
    const char *why = launch.simulated ? OF_THE_HOST
                      : stands         ? "the clock that the allocator reads stands still"
                                       : NULL;
    const char *scaled_why = why == NULL && clocked < LOCK_CLOCKED_LEAST ? few : why;
    double ns = stands ? 0 : (double)(launch.end.locks_ns - launch.baseline.locks_ns) / (double)(last->now - first->now);
    double takes_each = clocked == 0 ? 0 : (double)takes / (double)clocked;
    put_metric("lock_takes", "count", json_integer((json_int_t)takes), NULL);
    put_metric("lock_contended", "count", json_integer((json_int_t)(after->contended - before->contended)), NULL);
    put_metric("lock_clocked", "count", json_integer((json_int_t)clocked), NULL);
    put_lock_time("lock_wait_ns", (double)(after->wait - before->wait) * takes_each, ns, scaled_why);
    put_lock_time("lock_hold_ns", (double)(after->hold - before->hold) * takes_each, ns, scaled_why);
    put_lock_time("lock_clock_ns", (double)last->reading / (double)last->readings, ns, why);
}

static void put_counters(void)
{
    const struct counter_result *r = counters_result();
    put_text("counters", r->backend);
    put_text("counters_reason", r->reason);
    for (unsigned c = 0; c < r->columns; c++) {
        if (c >= COUNTER_METRICS)
            put_metric(counter_column_name[c], "count", r->have[c] ? json_integer((json_int_t)r->value[c]) : json_null(),
                       r->have[c] ? NULL : r->column_reason[c]);
        else if (r->have[c])
            put_int(counter_column_name[c], (int64_t)r->value[c]);
        else
            put_absent(counter_column_name[c], "count", r->column_reason[c]);
        if (r->have[c] && r->meaning[c] != NULL) {
            char name[64];
            snprintf(name, sizeof name, "meaning.%s", counter_column_name[c]);
            put_metric(name, "", json_string(r->meaning[c]), NULL);
        }
    }
    if (r->have[COUNTER_L3_MISS] && r->have[COUNTER_L3_ACCESS] && r->value[COUNTER_L3_ACCESS] > 0)
        put_real("l3_miss_ratio", r->value[COUNTER_L3_MISS] / r->value[COUNTER_L3_ACCESS]);
    else
        put_absent("l3_miss_ratio", "0..1", "needs l3_miss and l3_access");
    if (r->columns > COUNTER_NATIVE && r->have[COUNTER_CYCLES] && launch.ops_done > 0)
        put_real("sim_cycles_per_op", r->value[COUNTER_CYCLES] / (double)launch.ops_done);
    else if (r->columns > COUNTER_NATIVE)
        put_absent("sim_cycles_per_op", "1/op", "needs cycles and ops");
    if (r->enabled_ns > 0) {
        put_int("counter_enabled_ns", (int64_t)r->enabled_ns);
        put_int("counter_running_ns", (int64_t)r->running_ns);
    } else {
        const char *why = launch.simulated ? OF_THE_HOST : "no hardware event counted";
        put_absent("counter_enabled_ns", "ns", why);
        put_absent("counter_running_ns", "ns", why);
    }
}

/* ---- latency ---- */

static const struct { const char *suffix; double q; } quantiles[] = {
    { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p999", 0.999 }, { "p9999", 0.9999 },
};

/* Samples that a quantile needs: 100 beyond it. */
static uint64_t samples_needed(double q)
{
    return (uint64_t)(SAMPLES_BEYOND / (1.0 - q) + 0.5);
}

/* Columns (lat_*) for malloc, metrics (free_*, touch_*, pair_*) for the others. `scale`: ns per unit of the values.
 * `absent`: why there are none at all, or NULL. */
static void put_quantiles(const struct hist *h, const char *prefix, bool column, double scale, const char *absent)
{
    for (unsigned i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
        char name[48], why[96];
        uint64_t needed = samples_needed(quantiles[i].q);
        bool enough = absent == NULL && h->samples >= needed;
        snprintf(name, sizeof name, "%s_%s_ns", prefix, quantiles[i].suffix);
        if (absent != NULL)
            snprintf(why, sizeof why, "%s", absent);
        else
            snprintf(why, sizeof why, "%llu samples, %llu needed", (unsigned long long)h->samples,
                     (unsigned long long)needed);
        double value = enough ? hist_quantile(h, quantiles[i].q) * scale : 0;
        if (column && enough)
            put_real(name, value);
        else if (column)
            put_absent(name, "ns", why);
        else
            put_metric(name, "ns", enough ? json_real(value) : json_null(), enough ? NULL : why);
    }
}

static double pair_scale(void)
{
    return clock_facts.ns_per_tick / (double)launch_grain();
}

/* Why there is no latency pass. */
static const char *no_latency_pass(void)
{
    return kernel.once || kernel.app ? "this kernel has no latency pass" : "the latency pass was not asked for";
}

static void put_latency(void)
{
    const struct hist *h = &launch.hists[HIST_MALLOC];
    if (launch.simulated) {
        put_absent("clock_overhead_ns", "ns", OF_THE_HOST);
    } else {
        put_real("clock_overhead_ns", clock_ns((double)clock_facts.overhead_ticks));
        put_metric("clock_granularity_ns", "ns", json_real(clock_ns((double)clock_facts.granularity)), NULL);
        put_metric("clock", "", json_string(clock_facts.tsc ? "tsc" : "CLOCK_MONOTONIC_RAW"), NULL);
    }
    if (launch.ran_batch && launch.hists[HIST_PAIR].samples > 0)
        put_quantiles(&launch.hists[HIST_PAIR], "pair", false, pair_scale(), NULL);
    if (launch.hists[HIST_REALLOC].samples > 0)
        put_quantiles(&launch.hists[HIST_REALLOC], "realloc", false, clock_facts.ns_per_tick, NULL);
    if (!launch.ran_latency || h->samples == 0) {
        static const char *const columns[] = { "lat_mean_ns", "lat_p50_ns", "lat_p90_ns", "lat_p99_ns", "lat_p999_ns",
                                               "lat_p9999_ns", "lat_max_ns", "lat_samples" };
        const char *why = launch.simulated     ? OF_THE_HOST
                          : launch.ran_latency ? NOT_SAMPLED
                                               : no_latency_pass();
        for (unsigned i = 0; i < sizeof columns / sizeof columns[0]; i++)
            put_absent(columns[i], i == 7 ? "count" : "ns", why);
        return;
    }
    put_int("lat_samples", (int64_t)h->samples);
    put_real("lat_mean_ns", clock_ns((double)h->sum) / (double)h->samples);
    put_real("lat_max_ns", clock_ns((double)h->max));
    put_quantiles(h, "lat", true, clock_facts.ns_per_tick, NULL);
    put_quantiles(&launch.hists[HIST_FREE], "free", false, clock_facts.ns_per_tick, NULL);
    put_quantiles(&launch.hists[HIST_TOUCH], "touch", false, clock_facts.ns_per_tick, NULL);
}

/* ---- times of the simulated machine ---- */

static const char *no_rate(void)
{
    if (!simclock.there)
        return NO_CLOCK;
    if (!launch.ran_throughput)
        return NO_THROUGHPUT_PASS;
    return simclock.times.last > simclock.times.first ? NULL : "the throughput pass took no simulated time";
}

static const char *no_simulated_latency(const struct hist *h)
{
    if (!simclock.there)
        return NO_CLOCK;
    if (!launch.ran_latency)
        return no_latency_pass();
    return h->samples > 0 ? NULL : NOT_SAMPLED;
}

static void put_simulated_calls(enum sim_timed call, const char *prefix)
{
    const struct hist *h = &simclock.times.call[call];
    const char *why = no_simulated_latency(h);
    char max[48];
    snprintf(max, sizeof max, "%s_max_ns", prefix);
    put_quantiles(h, prefix, false, simclock.ns_per_cycle, why);
    put_metric(max, "ns", why == NULL ? json_real((double)h->max * simclock.ns_per_cycle) : json_null(), why);
}

static void put_simulated_times(void)
{
    const struct sim_times *t = &simclock.times;
    const struct hist *mallocs = &t->call[SIM_TIMED_MALLOC], *nothing = &t->call[SIM_TIMED_NOTHING];
    const char *why = no_rate();
    double seconds = (double)(t->last - t->first) * simclock.ns_per_cycle / 1e9;
    put_metric("sim_ops_per_s", "1/s", why == NULL ? json_real((double)launch.ops_done / seconds) : json_null(), why);
    put_simulated_calls(SIM_TIMED_MALLOC, "sim_lat_malloc");
    put_simulated_calls(SIM_TIMED_FREE, "sim_lat_free");
    why = no_simulated_latency(mallocs);
    put_metric("sim_lat_samples", "count", why == NULL ? json_integer((json_int_t)mallocs->samples) : json_null(), why);
    why = no_simulated_latency(nothing);
    put_metric("sim_lat_overhead_ns", "ns",
               why == NULL ? json_real(hist_quantile(nothing, 0.5) * simclock.ns_per_cycle) : json_null(), why);
    put_metric("sim_lat_stirred", "count", why == NULL ? json_integer(t->stirred) : json_null(), why);
}

/* ---- histograms ---- */

/* Buckets with samples only; `scale`: ns per unit of the values. */
static void hist_put(json_t *list, const char *call, const struct hist *h, double scale)
{
    json_t *buckets = json_array();
    for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
        uint64_t lower, upper;
        if (h->bucket[i] == 0)
            continue;
        hist_bounds(i, &lower, &upper);
        json_array_append_new(buckets, json_pack("[f, f, I]", (double)lower * scale, (double)upper * scale,
                                                 (json_int_t)h->bucket[i]));
    }
    if (json_array_size(buckets) > 0)
        json_array_append_new(list, json_pack("{s:s, s:o}", "call", call, "buckets", buckets));
    else
        json_decref(buckets);
}

static json_t *hist_json(void)
{
    json_t *list = json_array();
    for (unsigned call = 0; call < HIST_CALLS; call++)
        hist_put(list, hist_call_name[call], &launch.hists[call],
                 call == HIST_PAIR ? pair_scale() : clock_facts.ns_per_tick);
    hist_put(list, "sim_malloc", &simclock.times.call[SIM_TIMED_MALLOC], simclock.ns_per_cycle);
    hist_put(list, "sim_free", &simclock.times.call[SIM_TIMED_FREE], simclock.ns_per_cycle);
    return list;
}

/* ---- memory ---- */

static void put_memory(void)
{
    if (launch.rss_peak == NULL || !launch.baseline.resident.known) {
        put_absent("rss_peak_bytes", "bytes", resident_reason());
        put_absent("rss_end_bytes", "bytes", resident_reason());
        put_absent("rss_baseline_bytes", "bytes", resident_reason());
        put_absent("rss_overhead_bytes", "bytes", resident_reason());
        return;
    }
    int64_t peak = (int64_t)launch.rss_peak->resident.rss, baseline = (int64_t)launch.baseline.resident.rss;
    if (kernel.app && (int64_t)launch.high_water > peak) /* all of its work lies between two looks */
        peak = (int64_t)launch.high_water;
    put_int("rss_peak_bytes", peak);
    put_int("rss_baseline_bytes", baseline);
    put_int("rss_end_bytes", (int64_t)launch.end.resident.rss);
    put_metric("rss_lazy_free_bytes", "bytes", json_integer((json_int_t)launch.rss_peak->resident.lazy_free), NULL);
    put_metric("rss_huge_bytes", "bytes", json_integer((json_int_t)launch.rss_peak->resident.huge), NULL);
    put_metric("rss_end_lazy_free_bytes", "bytes", json_integer((json_int_t)launch.end.resident.lazy_free), NULL);
    if (launch.high_water > 0)
        put_metric("rss_high_water_bytes", "bytes", json_integer((json_int_t)launch.high_water), NULL);
    else
        put_metric("rss_high_water_bytes", "bytes", json_null(), "/proc/self/status has no VmHWM line");
    bool stub = launch.no_alloc && !kernel.no_alloc;
    if (stub || (kernel.live_slots == NULL && !kernel.no_alloc)) {
        const char *why = stub ? "a stub served: its blocks overlap"
                           : kernel.subject ? "the program under test does not tell what it asked for"
                                            : "this kernel keeps its blocks outside the live set that the harness walks";
        put_absent("live_peak_bytes", "bytes", why);
        put_absent("usable_peak_bytes", "bytes", why);
        put_absent("rss_overhead_bytes", "bytes", why);
        return;
    }
    int64_t live = (int64_t)launch.live_peak->live, overhead = peak - live - baseline;
    put_int("live_peak_bytes", live);
    put_int("rss_overhead_bytes", overhead);
    put_metric("live_at_rss_peak_bytes", "bytes", json_integer((json_int_t)launch.rss_peak->live), NULL);
    if (launch.no_alloc || served.usable == NULL) {
        put_absent("usable_peak_bytes", "bytes", launch.no_alloc ? "a stub served" : "no malloc_usable_size");
        return;
    }
    int64_t usable = (int64_t)launch.usable_peak->usable;
    put_int("usable_peak_bytes", usable);
    put_metric("rss_internal_bytes", "bytes", json_integer(usable - live), NULL);
    int64_t metadata = launch.metadata, rest = overhead - (usable - live);
    put_metric("rss_external_bytes", "bytes", json_integer(metadata < 0 ? rest : rest - metadata), NULL);
    put_metric("rss_metadata_bytes", "bytes", metadata < 0 ? json_null() : json_integer(metadata),
               metadata < 0 ? "this allocator does not say; part of rss_external_bytes" : NULL);
}

static json_t *timeline_json(void)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < launch.samples; i++) {
        const struct sample *s = &launch.timeline[i];
        if (s->resident.known)
            json_array_append_new(list, json_pack("[I, I, I, I]", (json_int_t)s->t_ns, (json_int_t)s->resident.rss,
                                                  (json_int_t)s->live, (json_int_t)s->usable));
    }
    return list;
}

/* ---- the whole ---- */

static json_t *matrix_json(void)
{
    json_t *list = json_array();
    const struct matrix_cell *cell;
    for (unsigned i = 0; (cell = launch_matrix(i)) != NULL; i++)
        json_array_append_new(list, json_pack("{s:i, s:i, s:s, s:f, s:s}", "from_cpu", (int)cell->from, "to_cpu",
                                              (int)cell->to, "state", cell->state, "ns", cell->ns, "distance",
                                              distance_name[cpu_distance(launch.placement, (int)cell->from,
                                                                         (int)cell->to)]));
    return list;
}

static void put_no_throughput(void)
{
    put_absent("ops", "", NO_THROUGHPUT_PASS);
    put_pass_absent(launch.simulated ? OF_THE_HOST : NO_THROUGHPUT_PASS);
    put_text("counters", launch.simulated ? "sim" : "none");
    put_text("counters_reason", "counted in the throughput pass, which was not asked for");
    if (!launch.simulated)
        return;
    for (unsigned c = COUNTER_NATIVE; c < COUNTER_METRICS; c++)
        put_absent(counter_column_name[c], "count", NO_THROUGHPUT_PASS);
    put_absent("sim_cycles_per_op", "1/op", NO_THROUGHPUT_PASS);
}

static void put_measured(void)
{
    if (launch.ran_throughput) {
        put_throughput();
        put_counters();
        put_locks();
    } else {
        put_no_throughput();
    }
    put_latency();
    if (launch.simulated)
        put_simulated_times();
    put_memory();
    const struct metric *m;
    for (unsigned i = 0; (m = launch_metric(i)) != NULL; i++)
        put_metric(m->name, m->unit, m->known ? json_real(m->value) : json_null(), m->reason);
}

static json_t *result_make(const struct identity *id, const char *status, const char *detail)
{
    bool ok = strcmp(status, "ok") == 0;
    row = json_object();
    metric_list = json_array();
    put_plan(id);
    put_text("status", status);
    put_text("status_detail", detail);
    if (ok)
        put_measured();
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", 1, "row", row, "metrics", metric_list, "hist",
                     ok ? hist_json() : json_array(), "timeline", ok ? timeline_json() : json_array(), "matrix",
                     ok ? matrix_json() : json_array(), "profile", ok ? profile_json() : json_null());
}

void emit_json(const struct identity *id, const char *status, const char *detail)
{
    json_t *result = result_make(id, status, detail);
    json_dumpf(result, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
    putchar('\n');
    json_decref(result);
}

static void value_print(const json_t *value)
{
    if (json_is_string(value))
        printf("%s", json_string_value(value));
    else if (json_is_integer(value))
        printf("%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        printf("%.3f", json_real_value(value));
    else
        printf("-");
}

void emit_text(const struct identity *id, const char *status, const char *detail)
{
    json_t *result = result_make(id, status, detail), *value, *m;
    const char *column;
    size_t i;

    json_object_foreach(json_object_get(result, "row"), column, value)
    {
        printf("%-24s ", column);
        value_print(value);
        putchar('\n');
    }
    json_array_foreach(json_object_get(result, "metrics"), i, m)
    {
        const char *why = json_string_value(json_object_get(m, "reason"));
        printf("%-24s ", json_string_value(json_object_get(m, "name")));
        value_print(json_object_get(m, "value"));
        printf(" %s%s%s%s\n", json_string_value(json_object_get(m, "unit")), why ? " (" : "", why ? why : "",
               why ? ")" : "");
    }
    json_array_foreach(json_object_get(result, "matrix"), i, m)
        printf("cpu %lld -> %lld  %-10s %.1f ns (%s)\n", (long long)json_integer_value(json_object_get(m, "from_cpu")),
               (long long)json_integer_value(json_object_get(m, "to_cpu")), json_string_value(json_object_get(m, "state")),
               json_real_value(json_object_get(m, "ns")), json_string_value(json_object_get(m, "distance")));
    json_decref(result);
}

void emit_probe(const struct identity *id, bool json)
{
    const struct provenance *p = &id->provenance;
    if (!json) {
        printf("malloc is served by %s\nversion  %s\nbuild-id %s\n%s%s", p->path, p->version[0] ? p->version : "-",
               p->build_id[0] ? p->build_id : "-", p->trouble, p->trouble[0] ? "\n" : "");
        return;
    }
    json_t *all = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "schema", 1, "machine_id",
                            id->machine_id, "allocator_path", p->path, "allocator_build_id",
                            p->build_id, "allocator_version", p->version, "trouble", p->trouble);
    json_dumpf(all, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(all);
}
