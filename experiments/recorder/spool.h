/*
 * spool.h - what a recorded process leaves, before `ak record` makes a trace of it.
 *
 * The folder that AK_RECORD names holds one `control`, shared by all processes of the recording, and a spool for each
 * process image: PID-N, N counting what this process id executed. A spool is a page of head and slots; a slot belongs to one
 * thread, which writes its events there through a shared mapping. So whatever ends the process - exec, _exit, a crash,
 * SIGKILL - takes nothing away: what was written is the kernel's. A slot's space is allocated before it is mapped: a full
 * disk shows there, and not as SIGBUS in the program.
 *
 * Times are ticks of a counter (spool_ticks); `ak record` reads it beside the clock at both ends and knows its rate.
 */
#ifndef AK_SPOOL_H
#define AK_SPOOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define SPOOL_ENV        "AK_RECORD"
#define SPOOL_CONTROL    "control"
#define SPOOL_MAGIC      0x6c6f6f70736b6131u
#define SPOOL_HEAD_BYTES 4096
#define SPOOL_SLOT_BYTES 65536
#define SPOOL_TICK_SHIFT 4 /* times in events are ticks >> this */

enum { SPOOL_EXIT = 1, SPOOL__EXIT = 2 };

struct spool_control {
    _Atomic int error;       /* errno of the first failure; from then on nothing is recorded, and the recording has failed */
    _Atomic int pid;         /* whose it was */
    char what[56];           /* what failed */
};

struct spool_head {
    uint64_t magic;          /* written last */
    uint32_t pid, parent;
    uint64_t started_unix_ns, started_tick;
    _Atomic uint64_t slots;  /* taken so far */
    _Atomic uint32_t threads;
    _Atomic uint64_t unseen; /* calls made by a signal handler in the middle of another one */
    _Atomic uint32_t ended;  /* SPOOL_EXIT, SPOOL__EXIT; 0: it became another program, or something killed it */
    uint32_t own;            /* its program brings its own malloc, which stands before ours: nothing is recorded */
    char served[512];        /* the object that serves malloc behind ours, or that own one */
    char command[2048];      /* words with a blank between */
};

struct spool_slot {
    uint64_t magic;          /* written last */
    uint32_t thread, born_by; /* born_by: UINT32_MAX where nobody saw it */
    uint64_t born_at;
    uint64_t made;           /* objects that the thread made before this slot */
    uint64_t tick;           /* >> SPOOL_TICK_SHIFT: from here the first event's time counts */
    _Atomic uint32_t used;   /* bytes of whole events behind this head */
    uint32_t spare[5];
};

_Static_assert(sizeof(struct spool_head) <= SPOOL_HEAD_BYTES, "the head is one page");
_Static_assert(sizeof(struct spool_slot) == 64, "the head of a slot is one line");

/* A counter that runs alike on all CPUs. */
static inline uint64_t spool_ticks(void)
{
#if defined __x86_64__ || defined __i386__
    return __builtin_ia32_rdtsc();
#elif defined __aarch64__
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks << 4; /* 25 MHz to 1 GHz: finer than the shift would leave it */
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

#endif
