/*
 * tree.h - the small site that is served: eight files of 200 B to 64 KiB whose bytes follow from a seed, and the
 * order in which a load asks for them. Whoever knows the seed knows every byte, so a load can check what it gets.
 *
 * No kernel.h: the load generator is a program of its own.
 */
#ifndef HTTP_TREE_H
#define HTTP_TREE_H

#include <stddef.h>
#include <stdint.h>

#define TREE_FILES    8
#define TREE_CYCLE    64    /* requests after which each file was asked for as often as its weight says */
#define TREE_SIZE_MAX 65536 /* bytes of the largest file */

struct tree_file {
    const char *path;   /* as in a request */
    uint32_t    size;   /* bytes */
    unsigned    weight; /* requests of a cycle */
};
extern const struct tree_file tree_file[TREE_FILES];

/* The contents of a file: tree_file[file].size bytes. */
void tree_fill(uint64_t seed, unsigned file, char *bytes);
/* Write all of them below a folder. 0, or -1 with `why`. */
int tree_make(const char *folder, uint64_t seed, char *why, size_t why_size);
/* The order of a cycle: indices of files, shuffled by the seed. */
void tree_order(uint64_t seed, uint8_t order[TREE_CYCLE]);

#endif
