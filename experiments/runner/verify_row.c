#include "meta.h"
#include "results.h"
#include "trust.h"
#include "verify.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RATE_TOLERANCE   0.001
#define BUCKET_TOLERANCE 0.016 /* a bucket is at most 1 % wide; texts are rounded */
#define NS_ROUNDING      0.002
#define CPU_TOLERANCE    0.01
#define CPU_SLACK_NS     2e7 /* a thread's accounts are read just outside of the timed region; some count ticks */
#define DELAY_SLACK_NS   5e7      /* and it may lose its CPU there */
#define CLOCKS_SLACK_NS  1e6      /* the clock of the wall's time is another */
#define RSS_SLACK_BYTES  0x100000 /* each CPU is a little behind with the process's resident size */

/* The value of a column that holds a number; false where it is empty. */
static bool number(const struct csv_row *row, const char *column, double *value)
{
    const char *text = row_field(row, column);
    *value = strtod(text, NULL);
    return *text != '\0';
}

static void check_types(struct verify *v, const struct csv_row *row)
{
    for (size_t i = 0; i < column_count; i++)
        if (*row->field[i] && !column_fits(&columns[i], row->field[i]))
            violation(v, FILE_RUNS, row->line, "%s is '%s', expected %s", columns[i].name, row->field[i],
                      columns[i].type == COLUMN_RATIO ? "a ratio from 0 to 1"
                                                      : "a number of the column's type");
    if (strcmp(row_field(row, "run_id"), meta_text(v->meta, "run_id")) != 0)
        violation(v, FILE_RUNS, row->line, "run_id '%s', expected '%s'", row_field(row, "run_id"),
                  meta_text(v->meta, "run_id"));
    if (strcmp(row_field(row, "sweep"), meta_text(v->meta, "sweep")) != 0)
        violation(v, FILE_RUNS, row->line, "sweep '%s', expected '%s'", row_field(row, "sweep"),
                  meta_text(v->meta, "sweep"));
    if (strcmp(row_field(row, "machine_id"), meta_text(v->meta, "machine_id")) != 0)
        violation(v, FILE_RUNS, row->line, "machine_id '%s', expected '%s'", row_field(row, "machine_id"),
                  meta_text(v->meta, "machine_id"));
    struct tm time;
    const char *end = strptime(row_field(row, "started_at"), "%Y-%m-%dT%H:%M:%SZ", &time);
    if (!end || *end || strlen(row_field(row, "started_at")) != strlen("2026-01-31T12:00:00Z"))
        violation(v, FILE_RUNS, row->line, "started_at '%s', expected ISO 8601 like 2026-01-31T12:00:00Z",
                  row_field(row, "started_at"));
}

static void check_not_ok(struct verify *v, const struct csv_row *row)
{
    for (size_t i = 0; i < column_count; i++)
        if (columns[i].role == ROLE_MEASURED && *row->field[i])
            violation(v, FILE_RUNS, row->line, "%s is '%s' in a row of status %s, expected empty",
                      columns[i].name, row->field[i], row_field(row, "status"));
    if (!*row_field(row, "status_detail"))
        violation(v, FILE_RUNS, row->line, "status %s without status_detail", row_field(row, "status"));
}

static void check_work(struct verify *v, const struct csv_row *row)
{
    double ops, threads, each, wall, rate;
    bool have_ops = number(row, "ops", &ops);
    bool planned = !meta_kernel_is(v->meta, row_field(row, "kernel"), "timed");
    if (planned && have_ops && number(row, "threads", &threads) && number(row, "ops_per_thread", &each) &&
        ops != threads * each)
        violation(v, FILE_RUNS, row->line, "ops %.0f, expected %.0f (%.0f threads of %.0f)", ops,
                  threads * each, threads, each);
    if (have_ops && ops == 0)
        violation(v, FILE_RUNS, row->line, "an ok row without operations");
    if (number(row, "wall_ns", &wall) && wall == 0)
        violation(v, FILE_RUNS, row->line, "wall_ns is 0, expected a time");
    if (have_ops && number(row, "wall_ns", &wall) && number(row, "ops_per_s", &rate) && wall > 0) {
        double expected = ops / wall * 1e9;
        if (fabs(rate - expected) > RATE_TOLERANCE * expected)
            violation(v, FILE_RUNS, row->line, "ops_per_s %.3f, expected %.3f from ops and wall_ns", rate,
                      expected);
    }
    double cpus;
    if (number(row, "threads", &threads) && number(row, "cpus", &cpus) &&
        strcmp(row_field(row, "oversubscribed"), threads > cpus ? "1" : "0") != 0)
        violation(v, FILE_RUNS, row->line, "oversubscribed '%s' with %.0f threads on %.0f CPUs",
                  row_field(row, "oversubscribed"), threads, cpus);
}

