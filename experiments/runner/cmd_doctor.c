/*
 * ak doctor: what this machine can and cannot measure, why, and what would help.
 *
 * A finding is one line of judgement with its reason and its fix. Nothing is changed: what needs privilege
 * is only told.
 */
#include "child.h"
#include "command.h"
#include "machine.h"
#include "meta.h"
#include "simulator.h"

#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

enum verdict { CAN, LIMITED, CANNOT, VERDICTS };
static const char *const verdict_words[VERDICTS] = {"ok", "limited", "missing"};

#define GIB           (1024.0 * 1024 * 1024)
#define STEAL_NOTABLE 0.01
#define LOAD_NOTABLE  0.3 /* per allowed CPU */
#define FILES_WANTED  1024
#define MAPS_WANTED   65530

struct doctor {
    json_t *findings; /* array of {area, verdict, finding, why, fix} */
    struct machine machine;
    struct suite suite;
};

static void add(struct doctor *d, const char *area, enum verdict verdict, const char *why, const char *fix,
                const char *format, ...) __attribute__((format(printf, 6, 7)));
static void add(struct doctor *d, const char *area, enum verdict verdict, const char *why, const char *fix,
                const char *format, ...)
{
    char finding[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(finding, sizeof finding, format, args);
    va_end(args);
    json_t *f = json_object();
    json_object_set_new(f, "area", json_string(area));
    json_object_set_new(f, "verdict", json_string(verdict_words[verdict]));
    json_object_set_new(f, "finding", json_string(finding));
    json_object_set_new(f, "why", *why ? json_string(why) : json_null());
    json_object_set_new(f, "fix", *fix ? json_string(fix) : json_null());
    json_array_append_new(d->findings, f);
}

static const char *text(const struct doctor *d, const char *fact)
{
    const char *value = json_string_value(json_object_get(d->machine.facts, fact));
    return value ? value : "";
}

static const char *unknown(const struct doctor *d, const char *fact)
{
    const char *why = json_string_value(json_object_get(d->machine.unknown, fact));
    return why ? why : "";
}

/* The number of a fact, or -1 where it is unknown. */
static double count(const struct doctor *d, const char *fact)
{
    const json_t *value = json_object_get(d->machine.facts, fact);
    return json_is_number(value) ? json_number_value(value) : -1;
}

static bool is_true(const struct doctor *d, const char *fact)
{
    return json_is_true(json_object_get(d->machine.facts, fact));
}

/* ---- the processor ---- */

static void look_at_cpus(struct doctor *d)
{
    double allowed = count(d, "cpus_allowed"), online = count(d, "cpus_online");
    add(d, "cpus", allowed < online ? LIMITED : CAN,
        allowed < online ? "the affinity mask or the cpuset leaves some out" : "",
        allowed < online ? "start ak without taskset, or widen the cpuset" : "",
        "%s: %.0f of %.0f CPUs may be used, %.0f cores", text(d, "cpu_model"), allowed, online,
        count(d, "cores"));
    add(d, "threads", allowed < 8 ? LIMITED : CAN,
        "rows with more threads than CPUs measure descheduling; they are marked oversubscribed and enter no "
        "fit",
        allowed < 8 ? "use a machine with more CPUs for contention beyond this" : "",
        "contention can be measured up to %.0f threads", allowed);
    if (allowed < 2)
        add(d, "c2c", CANNOT, "one CPU has no other to share a line with",
            "use a machine with two CPUs or more",
            "false sharing and transfers between cores cannot be measured");
    bool limited = *text(d, "cgroup_cpu_max") && strncmp(text(d, "cgroup_cpu_max"), "max", 3) != 0;
    if (limited)
        add(d, "cpu quota", LIMITED, "a throttled thread looks like a blocked one",
            "remove the quota (cpu.max) of the cgroup", "the cgroup limits CPU time: %s",
            text(d, "cgroup_cpu_max"));
    if (is_true(d, "hypervisor"))
        add(d, "virtual machine", LIMITED,
            "the host schedules the CPUs and may hide their counters and their topology",
            "use bare metal for absolute numbers", "this is a virtual machine");
    double smt = count(d, "smt_active");
    add(d, "smt", smt > 0 ? LIMITED : CAN,
        smt > 0 ? "two threads of one core share its caches and pipelines" : "",
        smt > 0 ? "place by --placement scatter, or as root: echo off > /sys/devices/system/cpu/smt/control"
                : "",
        smt < 0   ? "hyper-threading: %s"
        : smt > 0 ? "hyper-threading is on%s"
                  : "hyper-threading is off or hidden%s",
        smt < 0 ? unknown(d, "smt_active") : "");
}

static void look_at_clock(struct doctor *d)
{
    bool steady = is_true(d, "tsc_constant") && is_true(d, "tsc_nonstop");
    add(d, "clock", steady ? CAN : LIMITED,
        steady ? "" : "the processor does not promise a TSC that runs evenly in all states",
        steady ? "" : "latencies then come from clock_gettime, which costs more per sample",
        steady ? "invariant TSC, clocksource %s: latencies of single calls can be sampled"
               : "no invariant TSC, clocksource %s",
        text(d, "clocksource"));
    const char *governor = text(d, "governor"), *turbo = text(d, "turbo");
    if (!*governor)
        add(d, "frequency", LIMITED, unknown(d, "governor"),
            "interleaved repetitions keep allocators comparable all the same",
            "the clock rate can be neither read nor fixed");
    else
        add(d, "frequency", strcmp(governor, "performance") == 0 ? CAN : LIMITED,
            strcmp(governor, "performance") == 0 ? "" : "the clock rate follows the load",
            strcmp(governor, "performance") == 0 ? "" : "as root: cpupower frequency-set -g performance",
            "governor %s", governor);
    if (strcmp(turbo, "on") == 0)
        add(d, "turbo", LIMITED,
            "the clock rate depends on how many cores are busy, and so does every scaling curve",
            "as root: echo 0 > /sys/devices/system/cpu/cpufreq/boost, or 1 > .../intel_pstate/no_turbo",
            "turbo is on");
}

static void look_at_nodes(struct doctor *d)
{
    size_t nodes = json_array_size(json_object_get(d->machine.facts, "numa_nodes"));
    if (!nodes)
        add(d, "numa", CANNOT, unknown(d, "numa_nodes"), "", "NUMA nodes are not known");
    else
        add(d, "numa", nodes > 1 ? CAN : CANNOT,
            nodes > 1 ? "" : "alpha across nodes and remote memory are not identifiable with one node",
            nodes > 1 ? "" : "use a machine with two sockets", "%zu NUMA node%s", nodes,
            nodes == 1 ? "" : "s");
    if (count(d, "numa_balancing") > 0 && nodes > 1)
        add(d, "numa balancing", LIMITED, "the kernel moves pages while they are measured",
            "as root: sysctl kernel.numa_balancing=0", "automatic NUMA balancing is on");
}

/* ---- counters ---- */

static void take_backend(const char *name, const char *what, bool can, const char *why, void *user)
{
    struct doctor *d = user;
    char area[64];
    (void)what;
    if (strcmp(name, "none") == 0)
        return;
    snprintf(area, sizeof area, "counters: %s", name);
    add(d, area, !can ? CANNOT : *why ? LIMITED : CAN, why, "",
        !can ? "%s cannot count" : *why ? "%s can count some events" : "%s can count", name);
}

/* True if the kernel shows a processor's PMU: an event source of type PERF_TYPE_RAW, or one for each kind
 * of core. */
static bool has_pmu(void)
{
    static const char *const names[] = {"cpu", "cpu_core", "cpu_atom"};
    char path[128], line[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/type", names[i]);
        if (machine_line(path, line, sizeof line))
            return true;
    }
    DIR *devices = opendir("/sys/bus/event_source/devices");
    bool found = false;
    for (struct dirent *entry; devices && !found && (entry = readdir(devices));)
        found = strncmp(entry->d_name, "armv8", 5) == 0;
    if (devices)
        closedir(devices);
    return found;
}

static void look_at_counters(struct doctor *d)
{
    bool pmu = has_pmu();
    add(d, "hardware events", pmu ? CAN : CANNOT,
        pmu ? ""
            : "the kernel shows no PMU, as in most virtual machines: cycles, L1, L3 and HITM columns stay "
              "empty",
        pmu ? ""
            : "give the machine a virtual PMU, or use bare metal",
        pmu ? "the processor's PMU is there" : "no hardware counters");
    simulator_survey(&d->suite.arena, &d->suite.paths, take_backend, d);
    double paranoid = count(d, "perf_event_paranoid");
    if (paranoid < -1.5)
        add(d, "perf events", CANNOT, unknown(d, "perf_event_paranoid"),
            "use a kernel with CONFIG_PERF_EVENTS", "perf_event_open is not there");
    else
        add(d, "perf events", paranoid > 2 ? CANNOT : CAN,
            paranoid > 2 ? "unprivileged users may count nothing" : "",
            paranoid > 2 ? "as root: sysctl kernel.perf_event_paranoid=2" : "", "perf_event_paranoid is %.0f",
            paranoid);
}

/* ---- memory ---- */

static void look_at_memory(struct doctor *d)
{
    double total = count(d, "memory_bytes"), available = count(d, "memory_available_bytes"),
           swap = count(d, "swap_bytes");
    const char *limit = text(d, "cgroup_memory_max");
    bool limited = *limit && strcmp(limit, "max") != 0;
    add(d, "memory", available < 2 * GIB ? LIMITED : CAN,
        available < 2 * GIB ? "large live sets may end in swap or an out-of-memory kill" : "",
        available < 2 * GIB ? "free memory, or lower live_blocks" : "", "%.1f GiB, %.1f GiB available",
        total / GIB, available / GIB);
    if (limited)
        add(d, "memory limit", LIMITED, "rows beyond it end as oom", "raise memory.max of the cgroup",
            "the cgroup limits memory to %.1f GiB", strtod(limit, NULL) / GIB);
    add(d, "swap", swap > 0 ? LIMITED : CAN, swap > 0 ? "swapped pages leave the resident size" : "",
        swap > 0 ? "as root: swapoff -a, for memory results" : "", "%.1f GiB of swap",
        swap > 0 ? swap / GIB : 0);
    const char *thp = text(d, "thp");
    bool always = strcmp(thp, "always") == 0;
    add(d, "huge pages", always ? LIMITED : CAN,
        always ? "transparent huge pages inflate resident sizes and undo purging" : "",
        always ? "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled" : "",
        "transparent huge pages: %s", *thp ? thp : unknown(d, "thp"));
    bool smaps = access("/proc/self/smaps_rollup", R_OK) == 0,
         sched = access("/proc/self/schedstat", R_OK) == 0;
    add(d, "resident size", smaps ? CAN : CANNOT,
        smaps ? "" : "/proc/self/smaps_rollup cannot be read (Linux 4.14 and later)",
        smaps ? "" : "use a newer kernel",
        smaps ? "smaps_rollup is there" : "resident sizes cannot be measured");
    add(d, "blocked time", sched ? CAN : CANNOT, sched ? "" : "/proc/self/schedstat cannot be read",
        sched ? "" : "use a kernel with CONFIG_SCHED_INFO",
        sched ? "schedstat is there: waiting and blocked time can be told apart"
              : "waiting and blocked time cannot be told apart");
}

static void look_at_noise(struct doctor *d)
{
    double steal = count(d, "steal_since_boot"), load = strtod(text(d, "load"), NULL),
           cpus = count(d, "cpus_allowed");
    if (steal >= 0)
        add(d, "steal", steal > STEAL_NOTABLE ? LIMITED : CAN,
            steal > STEAL_NOTABLE ? "other guests take CPU time" : "",
            steal > STEAL_NOTABLE ? "look at steal_ratio of each row; use a dedicated host" : "",
            "%.2f %% of CPU time was stolen since the start", 100 * steal);
    bool busy = load > LOAD_NOTABLE * cpus;
    add(d, "load", busy ? LIMITED : CAN, busy ? "something else runs on these CPUs" : "",
        busy ? "end other programs before a run; load_1min stands in each row" : "",
        "load average %.2f on %.0f CPUs", load, cpus);
}

static void look_at_limits(struct doctor *d)
{
    struct rlimit files, stack, space, processes;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES_WANTED)
        add(d, "limits", LIMITED, "counters need a descriptor for each thread and event", "ulimit -n 4096",
            "%llu open files at most", (unsigned long long)files.rlim_cur);
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        add(d, "limits", LIMITED, "allocators that reserve large ranges fail under it", "ulimit -v unlimited",
            "address space is limited to %.1f GiB", (double)space.rlim_cur / GIB);
    if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur == RLIM_INFINITY)
        add(d, "limits", LIMITED, "mappings are then laid out bottom up, unlike in production",
            "ulimit -s 8192", "the stack is unlimited");
    if (getrlimit(RLIMIT_NPROC, &processes) == 0 && processes.rlim_cur != RLIM_INFINITY &&
        processes.rlim_cur < 256)
        add(d, "limits", LIMITED, "64 threads and more may not start", "ulimit -u 4096",
            "%llu processes at most", (unsigned long long)processes.rlim_cur);
    if (count(d, "max_map_count") >= 0 && count(d, "max_map_count") < MAPS_WANTED)
        add(d, "limits", LIMITED, "allocators that map much fail early",
            "as root: sysctl vm.max_map_count=65530", "%.0f mappings at most", count(d, "max_map_count"));
}

