/* cores.h - a set of cores: one bit each. */
#ifndef AK_SIM_CORES_H
#define AK_SIM_CORES_H

#include "machine.h"

#define CORES_WORDS (MACHINE_CORES_MAX / 64)

struct cores {
    uint64_t word[CORES_WORDS];
};

static inline void cores_add(struct cores *set, unsigned core)
{
    set->word[core / 64] |= UINT64_C(1) << core % 64;
}

static inline void cores_remove(struct cores *set, unsigned core)
{
    set->word[core / 64] &= ~(UINT64_C(1) << core % 64);
}

static inline bool cores_has(const struct cores *set, unsigned core)
{
    return set->word[core / 64] >> core % 64 & 1;
}

static inline bool cores_none(const struct cores *set)
{
    return (set->word[0] | set->word[1]) == 0;
}

/* Whether the two sets have a core in common. */
static inline bool cores_meet(const struct cores *a, const struct cores *b)
{
    return ((a->word[0] & b->word[0]) | (a->word[1] & b->word[1])) != 0;
}

/* Takes the lowest core out of a set that is not empty. */
static inline unsigned cores_pop(struct cores *set)
{
    unsigned w = set->word[0] == 0;
    unsigned core = w * 64 + (unsigned)__builtin_ctzll(set->word[w]);
    set->word[w] &= set->word[w] - 1;
    return core;
}

_Static_assert(CORES_WORDS == 2, "two words are written out above");

#endif