static bool is_simulated(const struct csv_row *row)
{
    return strcmp(row_field(row, "counters"), "sim") == 0;
}

/* CPU time against the wall's. Where the threads are the harness's own, each is at any time of its pass on a CPU, waits
 * for one or is blocked, and the four sums are its wall time: of all threads together no more than threads times the
 * longest, and no less than one. Another program, and threads that a kernel makes, have but the machine's CPUs. */
static void check_cpu_time(struct verify *v, const struct csv_row *row)
{
    const double online =
        (double)json_integer_value(json_object_get(json_object_get(v->meta, "machine"), "cpus_online"));
    double wall, user, sys, delay, blocked, threads, cpus;
    if (!number(row, "cpus", &cpus) || !number(row, "threads", &threads) || is_simulated(row))
        return;
    if (cpus < 1 || (online > 0 && cpus > online))
        violation(v, FILE_RUNS, row->line, "cpus %.0f, but the machine of " FILE_META " has %.0f", cpus,
                  online);
    if (!number(row, "wall_ns", &wall) || !number(row, "cpu_user_ns", &user) ||
        !number(row, "cpu_sys_ns", &sys))
        return;
    const bool own = number(row, "run_delay_ns", &delay) && number(row, "blocked_ns", &blocked);
    const double most = own ? fmin(threads, cpus) : fmax(online, cpus);
    if (user + sys > wall * most * (1 + CPU_TOLERANCE) + CPU_SLACK_NS * threads)
        violation(v, FILE_RUNS, row->line,
                  "cpu_user_ns and cpu_sys_ns are %.0f, more than wall_ns %.0f on %.0f CPUs", user + sys,
                  wall, most);
    if (!own)
        return;
    const double all = user + sys + delay + blocked;
    const double slack = DELAY_SLACK_NS * fmax(1, threads / cpus) * threads;
    const double least = threads > 1 ? wall / 2 - slack : wall * (1 - CPU_TOLERANCE) - CLOCKS_SLACK_NS;
    if (all > wall * threads * (1 + CPU_TOLERANCE) + slack || all < least)
        violation(v, FILE_RUNS, row->line,
                  "cpu_user_ns, cpu_sys_ns, run_delay_ns and blocked_ns are %.0f, expected wall_ns %.0f%s",
                  all, wall, threads > 1 ? " to as much for each thread" : "");
}

static void check_memory(struct verify *v, const struct csv_row *row, const struct row_sides *sides)
{
    double peak, live, baseline, overhead;
    if (number(row, "rss_peak_bytes", &peak) && number(row, "live_peak_bytes", &live) &&
        number(row, "rss_baseline_bytes", &baseline) && number(row, "rss_overhead_bytes", &overhead) &&
        overhead != peak - live - baseline)
        violation(v, FILE_RUNS, row->line, "rss_overhead_bytes %.0f, expected %.0f = peak - live - baseline",
                  overhead, peak - live - baseline);
    const struct {
        const char *column;
        uint64_t most;
    } peaks[] = {{"rss_peak_bytes", sides->rss_max},
                 {"live_peak_bytes", sides->live_max},
                 {"usable_peak_bytes", sides->usable_max}};
    /* An application's largest size may come between two looks: then it is the high-water mark. */
    const bool between = meta_kernel_is(v->meta, row_field(row, "kernel"), "app");
    for (size_t i = 0; i < sizeof peaks / sizeof *peaks; i++) {
        const bool marked = between && i == 0 && sides->high_water > peaks[i].most;
        const uint64_t most = marked ? sides->high_water : peaks[i].most;
        if (number(row, peaks[i].column, &peak) && peak != (double)most)
            violation(v, FILE_RUNS, row->line, "%s %.0f, but %s is %" PRIu64, peaks[i].column, peak,
                      marked ? "rss_high_water_bytes of metrics.csv" : "the largest of timeline.csv", most);
    }
    double cpus;
    if (between && number(row, "rss_peak_bytes", &peak) && number(row, "rss_baseline_bytes", &baseline) &&
        number(row, "cpus", &cpus) && baseline > peak + RSS_SLACK_BYTES * cpus)
        violation(v, FILE_RUNS, row->line, "rss_baseline_bytes %.0f is above rss_peak_bytes %.0f", baseline,
                  peak);
}

