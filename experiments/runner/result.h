/*
 * result.h - what one launch came to: a row of runs.csv and its rows in the side files.
 *
 * What a kernel prints is checked against the plan, the registry and the columns' types before it is
 * believed. A row that is not ok carries no number that was measured.
 */
#ifndef AK_RESULT_H
#define AK_RESULT_H

#include "child.h"
#include "columns.h"
#include "plan.h"
#include "share.h"

/* The metric that the runner adds to an ok row after all others. */
#define RESULT_LAST_METRIC "launch_maxrss_bytes"
/* The metric by which a simulated kernel says that its threads' order could not be kept. */
#define RESULT_STIRRED "sim_stirred"
#define RESULT_LATER_STIRRED "sim_lat_stirred" /* when the latency pass was over */

struct result {
    const char *value[COLUMNS_MAX]; /* by column; NULL: empty */
    enum status status;
    const char *detail;
    struct buffer side[SIDES]; /* complete CSV lines */
    uint64_t *pid, from_ns, to_ns; /* of an ok row: the processes under test, and when its throughput pass was */
    size_t pids;
    double stirred; /* of an ok row that was simulated: times that its threads' order could not be kept */
};

/* What all rows of a run share. */
struct run_facts {
    const char *run_id, *sweep, *machine_id;
    unsigned cpus; /* that this process may use */
};

/* Begin a row: all that the plan knows. `started_at` in ISO 8601. */
void result_begin(struct arena *, const struct run_facts *, const struct planned *, const char *started_at,
                  struct result *);
/* End it as not ok, with the reason. Measured columns and side rows vanish. */
void result_fail(struct arena *, struct result *, enum status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* End it by what the kernel did. `oom_events`: out-of-memory kills that the memory cgroup counted
 * meanwhile. */
void result_take(struct arena *, struct result *, const struct planned *, const struct child_outcome *,
                 uint64_t oom_events);
/* Which samples of an ok row count, and what they came to. Before result_launched. */
void result_share_scope(struct arena *, const struct result *, const struct planned *, struct share_scope *);
void result_share(struct result *, const struct planned *, const struct share *);
/* What the launcher saw of an ok row from outside: after all else. */
void result_launched(struct result *, const struct planned *, const struct child_outcome *);
/* What the runner knows of a simulated row, tried again `retries` times: after result_take. */
void result_simulated(struct arena *, struct result *, unsigned retries);
/* The line of runs.csv. */
void result_csv(const struct result *, struct buffer *);
void result_free(struct result *);

#endif
