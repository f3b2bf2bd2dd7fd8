/*
 * compare_witness.h - which processes of a command an allocator served, from what the witness wrote
 * (witness/witness.h).
 *
 * A process counts by its last line: a process may become another program, and then that one's line follows, or none
 * where it was started without the witness. What no process told of is CPU time of the tree without a line: of static
 * children, of such whose environment was cleared, of killed ones. The kernel's own work at the end of each process
 * is no line's either; an allowance for it is taken off first.
 */
#ifndef AK_COMPARE_WITNESS_H
#define AK_COMPARE_WITNESS_H

#include "arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNSEEN_US_PER_PROCESS 1000 /* the end of a process that told of it; generous */
#define UNSEEN_US_PER_MIB     100  /* of the largest: its pages are given back */

struct witnessed {
    int pid, ppid; /* ppid: at its first line */
    bool ended;    /* its last line is an end */
    uint64_t cpu_us;
    unsigned disagreeing;                    /* of free, calloc and realloc */
    const char *object, *build_id, *program; /* of the last line */
};

struct testimony {
    struct witnessed *process;
    size_t processes;
    size_t torn; /* lines that are none */
};
void testimony_read(struct arena *, const char *text, size_t length, struct testimony *);

/* What is known of the tree from elsewhere. */
struct tree {
    int main_pid;             /* of the command itself; 0: not known */
    bool main_killed;         /* by a signal, as a server is: it could say no end */
    const char *main_program; /* what it ran last (/proc/PID/exe); NULL: not known */
    uint64_t cpu_us;          /* user and system time of all */
    uint64_t largest_bytes;
};

struct reach {
    size_t processes, served;      /* that told */
    double share;                  /* of the tree's CPU time in processes that were served, about; 0 to 1 */
    const char *object, *build_id; /* that served the most CPU time of all; NULL: nothing told */
    const char *program;           /* served so */
    const char *other;     /* the most costly process that was not served, in words; NULL: there is none */
    bool main_lost;        /* the command itself became something that did not tell */
    const char *main_seen; /* the last program of it that did tell; NULL: none */
};
/* `real` and `build_id`: of the allocator; NULL: whatever served the most (then all of that object count as served). */
void testimony_judge(struct arena *, const struct testimony *, const struct tree *, const char *real,
                     const char *build_id, struct reach *);

#endif
