/*
 * buildid.h - what a library's file says of itself, read from the file: the runner does not take a kernel's
 * word.
 */
#ifndef AK_BUILDID_H
#define AK_BUILDID_H

#include "arena.h"

/* The build-id of a 64-bit ELF file in hexadecimal; "" if it has none; NULL with *why where the file is no
 * such. */
char *elf_build_id(struct arena *, const char *path, const char **why);

#endif
