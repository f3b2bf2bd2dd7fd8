/* tlfl.h - what the library exports beside the malloc family.
 *
 * A program may declare these by hand and look them up with dlsym(); nothing has to include this
 * file to use the allocator.
 */
#ifndef TLFL_H
#define TLFL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the library that serves malloc, with the variant it was built as, for instance
 * "0.1.0" or "0.1.0-locked". A static string; never NULL. */
const char *tlfl_version(void);

/* One figure of the allocator's own books, by name:
 *   "mapped"    bytes of address space obtained from the OS for blocks (chunks and huge blocks)
 *   "huge"      bytes of "mapped" that are huge blocks
 *   "metadata"  bytes of address space obtained for spans, heaps, chunks and map leaves
 *   "dirty"     bytes of free granules that may still be resident
 *   "free"      bytes of free granules, resident or not
 *   "spans"     number of spans in use
 *   "heaps"     number of heaps ever made (each serves one thread at a time)
 * Returns (size_t)-1 for any other name or NULL. Takes the central lock: not for a hot path. */
size_t tlfl_stat(const char *name);

/* The variants `clocked` and `locked-clocked` only: what the lock has come to, over all threads since the start. `takes`
 * of it, those that found it held; of some, `clocked`, the time spent waiting and the time held (clocked.h); what so
 * many readings of the clock take by themselves; and the clock now. Times are in its ticks. Exact while no other thread is
 * inside; takes the central lock, and does not count that. */
struct tlfl_lock_times {
    uint64_t takes, contended, clocked, wait, hold, readings, reading, now;
};
void tlfl_lock_times(struct tlfl_lock_times *times);

#ifdef __cplusplus
}
#endif

#endif
