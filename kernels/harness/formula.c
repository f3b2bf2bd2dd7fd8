/* formula.c - recursive descent into a postfix program. See formula.h. */
#include "formula.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16 /* nested parentheses; also bounds the evaluation stack */

struct parser {
    const char *at;
    struct formula *formula;
    formula_lookup *lookup;
    void *user;
    unsigned depth;
    char *why;
};

static int sum(struct parser *p);

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static int emit(struct parser *p, struct formula_step step)
{
    if (p->formula->steps == FORMULA_STEPS_MAX) {
        snprintf(p->why, FORMULA_WHY_MAX, "formula of more than %d steps", FORMULA_STEPS_MAX);
        return -1;
    }
    p->formula->step[p->formula->steps++] = step;
    return 0;
}

static int name(struct parser *p)
{
    const char *start = p->at;
    while (isalnum((unsigned char)*p->at) || *p->at == '_')
        p->at++;
    size_t n = (size_t)(p->at - start);
    int event = p->lookup(start, n, p->user);
    if (event < 0 || event > 31) {
        snprintf(p->why, FORMULA_WHY_MAX, "unknown event '%.*s'", (int)(n > 60 ? 60 : n), start);
        return -1;
    }
    p->formula->events |= UINT32_C(1) << event;
    return emit(p, (struct formula_step){.kind = 'e', .event = (uint8_t)event});
}

/* A name, a number, or a formula in parentheses. */
static int atom(struct parser *p)
{
    skip_blanks(p);
    if (*p->at == '(') {
        if (++p->depth > DEPTH_MAX) {
            snprintf(p->why, FORMULA_WHY_MAX, "more than %d nested parentheses", DEPTH_MAX);
            return -1;
        }
        p->at++;
        if (sum(p) != 0)
            return -1;
        skip_blanks(p);
        if (*p->at != ')') {
            snprintf(p->why, FORMULA_WHY_MAX, "missing ')'");
            return -1;
        }
        p->at++;
        p->depth--;
        return 0;
    }
    if (isalpha((unsigned char)*p->at) || *p->at == '_')
        return name(p);
    if (isdigit((unsigned char)*p->at)) {
        char *end = NULL;
        double number = strtod(p->at, &end);
        p->at = end;
        return emit(p, (struct formula_step){.kind = '#', .number = number});
    }
    if (*p->at == '\0')
        snprintf(p->why, FORMULA_WHY_MAX, "formula ends where an event name is expected");
    else
        snprintf(p->why, FORMULA_WHY_MAX, "unexpected '%c' in the formula", *p->at);
    return -1;
}

static int chain(struct parser *p, int (*operand)(struct parser *), const char *operators)
{
    if (operand(p) != 0)
        return -1;
    for (;;) {
        skip_blanks(p);
        char op = *p->at;
        if (op == '\0' || strchr(operators, op) == NULL)
            return 0;
        p->at++;
        if (operand(p) != 0 || emit(p, (struct formula_step){.kind = op}) != 0)
            return -1;
    }
}

static int product(struct parser *p)
{
    return chain(p, atom, "*/");
}

static int sum(struct parser *p)
{
    return chain(p, product, "+-");
}

int formula_compile(struct formula *formula, const char *text, formula_lookup *lookup, void *user,
                    char why[FORMULA_WHY_MAX])
{
    struct parser p = {.at = text, .formula = formula, .lookup = lookup, .user = user, .why = why};
    *formula = (struct formula){.steps = 0};
    if (sum(&p) != 0)
        return -1;
    skip_blanks(&p);
    if (*p.at != '\0') {
        snprintf(why, FORMULA_WHY_MAX, "unexpected '%c' after the formula", *p.at);
        return -1;
    }
    return 0;
}

bool formula_value(const struct formula *f, const double *count, double *value)
{
    double stack[FORMULA_STEPS_MAX];
    unsigned top = 0;
    for (unsigned i = 0; i < f->steps; i++) {
        const struct formula_step *s = &f->step[i];
        if (s->kind == 'e' || s->kind == '#') {
            stack[top++] = s->kind == 'e' ? count[s->event] : s->number;
            continue;
        }
        if (top < 2)
            return false; /* formula_compile makes no such program */
        double right = stack[--top], left = stack[top - 1];
        switch (s->kind) {
        case '+':
            left += right;
            break;
        case '-':
            left -= right;
            break;
        case '*':
            left *= right;
            break;
        default:
            if (right == 0)
                return false;
            left /= right;
        }
        stack[top - 1] = left;
    }
    if (top != 1)
        return false;
    *value = stack[0];
    return true;
}
