/* harden_secret.h - what only this process knows: keys and random numbers, and the pattern made of one.
 *
 * The pattern is a word that fills all bytes that are nobody's: around blocks, and in freed ones. No byte of it is zero or
 * ASCII, so that neither a text nor its end matches it, and as an address it is none. The byte at an address depends on
 * the address alone, so pieces of it fit together.
 *
 * A seal is a hash of an address, what is said about it and a key: it cannot be made up, and one that was copied from
 * elsewhere is wrong. The hash is a fast one, no cryptographic one: who can read many seals may find out the key.
 */
#ifndef TLFL_HARDEN_SECRET_H
#define TLFL_HARDEN_SECRET_H

#include <string.h>

#include "base.h"

/* Written once, before `ready`. */
extern struct secret {
    _Atomic bool ready;
    uint64_t pattern;
    uint64_t seal, freed; /* keys of seals; the second one tells those of freed blocks */
    uint64_t chance;      /* key of the random numbers */
} tlfl__secret;

/* Of this thread: a number from 1 on, 0 before its first call; and how many random numbers it has drawn. */
extern TLFL_TLS uint64_t tlfl__thread_number, tlfl__thread_draws;

/* To be called before all else when tlfl__thread_number is 0: makes the secret if there is none. */
void tlfl__secret_enter(void);

TLFL_INLINE void secret_enter(void)
{
    if (TLFL_UNLIKELY(tlfl__thread_number == 0))
        tlfl__secret_enter();
}

TLFL_INLINE uint64_t word_mix(uint64_t word)
{
    const uint64_t odd = UINT64_C(0xd6e8feb86659fd93);
    word = (word ^ word >> 32) * odd;
    return (word ^ word >> 32) * odd;
}

/* 0 to below - 1: a hash of key, thread and count, so that what was drawn does not tell what comes next. */
TLFL_INLINE uint32_t chance(uint32_t below)
{
    uint64_t word = word_mix(tlfl__thread_draws++ + (tlfl__thread_number << 40));
    return (uint32_t)((word_mix(word ^ tlfl__secret.chance) >> 32) * below >> 32);
}

TLFL_INLINE uint64_t seal_make(const void *address, uint64_t what, bool live)
{
    return word_mix((word_mix((uintptr_t)address ^ tlfl__secret.seal) + what) ^
                    (live ? 0 : tlfl__secret.freed));
}

/* Fills [at, end), and whether it is still filled. */
void tlfl__pattern_fill(char *at, const char *end);
bool tlfl__pattern_stands(const char *at, const char *end);

#endif
