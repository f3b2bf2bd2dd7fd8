/* trace_show.h - what a trace holds, for a reader. */
#ifndef AK_TRACE_SHOW_H
#define AK_TRACE_SHOW_H

#include "arena.h"
#include "fault.h"

#include <stdbool.h>

/* Print it. AK_USAGE with the place in the file where it is none, AK_ENVIRONMENT where it cannot be read. */
bool trace_show(struct arena *, const char *path, struct fault *);

#endif
