#include <errno.h>
#include <fcntl.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"
#include "launch.h"
#include "memory.h"
#include "options.h"
#include "subject.h"

static char reason[128];

static void *map(size_t bytes, int advice)
{
    if (bytes == 0)
        bytes = PAGE_BYTES;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "%s: cannot map %zu bytes for the harness: %s\n", kernel.name, bytes, strerror(errno));
        _exit(EXIT_ENVIRONMENT);
    }
    madvise(memory, bytes, advice); /* a wish: kernels without huge pages refuse it */
    /* Written, not only populated: a page that was read first would be the shared zero page. */
    for (size_t at = 0; at < bytes; at += PAGE_BYTES)
        ((volatile char *)memory)[at] = 0;
    return memory;
}

void *ak_map(size_t bytes)
{
    return map(bytes, MADV_NOHUGEPAGE);
}

void *ak_map_huge(size_t bytes)
{
    return map(bytes, MADV_HUGEPAGE);
}

void ak_unmap(void *memory, size_t bytes)
{
    munmap(memory, bytes ? bytes : PAGE_BYTES);
}

long proc_read(const char *path, char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t length = 0;
    ssize_t got;
    while (length < size - 1 && (got = read(fd, buffer + length, size - 1 - length)) > 0)
        length += (size_t)got;
    close(fd);
    buffer[length] = '\0';
    return (long)length;
}

/* The number of kilobytes behind `key` at a line's start, in bytes; -1 where the key is missing. */
static int64_t kilobytes_of(const char *text, const char *key)
{
    for (const char *line = text; line != NULL; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            return (int64_t)strtoull(line + strlen(key), NULL, 10) * 1024;
    return -1;
}

/* A file of /proc/PID, or of this process where it is 0. */
static long proc_of(pid_t pid, const char *name, char *buffer, size_t size)
{
    char path[64];
    if (pid == 0)
        snprintf(path, sizeof path, "/proc/self/%s", name);
    else
        snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return proc_read(path, buffer, size);
}

static bool resident_add(struct resident *sum, pid_t pid)
{
    static char text[4096];
    if (proc_of(pid, "smaps_rollup", text, sizeof text) <= 0) {
        snprintf(reason, sizeof reason, "smaps_rollup: %s", errno ? strerror(errno) : "empty");
        return false;
    }
    int64_t rss = kilobytes_of(text, "Rss:"), lazy = kilobytes_of(text, "LazyFree:"),
            huge = kilobytes_of(text, "AnonHugePages:");
    if (rss <= 0) {
        snprintf(reason, sizeof reason, "smaps_rollup has no Rss line");
        return false;
    }
    sum->rss += (uint64_t)rss;
    sum->lazy_free += lazy > 0 ? (uint64_t)lazy : 0;
    sum->huge += huge > 0 ? (uint64_t)huge : 0;
    return true;
}

struct resident resident_now(void)
{
    struct resident now = { 0 };

    if (launch.simulated) {
        snprintf(reason, sizeof reason, "what is resident is the simulator with the process in it");
        return now;
    }
    unsigned count;
    const pid_t *pids = subject_pids(&count);
    now.known = count > 0 || resident_add(&now, 0);
    for (unsigned i = 0; i < count; i++)
        now.known = resident_add(&now, pids[i]) && now.known;
    return now;
}

const char *resident_reason(void)
{
    return reason;
}

uint64_t resident_high_water(void)
{
    static char text[4096];
    uint64_t sum = 0;
    unsigned count;
    const pid_t *pids = subject_pids(&count);
    for (unsigned i = 0; i < (count > 0 ? count : 1); i++) {
        int64_t peak = proc_of(count > 0 ? pids[i] : 0, "status", text, sizeof text) > 0 ? kilobytes_of(text, "VmHWM:") : -1;
        if (peak <= 0)
            return 0;
        sum += (uint64_t)peak;
    }
    return sum;
}

#define NODES_MAX 1024
#define LONG_BITS (8 * sizeof(unsigned long))

/* By the raw system call: libnuma's constructor allocates, and would stir the heap under test. */
int memory_policy(const char *policy, char *why, size_t why_size)
{
    unsigned long nodes[NODES_MAX / LONG_BITS] = { 0 };
    int mode = MPOL_DEFAULT;

    if (strcmp(policy, "interleave") == 0) {
        char list[512];
        if (proc_read("/sys/devices/system/node/has_memory", list, sizeof list) <= 0) {
            snprintf(why, why_size, "--numa interleave: /sys/devices/system/node/has_memory cannot be read");
            return EXIT_ENVIRONMENT;
        }
        for (char *at = list; *at >= '0' && *at <= '9';) {
            unsigned long first = strtoul(at, &at, 10), last = *at == '-' ? strtoul(at + 1, &at, 10) : first;
            for (unsigned long n = first; n <= last && n < NODES_MAX; n++)
                nodes[n / LONG_BITS] |= 1ul << n % LONG_BITS;
            if (*at == ',')
                at++;
        }
        mode = MPOL_INTERLEAVE;
    } else if (strncmp(policy, "bind:", 5) == 0) {
        uint64_t n;
        if (parse_number(policy + 5, 1000, 0, NODES_MAX - 1, &n) != 0) {
            snprintf(why, why_size, "--numa %s: expected bind:N with a node number", policy);
            return EXIT_USAGE;
        }
        nodes[n / LONG_BITS] |= 1ul << n % LONG_BITS;
        mode = MPOL_BIND;
    } else if (strcmp(policy, "local") != 0) {
        snprintf(why, why_size, "--numa %s: expected local, interleave or bind:N", policy);
        return EXIT_USAGE;
    }
    if (mode == MPOL_DEFAULT)
        return 0;
    /* The simulated machine reads the arguments and obeys; below it the call fails. */
    if (syscall(SYS_set_mempolicy, mode, nodes, NODES_MAX) != 0 && !launch.simulated) {
        snprintf(why, why_size, "--numa %s: set_mempolicy: %s", policy, strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    return 0;
}
