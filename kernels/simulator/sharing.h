/*
 * sharing.h - true or false sharing: what cores did to each other's copies of one line.
 *
 * A line gets such a record when for the first time a core loses it to another core's store. From then on the record
 * knows which cores lost the line and have not come back, and for each of them the words that others have written
 * since. With a word a bit and a core a half word, a store is a few vector operations however many cores there are,
 * and there is no clock that could overflow. Lines that are never lost cost nothing.
 *
 * Method: M. Dubois et al., The detection and elimination of useless misses in multiprocessors, ISCA 1993.
 */
#ifndef AK_SIM_SHARING_H
#define AK_SIM_SHARING_H

#include "pool.h"
#include "cores.h"

#define SHARING_WORD 4 /* bytes */

typedef uint16_t words_t; /* a set of words of a line */

_Static_assert(MACHINE_LINE / SHARING_WORD == 16, "a bit for each word");

struct sharing {
    struct cores lost;
    words_t noted; /* words written by the line's present owner, already known to all */
    words_t written
        []; /* [cores]: what others wrote since the core lost the line; of no meaning for a core that did
                          not; kept for one that came back until it loses the line again */
};

/* The words that `size` bytes at an address touch; all in one line. */
static inline words_t words_of(uint64_t address, unsigned size)
{
    unsigned first = address % MACHINE_LINE / SHARING_WORD;
    unsigned last = (unsigned)((address + size - 1) % MACHINE_LINE / SHARING_WORD);
    return (words_t)((2u << last) - (1u << first));
}

/* Bytes of a record for so many cores. */
size_t sharing_bytes(unsigned cores);

/* A core becomes the one that may write. */
static inline void sharing_own(struct sharing *sharing)
{
    sharing->noted = 0;
}

/* A core loses the line to a store. */
static inline void sharing_lose(struct sharing *sharing, unsigned core)
{
    cores_add(&sharing->lost, core);
    sharing->written[core] = 0;
}

/* A core fetches the line: whether it had lost it. */
static inline bool sharing_return(struct sharing *sharing, unsigned core)
{
    bool lost = cores_has(&sharing->lost, core);
    cores_remove(&sharing->lost, core);
    return lost;
}

/* The owner writes words. */
void sharing_write(struct sharing *sharing, unsigned cores, unsigned writer, words_t words);

#endif
