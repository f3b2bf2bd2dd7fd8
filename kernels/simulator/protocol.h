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
 *
 * Order of a run: HELLO, one thread started and joined (QEMU rebuilds its translations at the first one), BEGIN, then on
 * each worker START, STOP, READ.
 */
#ifndef AK_SIM_PROTOCOL_H
#define AK_SIM_PROTOCOL_H

#include "model.h"

#define SIM_CALL    0x51A0
#define SIM_VERSION 1

enum sim_op { SIM_HELLO = 1, SIM_BEGIN, SIM_START, SIM_STOP, SIM_READ };

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

#endif
