#include "machine.h"
#include "text.h"

#include <ctype.h>
#include <gnu/libc-version.h>
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

bool machine_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool good = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (good)
        text_one_line(line);
    return good && *line;
}

bool machine_value(const char *path, const char *key, char *value, size_t size)
{
    FILE *file = fopen(path, "re");
    char line[8192];
    size_t length = strlen(key);
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) != 0 || !strchr(": \t", line[length]))
            continue;
        text_one_line(line);
        snprintf(value, size, "%s", line + length + strspn(line + length, ": \t"));
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

unsigned machine_cpus(void)
{
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        if (!set)
            break;
        int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return (unsigned)count;
    }
    return 1;
}

/* ---- facts ---- */

static void put(struct machine *m, const char *name, json_t *value, const char *why)
{
    json_object_set_new(m->facts, name, value ? value : json_null());
    if (!value)
        json_object_set_new(m->unknown, name, json_string(why));
}

static void put_line(struct machine *m, const char *name, const char *path, const char *why)
{
    char line[1024];
    put(m, name, machine_line(path, line, sizeof line) ? json_string(line) : NULL, why);
}

/* A line of numbers as a number. */
static void put_count(struct machine *m, const char *name, const char *path, const char *why)
{
    char line[256];
    bool known = machine_line(path, line, sizeof line) && (isdigit((unsigned char)*line) || *line == '-');
    put(m, name, known ? json_integer(strtoll(line, NULL, 10)) : NULL, why);
}

/* "key: N kB" of /proc/meminfo in bytes. */
static void put_kilobytes(struct machine *m, const char *name, const char *key)
{
    char value[256];
    bool known = machine_value("/proc/meminfo", key, value, sizeof value);
    put(m, name, known ? json_integer(strtoll(value, NULL, 10) * 1024) : NULL, "/proc/meminfo does not say");
}

static void put_cpuinfo(struct machine *m, const char *name, const char *key)
{
    char value[8192];
    bool known = machine_value("/proc/cpuinfo", key, value, sizeof value);
    put(m, name, known ? json_string(value) : NULL, "/proc/cpuinfo does not say on this architecture");
}

static void put_flag(struct machine *m, const char *name, const char *flag)
{
    char flags[8192];
    if (!machine_value("/proc/cpuinfo", "flags", flags, sizeof flags)) {
        put(m, name, NULL, "/proc/cpuinfo has no flags on this architecture");
        return;
    }
    bool has = false;
    char *rest = flags, *one;
    while ((one = strsep(&rest, " ")))
        has |= strcmp(one, flag) == 0;
    put(m, name, json_boolean(has), NULL);
}

/* The word in brackets: "always [madvise] never". */
static void put_choice(struct machine *m, const char *name, const char *path, const char *why)
{
    char line[256];
    char *open = machine_line(path, line, sizeof line) ? strchr(line, '[') : NULL;
    char *close = open ? strchr(open, ']') : NULL;
    put(m, name, close ? json_stringn(open + 1, (size_t)(close - open) - 1) : NULL, why);
}

static void put_turbo(struct machine *m)
{
    char line[64];
    if (machine_line("/sys/devices/system/cpu/cpufreq/boost", line, sizeof line))
        put(m, "turbo", json_string(*line == '1' ? "on" : "off"), NULL);
    else if (machine_line("/sys/devices/system/cpu/intel_pstate/no_turbo", line, sizeof line))
        put(m, "turbo", json_string(*line == '0' ? "on" : "off"), NULL);
    else
        put(m, "turbo", NULL, "no cpufreq here: the clock rate is chosen by the host or the firmware");
}

static void put_cache(struct machine *m, hwloc_topology_t t, const char *name, hwloc_obj_type_t type)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(t, type, 0);
    put(m, name, cache && cache->attr->cache.size ? json_integer((json_int_t)cache->attr->cache.size) : NULL,
        "hwloc sees no such cache");
}

static void put_topology(struct machine *m)
{
    static const char why[] = "hwloc cannot read the topology";
    hwloc_topology_t t;
    if (hwloc_topology_init(&t) != 0 || hwloc_topology_load(t) != 0) {
        put(m, "numa_nodes", NULL, why);
        return;
    }
    put(m, "packages", json_integer(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE)), NULL);
    put(m, "cores", json_integer(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE)), NULL);
    put(m, "hardware_threads", json_integer(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU)), NULL);
    put_cache(m, t, "l1d_bytes", HWLOC_OBJ_L1CACHE);
    put_cache(m, t, "l2_bytes", HWLOC_OBJ_L2CACHE);
    put_cache(m, t, "l3_bytes", HWLOC_OBJ_L3CACHE);
    json_t *nodes = json_array();
    for (hwloc_obj_t node = NULL; (node = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, node));) {
        char cpus[1024];
        hwloc_bitmap_list_snprintf(cpus, sizeof cpus, node->cpuset);
        json_array_append_new(nodes,
                              json_pack("{s:i, s:s, s:I}", "node", (int)node->os_index, "cpus", cpus,
                                        "memory_bytes", (json_int_t)node->attr->numanode.local_memory));
    }
    put(m, "numa_nodes", nodes, NULL);
    hwloc_topology_destroy(t);
}

