/* musl_names.h - what the conformance tests use and musl's headers do not declare. */
#ifndef MUSL_NAMES_H
#define MUSL_NAMES_H

#include <stddef.h>
#include <unistd.h>

void *pvalloc(size_t size);
int malloc_trim(size_t pad);

#ifndef _SC_MINSIGSTKSZ
#define _SC_MINSIGSTKSZ (-1) /* sysconf then says that it does not know */
#endif

#endif
