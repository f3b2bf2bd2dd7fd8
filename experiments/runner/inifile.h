/*
 * inifile.h - an INI file with the line of every entry. inih splits the lines; what it would silently accept
 * (cut lines, empty names, repeated keys and sections, broken UTF-8) is refused here.
 */
#ifndef AK_INIFILE_H
#define AK_INIFILE_H

#include "arena.h"
#include "fault.h"

#include <stdbool.h>
#include <stddef.h>

struct ini_entry {
    const char *section; /* "" before the first [section] */
    const char *name, *value;
    unsigned line;
};
struct ini_section {
    const char *name;
    unsigned line;
};
/* Entries and sections in the order of the file; names unique within their section, sections unique. */
struct ini_file {
    const char *path;
    char *text; /* the whole file */
    size_t length;
    struct ini_entry *entry;
    size_t entries;
    struct ini_section *section;
    size_t sections;
};

/* Read and check; all memory in the arena. False with "file:line: what, expected what" (AK_USAGE). */
bool inifile_read(struct arena *, const char *path, struct ini_file *, struct fault *);
/* The entry, or NULL. */
const struct ini_entry *inifile_find(const struct ini_file *, const char *section, const char *name);
/* The whole of a regular file of at most `max` bytes, NUL-terminated; NULL with the fault. */
char *file_read(struct arena *, const char *path, size_t max, size_t *length, struct fault *);

#endif
