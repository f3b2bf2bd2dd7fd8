/*
 * sim.c - counters of the simulated machine (kernels/simulator), which runs this very process; it is asked by calls that
 * no kernel knows (protocol.h).
 *
 * Spellings (groups/sim.txt, dialect sim): the members of struct model_counts, and of struct sim_reading. Each
 * counts what the worker's core did in its timed region.
 */
#include "counters.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../simulator/protocol.h"

/* Where a count lies in struct sim_reading. */
#define OF_MODEL(name) {#name, offsetof(struct sim_reading, model.name)}
static const struct sim_event {
    const char *name;
    size_t at;
} sim_events[] = {
    {"instructions", offsetof(struct sim_reading, instructions)},
    {"cycles", offsetof(struct sim_reading, cycles)},
    {"stirred", offsetof(struct sim_reading, stirred)},
    OF_MODEL(loads), OF_MODEL(stores), OF_MODEL(atomics), OF_MODEL(l1_miss), OF_MODEL(l2_miss), OF_MODEL(l3_miss),
    OF_MODEL(hitm_local), OF_MODEL(hitm_remote), OF_MODEL(true_sharing), OF_MODEL(false_sharing),
    OF_MODEL(invalidations), OF_MODEL(upgrades), OF_MODEL(cross_node), OF_MODEL(dram_local), OF_MODEL(dram_remote),
    OF_MODEL(zeroed),
};
#define SIM_EVENTS (sizeof sim_events / sizeof sim_events[0])

static struct {
    size_t n;
    const struct sim_event *event[COUNTER_EVENTS_MAX]; /* NULL: unknown */
} sim;

static bool sim_hello(struct sim_hello *hello)
{
    *hello = (struct sim_hello){0};
    syscall(SIM_CALL, SIM_HELLO, hello);
    return hello->version == SIM_VERSION;
}

static bool sim_available(char why[COUNTER_REASON_MAX])
{
    struct sim_hello hello;
    why[0] = '\0';
    if (sim_hello(&hello))
        return true;
    snprintf(why, COUNTER_REASON_MAX,
             hello.version == 0 ? "not inside the simulated machine: `ak run --counters sim` starts programs in it"
                                : "the simulated machine is of another version than this program: build again");
    return false;
}

static void *first_thread(void *nothing)
{
    return nothing;
}

/* The first thread makes QEMU translate anew, and stop all others for it: it has to come before they take turns. */
static int sim_prepare(const char *const *events, size_t n, unsigned threads, char why[COUNTER_REASON_MAX])
{
    struct sim_hello hello;
    pthread_t thread;
    if (sim_hello(&hello) && threads > hello.cores) {
        snprintf(why, COUNTER_REASON_MAX, "%u threads, and the simulated machine has %u cores", threads, hello.cores);
        return -1;
    }
    sim.n = n;
    for (size_t i = 0; i < n; i++) {
        sim.event[i] = NULL;
        for (size_t e = 0; e < SIM_EVENTS; e++)
            if (strcmp(sim_events[e].name, events[i]) == 0)
                sim.event[i] = &sim_events[e];
    }
    if (pthread_create(&thread, NULL, first_thread, NULL) != 0 || pthread_join(thread, NULL) != 0) {
        snprintf(why, COUNTER_REASON_MAX, "no thread could be started");
        return -1;
    }
    syscall(SIM_CALL, SIM_BEGIN);
    return 0;
}

static int sim_open(unsigned thread, char why[COUNTER_REASON_MAX])
{
    (void)thread, (void)why;
    return 0;
}

static void sim_start(unsigned thread)
{
    (void)thread;
    syscall(SIM_CALL, SIM_START);
}

static void sim_stop(unsigned thread)
{
    (void)thread;
    syscall(SIM_CALL, SIM_STOP);
}

static uint64_t sim_value(const struct sim_reading *reading, const struct sim_event *event)
{
    const char *at = (const char *)reading + event->at;
    return event->at == offsetof(struct sim_reading, stirred) ? *(const uint32_t *)at : *(const uint64_t *)at;
}

static void sim_read(unsigned thread, struct counter_reading *readings)
{
    struct sim_reading reading = {0};
    (void)thread;
    syscall(SIM_CALL, SIM_READ, &reading);
    for (size_t i = 0; i < sim.n; i++)
        readings[i] = (struct counter_reading){.valid = sim.event[i] != NULL,
                                               .value = sim.event[i] != NULL ? sim_value(&reading, sim.event[i]) : 0};
}

static void sim_close(unsigned thread)
{
    (void)thread;
}

static const char *sim_reason(size_t event)
{
    return sim.event[event] != NULL ? NULL : "the simulated machine does not count it";
}

extern const struct counter_backend counter_backend;
const struct counter_backend counter_backend = {
    .name = "sim",
    .dialect = "sim",
    .available = sim_available,
    .prepare = sim_prepare,
    .open = sim_open,
    .start = sim_start,
    .stop = sim_stop,
    .read = sim_read,
    .close = sim_close,
    .reason = sim_reason,
};