/* ---- allocators and tools ---- */

static bool look_at_allocators(struct doctor *d, struct fault *f)
{
    struct suite *s = &d->suite;
    if (!suite_kernels(s, f))
        return false;
    for (size_t i = 0; i < s->kernels.count; i++)
        if (s->kernels.kernel[i].trouble)
            add(d, "kernels", CANNOT, s->kernels.kernel[i].trouble, "build again (make)", "%s cannot be used",
                s->kernels.kernel[i].name);
    const char *probe = suite_probe_kernel(s);
    for (size_t i = 0; i < s->registry.count; i++) {
        struct allocator *al = &s->registry.allocator[i];
        if (!allocator_resolve(&s->arena, &s->paths, al, f) ||
            (al->found && probe && !allocator_probe(&s->arena, &s->paths, probe, al, f)))
            return false;
        if (!al->found && al->present)
            add(d, "allocators", al->required ? CANNOT : LIMITED, al->reason,
                "give another build of it by AK_LIBRARY_NAME, or use a newer system", "%s cannot be loaded",
                al->name);
        else if (!al->found)
            add(d, "allocators", al->required ? CANNOT : LIMITED, al->reason,
                *al->get                   ? al->get
                : strchr(al->library, '/') ? "give its path by AK_LIBRARY_NAME"
                                           : "install the package that holds the library, or make it",
                "%s is not installed", al->name);
        else if (*al->trouble)
            add(d, "allocators", CANNOT, al->trouble, "", "%s does not serve malloc", al->name);
        else if (*al->version_call && !*al->version)
            add(d, "allocators", LIMITED, arena_printf(&s->arena, "version = %s found no answer in %s", al->version_call, al->real),
                "name a symbol that the library has, or use version = file", "%s does not say its version", al->name);
        else
            add(d, "allocators", CAN, "", "", "%s %s: %s", al->name, al->version, al->real);
    }
    return true;
}

