/*
 * perf.c - counters by perf_event_open(2), without any library.
 *
 * Spellings (groups/NAME.txt, dialect perf):
 *   sw:NAME               page-faults, minor-faults, major-faults, context-switches, cpu-migrations,
 *                         task-clock
 *   hw:NAME               cycles, instructions, cache-references, cache-misses
 *   cache:LEVEL:OP:RESULT LEVEL l1d, ll, dtlb; OP read, write, prefetch; RESULT access, miss
 *   PMU:0xCONFIG          a raw code of a PMU in /sys/bus/event_source/devices; `cpu` is the core's own
 *
 * One pinned group a thread for hardware, one for software events. Pinned means: on the hardware all the time
 * or refused, never multiplexed; events are added in their order until the counters are used up, and the rest
 * is told why. Hardware events count user mode, as an unprivileged process may; software events count the
 * kernel too, since the kernel is where a migration happens (exclude_kernel would make them 0).
 */
#include "counters.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The events asked for, in the caller's order. Event i is number `rank` of its group where
 * group[software[i]].member[rank] == i. */
static struct {
    size_t n;
    unsigned threads;
    struct perf_event_attr attr[COUNTER_EVENTS_MAX];
    bool software[COUNTER_EVENTS_MAX];
    bool refused[COUNTER_EVENTS_MAX];
    char why[COUNTER_EVENTS_MAX][COUNTER_REASON_MAX];
    struct perf_group {
        uint8_t member[COUNTER_EVENTS_MAX];
        unsigned n;
    } group[2]; /* hardware, software */
    int *fd;    /* [thread][software][rank], -1: closed */
    size_t fd_bytes;
} perf;

/* What a group's read returns (PERF_FORMAT_GROUP with both times). */
struct group_counts {
    uint64_t n, enabled_ns, running_ns, value[COUNTER_EVENTS_MAX];
};

static int *fd_of(unsigned thread, unsigned software, unsigned rank)
{
    return &perf.fd[((size_t)thread * 2 + software) * COUNTER_EVENTS_MAX + rank];
}

