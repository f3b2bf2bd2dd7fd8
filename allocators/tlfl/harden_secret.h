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
    uint64_t seal, freed; /* keys of seals: of all, and what those of freed blocks differ by */
    uint64_t chance;      /* where the random numbers of the threads begin */
} tlfl__secret;

/* Of this thread: a number from 1 on, 0 before its first call; and the state of its random numbers. */
extern TLFL_TLS uint32_t tlfl__thread_number;
extern TLFL_TLS uint64_t tlfl__thread_chance;

/* To be called before all else when tlfl__thread_number is 0: makes the secret if there is none. */
void tlfl__secret_enter(void);

TLFL_INLINE void secret_enter(void)
{
    if (TLFL_UNLIKELY(tlfl__thread_number == 0))
        tlfl__secret_enter();
}

#define WORD_ODD UINT64_C(0xd6e8feb86659fd93) /* many bits of either kind */

TLFL_INLINE uint64_t word_mix(uint64_t word)
{
    word = (word ^ word >> 32) * WORD_ODD;
    word = (word ^ word >> 32) * WORD_ODD;
    return word ^ word >> 32;
}

/* 0 to below - 1. */
TLFL_INLINE uint32_t chance(uint32_t below)
{
    tlfl__thread_chance += WORD_ODD;
    return (uint32_t)((word_mix(tlfl__thread_chance) >> 32) * below >> 32);
}

/* The seal of a live block; that of the same block when it is freed is seal_other of it, and the other way round. */
TLFL_INLINE uint64_t seal_make(const void *address, uint64_t what)
{
    return word_mix(((uintptr_t)address ^ tlfl__secret.seal) * WORD_ODD + what);
}

TLFL_INLINE uint64_t seal_other(uint64_t seal)
{
    return seal ^ tlfl__secret.freed;
}

/* Fills [at, end), and whether it is still filled. */
void tlfl__pattern_fill(char *at, const char *end);
bool tlfl__pattern_stands(const char *at, const char *end);

#endif