static void look_at_tools(struct doctor *d)
{
    static const struct {
        const char *program, *what, *package;
    } tools[] = {
        {"Rscript", "the analysis", "r-base-core"},
        {"gnuplot", "the figures", "gnuplot-nox"},
        {"pdflatex", "the paper", "texlive-latex-recommended"},
        {"latexmk", "the paper", "latexmk"},
        {"qemu-x86_64", "the simulated machine", "qemu-user"},
        {"valgrind", "the long tests", "valgrind"},
        {"gcc", "building", "gcc"},
    };
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        const char *found = program_find(&d->suite.arena, tools[i].program);
        const char *fix = arena_printf(&d->suite.arena, "apt install %s", tools[i].package);
        if (found)
            add(d, "tools", CAN, "", "", "%s (%s): %s", tools[i].program, tools[i].what, found);
        else
            add(d, "tools", LIMITED, "not on PATH", fix, "%s is missing: %s", tools[i].program,
                tools[i].what);
    }
}

/* Packages of R that the analysis loads. */
static void look_at_r(struct doctor *d)
{
    static const char *const folders[] = {"/usr/local/lib/R/site-library", "/usr/lib/R/site-library",
                                          "/usr/lib/R/library"};
    static const char *const packages[] = {"jsonlite"};
    const char *more = getenv("R_LIBS");
    for (size_t p = 0; p < sizeof packages / sizeof *packages; p++) {
        bool found = more && path_is_folder(arena_printf(&d->suite.arena, "%s/%s", more, packages[p]));
        for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
            found |= path_is_folder(arena_printf(&d->suite.arena, "%s/%s", folders[i], packages[p]));
        const char *fix = arena_printf(&d->suite.arena, "apt install r-cran-%s", packages[p]);
        add(d, "tools", found ? CAN : LIMITED, found ? "" : "in none of R's libraries", found ? "" : fix,
            "R package %s%s", packages[p], found ? "" : " is missing: the analysis");
    }
}

