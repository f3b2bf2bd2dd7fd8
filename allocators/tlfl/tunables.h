/* tunables.h - mallopt(3), mallinfo(3), malloc_stats(3), malloc_info(3): what glibc lets a program set and ask.
 *
 * mallopt: none of glibc's parameters speaks of anything that is here (no heap top, no arenas, no threshold of its own for
 * mmap), so none is accepted: it returns 0 for each, as for a parameter it does not know. It never pretends.
 *
 * The others tell the books of tlfl_stat, taken one after the other: while other threads run they are a moment
 * apart, the sums hold all the same.
 *
 *   arena     bytes of address space from the OS for spans; uordblks + fordblks, always
 *   uordblks  bytes of spans in use: live blocks, and free ones of the same span, which belong to a thread
 *   fordblks  bytes that no span uses
 *   hblkhd    bytes of huge blocks, mappings of their own; freed ones that are kept for a while are in it
 *   keepcost  bytes that malloc_trim could give back at once: free and not purged yet
 *   ordblks   0, as the others: nothing here is counted that way, and a huge block is known by its bytes only
 *
 * mallinfo holds int: a figure that does not fit is INT_MAX.
 */
#ifndef TLFL_TUNABLES_H
#define TLFL_TUNABLES_H

#include <stdio.h>

#include "api.h"

#if defined TLFL_TEST && defined __GLIBC__
int API(mallopt)(int parameter, int value);
struct mallinfo2 API(mallinfo2)(void);
struct mallinfo API(mallinfo)(void);
void API(malloc_stats)(void);
int API(malloc_info)(int options, FILE *stream);
#endif

#endif
