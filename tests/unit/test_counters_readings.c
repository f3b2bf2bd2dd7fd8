/* Which raw counts stand: nothing multiplexed, negative, never run or silently zero becomes a number. */
#include "readings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void rules(void **state)
{
    static const struct {
        struct counter_reading reading;
        bool certain;
        const char *why;
    } cases[] = {
        {{10, 1000, 1000, true}, true, NULL},
        {{0, 1000, 1000, true}, false, NULL},
        {{10, 100000, 99500, true}, true, NULL}, /* within the tolerance */
        {{10, 100000, 98000, true}, true, "multiplexed: on the hardware for 98.0 %"},
        {{10, 1000, 0, true}, true, "never on the hardware"},
        {{10, 0, 0, true}, true, "never on the hardware"},
        {{(uint64_t)-3, 1000, 1000, true}, true, "negative (-3)"},
        {{0, 1000, 1000, true}, true, "silent zero"},
        {{10, 1000, 2000, true}, true, "longer than it was enabled"},
        {{10, 1000, 1000, false}, true, "could not be read"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char why[COUNTER_REASON_MAX] = "";
        bool stands = reading_stands(&cases[i].reading, cases[i].certain, why);
        assert_int_equal(stands, cases[i].why == NULL);
        if (!stands && strstr(why, cases[i].why) == NULL)
            fail_msg("case %zu: '%s' lacks '%s'", i, why, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