static void look_at_folder(struct doctor *d)
{
    struct statfs fs;
    bool writable = access(".", W_OK) == 0;
    double room = statfs(".", &fs) == 0 ? (double)fs.f_bavail * (double)fs.f_bsize : -1;
    add(d, "results", writable && room > GIB ? CAN : LIMITED,
        !writable    ? "this folder cannot be written to"
        : room > GIB ? ""
                     : "little room",
        !writable || room <= GIB ? "give another place by --out" : "", "%.1f GiB free here", room / GIB);
}

/* ---- printing ---- */

static void print(const struct doctor *d)
{
    size_t i;
    json_t *f;
    size_t counts[VERDICTS] = {0};
    json_array_foreach(d->findings, i, f)
    {
        const char *verdict = meta_text(f, "verdict"), *why = meta_text(f, "why"), *fix = meta_text(f, "fix");
        for (int v = 0; v < VERDICTS; v++)
            counts[v] += strcmp(verdict, verdict_words[v]) == 0;
        printf("%-8s %-16s %s\n", verdict, meta_text(f, "area"), meta_text(f, "finding"));
        if (*why)
            printf("%26swhy: %s\n", "", why);
        if (*fix)
            printf("%26sfix: %s\n", "", fix);
    }
    printf("%zu ok, %zu limited, %zu missing\n", counts[CAN], counts[LIMITED], counts[CANNOT]);
}

