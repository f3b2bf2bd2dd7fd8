/*
 * topology.h - which CPUs the workers get, by hwloc.
 *
 * hwloc allocates thousands of blocks while it reads the machine, and the heap under test must not see them. So the
 * plan is made in a forked child and comes back through shared memory; the launch itself never runs hwloc code.
 */
#ifndef AK_TOPOLOGY_H
#define AK_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>

#define TOPOLOGY_CPUS_MAX 4096

/* How far apart two CPUs are, nearest first. */
enum distance { DISTANCE_SMT, DISTANCE_L3, DISTANCE_PACKAGE, DISTANCE_REMOTE, DISTANCES };
extern const char *const distance_name[DISTANCES];

/* Where one CPU sits: equal numbers mean shared. -1: not known. */
struct cpu_place { int os, core, l3, package, node; };

struct placement {
    unsigned cpus;    /* that this process may use */
    unsigned threads; /* entries of cpu[] that are set; 0 under --placement none */
    int      nodes;   /* NUMA nodes with memory */
    struct cpu_place place[TOPOLOGY_CPUS_MAX]; /* of the allowed CPUs, hwloc's logical order */
    int      cpu[TOPOLOGY_CPUS_MAX];           /* OS number for worker i; wraps where threads exceed CPUs */
};

/* Plan for `threads` workers (0: one per allowed CPU) by `policy`: compact, scatter, none or node:N.
 * Returns memory of the harness that lives as long as the process, or NULL with `why`. */
const struct placement *placement_plan(const char *policy, unsigned threads, char *why, size_t why_size);

/* True for compact, scatter, none and node:N. */
bool placement_is_word(const char *policy);
/* Distance class of two CPUs by OS number. */
enum distance cpu_distance(const struct placement *p, int a, int b);

#endif