static void put_limits(struct machine *m)
{
    char text[256];
    put(m, "cgroup_memory_max", cgroup_memory_limit(text, sizeof text) ? json_string(text) : NULL,
        "no memory controller is visible");
    put(m, "cgroup_cpu_max", cgroup_cpu_limit(text, sizeof text) ? json_string(text) : NULL,
        "no cpu controller is visible");
}

/* Share of CPU time stolen by the hypervisor since the machine started. */
static void put_steal(struct machine *m)
{
    char line[512];
    double total = 0, stolen = 0;
    if (!machine_value("/proc/stat", "cpu", line, sizeof line)) {
        put(m, "steal_since_boot", NULL, "/proc/stat cannot be read");
        return;
    }
    char *rest = line;
    for (int i = 0; i < 8; i++) { /* user nice system idle iowait irq softirq steal */
        double ticks = strtod(rest, &rest);
        total += ticks;
        if (i == 7)
            stolen = ticks;
    }
    put(m, "steal_since_boot", json_real(total > 0 ? stolen / total : 0), NULL);
}

static void put_software(struct machine *m)
{
    struct utsname name;
    char line[512];
    bool known = uname(&name) == 0;
    put(m, "kernel", known ? json_string(name.release) : NULL, "uname failed");
    put(m, "kernel_build", known ? json_string(name.version) : NULL, "uname failed");
    put(m, "architecture", known ? json_string(name.machine) : NULL, "uname failed");
    put(m, "host", known ? json_string(name.nodename) : NULL, "uname failed");
    put(m, "libc", json_pack("s+", "glibc ", gnu_get_libc_version()), NULL);
    FILE *file = fopen("/etc/os-release", "re");
    json_t *os = NULL;
    while (file && !os && fgets(line, sizeof line, file))
        if (strncmp(line, "PRETTY_NAME=", 12) == 0) {
            text_one_line(line);
            char *text = line + 12 + (line[12] == '"');
            text[strcspn(text, "\"")] = '\0';
            os = json_string(text);
        }
    if (file)
        fclose(file);
    put(m, "os", os, "no /etc/os-release");
}

void machine_read(struct machine *m)
{
    *m = (struct machine){json_object(), json_object()};
    static const char no_cpufreq[] = "no cpufreq here: the clock rate is chosen by the host or the firmware";
    put_software(m);
    put_cpuinfo(m, "cpu_vendor", "vendor_id");
    put_cpuinfo(m, "cpu_model", "model name");
    put_cpuinfo(m, "cpu_family", "cpu family");
    put_cpuinfo(m, "microcode", "microcode");
    put_flag(m, "hypervisor", "hypervisor");
    put_flag(m, "tsc_constant", "constant_tsc");
    put_flag(m, "tsc_nonstop", "nonstop_tsc");
    put_line(m, "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource",
             "sysfs does not say");
    put(m, "cpus_online", json_integer(sysconf(_SC_NPROCESSORS_ONLN)), NULL);
    put(m, "cpus_allowed", json_integer(machine_cpus()), NULL);
    put_topology(m);
    put_line(m, "smt", "/sys/devices/system/cpu/smt/control", "sysfs does not say");
    put_count(m, "smt_active", "/sys/devices/system/cpu/smt/active", "sysfs does not say");
    put_line(m, "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", no_cpufreq);
    put_line(m, "cpufreq_driver", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", no_cpufreq);
    put_turbo(m);
    put(m, "page_bytes", json_integer(sysconf(_SC_PAGESIZE)), NULL);
    put_kilobytes(m, "memory_bytes", "MemTotal");
    put_kilobytes(m, "memory_available_bytes", "MemAvailable");
    put_kilobytes(m, "swap_bytes", "SwapTotal");
    put_choice(m, "thp", "/sys/kernel/mm/transparent_hugepage/enabled",
               "the kernel has no transparent huge pages");
    put_choice(m, "thp_defrag", "/sys/kernel/mm/transparent_hugepage/defrag",
               "the kernel has no transparent huge pages");
    put_count(m, "numa_balancing", "/proc/sys/kernel/numa_balancing",
              "the kernel was built without NUMA balancing");
    put_count(m, "overcommit_memory", "/proc/sys/vm/overcommit_memory", "procfs does not say");
    put_count(m, "max_map_count", "/proc/sys/vm/max_map_count", "procfs does not say");
    put_count(m, "aslr", "/proc/sys/kernel/randomize_va_space", "procfs does not say");
    put_count(m, "perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid",
              "the kernel has no perf events");
    put_limits(m);
    put_line(m, "load", "/proc/loadavg", "procfs does not say");
    put_steal(m);
}

void machine_free(struct machine *m)
{
    json_decref(m->facts);
    json_decref(m->unknown);
}
