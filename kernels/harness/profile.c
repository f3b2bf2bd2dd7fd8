#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "launch.h"
#include "profile.h"
#include "subject.h"

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static json_t *pids_json(void)
{
    unsigned count;
    const pid_t *pids = subject_pids(&count);
    json_t *list = json_array();
    if (count == 0)
        json_array_append_new(list, json_integer(getpid()));
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(list, json_integer(pids[i]));
    return list;
}

/* The workers kept the harness's clock. Told from how long ago that is by now, since two clocks never run alike: over a
 * minute the error is well below the time between two samples. */
json_t *profile_json(void)
{
    if (!launch.ran_throughput || launch.simulated)
        return json_null();
    uint64_t first = UINT64_MAX, last = 0, now = monotonic_ns(), ticks = clock_stop();
    for (unsigned t = 0; t < launch.threads; t++) {
        const struct worker *w = &launch.worker[t];
        first = w->start < first ? w->start : first;
        last = w->stop > last ? w->stop : last;
    }
    double since_first = clock_ns((double)(ticks - first)), since_last = clock_ns((double)(ticks - last));
    return json_pack("{s:o, s:I, s:I}", "pids", pids_json(), "from_ns", (json_int_t)(now - (uint64_t)since_first), "to_ns",
                     (json_int_t)(now - (uint64_t)since_last));
}
