/*
 * windows.h - a part of the timed region: how long it took, what the server's CPU time was, and what came between. A
 * window that other work disturbed is marked, by causes alone and never by how fast it was, and kept.
 *
 * No allocation. A mark costs a few reads of /proc, about 25 us and 5 more a process of the family.
 */
#ifndef AK_WINDOWS_H
#define AK_WINDOWS_H

#include <stdint.h>
#include <sys/types.h>

#define WINDOWS_MAX 10

/* Programs that this launch started, whose work is no disturbance. */
struct family {
    pid_t load, postmaster; /* the postmaster's children, too */
};

/* A moment: running totals. */
struct mark {
    int64_t ns;
    int64_t cpu_ns, involuntary; /* of this process */
    int64_t family_ns;           /* CPU time of this process and the family; -1: cannot be read */
    uint64_t ticks, busy,
        steal; /* of the machine, in ticks of /proc/stat over all CPUs; ticks 0: cannot be read */
};

struct window {
    struct mark from, to;
    uint64_t requests;
};

struct mark mark_now(const struct family *);

/* Metrics window1_... to windowN_... for `report`: ops_per_s, cpu_ns_per_op, steal_ratio, foreign_ratio,
 * involuntary_per_op, and disturbed, which is 1 where steal or the CPU time of foreign programs pass a share of the
 * machine's, or involuntary switches a request twice those of the launch's calmest window. */
void windows_report(const struct window *, unsigned windows);

#endif
