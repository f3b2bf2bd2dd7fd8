/*
 * buildid.h - what tells builds of a library or program apart, read from the file: the runner does not take a
 * kernel's word.
 */
#ifndef AK_BUILDID_H
#define AK_BUILDID_H

#include "arena.h"

/* The build-id of a 64-bit ELF file in hexadecimal; "" if it has none; NULL with *why where the file is no
 * such. */
char *elf_build_id(struct arena *, const char *path, const char **why);
/* Size, time of change and inode of a file: what stands for a build-id where there is none. "" if it is gone. */
char *file_stamp(struct arena *, const char *path);

#endif
