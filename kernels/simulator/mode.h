/*
 * mode.h - how the accesses of many threads become one order: weave.h (fast; right about shared data) or timed.h (by
 * simulated time; right about locks, too). What the rest of the simulator asks of either.
 */
#ifndef AK_SIM_MODE_H
#define AK_SIM_MODE_H

#include "protocol.h"

struct mode {
    const char *name;
    /* The calling thread, on core 0, becomes the first to have turns. `cpu` is the host's, that all threads share. */
    void (*begin)(unsigned thread, unsigned cpu);
    void (*born)(unsigned thread, unsigned core); /* by its creator, whose turn it is */
    void (*join)(unsigned thread);                /* the first thing it does; returns at its first turn */
    void (*died)(unsigned thread, const volatile uint32_t *gone);

    /* The thread has nothing better to do: a PAUSE, sched_yield. */
    void (*idle)(unsigned thread);
    /* See turns_wait; the end is a time as of now_ns, or TURNS_NEVER. */
    bool (*wait)(unsigned thread, uint64_t key, uint32_t mask, uint64_t end_ns);
    void (*wake)(unsigned thread, uint64_t key, uint32_t mask, unsigned most);
    void (*go_outside)(unsigned thread);
    void (*come_back)(unsigned thread);
    uint64_t (*now_ns)(unsigned thread); /* simulated; never goes back */

    void (*move)(unsigned thread, unsigned core);
    void (*forget)(unsigned thread, uint64_t address, uint64_t bytes);
    void (*bind)(unsigned thread, uint64_t address, uint64_t bytes, uint64_t mask);

    void (*region)(unsigned thread, bool start);
    void (*read)(unsigned thread, struct sim_reading *reading); /* what its regions came to */
    void (*times)(struct sim_times *times);                     /* NULL: the mode has no clock */
};

extern const struct mode weave_mode, timed_mode;

/* What both are built with. `instructions` are counted by QEMU, of all threads together; `quantum` is that of
 * struct sim_hello. */
struct mode_setting {
    struct machine machine;
    struct model *model;
    const uint64_t *instructions;
    uint32_t quantum;
    uint64_t seed;
};
void weave_init(const struct mode_setting *setting);
void timed_init(const struct mode_setting *setting);

#endif
