/* harden.h - the variant `hardened`: a layer above the plain library that catches more misuse, for more time and memory.
 *
 * With -DTLFL_HARDENED the family of api.c has other names (api.h), and harden.c exports malloc and its like. It asks the
 * family below for more than it was asked for, and keeps what it checks around the user's bytes. The sources below are
 * the same, with all their checks; without the macro the files harden*.c are empty.
 *
 *   harden_secret.h  keys, random numbers, the pattern of bytes that are nobody's
 *   harden_small.h   small blocks: sealed heads, canaries, random order, quarantine
 *   harden_large.h   large blocks: between guard pages
 *   harden.c         the family
 *
 * What it adds, and at what cost beside a pair of malloc and free of the plain library:
 *
 *   what is freed is a live block, for certain   16 bytes before it and a hash at either end
 *   a write past a block or before it            8 bytes or more behind it, read by free; of a large block a fault
 *   a write after free                           the block is written and read once more, and kept from use for a while
 *   old contents                                 malloc zeroes, free overwrites
 *   placement that can be told                   up to 32 blocks of a class that wait, and two random numbers
 *   a large block after its free                 three system calls, and its pages are faulted in anew
 *   a wrong size told                            nothing
 *
 * A bare pair of malloc and free of 64 bytes takes ten times the instructions of the plain library.
 *
 * malloc_usable_size is the size asked for (1 for 0). malloc_trim gives back what waits and what is in quarantine too, and
 * so does a refusal of memory. A realloc that moves a large block copies it.
 *
 * There is no lock: what waits and what is in quarantine are slots of arrays, each changed by one exchange. What another
 * thread has in its hands while a thread forks is lost to the child, all else is whole.
 *
 * Not caught: reads past a small block (they show the pattern, then a neighbour); a write over a neighbour that skips
 * what lies between; a use of a freed small block that has left the quarantine.
 */
#ifndef TLFL_HARDEN_H
#define TLFL_HARDEN_H

#include "base.h"

/* What a misuse is called in the line that ends the process. */
#define WHY_FREE    "block is free already"
#define WHY_FOREIGN "not a block of this allocator, or free already"
#define WHY_INSIDE  "points into a block, not to its start"
#define WHY_HEAD    "no live block starts here, or what stands before it was overwritten"
#define WHY_BEFORE  "was written to before its start"
#define WHY_BEHIND  "was written to past its end"
#define WHY_STALE   "was written to after it was freed"
#define WHY_UNUSED  "was written to before it was handed out"
#define WHY_SIZE    "is not of the size told"
#define WHY_ALIGN   "is not of the alignment told"

/* Size that a live block was asked for; aborts on behalf of `call` when `pointer` is none or was overrun. */
size_t tlfl__harden_size(void *pointer, const char *call);

/* Frees a block that has to be of `size` bytes, and of `align` unless that is 0. NULL does nothing. */
void tlfl__harden_free(void *pointer, size_t align, size_t size, const char *call);

#endif
