/* options.h - the command line of a kernel program: common options and the kernel's own, in one table. */
#ifndef AK_OPTIONS_H
#define AK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel.h"

/* Exit codes of every program of the suite. */
enum { EXIT_DONE = 0, EXIT_MEASURED_FAILURE = 1, EXIT_USAGE = 2, EXIT_ENVIRONMENT = 3 };

/* One option's value. `number` is valid for PARAM_INT and PARAM_SIZE. */
struct option_value {
    const struct param *param;
    const char *fallback; /* the kernel's default, else the table's */
    const char *text;
    uint64_t    number;
    bool        given;  /* on the command line, not by default */
    bool        common; /* of every kernel, not this one's own */
};

/* Flags that take no value. */
struct option_flags {
    bool json, probe, check, describe, help, no_alloc;
};

extern struct option_flags options;

/* Parse argv against the common table and the kernel's. Returns 0, or EXIT_USAGE after one line on stderr that
 * says what was wrong, what was expected, and the nearest name for an unknown option. */
int options_parse(int argc, char **argv);

/* The value of an option by name, or NULL. */
const struct option_value *option(const char *name);
/* Walk the kernel's own parameters; NULL after the last. */
const struct option_value *option_own(unsigned index);

/* Make `threads` the number that a kernel sees, where it follows from the machine (own_threads). */
void option_threads_set(unsigned threads);

/* Parse a number with an optional suffix K, M or G (powers of `base`: 1000 or 1024) that must lie in
 * [min, max]. Returns 0, or -1 where it is none or out of range. */
int parse_number(const char *text, uint64_t base, uint64_t min, uint64_t max, uint64_t *number);

void options_print_help(void);
void options_print_description(void);

#endif