/* A time against the bounds that buckets give it. */
static bool within(const struct bounds *b, double ns)
{
    return ns >= b->lower * (1 - BUCKET_TOLERANCE) - NS_ROUNDING &&
           ns <= b->upper * (1 + BUCKET_TOLERANCE) + NS_ROUNDING;
}

static void check_latency(struct verify *v, const struct csv_row *row, const struct row_sides *sides)
{
    double samples, last = 0, value;
    const char *last_name = "0";
    bool have = number(row, "lat_samples", &samples);
    for (size_t i = 0; i < QUANTILES; i++) {
        if (!number(row, quantiles[i].column, &value))
            continue;
        if (!have || samples < quantiles[i].samples)
            violation(v, FILE_RUNS, row->line, "%s from %s samples, expected at least %.0f",
                      quantiles[i].column, have ? row_field(row, "lat_samples") : "no", quantiles[i].samples);
        if (value < last)
            violation(v, FILE_RUNS, row->line, "%s %.3f is below %s %.3f", quantiles[i].column, value,
                      last_name, last);
        if (!within(&sides->quantile[i], value))
            violation(v, FILE_RUNS, row->line, "%s %.3f, but hist.csv tells %.3f to %.3f",
                      quantiles[i].column, value, sides->quantile[i].lower, sides->quantile[i].upper);
        last = value;
        last_name = quantiles[i].column;
    }
    double mean, most;
    if (number(row, "lat_mean_ns", &mean) && number(row, "lat_max_ns", &most) && mean > most)
        violation(v, FILE_RUNS, row->line, "lat_mean_ns %.3f is above lat_max_ns %.3f", mean, most);
    if (number(row, "lat_mean_ns", &mean) && !within(&sides->mean, mean))
        violation(v, FILE_RUNS, row->line, "lat_mean_ns %.3f, but hist.csv tells %.3f to %.3f", mean,
                  sides->mean.lower, sides->mean.upper);
    if ((have || sides->samples[0]) && (double)sides->samples[0] != samples)
        violation(v, FILE_RUNS, row->line, "lat_samples %.0f, but hist.csv holds %" PRIu64 " of malloc",
                  samples, sides->samples[0]);
}

