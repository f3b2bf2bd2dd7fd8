/* readings.c - the rejection rules. Nothing is scaled or clamped: a doubtful count is no count. */
#include "readings.h"

#include <inttypes.h>
#include <stdio.h>

bool reading_stands(const struct counter_reading *r, bool certain, char why[COUNTER_REASON_MAX])
{
    if (!r->valid) {
        snprintf(why, COUNTER_REASON_MAX, "could not be read");
        return false;
    }
    if (r->value > INT64_MAX) {
        snprintf(why, COUNTER_REASON_MAX, "read negative (%" PRId64 ")", (int64_t)r->value);
        return false;
    }
    if (r->enabled_ns == 0 || r->running_ns == 0) {
        snprintf(why, COUNTER_REASON_MAX,
                 "was never on the hardware: another user holds the counters, or the "
                 "thread ran on a core of another type");
        return false;
    }
    double share = (double)r->running_ns / (double)r->enabled_ns;
    if (share < 1 - READING_TOLERANCE) {
        snprintf(why, COUNTER_REASON_MAX, "was multiplexed: on the hardware for %.1f %% of its time",
                 share * 100);
        return false;
    }
    if (share > 1 + READING_TOLERANCE) {
        snprintf(why, COUNTER_REASON_MAX, "claims to have run longer than it was enabled");
        return false;
    }
    if (certain && r->value == 0) {
        snprintf(why, COUNTER_REASON_MAX,
                 "read 0 although the thread ran: a silent zero (an emulated or blocked PMU)");
        return false;
    }
    return true;
}
