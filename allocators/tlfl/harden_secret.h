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

TLFL_INLINE uint64_t word_mix(uint64_t from)
{
    from = (from ^ from >> 32) * WORD_ODD;
    return (from ^ from >> 32) * WORD_ODD;
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

/* Two words at a time: most of what this variant costs is here. All that holds the pattern ends where a pair does. */
typedef uint64_t pair __attribute__((vector_size(16), may_alias));
typedef uint64_t half __attribute__((may_alias)); /* of a pair */

/* Fills [at, end), whole pairs, and whether it is still filled: that is so if, and only if, the bits that all of them have
 * are the bits that any of them has. */
TLFL_INLINE void pattern_set(char *at, const char *end)
{
    const pair words = {tlfl__secret.pattern, tlfl__secret.pattern};
    pair *to = (pair *)at;
    if (((uintptr_t)end - (uintptr_t)at) & sizeof(pair))
        *to++ = words;
    for (; to != (const pair *)end; to += 2)
        to[0] = to[1] = words;
}

TLFL_INLINE bool pattern_holds(const char *at, const char *end)
{
    const pair *from = (const pair *)at;
    pair all = {tlfl__secret.pattern, tlfl__secret.pattern}, any = all;
    if (((uintptr_t)end - (uintptr_t)at) & sizeof(pair)) {
        all &= *from;
        any |= *from++;
    }
    for (; from != (const pair *)end; from += 2) {
        all &= from[0] & from[1];
        any |= from[0] | from[1];
    }
    all ^= any;
    return (all[0] | all[1]) == 0;
}

/* The same of [at, end) where a pair need not start at `at`: up to the first pair by words, of the first word by what
 * lies in it from `at` on. */
void tlfl__pattern_fill(char *at, const char *end);

TLFL_INLINE bool pattern_stands(const char *at, const char *end)
{
    const uint64_t pattern = tlfl__secret.pattern;
    size_t before = (uintptr_t)at % sizeof pattern;
    if (at == end)
        return true;
    const half *from = (const half *)(at - before);
    uint64_t differs = (*from++ ^ pattern) >> 8 * before;
    if ((uintptr_t)from % sizeof(pair) != 0)
        differs |= *from++ ^ pattern;
    return differs == 0 && ((const char *)from == end || pattern_holds((const char *)from, end));
}

#endif
