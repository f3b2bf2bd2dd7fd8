/* Formulas over event counts: precedence, what is refused, division by zero. */
#include "formula.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int lookup(const char *name, size_t n, void *user)
{
    static const char *const names[] = {"a", "b", "c_2"};
    (void)user;
    for (int i = 0; i < 3; i++)
        if (strlen(names[i]) == n && strncmp(names[i], name, n) == 0)
            return i;
    return -1;
}

static void values(void **state)
{
    static const struct {
        const char *text;
        double value;
        uint32_t events;
    } cases[] = {
        {"a", 6, 1},           {"a + b * c_2", 6 + 3 * 2, 7}, {"(a + b) * c_2", 18, 7},
        {"a - b - c_2", 1, 7}, {"a / b / c_2", 1, 7},         {"a*2+1", 13, 1},
        {"((b))", 3, 2},       {"64 * b / 8", 24, 2},         {" a+ 0.5 ", 6.5, 1},
    };
    const double count[] = {6, 3, 2};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct formula f;
        char why[FORMULA_WHY_MAX] = "";
        double value = -1;
        assert_int_equal(formula_compile(&f, cases[i].text, lookup, NULL, why), 0);
        assert_true(formula_value(&f, count, &value));
        assert_true(value == cases[i].value);
        assert_int_equal(f.events, cases[i].events);
    }
}

static void refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "ends where"},
        {"a +", "ends where"},
        {"unknown + a", "unknown event 'unknown'"},
        {"(a + b", "missing ')'"},
        {"a b", "unexpected 'b'"},
        {"a)", "unexpected ')'"},
        {"* a", "unexpected '*'"},
        {"a % b", "unexpected '%'"},
        {"a+a+a+a+a+a+a+a+a+a+a+a+a", "more than 24 steps"},
        {"(((((((((((((((((a)))))))))))))))))", "nested"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct formula f;
        char why[FORMULA_WHY_MAX] = "";
        assert_int_equal(formula_compile(&f, cases[i].text, lookup, NULL, why), -1);
        if (strstr(why, cases[i].why) == NULL)
            fail_msg("'%s': '%s' lacks '%s'", cases[i].text, why, cases[i].why);
    }
}

static void division_by_zero(void **state)
{
    struct formula f;
    char why[FORMULA_WHY_MAX];
    double value;
    (void)state;
    assert_int_equal(formula_compile(&f, "a / (b - b)", lookup, NULL, why), 0);
    assert_false(formula_value(&f, (const double[]){1, 2, 3}, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(refused),
        cmocka_unit_test(division_by_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
