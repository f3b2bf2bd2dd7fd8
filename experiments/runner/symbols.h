/*
 * symbols.h - the names that an ELF file has for its code: those of its functions, from the full table where there is
 * one, else from that of the loader.
 */
#ifndef AK_SYMBOLS_H
#define AK_SYMBOLS_H

#include "arena.h"

#include <stdbool.h>
#include <stdint.h>

struct symbol {
    uint64_t start, size; /* addresses as the file has them, as objdump prints them */
    const char *name;
    bool exported; /* not of one source file alone */
};

/* A part of the file, and the address that it belongs at. */
struct segment {
    uint64_t offset, size, address;
};

struct symbols {
    struct symbol *symbol;
    size_t count;
    struct segment *segment;
    size_t segments;
};

/* False with *why where the file cannot be read or is no 64-bit ELF file. One without names is well. */
bool symbols_read(struct arena *, const char *path, struct symbols *, const char **why);
/* The address of a place in the file; false where none is loaded from there. */
bool symbols_address(const struct symbols *, uint64_t offset, uint64_t *address);
/* The function that an address lies in, or NULL. Of several names `wanted` if that is one; else one without an underscore
 * before it, a short one, the first by the alphabet. */
const struct symbol *symbols_find(const struct symbols *, uint64_t address, const char *wanted);

#endif
