/*
 * profile.h - when the throughput pass was, for a profiler's samples: on CLOCK_MONOTONIC, which perf can take its time from.
 */
#ifndef AK_PROFILE_H
#define AK_PROFILE_H

#include <jansson.h>

/* {"pids": [processes under test], "from_ns": .., "to_ns": ..}, or null where no such pass ran. After launch_run. */
json_t *profile_json(void);

#endif
