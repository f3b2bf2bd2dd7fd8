/*
 * protocol.h - what a program inside the simulated machine says to it, and hears.
 *
 * A call is a system call of a number that no kernel has: natively it fails with ENOSYS, and only the counter back end
 * `sim` makes any. The simulator sees its arguments, and answers in memory.
 *
 *   SIM_HELLO  struct sim_hello *     filled in; untouched where there is no simulator
 *   SIM_BEGIN                         from here on one core runs at a time, in an order that the seed decides
 *   SIM_START, SIM_STOP               the caller's timed region
 *   SIM_READ   struct sim_reading *   what the caller's regions came to
 *   SIM_PATH   struct sim_path *      what calls that were marked by SIM_WATCH executed; untouched if none was watched
 *   SIM_TIMES  struct sim_times *     what the clock of timed mode says; untouched in weave mode, which has none
 *
 * Order of a run: HELLO, one thread started and joined (QEMU rebuilds its translations at the first one), BEGIN, then on
 * each worker START, STOP, READ.
 */
#ifndef AK_SIM_PROTOCOL_H
#define AK_SIM_PROTOCOL_H

#include "../harness/histogram.h"
#include "model.h"

#define SIM_CALL    0x51A0
#define SIM_VERSION 2

enum sim_op { SIM_HELLO = 1, SIM_BEGIN, SIM_START, SIM_STOP, SIM_READ, SIM_PATH, SIM_TIMES };

struct sim_hello {
    uint32_t version; /* SIM_VERSION */
    uint32_t cores, nodes, mhz;
    uint32_t timed;   /* 0: weave */
    uint32_t quantum; /* accesses a turn (weave), cycles of slack (timed) */
};

struct sim_reading {
    struct model_counts model;
    uint64_t instructions;
    uint64_t cycles; /* simulated time of the regions: instructions and what memory cost beyond the first level */
    uint64_t first, last; /* timed: cycles at which the first region began and the last one ended, of one clock */
    uint32_t core;
    uint32_t stirred; /* times that an order could not be kept: counts may differ from run to run */
};

/* A mark: an instruction that does nothing, with a number in it that the simulator sees when it translates it. */
#define SIM_MARK_BASE 0x51A00000
#if defined __x86_64__
#define SIM_MARK(number) __asm__ volatile("nopl %c0(%%rax,%%rax,1)" ::"i"(SIM_MARK_BASE + (number)) : "memory")
#else
#define SIM_MARK(number) ((void)(number))
#endif

/* Marks the next call that the program makes as one to be watched (anatomy.h). */
#define SIM_WATCH(watched) SIM_MARK(watched)
enum sim_watched { SIM_MALLOC = 1, SIM_FREE, SIM_WATCHED_MAX = SIM_FREE };

/* Around a call whose time is kept (latency.h). The two count neither as instructions nor as time. */
#define SIM_CALL_BEGINS()   SIM_MARK(SIM_BEGINS)
#define SIM_CALL_ENDS(call) SIM_MARK(SIM_ENDS + (call))
enum sim_timed { SIM_TIMED_NOTHING, SIM_TIMED_MALLOC, SIM_TIMED_FREE, SIM_TIMED_CALLS };
enum { SIM_BEGINS = 16, SIM_ENDS, SIM_TIME_MARKS_END = SIM_ENDS + SIM_TIMED_CALLS };

/* Of all threads together. */
struct sim_times {
    uint64_t first, last; /* cycles at which the first timed region of all began, the last one ended; 0: none did */
    uint32_t stirred;     /* as in struct sim_reading, by now */
    struct hist call[SIM_TIMED_CALLS]; /* cycles that marked calls took, by enum sim_timed */
};

/* The path that most calls took, from the first instruction of what was called to its return. */
struct sim_path {
    uint32_t watched; /* asked for: enum sim_watched */
    uint32_t calls;   /* that were watched */
    uint32_t taken;   /* of them took this path; 0: none was watched, and nothing below is filled in */
    uint32_t paths;   /* different ones */
    uint64_t executed; /* instructions of all calls */
    uint32_t instructions, loads, stores, atomics, thread_locals, branches; /* of this path */
    uint32_t lines, stack_lines; /* different lines that it touched, not on the stack and on it */
    uint32_t code_lines;         /* different lines that its instructions are in */
};

#endif
