#include "clock.h"
#include "histogram.h"
#include "kernel.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CALIBRATION_NS 10000000u
#define OVERHEAD_PAIRS 4095

struct clock_facts clock_facts;

/* CPUID 0x80000007 EDX bit 8: the counter ticks at one rate in all power states (AMD APM vol. 3, Intel SDM vol. 3). */
static bool tsc_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#else
    return false;
#endif
}

static void clock_calibrate(void)
{
    uint64_t raw = clock_raw_ns(), ticks = clock_stop(), raw_now;
    do
        raw_now = clock_raw_ns();
    while (raw_now - raw < CALIBRATION_NS);
    clock_facts.ns_per_tick = (double)(raw_now - raw) / (double)(clock_stop() - ticks);
}

static void step_note(uint64_t ticks)
{
    if (ticks != 0 && ticks < clock_facts.granularity)
        clock_facts.granularity = ticks;
}

void clock_init(void)
{
    static struct hist pairs;

    clock_facts.tsc = tsc_is_invariant();
    clock_facts.ns_per_tick = 1.0;
    if (clock_facts.tsc)
        clock_calibrate();

    uint64_t last = clock_stop();
    clock_facts.granularity = UINT64_MAX;
    for (unsigned i = 0; i < OVERHEAD_PAIRS; i++) {
        uint64_t start = clock_start(), stop = clock_stop();
        hist_add(&pairs, stop - start);
        step_note(stop - start);
        step_note(start - last);
        last = stop;
    }
    clock_facts.overhead_ticks = (uint64_t)hist_quantile(&pairs, 0.5);
}

double ak_now_ns(void)
{
    return clock_ns((double)clock_stop());
}