static void check_counters(struct verify *v, const struct csv_row *row)
{
    static const char *const backends[] = {"papi", "likwid", "perf", "sim", "none"};
    static const char *const never_zero[] = {"cycles", "instructions"}; /* some code ran */
    const char *backend = row_field(row, "counters");
    double enabled, running, miss, access, ratio, count;
    size_t known = 0;
    while (known < sizeof backends / sizeof *backends && strcmp(backends[known], backend) != 0)
        known++;
    if (known == sizeof backends / sizeof *backends)
        violation(v, FILE_RUNS, row->line, "counters '%s', expected papi, likwid, perf, sim or none",
                  backend);
    for (size_t i = 0; strcmp(backend, "none") == 0 && i < COUNTED_COLUMNS; i++)
        if (*row_field(row, counted_columns[i]))
            violation(v, FILE_RUNS, row->line, "%s is '%s' where nothing counted, expected empty",
                      counted_columns[i], row_field(row, counted_columns[i]));
    bool any = false; /* of the hardware */
    for (size_t i = 0; i < HARDWARE_COLUMNS; i++)
        any |= *row_field(row, counted_columns[i]) != '\0';
    if (!any && !*row_field(row, "counters_reason"))
        violation(v, FILE_RUNS, row->line, "no counter counted, and counters_reason is empty");
    for (size_t i = 0; i < sizeof never_zero / sizeof *never_zero; i++)
        if (number(row, never_zero[i], &count) && count == 0)
            violation(v, FILE_RUNS, row->line, "%s is 0, expected a count, or empty where nothing counted",
                      never_zero[i]);
    if (number(row, "counter_enabled_ns", &enabled) && number(row, "counter_running_ns", &running) &&
        running > enabled)
        violation(v, FILE_RUNS, row->line, "counter_running_ns %.0f is above counter_enabled_ns %.0f",
                  running, enabled);
    if (number(row, "l3_miss", &miss) && number(row, "l3_access", &access) && access > 0 &&
        number(row, "l3_miss_ratio", &ratio) && fabs(ratio - miss / access) > 1e-5)
        violation(v, FILE_RUNS, row->line, "l3_miss_ratio %.6f, expected %.6f", ratio, miss / access);
}

/* Columns of the simulator: there where it counted, and nowhere else; a level's accesses are misses of the one
 * before. */
static void check_simulation(struct verify *v, const struct csv_row *row)
{
    static const char *const ways[] = {"sim_mode", "sim_quantum", "sim_retries"};
    static const char *const levels[] = {"l1d_access", "l1d_miss", "l3_access", "l3_miss"};
    bool simulated = is_simulated(row);
    double outer, inner, ops, cycles, per_op;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (simulated != (*row_field(row, ways[i]) != '\0'))
            violation(v, FILE_RUNS, row->line, "%s is '%s' in a row with counters '%s'", ways[i],
                      row_field(row, ways[i]), row_field(row, "counters"));
    for (size_t i = 0; i < column_count && !simulated; i++)
        if (columns[i].role == ROLE_MEASURED && strncmp(columns[i].name, "sim_", 4) == 0 && *row->field[i])
            violation(v, FILE_RUNS, row->line, "%s is '%s' in a row that the simulator did not count",
                      columns[i].name, row->field[i]);
    if (!simulated)
        return;
    for (size_t i = 0; i + 1 < sizeof levels / sizeof *levels; i++)
        if (number(row, levels[i], &outer) && number(row, levels[i + 1], &inner) && inner > outer)
            violation(v, FILE_RUNS, row->line, "%s %.0f is above %s %.0f", levels[i + 1], inner, levels[i],
                      outer);
    if (number(row, "cycles", &cycles) && number(row, "ops", &ops) &&
        number(row, "sim_cycles_per_op", &per_op) && ops > 0 &&
        fabs(per_op - cycles / ops) > RATE_TOLERANCE * cycles / ops)
        violation(v, FILE_RUNS, row->line, "sim_cycles_per_op %.3f, expected %.3f from cycles and ops",
                  per_op, cycles / ops);
    for (const struct trust_metric *m = trust_metrics; m->name; m++)
        if (trust_in(m, row_field(row, "sim_mode")) == TRUST_NONE && *row_field(row, m->name))
            violation(v, FILE_RUNS, row->line, "%s is '%s', but %s", m->name, row_field(row, m->name),
                      m->why);
    if (*row_field(row, "wall_ns") || *row_field(row, "ops_per_s") || *row_field(row, "lat_mean_ns"))
        violation(v, FILE_RUNS, row->line, "a time of the host in a row that the simulator counted");
}

/* Whether something says why a measured column is empty: a metric of its name; for counters counters_reason; for what
 * needs the resident size the reason for that one; for latencies the plan; for the simulator's columns that it did not
 * count. */
static bool why_empty(const struct csv_row *row, const struct row_sides *sides, size_t column)
{
    const char *name = columns[column].name;
    if (sides->reason[column])
        return true;
    if (column_is_counted(name))
        return *row_field(row, "counters_reason");
    if (strcmp(name, "live_peak_bytes") == 0 || strcmp(name, "usable_peak_bytes") == 0)
        return sides->reason[column_find("rss_peak_bytes")];
    if (strncmp(name, "lat_", 4) == 0 && sides->no_latency && !sides->samples[0])
        return true;
    return strncmp(name, "sim_", 4) == 0 && !is_simulated(row);
}

