/* malloc_usable_size as capacity, in a program built with _FORTIFY_SOURCE=3.
 *
 * The compiler takes a block to have the size that was asked for, and stops a checked call that goes beyond, whatever the
 * allocator says; that is between the program and its compiler. What programs do instead, and what has to work: hide where
 * the pointer comes from, or realloc to the usable size, which must not move the block.
 */
#undef _FORTIFY_SOURCE
#ifdef __OPTIMIZE__
#define _FORTIFY_SOURCE 3
#endif
#include "tap.h"

#include <malloc.h>

static char *hidden(char *block)
{
    __asm__ volatile("" : "+r"(block) : : "memory");
    return block;
}

int main(void)
{
    enum { MANY = 300 };
    static char *blocks[MANY];
    static size_t usable[MANY];
    bool good = true, stays = true, strings = true;
    tap_start(60);
#ifndef _FORTIFY_SOURCE
    tap_skip("capacity in a fortified program", "built without optimisation, so nothing is fortified");
    return tap_done();
#endif
    for (unsigned i = 0; i < MANY; i++) {
        blocks[i] = hidden(malloc(i * i));
        usable[i] = malloc_usable_size(blocks[i]);
        memset(blocks[i], (int)i, usable[i]);
    }
    for (unsigned i = 0; i < MANY; i++)
        for (size_t k = 0; k < usable[i]; k++)
            good &= blocks[i][k] == (char)i;
    tap_ok(good, "checked writes over all usable bytes of 300 blocks");
    for (unsigned i = 0; i < MANY; i++) {
        char *grown = realloc(blocks[i], usable[i]);
        stays &= grown == blocks[i];
        blocks[i] = grown;
        if (usable[i] == 0)
            continue;
        memset(grown, 'a', usable[i] - 1);
        grown[usable[i] - 1] = '\0';
        strings &= strlen(grown) == usable[i] - 1;
    }
    tap_promise(stays, "realloc to the usable size does not move them");
    tap_ok(strings, "they then hold strings of that length");
    for (unsigned i = 0; i < MANY; i++)
        free(blocks[i]);
    return tap_done();
}
