/*
 * compare_verdict.h - whether another allocator is worth it, in words.
 *
 * On ratios to the default with 95 % intervals, in this order:
 *   worth it        the whole interval of time is at 0.98 or below; or that of peak memory is at 0.90 or below, and
 * time
 *                   is at 1.02 or below
 *   costs memory    time as above, but the whole interval of peak memory is at 1.10 or above, and by 1 MiB or more
 *   not worth it    the whole interval of time is above 0.98; or it is undecided, and malloc and free take less than
 * a tenth
 *                   of the CPU samples under the default: the published rule is that a swap is worth trying where they
 *                   take a double-digit share
 *   cannot tell yet anything else, with the number of launches that would tell; and a gain in time that nothing
 *                   explains: malloc and free take less than a tenth of the samples, and CPU time did not fall with it
 *   not measured    no pair of launches ended well
 */
#ifndef AK_COMPARE_VERDICT_H
#define AK_COMPARE_VERDICT_H

#include "arena.h"
#include "compare_stats.h"

#define VERDICT_TIME    0.98 /* a gain of less is none that somebody changes an allocator for */
#define VERDICT_NO_LOSS 1.02
#define VERDICT_SAVED   0.90 /* of peak memory */
#define VERDICT_COSTS   1.10
#define VERDICT_BYTES   (1 << 20)
#define VERDICT_SHARE   0.10 /* of the CPU samples in malloc and free: from here on a swap is worth trying */

enum verdict { VERDICT_WORTH, VERDICT_COSTS_MEMORY, VERDICT_NOT_WORTH, VERDICT_UNKNOWN, VERDICT_NONE };
extern const char *const verdict_words[];

struct verdict_facts {
    struct ratio time, memory;
    double memory_more; /* bytes at the peak above the default's, of the medians */
    double share;       /* of malloc and free under the default, 0 to 1; NAN: not known */
    struct ratio cpu;   /* of user and system time: can only take a gain in wall time back, and is told where that is open */
};

struct verdict_given {
    enum verdict verdict;
    uint64_t
        more; /* launches of each that would tell; 0: it is told; UINT64_MAX: more than anybody would wait for */
    const char *words; /* why, without the verdict's own words; in the arena */
};

struct verdict_given verdict_give(struct arena *, const struct verdict_facts *);

#endif
