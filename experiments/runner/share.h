/*
 * share.h - the share of CPU time that a command spends in malloc and free, by samples of perf.
 *
 * perf record stops each thread of the command and of its descendants every millisecond of CPU time (event cpu-clock, a
 * timer of the kernel: no PMU is needed). A sample belongs to the allocator by the address it stopped at:
 *   in a preloaded library, and those it consists of: the whole file;
 *   in the C library: the functions of malloc.o, from malloc's own address and its exported neighbours', since a
 *   distribution's libc has no names for the others. Static functions of the object linked before it count with it
 *   (glibc 2.36: a timer's thread).
 * What does not count: page faults and system calls that the allocator causes (they are the kernel's), the wrappers of
 * system calls, memcpy and memset that realloc and calloc call, waiting for a lock, stubs of the linker, the frame of
 * operator new in libstdc++ (but a preloaded library's own), what a compiler has put into the caller.
 *
 * The samples are kept in memory, never in a file, so that nothing stays behind whatever ends ak.
 */
#ifndef AK_SHARE_H
#define AK_SHARE_H

#include "child.h"
#include "places.h"

#define SHARE_RATE        997 /* samples a second of CPU time; a prime number, so as not to keep step with a timer */
#define SHARE_SAMPLES_MIN 100 /* below: no share */

/* What takes samples. */
struct profiler {
    const char *why;        /* why it cannot; NULL where it can */
    const char *perf, *env; /* paths of the programs */
    bool sees_kernel;       /* else perf_event_paranoid keeps samples of the kernel from this user */
};

/* Samples of one launch. */
struct profile {
    int fd;           /* -1: none */
    const char *path; /* by which perf finds it */
};

/* Which samples count. */
struct share_scope {
    struct words objects;    /* files of the allocator: paths, or sonames; none: the C library's malloc alone */
    const uint64_t *pid;     /* of the processes that count */
    size_t pids;             /* 0: every process counts */
    bool children;           /* of those count too */
    uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC, both included; to_ns 0: no end */
    /* CPU times of these processes meanwhile, user_ns 0 where not known: where samples of the kernel are kept from this
     * user, they say what those would come to */
    double user_ns, system_ns;
};

struct share {
    uint64_t samples, in_malloc, in_libc, in_kernel; /* counts, of those that count */
    /* of all CPU time, from 0 to 1, libc_share of libc.so alone; NAN where there is a reason */
    double malloc_share, libc_share;
    const char *why, *libc_why; /* why there is none; NULL: there is */
    bool user_only;             /* of user time: the kernel's is not known */
};

/* Find perf and try it. False only where nothing can be started, or after an interrupt. */
bool profiler_find(struct arena *, const char *launcher, struct profiler *, struct fault *);

/* Put perf around a request whose env is the one the command is to have; argv, env and preload are replaced. False with *why
 * where that cannot be. Free with profile_free. */
bool profile_begin(struct arena *, const struct profiler *, struct child_request *, struct profile *,
                   const char **why);

/* What the samples come to. False only where nothing can be started, or after an interrupt. */
bool profile_share(struct arena *, const char *launcher, const struct profiler *, const struct profile *,
                   const struct share_scope *, struct share *, struct fault *);
void profile_free(struct profile *);

/* The same from the text that perf script prints. */
void share_from_text(struct arena *, const char *text, size_t length, const struct profiler *,
                     const struct share_scope *, struct share *);

/* The addresses of malloc.o in a C library, as the file has them; false with *why where its names do not tell. */
bool share_libc_malloc(struct arena *, const char *path, uint64_t *from, uint64_t *to, const char **why);

#endif
