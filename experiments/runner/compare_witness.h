/*
 * compare_witness.h - which processes of a command an allocator served, from what the witness wrote
 * (witness/witness.h).
 *
 * A process counts by its last line. A start or an end: it was served by the object that the line names. An exec or a
 * spawn: it became a program that has no witness, so it was not served. CPU time is told at an end only; a process that
 * a signal ended, as the reader of a pipe does its writer, could not. What is left of the tree's is divided equally
 * among the processes without an end, served or not; where each has its end, it belongs to processes without any line
 * (started past the C library's calls), and counts as not served. The kernel's own work at the end of each process is
 * no line's either; an allowance for it is taken off first.
 */
#ifndef AK_COMPARE_WITNESS_H
#define AK_COMPARE_WITNESS_H

#include "arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNSEEN_US_PER_PROCESS 1000 /* the end of a process that told of it; generous */
#define UNSEEN_US_PER_MIB     100  /* of the largest: its pages are given back */

enum said { SAID_START, SAID_END, SAID_EXEC, SAID_SPAWN };

struct witnessed {
    int pid, ppid;        /* ppid: at its first line */
    enum said last;       /* line of it */
    uint64_t cpu_us;      /* these by its last start or end; NULL and 0: it has none */
    unsigned disagreeing; /* of free, calloc and realloc */
    const char *object, *build_id, *program;
    const char *became; /* by its last exec or spawn */
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
    size_t processes, served;      /* that have a line */
    double share;                  /* of the tree's CPU time in processes that were served, about; 0 to 1 */
    const char *object, *build_id; /* that served the most CPU time of all; NULL: nothing told */
    const char *program;           /* served so */
    const char *other;       /* the most costly process that was not served, in words; NULL: there is none */
    bool main_lost;          /* the command itself became something that did not tell */
    const char *main_seen;   /* the last program of it that did tell; NULL: none */
    const char *main_became; /* what it became then; NULL: not known */
};
/* `real` and `build_id`: of the allocator; NULL: whatever served the most (then all of that object count as served). */
void testimony_judge(struct arena *, const struct testimony *, const struct tree *, const char *real,
                     const char *build_id, struct reach *);

#endif
