/*
 * cputime.h - CPU time that a process and its descendants have taken so far, while they run.
 *
 * In nanoseconds, as the scheduler counts them (/proc/PID/task/TID/schedstat): ticks of /proc/PID/stat are too coarse for
 * a short load. What has ended is no longer in it, so that two readings tell whether anything ran between them only by
 * being the same.
 */
#ifndef AK_CPUTIME_H
#define AK_CPUTIME_H

#include <stdint.h>

/* 0: the kernel does not tell. */
uint64_t cputime_of_tree(int pid);

#endif
