/* harden_secret.c - see harden_secret.h. */
#include "harden_secret.h"

#ifdef TLFL_HARDENED

#include "lock.h"
#include "os.h"

#define PATTERN_BITS UINT64_C(0x8080808080808080) /* no zero, no ASCII, no address */

struct secret tlfl__secret;
TLFL_TLS uint32_t tlfl__thread_number;
TLFL_TLS uint64_t tlfl__thread_chance;

static void secret_make(void)
{
    tlfl__central_enter();
    if (!atomic_load_explicit(&tlfl__secret.ready, memory_order_relaxed)) {
        uint64_t words[4];
        tlfl__os_random(words, sizeof words);
        tlfl__secret.pattern = words[0] | PATTERN_BITS;
        tlfl__secret.seal = words[1];
        tlfl__secret.freed = words[2] | 1;
        tlfl__secret.chance = words[3];
        atomic_store_explicit(&tlfl__secret.ready, true, memory_order_release);
    }
    tlfl__central_leave();
}

TLFL_COLD void tlfl__secret_enter(void)
{
    static _Atomic uint32_t last;
    if (!atomic_load_explicit(&tlfl__secret.ready, memory_order_acquire))
        secret_make();
    uint32_t number = 1 + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
    tlfl__thread_chance = tlfl__secret.chance + word_mix(number);
    tlfl__thread_number = number;
}

static char pattern_byte(const char *at)
{
    return (char)(tlfl__secret.pattern >> ((uintptr_t)at % sizeof tlfl__secret.pattern * 8));
}

void tlfl__pattern_fill(char *at, const char *end)
{
    for (; (uintptr_t)at % sizeof(pair) != 0; at++)
        *at = pattern_byte(at);
    pattern_set(at, end);
}

#else

_Static_assert(GRANULE_SIZE != 0, "a translation unit is not empty in ISO C");

#endif
