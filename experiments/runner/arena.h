/*
 * arena.h - memory that is given back all at once.
 *
 * A command builds its sweep, plan and tables in one arena and frees them at its end; what belongs to one
 * launch lives in a second arena that is emptied after each row. Memory comes zeroed. Running out of memory
 * ends the process with exit code 3: ak has nothing better to do then.
 */
#ifndef AK_ARENA_H
#define AK_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena_chunk;
struct arena {
    struct arena_chunk *chunks; /* newest first */
};

/* `bytes` of zeroed memory, aligned for any type. Never NULL. */
void *arena_alloc(struct arena *, size_t bytes);
char *arena_strdup(struct arena *, const char *);
char *arena_strndup(struct arena *, const char *, size_t length);
char *arena_printf(struct arena *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A copy of `count` elements of `size` bytes with room for one more after them: the next push of an array
 * that doubles. Returns `old` itself while count is not a power of two (there is room). */
void *arena_grow(struct arena *, void *old, size_t count, size_t size);
/* Give everything back; the arena can be used again. */
void arena_free(struct arena *);

#endif
