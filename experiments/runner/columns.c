#include "columns.h"

#include <string.h>

const struct column columns[] = {
    {"row_id", COLUMN_TEXT, ROLE_RUNNER},
    {"run_id", COLUMN_TEXT, ROLE_RUNNER},
    {"sweep", COLUMN_TEXT, ROLE_RUNNER},
    {"kernel", COLUMN_TEXT, ROLE_PLANNED},
    {"variant", COLUMN_TEXT, ROLE_PLANNED},
    {"allocator", COLUMN_TEXT, ROLE_RUNNER},
    {"allocator_version", COLUMN_TEXT, ROLE_MEASURED},
    {"allocator_path", COLUMN_TEXT, ROLE_SERVED},
    {"allocator_build_id", COLUMN_TEXT, ROLE_SERVED},
    {"threads", COLUMN_COUNT, ROLE_PLANNED},
    {"cpus", COLUMN_COUNT, ROLE_PLANNED},
    {"oversubscribed", COLUMN_COUNT, ROLE_PLANNED},
    {"placement", COLUMN_TEXT, ROLE_PLANNED},
    {"numa_policy", COLUMN_TEXT, ROLE_PLANNED},
    {"size_min", COLUMN_COUNT, ROLE_PLANNED},
    {"size_max", COLUMN_COUNT, ROLE_PLANNED},
    {"size_dist", COLUMN_TEXT, ROLE_PLANNED},
    {"ops_per_thread", COLUMN_COUNT, ROLE_PLANNED},
    {"seed", COLUMN_COUNT, ROLE_PLANNED},
    {"rep", COLUMN_COUNT, ROLE_RUNNER},
    {"status", COLUMN_TEXT, ROLE_RUNNER},
    {"status_detail", COLUMN_TEXT, ROLE_RUNNER},
    {"ops", COLUMN_COUNT, ROLE_MEASURED},
    {"wall_ns", COLUMN_COUNT, ROLE_MEASURED},
    {"ops_per_s", COLUMN_RATE, ROLE_MEASURED},
    {"cpu_user_ns", COLUMN_COUNT, ROLE_MEASURED},
    {"cpu_sys_ns", COLUMN_COUNT, ROLE_MEASURED},
    {"lat_mean_ns", COLUMN_NS, ROLE_MEASURED},
    {"lat_p50_ns", COLUMN_NS, ROLE_MEASURED},
    {"lat_p90_ns", COLUMN_NS, ROLE_MEASURED},
    {"lat_p99_ns", COLUMN_NS, ROLE_MEASURED},
    {"lat_p999_ns", COLUMN_NS, ROLE_MEASURED},
    {"lat_p9999_ns", COLUMN_NS, ROLE_MEASURED},
    {"lat_max_ns", COLUMN_NS, ROLE_MEASURED},
    {"lat_samples", COLUMN_COUNT, ROLE_MEASURED},
    {"clock_overhead_ns", COLUMN_NS, ROLE_MEASURED},
    {"counters", COLUMN_TEXT, ROLE_MEASURED},
    {"counters_reason", COLUMN_TEXT, ROLE_MEASURED},
    {"cycles", COLUMN_COUNT, ROLE_MEASURED},
    {"instructions", COLUMN_COUNT, ROLE_MEASURED},
    {"l1d_access", COLUMN_COUNT, ROLE_MEASURED},
    {"l1d_miss", COLUMN_COUNT, ROLE_MEASURED},
    {"l3_access", COLUMN_COUNT, ROLE_MEASURED},
    {"l3_miss", COLUMN_COUNT, ROLE_MEASURED},
    {"l3_miss_ratio", COLUMN_RATIO, ROLE_MEASURED},
    {"hitm_local", COLUMN_COUNT, ROLE_MEASURED},
    {"hitm_remote", COLUMN_COUNT, ROLE_MEASURED},
    {"dtlb_miss", COLUMN_COUNT, ROLE_MEASURED},
    {"minor_faults", COLUMN_COUNT, ROLE_MEASURED},
    {"major_faults", COLUMN_COUNT, ROLE_MEASURED},
    {"ctx_voluntary", COLUMN_COUNT, ROLE_MEASURED},
    {"ctx_involuntary", COLUMN_COUNT, ROLE_MEASURED},
    {"migrations", COLUMN_COUNT, ROLE_MEASURED},
    {"rss_peak_bytes", COLUMN_COUNT, ROLE_MEASURED},
    {"rss_end_bytes", COLUMN_COUNT, ROLE_MEASURED},
    {"live_peak_bytes", COLUMN_COUNT, ROLE_MEASURED},
    {"rss_overhead_bytes", COLUMN_SIGNED, ROLE_MEASURED},
    {"steal_ratio", COLUMN_RATIO, ROLE_MEASURED},
    {"started_at", COLUMN_TEXT, ROLE_RUNNER},
    {"machine_id", COLUMN_TEXT, ROLE_PLANNED},
    {"live_blocks", COLUMN_COUNT, ROLE_PLANNED},
    {"lifetime_dist", COLUMN_TEXT, ROLE_PLANNED},
    {"touch", COLUMN_TEXT, ROLE_PLANNED},
    {"heap_state", COLUMN_TEXT, ROLE_PLANNED},
    {"env_bytes", COLUMN_COUNT, ROLE_MEASURED},
    {"rss_baseline_bytes", COLUMN_COUNT, ROLE_MEASURED},
    {"usable_peak_bytes", COLUMN_COUNT, ROLE_MEASURED},
    {"blocked_ns", COLUMN_COUNT, ROLE_MEASURED},
    {"run_delay_ns", COLUMN_COUNT, ROLE_MEASURED},
    {"counter_enabled_ns", COLUMN_COUNT, ROLE_MEASURED},
    {"counter_running_ns", COLUMN_COUNT, ROLE_MEASURED},
    {"load_1min", COLUMN_LOAD, ROLE_MEASURED},
    {"sim_mode", COLUMN_TEXT, ROLE_RUNNER},
    {"sim_quantum", COLUMN_COUNT, ROLE_RUNNER},
    {"sim_retries", COLUMN_COUNT, ROLE_RUNNER},
    {"sim_true_sharing", COLUMN_COUNT, ROLE_MEASURED},
    {"sim_false_sharing", COLUMN_COUNT, ROLE_MEASURED},
    {"sim_invalidations", COLUMN_COUNT, ROLE_MEASURED},
    {"sim_cross_node", COLUMN_COUNT, ROLE_MEASURED},
    {"sim_dram_local", COLUMN_COUNT, ROLE_MEASURED},
    {"sim_dram_remote", COLUMN_COUNT, ROLE_MEASURED},
    {"sim_cycles_per_op", COLUMN_RATE, ROLE_MEASURED},
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
