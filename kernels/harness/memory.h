/* memory.h - the harness's own memory, and what the kernel says is resident. Never the allocator under test. */
#ifndef AK_MEMORY_H
#define AK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One look at the process, all of its threads parked. */
struct resident {
    bool     known;      /* false: smaps_rollup cannot be read here; see resident_reason */
    uint64_t rss;        /* Rss: anonymous and file-backed */
    uint64_t lazy_free;  /* LazyFree: given back with MADV_FREE, still counted in rss */
    uint64_t huge;       /* AnonHugePages */
};

/* Read smaps_rollup of this process into a static buffer, without allocating, or of those under test (subject.h), added up:
 * pages that two of them share count twice. */
struct resident resident_now(void);
/* Why resident_now does not know; "" if it does. */
const char *resident_reason(void);
/* VmHWM of the same: the largest resident size at any moment; 0 where unknown. */
uint64_t resident_high_water(void);

/* Set the policy of `--numa` for the pages that the process touches from here on: local, interleave or bind:N.
 * Returns 0, or an exit code (2: no such policy, 3: refused by the system) with `why`. */
int memory_policy(const char *policy, char *why, size_t why_size);

/* Read a file of /proc or /sys into `buffer` (terminated): its length, or -1. No allocation. */
long proc_read(const char *path, char *buffer, size_t size);

#endif