static int cmd_doctor(int argc, char **argv)
{
    struct doctor d = {0};
    struct fault fault = {0};
    bool as_json = false;
    const char *registry = NULL;
    const struct command_option known[] = {
        {"--json", NULL, &as_json}, {"--registry", &registry, NULL}, {NULL, NULL, NULL}};
    struct arena words = {0};
    int left;
    bool good = command_options(&words, argc, argv, known, &left, &fault);
    if (good && left > 1)
        good = fault_set(&fault, AK_USAGE, "doctor: takes no arguments");
    d.findings = json_array();
    if (good && suite_open(&d.suite, registry, &fault)) {
        machine_read(&d.machine);
        look_at_cpus(&d);
        look_at_clock(&d);
        look_at_nodes(&d);
        look_at_counters(&d);
        look_at_memory(&d);
        look_at_noise(&d);
        look_at_limits(&d);
        good = look_at_allocators(&d, &fault);
        look_at_tools(&d);
        look_at_r(&d);
        look_at_folder(&d);
        if (good && as_json) {
            json_t *all = json_pack("{s:O, s:O, s:O}", "findings", d.findings, "machine", d.machine.facts,
                                    "machine_unknown", d.machine.unknown);
            json_dumpf(all, stdout, JSON_INDENT(2));
            putchar('\n');
            json_decref(all);
        } else if (good)
            print(&d);
        machine_free(&d.machine);
    }
    json_decref(d.findings);
    suite_close(&d.suite);
    arena_free(&words);
    return fault.code == AK_DONE ? AK_DONE : fault_print(&fault);
}

AK_COMMAND(command_doctor, "doctor", "[--json] [--registry FILE]",
           "what this machine can and cannot measure, why, and what would help",
           "  --json            findings and facts as JSON\n"
           "  --registry FILE   further allocators\n",
           cmd_doctor);
