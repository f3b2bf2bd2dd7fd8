/* sizes.h - the table of sizes that kernels draw from, made before the timed region. */
#ifndef AK_SIZES_H
#define AK_SIZES_H

#include <stddef.h>
#include <stdint.h>

#define SIZE_TABLE_ENTRIES 4096u

/* Fill the table by `dist`: loguniform, uniform, fixed (every entry `min`) or file:PATH (lines `size weight`; blank
 * lines and # comments allowed). Entries are stratified (entry i is the quantile (i + u) / n), then shuffled, so that
 * the table's mean does not depend on luck. Returns 0, or an exit code with `why` (for a file: path:line). */
int sizes_fill(uint32_t table[SIZE_TABLE_ENTRIES], const char *dist, uint64_t min, uint64_t max, uint64_t seed, char *why,
               size_t why_size);

#endif
