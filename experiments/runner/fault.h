/*
 * fault.h - why something failed, as one line for the user and one exit code.
 *
 * Every function that can fail takes a struct fault and returns false (or NULL) after filling it; the command
 * prints it once. A second fault never overwrites the first: the cause is told, not its consequences.
 */
#ifndef AK_FAULT_H
#define AK_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/* Exit codes of ak. */
enum {
    AK_DONE = 0,
    AK_FAILED = 1,      /* a measured failure: rows that are not ok, violations found */
    AK_USAGE = 2,       /* wrong usage or a bad input file */
    AK_ENVIRONMENT = 3, /* the environment cannot do what was demanded */
};

#define FAULT_TEXT_MAX 1024

struct fault {
    int code; /* AK_DONE: no fault */
    char text[FAULT_TEXT_MAX];
};

/* Record the fault, printf-style, in one line. Always false, so that callers can return it. */
bool fault_set(struct fault *, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same for a place in a file: "file:line: ..." with exit code AK_USAGE. line 0: the file as a whole. */
bool fault_at(struct fault *, const char *file, unsigned line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Print the fault to stderr and return its exit code. */
int fault_print(const struct fault *);

#endif
