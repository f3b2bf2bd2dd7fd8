/*
 * counters_hopeless.h - what can be told against a backend without loading its library.
 *
 * A child process and a library cost a launch 20 to 60 ms each; on a machine without a PMU that would be paid
 * by every launch of a sweep, for nothing.
 */
#ifndef AK_COUNTERS_HOPELESS_H
#define AK_COUNTERS_HOPELESS_H

#include "counters.h"

/* True, with `why`, if the backend called `name` cannot count hardware events here whatever its library says.
 * */
bool counters_hopeless(const char *name, char why[COUNTER_REASON_MAX]);

#endif
