/* latency.c - see latency.h. */
#include "latency.h"

#include <string.h>

#include "timed.h"

static struct hist kept[SIM_TIMED_CALLS];
static uint64_t began[TURNS_MAX]; /* by thread: its clock at the last SIM_BEGINS */

void latency_mark(unsigned thread, unsigned mark, uint64_t ahead)
{
    uint64_t clock = timed_clock(&timed_thread[thread]) - ahead;
    if (mark == SIM_BEGINS)
        began[thread] = clock;
    else
        hist_add(&kept[mark - SIM_ENDS], clock - began[thread]);
}

void latency_answer(struct hist call[SIM_TIMED_CALLS])
{
    memcpy(call, kept, sizeof kept);
}
