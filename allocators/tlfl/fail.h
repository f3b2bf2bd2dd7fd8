/* fail.h - the one way in which the allocator gives up. */
#ifndef TLFL_FAIL_H
#define TLFL_FAIL_H

#include "base.h"

/* Writes "tlfl: CALL(ADDRESS): WHY" as one line to standard error and aborts. Allocates nothing. */
_Noreturn void tlfl__fail(const char *call, const void *address, const char *why);

#endif