static int event_open(struct perf_event_attr *attr, int leader)
{
    return (int)syscall(SYS_perf_event_open, attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

/* ---- spellings ---- */

struct named {
    const char *name;
    uint64_t code;
};

static const struct named software_events[] = {
    {"page-faults", PERF_COUNT_SW_PAGE_FAULTS},
    {"minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", PERF_COUNT_SW_CPU_MIGRATIONS},
    {"task-clock", PERF_COUNT_SW_TASK_CLOCK},
    {NULL, 0},
};
static const struct named hardware_events[] = {
    {"cycles", PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_COUNT_HW_CACHE_MISSES},
    {NULL, 0},
};
static const struct named cache_levels[] = {
    {"l1d", PERF_COUNT_HW_CACHE_L1D},
    {"ll", PERF_COUNT_HW_CACHE_LL},
    {"dtlb", PERF_COUNT_HW_CACHE_DTLB},
    {NULL, 0},
};
static const struct named cache_ops[] = {
    {"read", PERF_COUNT_HW_CACHE_OP_READ},
    {"write", PERF_COUNT_HW_CACHE_OP_WRITE},
    {"prefetch", PERF_COUNT_HW_CACHE_OP_PREFETCH},
    {NULL, 0},
};
static const struct named cache_results[] = {
    {"access", PERF_COUNT_HW_CACHE_RESULT_ACCESS},
    {"miss", PERF_COUNT_HW_CACHE_RESULT_MISS},
    {NULL, 0},
};

/* Code of the first n characters of `text`, or -1. */
static int64_t code_of(const struct named *table, const char *text, size_t n)
{
    for (; table->name; table++)
        if (strlen(table->name) == n && strncmp(table->name, text, n) == 0)
            return (int64_t)table->code;
    return -1;
}

/* PERF_TYPE of a PMU by name, or -1. A hybrid CPU has no `cpu`, but cpu_core and cpu_atom. */
static int64_t pmu_type(const char *name, size_t n)
{
    char path[128], text[16] = "";
    snprintf(path, sizeof path, "/sys/bus/event_source/devices/%.*s/type", (int)n, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return n == 3 && strncmp(name, "cpu", n) == 0 ? PERF_TYPE_RAW : -1;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    return got > 0 ? (int64_t)strtoul(text, NULL, 10) : -1;
}

static bool spell_cache(const char *text, uint64_t *config)
{
    size_t level_n = strcspn(text, ":");
    const char *op = text + level_n + (text[level_n] == ':');
    size_t op_n = strcspn(op, ":");
    const char *result = op + op_n + (op[op_n] == ':');
    int64_t level = code_of(cache_levels, text, level_n), o = code_of(cache_ops, op, op_n),
            r = code_of(cache_results, result, strlen(result));
    *config = (uint64_t)level | (uint64_t)o << 8 | (uint64_t)r << 16;
    return level >= 0 && o >= 0 && r >= 0;
}

/* Fill attr's type and config from a spelling. */
static bool spell(const char *text, struct perf_event_attr *attr, bool *software,
                  char why[COUNTER_REASON_MAX])
{
    size_t kind = strcspn(text, ":");
    const char *rest = text + kind + (text[kind] == ':');
    int64_t code = -1, type = -1;
    *software = false;
    if (strncmp(text, "sw:", 3) == 0) {
        *software = true;
        type = PERF_TYPE_SOFTWARE;
        code = code_of(software_events, rest, strlen(rest));
    } else if (strncmp(text, "hw:", 3) == 0) {
        type = PERF_TYPE_HARDWARE;
        code = code_of(hardware_events, rest, strlen(rest));
    } else if (strncmp(text, "cache:", 6) == 0) {
        uint64_t config = 0;
        type = PERF_TYPE_HW_CACHE;
        code = spell_cache(rest, &config) ? (int64_t)config : -1;
    } else if (rest[0] == '0' && (rest[1] == 'x' || rest[1] == 'X')) {
        char *end = NULL;
        code = (int64_t)strtoull(rest, &end, 16);
        if (*end != '\0')
            code = -1;
        type = pmu_type(text, kind);
        if (type < 0) {
            snprintf(why, COUNTER_REASON_MAX, "this kernel has no PMU called %.*s", (int)kind, text);
            return false;
        }
    }
    attr->type = (uint32_t)type;
    attr->config = (uint64_t)code;
    if (type < 0 || code < 0) {
        snprintf(why, COUNTER_REASON_MAX, "not a perf event that this backend knows");
        return false;
    }
    return true;
}

/* ---- why not ---- */

static int paranoid_level(void)
{
    char text[16] = "";
    int fd = open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -2;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 ? (int)strtol(text, NULL, 10) : -2;
}

static void explain(int error, bool software, char why[COUNTER_REASON_MAX])
{
    int level = paranoid_level(), wanted = software ? 1 : 2;
    switch (error) {
    case ENOENT:
        snprintf(why, COUNTER_REASON_MAX,
                 "the kernel offers no such event here (ENOENT): no PMU is visible, as in most "
                 "virtual machines; give the machine a virtual PMU or use bare metal");
        break;
    case EACCES:
    case EPERM:
        snprintf(why, COUNTER_REASON_MAX,
                 "not permitted (kernel.perf_event_paranoid is %d): set it to %d or lower (sysctl -w "
                 "kernel.perf_event_paranoid=%d), or grant CAP_PERFMON; in a container also allow "
                 "perf_event_open in its "
                 "seccomp profile",
                 level, wanted, wanted);
        break;
    case ENOSYS:
        snprintf(why, COUNTER_REASON_MAX, "this kernel has no perf_event_open (CONFIG_PERF_EVENTS)");
        break;
    case EOPNOTSUPP:
    case ENODEV:
        snprintf(why, COUNTER_REASON_MAX, "the PMU cannot count this event (%s)", strerror(error));
        break;
    case EMFILE:
        snprintf(why, COUNTER_REASON_MAX, "too many open files: raise ulimit -n");
        break;
    default:
        snprintf(why, COUNTER_REASON_MAX, "perf_event_open: %s", strerror(error));
    }
}

/* ---- groups ---- */

/* Open a group for the calling thread. 0, or -1 with errno; *opened is the number of descriptors that are
 * open. */
static int group_open(const struct perf_group *g, int *fd, unsigned *opened)
{
    for (*opened = 0; *opened < g->n; ++*opened) {
        struct perf_event_attr attr = perf.attr[g->member[*opened]];
        attr.disabled = *opened == 0;
        attr.pinned = *opened == 0;
        fd[*opened] = event_open(&attr, *opened == 0 ? -1 : fd[0]);
        if (fd[*opened] < 0)
            return -1;
    }
    return 0;
}

static void group_close(int *fd, unsigned opened)
{
    while (opened > 0)
        close(fd[--opened]);
}

static bool group_read(int leader, struct group_counts *counts)
{
    ssize_t n = read(leader, counts, sizeof *counts);
    return n >= (ssize_t)(3 * sizeof(uint64_t)); /* 0 bytes: the pinned group got no counters */
}

/* True if the hardware takes the whole group at once, beside whoever else uses it (the NMI watchdog). Where
 * this CPU is of another type than the PMU (hybrid), the group waits and may yet run: read works, and that is
 * enough. */
static bool group_runs(const struct perf_group *g)
{
    int fd[COUNTER_EVENTS_MAX];
    unsigned opened = 0;
    struct group_counts counts;
    bool runs = group_open(g, fd, &opened) == 0 &&
                ioctl(fd[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) == 0 && group_read(fd[0], &counts);
    group_close(fd, opened);
    return runs;
}

/* Add event i to its group if it opens by itself and the group still fits. */
static void group_add(size_t i)
{
    struct perf_group *g = &perf.group[perf.software[i]];
    int alone = event_open(&perf.attr[i], -1);
    if (alone < 0) {
        explain(errno, perf.software[i], perf.why[i]);
        perf.refused[i] = true;
        return;
    }
    close(alone);
    g->member[g->n++] = (uint8_t)i;
    if (!perf.software[i] && !group_runs(g)) {
        g->n--;
        snprintf(
            perf.why[i], sizeof perf.why[i],
            "no hardware counter is free beside %u others (the NMI watchdog takes one as well: sysctl -w "
            "kernel.nmi_watchdog=0); AK_COUNTERS_SET picks another set of columns",
            g->n);
        perf.refused[i] = true;
    }
}

/* ---- the backend ---- */

static bool perf_available(char why[COUNTER_REASON_MAX])
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    int fd = event_open(&attr, -1);
    if (fd < 0) {
        explain(errno, false, why);
        return false;
    }
    close(fd);
    return true;
}

static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int perf_prepare(const char *const *events, size_t n, unsigned threads, char why[COUNTER_REASON_MAX])
{
    if (n > COUNTER_EVENTS_MAX) {
        snprintf(why, COUNTER_REASON_MAX, "more than %d events", COUNTER_EVENTS_MAX);
        return -1;
    }
    if (perf.fd != NULL)
        munmap(perf.fd, perf.fd_bytes);
    memset(&perf, 0, sizeof perf);
    perf.n = n;
    perf.threads = threads;
    perf.fd_bytes = (size_t)threads * 2 * COUNTER_EVENTS_MAX * sizeof(int);
    void *fds =
        mmap(NULL, perf.fd_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (fds == MAP_FAILED) {
        snprintf(why, COUNTER_REASON_MAX, "no memory for %zu descriptors", perf.fd_bytes / sizeof(int));
        return -1;
    }
    perf.fd = fds;
    memset(perf.fd, -1, perf.fd_bytes);
    raise_file_limit();
    for (size_t i = 0; i < n; i++) {
        struct perf_event_attr *attr = &perf.attr[i];
        attr->size = sizeof *attr;
        attr->read_format =
            PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        if (!spell(events[i], attr, &perf.software[i], perf.why[i])) {
            perf.refused[i] = true;
            continue;
        }
        attr->exclude_hv = attr->exclude_kernel = !perf.software[i];
        group_add(i);
    }
    return 0;
}

static void perf_close(unsigned thread)
{
    for (unsigned software = 0; software < 2; software++)
        for (unsigned rank = 0; rank < perf.group[software].n; rank++) {
            int *fd = fd_of(thread, software, rank);
            if (*fd >= 0)
                close(*fd);
            *fd = -1;
        }
}

static int perf_open(unsigned thread, char why[COUNTER_REASON_MAX])
{
    for (unsigned software = 0; software < 2; software++) {
        unsigned opened = 0;
        int *fd = fd_of(thread, software, 0);
        if (group_open(&perf.group[software], fd, &opened) != 0) {
            int error = errno;
            fd[opened] = -1;
            explain(error, software, why);
            perf_close(thread);
            return -1;
        }
    }
    return 0;
}

static void switch_group(unsigned thread, unsigned software, unsigned long request)
{
    if (perf.group[software].n > 0)
        ioctl(*fd_of(thread, software, 0), request, PERF_IOC_FLAG_GROUP);
}

/* Hardware last on and first off: it is the one that would count the other's system call. */
static void perf_start(unsigned thread)
{
    switch_group(thread, 1, PERF_EVENT_IOC_ENABLE);
    switch_group(thread, 0, PERF_EVENT_IOC_ENABLE);
}

static void perf_stop(unsigned thread)
{
    switch_group(thread, 0, PERF_EVENT_IOC_DISABLE);
    switch_group(thread, 1, PERF_EVENT_IOC_DISABLE);
}

static void perf_read(unsigned thread, struct counter_reading *readings)
{
    for (size_t i = 0; i < perf.n; i++)
        readings[i] = (struct counter_reading){.valid = false};
    for (unsigned software = 0; software < 2; software++) {
        const struct perf_group *g = &perf.group[software];
        struct group_counts counts;
        if (g->n == 0)
            continue;
        bool got = group_read(*fd_of(thread, software, 0), &counts);
        for (unsigned rank = 0; rank < g->n; rank++)
            readings[g->member[rank]] =
                got ? (struct counter_reading){counts.value[rank], counts.enabled_ns, counts.running_ns, true}
                    : (struct counter_reading){.enabled_ns = 1, .valid = true}; /* never on the hardware */
    }
}

static const char *perf_reason(size_t event)
{
    return perf.refused[event] ? perf.why[event] : NULL;
}

extern const struct counter_backend counter_backend;
const struct counter_backend counter_backend = {
    .name = "perf",
    .dialect = "perf",
    .available = perf_available,
    .prepare = perf_prepare,
    .open = perf_open,
    .start = perf_start,
    .stop = perf_stop,
    .read = perf_read,
    .close = perf_close,
    .reason = perf_reason,
};
