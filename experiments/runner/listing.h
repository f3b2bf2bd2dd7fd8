/*
 * listing.h - what a call executed, instruction by instruction, in words: the simulator's file
 * (kernels/simulator/anatomy.h) with what objdump makes of the code.
 */
#ifndef AK_LISTING_H
#define AK_LISTING_H

#include "arena.h"
#include "fault.h"

#include <stdbool.h>
#include <stdint.h>

struct instruction {
    /* as it was executed */
    const char *bytes; /* hexadecimal */
    bool load, store, atomic, thread_local_, branch;
    const char *object; /* the file that it is of; "" if none */
    uint64_t offset;    /* in that */
    /* as the file has it */
    uint64_t address;
    const char *function; /* that it lies in; "" where the file has no name for it */
    uint64_t into;        /* bytes from the function's start */
    const char *text;     /* in objdump's words; "" for code of no file */
};

struct listing {
    struct instruction *instruction;
    size_t count;
};

/* Read the lines of a call ("malloc" or "free"); none are well. */
bool listing_read(struct arena *, const char *file, const char *call, struct listing *, struct fault *);
/* Fill in what the files have, by the program `objdump`. Fails where that shows other code than was executed.
 * `call` is the name that a function goes by if it has several. */
bool listing_decode(struct arena *, const char *launcher, const char *objdump, const char *call,
                    struct listing *, struct fault *);

#endif
