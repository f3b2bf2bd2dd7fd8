/* api.h - names of the malloc family.
 *
 * The library defines malloc and its like. White-box tests (-DTLFL_TEST) link the same sources into
 * a program that keeps its own malloc; there the functions are called tlfl_test_malloc and so on. In
 * the variant `hardened` harden.c defines malloc and its like, and calls these as tlfl__inner_malloc and so on.
 */
#ifndef TLFL_API_H
#define TLFL_API_H

#include <malloc.h>
#include <stdlib.h>

#include "base.h"

#define TLFL_API __attribute__((visibility("default")))

#ifndef __GLIBC__ /* musl declares neither */
void *pvalloc(size_t size);
int malloc_trim(size_t pad);
#endif

#if defined TLFL_TEST
#define API(name) tlfl_test_##name
#elif defined TLFL_HARDENED
#define API(name)                tlfl__inner_##name
/* What tells of the books is the same in every variant. */
#define tlfl__inner_mallopt      mallopt
#define tlfl__inner_mallinfo     mallinfo
#define tlfl__inner_mallinfo2    mallinfo2
#define tlfl__inner_malloc_stats malloc_stats
#define tlfl__inner_malloc_info  malloc_info
void free_sized(void *pointer, size_t size);
void free_aligned_sized(void *pointer, size_t align, size_t size);
#else
#define API(name) name
#endif

#if defined TLFL_TEST || defined TLFL_HARDENED
void *API(malloc)(size_t size);
void API(free)(void *pointer);
void *API(calloc)(size_t count, size_t size);
void *API(realloc)(void *pointer, size_t size);
void *API(reallocarray)(void *pointer, size_t count, size_t size);
void *API(aligned_alloc)(size_t align, size_t size);
void *API(memalign)(size_t align, size_t size);
int API(posix_memalign)(void **pointer, size_t align, size_t size);
void *API(valloc)(size_t size);
void *API(pvalloc)(size_t size);
size_t API(malloc_usable_size)(void *pointer);
int API(malloc_trim)(size_t pad);
#endif

/* C23 */
void API(free_sized)(void *pointer, size_t size);
void API(free_aligned_sized)(void *pointer, size_t align, size_t size);

#endif
