/* poison.h - memory that nobody may touch, told to AddressSanitizer.
 *
 * In a build with -fsanitize=address (the white-box tests, see api.h) what is free is poisoned: free blocks but for
 * mark and link, what is not carved, free granules and mappings, structures in no use. A program that touches such
 * memory is stopped at the access, and so is the allocator. Without the sanitizer the functions below are empty.
 */
#ifndef TLFL_POISON_H
#define TLFL_POISON_H

#include "base.h"

#ifdef __has_feature
#define POISON_FEATURE __has_feature(address_sanitizer)
#else
#define POISON_FEATURE 0
#endif

#if defined __SANITIZE_ADDRESS__ || POISON_FEATURE

#include <sanitizer/asan_interface.h>

#define POISON_ON 1

TLFL_INLINE void poison_set(const void *start, size_t bytes)
{
    __asan_poison_memory_region(start, bytes);
}

TLFL_INLINE void poison_lift(const void *start, size_t bytes)
{
    __asan_unpoison_memory_region(start, bytes);
}

#else

#define POISON_ON 0

TLFL_INLINE void poison_set(const void *start, size_t bytes)
{
    (void)start, (void)bytes;
}

TLFL_INLINE void poison_lift(const void *start, size_t bytes)
{
    (void)start, (void)bytes;
}

#endif

#endif
