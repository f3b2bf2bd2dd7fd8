/* base.h - attributes and the two units of memory that every file shares. */
#ifndef TLFL_BASE_H
#define TLFL_BASE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TLFL_LIKELY(x)   __builtin_expect(!!(x), 1)
#define TLFL_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TLFL_INLINE      static inline __attribute__((always_inline))
#define TLFL_NOINLINE    __attribute__((noinline))
#define TLFL_COLD        __attribute__((noinline, cold))
#define TLFL_TLS         _Thread_local __attribute__((tls_model("initial-exec")))

/* A granule is the unit of the address map and of the pool: one span covers whole granules, so the
 * granule of a block finds its span. 64 KiB keeps the map at 8 bytes per 64 KiB. */
#define GRANULE_SHIFT 16
#define GRANULE_SIZE  ((size_t)1 << GRANULE_SHIFT)

/* NUMA nodes that are told apart; node n is treated as n % NODES. */
#define NODES 16

/* Two lines, since the adjacent-line prefetcher moves lines in pairs: structures written by
 * different threads are kept this far apart. */
#define LINE_PAIR 128

/* Every block is aligned to this; also the smallest block, which has to hold a link and a mark. */
#define BLOCK_ALIGN 16

TLFL_INLINE size_t size_round(size_t n, size_t unit)
{
    return (n + unit - 1) & ~(unit - 1);
}

#endif
