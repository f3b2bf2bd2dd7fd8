/* counters_hopeless.c - cheap reasons against PAPI and LIKWID. See counters_hopeless.h. */
#include "counters_hopeless.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MSR_DEVICE "/dev/cpu/0/msr"

/* PAPI counts through the kernel: without a PMU there it has nothing to count. */
static bool papi_hopeless(char why[COUNTER_REASON_MAX])
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_HW_CPU_CYCLES,
                                   .disabled = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0)
        close(fd);
    else if (errno == ENOENT) {
        snprintf(why, COUNTER_REASON_MAX, "PAPI counts through the kernel, which sees no PMU here");
        return true;
    }
    return false;
}

static bool likwid_hopeless(char why[COUNTER_REASON_MAX])
{
    const char *mode = getenv("LIKWID_MODE");
    if (mode != NULL && strcmp(mode, "1") == 0) {
        snprintf(why, COUNTER_REASON_MAX,
                 "LIKWID_MODE=1 asks for LIKWID's access daemon, and LIKWID ends the process "
                 "where that does not answer: use likwid-perfctr -M 0, or unset it");
        return true;
    }
    if (mode != NULL) /* likwid-perfctr is around us and has its own way in */
        return false;
    int fd = open(MSR_DEVICE, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        snprintf(why, COUNTER_REASON_MAX,
                 "no access to " MSR_DEVICE
                 " (%s): LIKWID needs the kernel module msr, and root or CAP_SYS_RAWIO with "
                 "rights on that file",
                 strerror(errno));
        return true;
    }
    close(fd);
    return false;
}

bool counters_hopeless(const char *name, char why[COUNTER_REASON_MAX])
{
    if (strcmp(name, "papi") == 0)
        return papi_hopeless(why);
    return strcmp(name, "likwid") == 0 && likwid_hopeless(why);
}
