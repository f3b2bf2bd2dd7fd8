/*
 * launch.h - one launch of a kernel: its threads, its passes, and what they came to.
 *
 * The main thread is the coordinator. Between passes all workers park at the gate while it looks at resident memory
 * and walks the live sets; nothing else runs then.
 */
#ifndef AK_LAUNCH_H
#define AK_LAUNCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "accounting.h"
#include "kernel.h"
#include "memory.h"
#include "provenance.h"
#include "sampler.h"
#include "topology.h"

/* One worker. Lines are not shared between workers: the struct is a multiple of two lines. */
struct worker {
    _Alignas(CACHE_SECTOR) struct ctx ctx;
    pthread_t thread;
    int       cpu;              /* OS number it is pinned to; -1: not pinned */
    struct hist *hists;         /* HIST_CALLS of them */
    struct sampler sampler;
    char     *stub_pool;        /* NULL: no stub serves */
    pthread_attr_t heir;        /* of threads that a kernel makes for this worker, where it does */
    /* the throughput pass; the accounts are the process's where the kernel makes threads */
    uint64_t start, stop, ops;
    struct thread_account before, after;
};

/* One look at the quiescent process. */
struct sample {
    uint64_t t_ns; /* since the baseline */
    struct resident resident;
    uint64_t live, usable;
    struct lock_times locks_in, locks_out; /* before and after it asks for usable sizes, which takes locks; zeros where the
                                            * allocator does not clock its own */
    uint64_t locks_ns; /* when locks_in was read; another origin than t_ns */
};

struct launch {
    /* given */
    const struct placement *placement;
    unsigned threads;
    uint64_t ops;      /* of each thread in the throughput pass */
    bool     oversubscribed, no_alloc;
    bool     simulated; /* --counters sim: inside the simulated machine, where no clock and no account of the host tells
                         * anything, and calls that place threads and pages fail although they are obeyed */
    /* found; valid after launch_run */
    struct worker *worker;
    uint64_t size_min, size_max; /* as asked for, or a size file's smallest and largest drawn */
    char     failure[512];       /* "" where everything verified */
    const char *status;          /* what it makes of the row */
    bool     ran_throughput, ran_batch, ran_latency, ran_memory;
    uint64_t wall_ticks, ops_done;
    struct thread_account used;  /* sum over workers, or of the process */
    int64_t  blocked_ns;
    struct machine_account machine; /* difference over the throughput pass */
    struct hist *hists;          /* merged; HIST_CALLS */
    struct sample baseline, end; /* end: after teardown and settle_ms */
    struct sample *timeline;
    unsigned samples, memory_first; /* the first of the memory pass */
    const struct sample *pass_before, *pass_after; /* around the throughput pass; into timeline */
    const struct sample *rss_peak, *live_peak, *usable_peak; /* into timeline; NULL where unknown */
    uint64_t high_water;
    int64_t  metadata;  /* bytes, by the allocator's own word with the live set in place; -1: unknown */
};

extern struct launch launch;

/* Ops of one timed batch of this kernel. */
uint64_t launch_grain(void);
/* Do sizes and parameters go together, whatever the machine? Fills the table of sizes. 0, or an exit code with `why`,
 * which names options as --name. */
int launch_check(char *why, size_t why_size);
/* Keep the first failure of the launch, with the status of its row. Returns 1. */
int launch_fail(const char *status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Run all passes that --passes names, with the provenance of what serves. 0, or an exit code with `why` where
 * launch_check refuses or threads cannot be had. A failed verification is no error here: it stands in launch.failure. */
int launch_run(const struct provenance *served_by, char *why, size_t why_size);

/* What ak_metric and ak_matrix collected. */
struct metric { char name[48], unit[16], reason[128]; double value; bool known; };
struct matrix_cell { unsigned from, to; char state[16]; double ns; };
const struct metric *launch_metric(unsigned index);       /* NULL after the last */
const struct matrix_cell *launch_matrix(unsigned index);  /* NULL after the last */

#endif