/* Empty means not measured, and says why; what is said not to be measured is empty. */
static void check_reasons(struct verify *v, const struct csv_row *row, const struct row_sides *sides)
{
    for (size_t i = 0; i < column_count; i++) {
        if (columns[i].role != ROLE_MEASURED || columns[i].type == COLUMN_TEXT)
            continue;
        if (!*row->field[i] && !why_empty(row, sides, i))
            violation(v, FILE_RUNS, row->line, "%s is empty, and nothing says why", columns[i].name);
        if (*row->field[i] && sides->reason[i])
            violation(v, FILE_RUNS, row->line, "%s is '%s', but metrics.csv says why it was not measured",
                      columns[i].name, row->field[i]);
    }
    if (*row_field(row, "status_detail") &&
        !is_simulated(row)) /* else: counts that may differ from run to run */
        violation(v, FILE_RUNS, row->line, "status ok with status_detail '%s', expected none",
                  row_field(row, "status_detail"));
}

static const json_t *allocator_of(const struct verify *v, const char *name)
{
    size_t i;
    json_t *allocator;
    json_array_foreach(json_object_get(v->meta, "allocators"), i,
                       allocator) if (strcmp(meta_text(allocator, "name"), name) == 0) return allocator;
    return NULL;
}

/* What meta.json has of the object that must have served a row: an allocator's file, or its static program of the
 * kernel. */
static const char *expected_fact(struct arena *a, const json_t *allocator, const char *key,
                                 const char *kernel)
{
    const json_t *programs = json_object_get(allocator, "programs");
    if (json_is_object(programs) && strcmp(key, "path") == 0)
        return arena_printf(a, "%s/%s", meta_text(allocator, "path"), kernel);
    if (json_is_object(programs) && strcmp(key, "build_id") == 0)
        return meta_text(programs, kernel);
    return meta_text(allocator, key);
}

static void check_provenance(struct verify *v, const struct csv_row *row)
{
    static const struct {
        const char *column, *key;
    } facts[] = {
        {"allocator_path", "path"}, {"allocator_build_id", "build_id"}, {"allocator_version", "version"}};
    const json_t *meta = allocator_of(v, row_field(row, "allocator"));
    if (!meta) {
        violation(v, FILE_RUNS, row->line, "allocator '%s' is not in %s", row_field(row, "allocator"),
                  FILE_META);
        return;
    }
    struct arena own = {0};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const char *expected = expected_fact(&own, meta, facts[i].key, row_field(row, "kernel"));
        if (strcmp(row_field(row, facts[i].column), expected) != 0)
            violation(v, FILE_RUNS, row->line, "%s '%s', but %s has '%s' for %s", facts[i].column,
                      row_field(row, facts[i].column), FILE_META, expected, row_field(row, "allocator"));
    }
    arena_free(&own);
}

void verify_row(struct verify *v, size_t i)
{
    const struct csv_row *row = &v->runs.row[i];
    const struct row_sides *sides = &v->sides[i];
    enum status status = status_find(row_field(row, "status"));
    check_types(v, row);
    if (status == STATUSES) {
        violation(v, FILE_RUNS, row->line, "status '%s' is none of the eight", row_field(row, "status"));
        return;
    }
    if (status != STATUS_OK) {
        check_not_ok(v, row);
        for (int s = 0; s < SIDES; s++)
            if (sides->lines[s])
                violation(v, FILE_RUNS, row->line, "status %s, but %s holds %" PRIu64 " lines of the row",
                          row_field(row, "status"), side_files[s].file, sides->lines[s]);
        return;
    }
    check_work(v, row);
    check_cpu_time(v, row);
    check_memory(v, row, sides);
    check_latency(v, row, sides);
    check_counters(v, row);
    check_simulation(v, row);
    check_reasons(v, row, sides);
    check_provenance(v, row);
}
