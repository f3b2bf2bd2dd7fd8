/*
 * formula.h - a column as a formula over event counts: + - * / and parentheses, names and plain numbers.
 *
 * Held as a postfix program, so that evaluating it needs no memory but a small stack.
 */
#ifndef AK_FORMULA_H
#define AK_FORMULA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FORMULA_STEPS_MAX 24
#define FORMULA_WHY_MAX   128

/* kind: 'e' pushes count[event], '#' pushes number, + - * / take two and push one. */
struct formula_step {
    char     kind;
    uint8_t  event;
    double   number;
};

struct formula {
    struct formula_step step[FORMULA_STEPS_MAX];
    unsigned steps;
    uint32_t events; /* bit i: event i is used */
};

/* Number of the event called `name` (length n), or -1 if there is none. */
typedef int formula_lookup(const char *name, size_t n, void *user);

/* Compile `text`. 0, or -1 with `why` (unknown event, unbalanced parenthesis, too long, ...). */
int formula_compile(struct formula *formula, const char *text, formula_lookup *lookup, void *user,
                    char why[FORMULA_WHY_MAX]);

/* Evaluate on count[]. False where a division by zero leaves no value. */
bool formula_value(const struct formula *, const double *count, double *value);

#endif
