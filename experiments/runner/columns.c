#include "columns.h"
#include "text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const struct column columns[] = {
    {"row_id", COLUMN_TEXT, ROLE_RUNNER, ""},
    {"run_id", COLUMN_TEXT, ROLE_RUNNER, ""},
    {"sweep", COLUMN_TEXT, ROLE_RUNNER, ""},
    {"kernel", COLUMN_TEXT, ROLE_PLANNED, ""},
    {"variant", COLUMN_TEXT, ROLE_PLANNED, ""},
    {"allocator", COLUMN_TEXT, ROLE_RUNNER, ""},
    {"allocator_version", COLUMN_TEXT, ROLE_MEASURED, ""},
    {"allocator_path", COLUMN_TEXT, ROLE_SERVED, ""},
    {"allocator_build_id", COLUMN_TEXT, ROLE_SERVED, ""},
    {"threads", COLUMN_COUNT, ROLE_PLANNED, "count"},
    {"cpus", COLUMN_COUNT, ROLE_PLANNED, "count"},
    {"oversubscribed", COLUMN_COUNT, ROLE_PLANNED, "0 or 1"},
    {"placement", COLUMN_TEXT, ROLE_PLANNED, ""},
    {"numa_policy", COLUMN_TEXT, ROLE_PLANNED, ""},
    {"size_min", COLUMN_COUNT, ROLE_PLANNED, "bytes"},
    {"size_max", COLUMN_COUNT, ROLE_PLANNED, "bytes"},
    {"size_dist", COLUMN_TEXT, ROLE_PLANNED, ""},
    {"ops_per_thread", COLUMN_COUNT, ROLE_PLANNED, "count"},
    {"seed", COLUMN_COUNT, ROLE_PLANNED, ""},
    {"rep", COLUMN_COUNT, ROLE_RUNNER, ""},
    {"status", COLUMN_TEXT, ROLE_RUNNER, ""},
    {"status_detail", COLUMN_TEXT, ROLE_RUNNER, ""},
    {"ops", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"wall_ns", COLUMN_COUNT, ROLE_MEASURED, "ns"},
    {"ops_per_s", COLUMN_RATE, ROLE_MEASURED, "1/s"},
    {"cpu_user_ns", COLUMN_COUNT, ROLE_MEASURED, "ns"},
    {"cpu_sys_ns", COLUMN_COUNT, ROLE_MEASURED, "ns"},
    {"lat_mean_ns", COLUMN_NS, ROLE_MEASURED, "ns"},
    {"lat_p50_ns", COLUMN_NS, ROLE_MEASURED, "ns"},
    {"lat_p90_ns", COLUMN_NS, ROLE_MEASURED, "ns"},
    {"lat_p99_ns", COLUMN_NS, ROLE_MEASURED, "ns"},
    {"lat_p999_ns", COLUMN_NS, ROLE_MEASURED, "ns"},
    {"lat_p9999_ns", COLUMN_NS, ROLE_MEASURED, "ns"},
    {"lat_max_ns", COLUMN_NS, ROLE_MEASURED, "ns"},
    {"lat_samples", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"clock_overhead_ns", COLUMN_NS, ROLE_MEASURED, "ns"},
    {"counters", COLUMN_TEXT, ROLE_MEASURED, ""},
    {"counters_reason", COLUMN_TEXT, ROLE_MEASURED, ""},
    {"cycles", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"instructions", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"l1d_access", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"l1d_miss", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"l3_access", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"l3_miss", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"l3_miss_ratio", COLUMN_RATIO, ROLE_MEASURED, "0..1"},
    {"hitm_local", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"hitm_remote", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"dtlb_miss", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"minor_faults", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"major_faults", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"ctx_voluntary", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"ctx_involuntary", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"migrations", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"rss_peak_bytes", COLUMN_COUNT, ROLE_MEASURED, "bytes"},
    {"rss_end_bytes", COLUMN_COUNT, ROLE_MEASURED, "bytes"},
    {"live_peak_bytes", COLUMN_COUNT, ROLE_MEASURED, "bytes"},
    {"rss_overhead_bytes", COLUMN_SIGNED, ROLE_MEASURED, "bytes"},
    {"steal_ratio", COLUMN_RATIO, ROLE_MEASURED, "0..1"},
    {"started_at", COLUMN_TEXT, ROLE_RUNNER, "UTC"},
    {"machine_id", COLUMN_TEXT, ROLE_PLANNED, ""},
    {"live_blocks", COLUMN_COUNT, ROLE_PLANNED, "count"},
    {"lifetime_dist", COLUMN_TEXT, ROLE_PLANNED, ""},
    {"touch", COLUMN_TEXT, ROLE_PLANNED, ""},
    {"heap_state", COLUMN_TEXT, ROLE_PLANNED, ""},
    {"env_bytes", COLUMN_COUNT, ROLE_MEASURED, "bytes"},
    {"rss_baseline_bytes", COLUMN_COUNT, ROLE_MEASURED, "bytes"},
    {"usable_peak_bytes", COLUMN_COUNT, ROLE_MEASURED, "bytes"},
    {"blocked_ns", COLUMN_COUNT, ROLE_MEASURED, "ns"},
    {"run_delay_ns", COLUMN_COUNT, ROLE_MEASURED, "ns"},
    {"counter_enabled_ns", COLUMN_COUNT, ROLE_MEASURED, "ns"},
    {"counter_running_ns", COLUMN_COUNT, ROLE_MEASURED, "ns"},
    {"load_1min", COLUMN_LOAD, ROLE_MEASURED, ""},
    {"sim_mode", COLUMN_TEXT, ROLE_RUNNER, ""},
    {"sim_quantum", COLUMN_COUNT, ROLE_RUNNER, "count"},
    {"sim_retries", COLUMN_COUNT, ROLE_RUNNER, "count"},
    {"sim_true_sharing", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"sim_false_sharing", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"sim_invalidations", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"sim_cross_node", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"sim_dram_local", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"sim_dram_remote", COLUMN_COUNT, ROLE_MEASURED, "count"},
    {"sim_cycles_per_op", COLUMN_RATE, ROLE_MEASURED, "1/op"},
};
const size_t column_count = sizeof columns / sizeof *columns;
_Static_assert(sizeof columns / sizeof *columns <= COLUMNS_MAX, "rows are arrays of COLUMNS_MAX");

