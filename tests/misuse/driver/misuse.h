/* misuse.h - what the misuse programs share. docs/misuse.md says what they are for and how an outcome is decided.
 *
 * One file a category; each defines `misuses`, a table of cases, and a function for every kind of body. A case runs in
 * a process of its own, under the allocator that is preloaded there. Nothing here allocates but what a case asks for.
 */
#ifndef MISUSE_H
#define MISUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How a body ends that was not stopped; the exit status of its process. */
enum end {
    END_MISSED = 40, /* the damage is there, or the hazard */
    END_HARMLESS,    /* nothing stopped it, and no damage was found */
    END_PREVENTED,   /* refused, or the hazard is looked for and absent */
    END_ABSENT,      /* the allocator does not offer the call */
    END_TRAPPED,     /* the bad access itself faulted */
    END_BROKEN       /* the case could not be set up */
};

/* A case. The three numbers are the body's arguments: the size of its blocks, where it goes wrong and by how much. */
struct misuse {
    const char *name;
    enum end (*body)(const struct misuse *);
    size_t size;
    ptrdiff_t at;
    size_t length;
    const char *stop; /* the defence that would stop it */
    const char *what; /* one line */
};

/* Ends with an entry without a name. */
extern const struct misuse misuses[];

/* ---- calls that the compiler cannot see through ---- */

extern void *(*volatile do_malloc)(size_t);
extern void *(*volatile do_calloc)(size_t, size_t);
extern void *(*volatile do_realloc)(void *, size_t);
extern void *(*volatile do_aligned)(size_t, size_t);
extern void (*volatile do_free)(void *);
extern size_t (*volatile do_usable)(void *);
extern void *(*volatile do_memset)(void *, int, size_t);
extern char *(*volatile do_strcpy)(char *, const char *);

/* do_free in another thread, which has ended on return. */
void free_in_thread(void *block);
void *malloc_in_thread(size_t size);
void in_thread(void *(*body)(void *), void *argument);

/* ---- accesses that the program has no right to: a fault in one of them, and only there, is END_TRAPPED ---- */

#define BAD_BYTE 0x41

void access_begin(const void *start, size_t length);
void access_end(void);
void bad_fill(void *start, int byte, size_t length);
void bad_write(void *start, uintptr_t word);
uintptr_t bad_read(const void *start);
void bad_copy(void *to, const void *start, size_t length);

/* ---- a row: neighbours of one size, each filled with a byte of its own ---- */

#define ROW_MAX 64

extern char *row[ROW_MAX];
extern int row_count;

/* ROW_MAX small blocks, or a few large ones. */
void row_make(size_t size);

/* The two that lie closest to each other: row[*lower] and row[*upper]. */
void row_closest(int *lower, int *upper);

/* Whether a block of the row is not as it was filled; row[except] does not count, nor do NULLs. */
bool row_changed(int except);
void row_free(void);

/* ---- after the misuse ---- */

/* From now on aftermath is also true when a block is handed out in which the last word of what was written at `place`
 * still stands. */
void watch(const void *place, size_t length);

/* Allocates and writes as a program would that goes on: many blocks of `size`, some of sizes around it. True when two
 * blocks that are live at once overlap: each other, the row, or what was kept. */
bool aftermath(size_t size);

/* A live block or other memory that no malloc may hand out. */
void keep(const void *start, size_t length);

/* Allocates and frees one block of `size` many times, so that what is held back is let go. */
void churn(size_t size);

/* ---- secrets ---- */

/* Fills a block with a word that stands nowhere else in the process. */
void secret_fill(void *block, size_t size);
bool secret_in(const void *start, size_t length);

/* Whether some memory of the process that can be written holds it. */
bool secret_anywhere(void);

#endif
