#include <string.h>

#include "clock.h"
#include "histogram.h"
#include "kernel.h"
#include "launch.h"
#include "memory.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CALIBRATION_NS 10000000u
#define READING_TRIES  16
#define OVERHEAD_PAIRS 4095
#define GRANULARITY_TRIES 1000

struct clock_facts clock_facts;

/* CPUID 0x80000007 EDX bit 8: the counter ticks at one rate in all power states (AMD APM vol. 3, Intel SDM vol. 3).
 * That the counters of all CPUs agree is the kernel's knowledge: it strikes tsc off this list where they do not. */
static bool tsc_is_usable(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    char sources[256];
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8) &&
           proc_read("/sys/devices/system/clocksource/clocksource0/available_clocksource", sources, sizeof sources) > 0 &&
           strstr(sources, "tsc") != NULL;
#else
    return false;
#endif
}

/* Both clocks at one moment: the reading of the system clock must not take long, or the thread was preempted
 * between the two; of a few tries the tightest counts. */
static void clocks_read(uint64_t *raw, uint64_t *ticks)
{
    uint64_t best = UINT64_MAX;
    for (unsigned i = 0; i < READING_TRIES; i++) {
        uint64_t before = clock_raw_ns(), now = clock_stop(), after = clock_raw_ns();
        if (after - before < best) {
            best = after - before;
            *raw = before + best / 2;
            *ticks = now;
        }
    }
}

static void clock_calibrate(void)
{
    uint64_t raw, ticks, raw_now, ticks_now;
    clocks_read(&raw, &ticks);
    while (clock_raw_ns() - raw < CALIBRATION_NS)
        ;
    clocks_read(&raw_now, &ticks_now);
    clock_facts.ns_per_tick = (double)(raw_now - raw) / (double)(ticks_now - ticks);
}

/* Without fences, since a fenced reading takes longer than some counters' step. */
static uint64_t reading(void)
{
#if defined(__x86_64__)
    if (clock_facts.tsc)
        return __builtin_ia32_rdtsc();
#endif
    return clock_raw_ns();
}

static uint64_t smallest_step(void)
{
    uint64_t smallest = UINT64_MAX;
    for (unsigned i = 0; i < GRANULARITY_TRIES || smallest == UINT64_MAX; i++) {
        uint64_t first = reading(), second = reading();
        if (second > first && second - first < smallest)
            smallest = second - first;
    }
    return smallest;
}

void clock_init(void)
{
    static struct hist pairs;

    clock_facts.tsc = tsc_is_usable();
    clock_facts.ns_per_tick = 1.0;
    if (clock_facts.tsc)
        clock_calibrate();
    clock_facts.granularity = smallest_step();
    for (unsigned i = 0; i < OVERHEAD_PAIRS; i++) {
        uint64_t start = clock_start();
        hist_add(&pairs, clock_stop() - start);
    }
    clock_facts.overhead_ticks = (uint64_t)hist_quantile(&pairs, 0.5);
}

double ak_now_ns(void)
{
    return launch.simulated ? 0 : clock_ns((double)clock_stop());
}