int column_find(const char *name)
{
    for (size_t i = 0; i < column_count; i++)
        if (strcmp(columns[i].name, name) == 0)
            return (int)i;
    return -1;
}

bool text_is_number(const char *text, bool may_be_negative, bool decimals)
{
    text += may_be_negative && *text == '-';
    if (!isdigit((unsigned char)*text))
        return false;
    text += strspn(text, "0123456789");
    if (decimals && *text == '.' && isdigit((unsigned char)text[1]))
        text += 1 + strspn(text + 1, "0123456789");
    return !*text;
}

bool column_fits(const struct column *c, const char *text)
{
    double number = strtod(text, NULL);
    uint64_t whole;
    switch (c->type) {
    case COLUMN_TEXT:
        return true;
    case COLUMN_COUNT:
        return text_uint(text, 0, &whole);
    case COLUMN_SIGNED:
        return text_uint(text + (*text == '-'), 0, &whole);
    case COLUMN_NS:
    case COLUMN_RATE:
    case COLUMN_LOAD:
        return text_is_number(text, false, true);
    case COLUMN_RATIO:
        return text_is_number(text, false, true) && number >= 0 && number <= 1;
    }
    return false;
}

const char *const counted_columns[COUNTED_COLUMNS] = {
    "cycles",     "instructions",       "l1d_access",        "l1d_miss",    "l3_access",
    "l3_miss",    "l3_miss_ratio",      "hitm_local",        "hitm_remote", "dtlb_miss",
    "migrations", "counter_enabled_ns", "counter_running_ns"};

bool column_is_counted(const char *name)
{
    for (size_t i = 0; i < COUNTED_COLUMNS; i++)
        if (strcmp(counted_columns[i], name) == 0)
            return true;
    return false;
}

const struct side_file side_files[SIDES] = {
    [SIDE_HIST] = {"hist.csv", "row_id,call,lower_ns,upper_ns,count\n", 5},
    [SIDE_TIMELINE] = {"timeline.csv", "row_id,t_ns,rss_bytes,live_bytes,usable_bytes\n", 5},
    [SIDE_METRICS] = {"metrics.csv", "row_id,name,unit,value,reason\n", 5},
    [SIDE_MATRIX] = {"matrix.csv", "row_id,from_cpu,to_cpu,state,ns,distance\n", 6},
};

const char *const status_names[STATUSES] = {
    "ok", "crash", "timeout", "oom", "wrong_allocator", "verify_failed", "skipped", "error"};

enum status status_find(const char *name)
{
    enum status s = 0;
    while (s < STATUSES && strcmp(status_names[s], name) != 0)
        s++;
    return s;
}
