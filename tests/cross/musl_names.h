/* musl_names.h - what the conformance tests call and musl's <malloc.h> does not declare. */
#ifndef MUSL_NAMES_H
#define MUSL_NAMES_H

#include <stddef.h>

void *pvalloc(size_t size);
int malloc_trim(size_t pad);

#endif
