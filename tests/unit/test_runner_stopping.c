/* Stopping by width: the looks, the interval, the decisions, and how often the interval that a run stops with holds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stopping.h"

/* Bounds of the median as tables of the sign test have them. */
static void intervals(void **state)
{
    double x[20], low, high;
    (void)state;
    for (int i = 0; i < 20; i++)
        x[i] = i + 1;
    assert_false(order_interval(x, 5, 0.95, &low, &high)); /* 1 - 2 / 32 = 93.75 % */
    assert_true(order_interval(x, 6, 0.95, &low, &high));  /* 1 - 2 / 64 = 96.9 % */
    assert_true(low == 1 && high == 6);
    assert_true(order_interval(x, 10, 0.95, &low, &high));
    assert_true(low == 2 && high == 9);
    assert_true(order_interval(x, 20, 0.95, &low, &high));
    assert_true(low == 6 && high == 15);
    assert_true(order_interval(x, 20, 0.99, &low, &high));
    assert_true(low == 4 && high == 17);
    assert_false(order_interval(x, 0, 0.95, &low, &high));
}

static void looks(void **state)
{
    struct stopping s;
    (void)state;
    for (uint64_t most = 1; most <= 2000; most++) {
        const bool room = stopping_plan(&s, 0.05, 1, most);
        assert_int_equal(room, most >= 6 ? 1 : 0);
        if (!room)
            continue;
        double x[2000] = {0}, low, high;
        assert_true(s.look[s.looks - 1] == most);
        assert_true(fabs(s.confidence - (1 - 0.05 / (double)s.looks)) < 1e-12);
        assert_true(order_interval(x, s.look[0], s.confidence, &low, &high)); /* every look has an interval */
        for (size_t i = 1; i < s.looks; i++)
            assert_true(s.look[i] > s.look[i - 1]);
    }
    assert_true(stopping_plan(&s, 0.05, 20, 45));
    assert_int_equal(s.looks, 3);
    assert_true(s.look[0] == 20 && s.look[1] == 30 && s.look[2] == 45);
    assert_false(stopping_plan(&s, 0.05, 20, 19));
}

static void decisions(void **state)
{
    struct stopping s;
    double steady[64], wild[64], none[64];
    (void)state;
    for (int i = 0; i < 64; i++) {
        steady[i] = 100 + 0.01 * i;
        wild[i] = i % 2 ? 100 : 200;
        none[i] = NAN;
    }
    assert_true(stopping_plan(&s, 0.05, 6, 64));
    assert_true(stopping_last(&s, steady, s.look[0] - 1) == 64); /* nothing is known before the first look */
    assert_true(stopping_last(&s, steady, s.look[0]) == s.look[0]);
    assert_true(stopping_last(&s, steady, 64) == s.look[0]);
    assert_true(stopping_last(&s, wild, 64) == 64);
    assert_true(stopping_last(&s, none, 64) == s.look[0]); /* it will not work the next time either */
    none[0] = 100;
    assert_true(stopping_last(&s, none, 64) == 64); /* one is no interval */
    for (uint64_t i = s.look[0]; i < 64; i++)
        steady[i] = 1e6; /* what comes after a look changes nothing about it */
    assert_true(stopping_last(&s, steady, 64) == s.look[0]);
    struct stopping without = {0};
    assert_true(stopping_last(&without, steady, 64) == UINT64_MAX);
}

static void json(void **state)
{
    struct stopping s, back;
    (void)state;
    assert_true(stopping_plan(&s, 0.03, 6, 100));
    json_t *text = stopping_json(&s);
    assert_true(stopping_read(text, &back));
    assert_memory_equal(&s, &back, sizeof s);
    json_object_set_new(text, "confidence", json_real(0.95));
    assert_false(stopping_read(text, &back)); /* another level than its looks need */
    json_decref(text);
    s = (struct stopping){0};
    text = stopping_json(&s);
    assert_true(json_is_null(text) && stopping_read(text, &back));
    assert_true(back.width == 0);
    json_decref(text);
    assert_true(stopping_value("churn", "ok", "500", "100") == 5);
    assert_true(isnan(stopping_value("null", "ok", "500", "100")));
    assert_true(isnan(stopping_value("churn", "ok", "", "100")) && isnan(stopping_value("churn", "crash", "500", "100")));
}

/* Times of launches: none much below 86, a long tail above, the median at 100. Where the median of a few comes out low, they lie
 * close together, and the run would stop. */
static double draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    const double uniform = ((double)(*seed >> 11) + 0.5) / 0x1p53;
    return 100 + 20 * (-log(uniform) - M_LN2);
}

/* The share of runs whose interval at the stop holds the true median, at a level. */
static double coverage(const struct stopping *s, double confidence, int draws)
{
    double x[200], sorted[200], low, high;
    uint64_t seed = 20240607;
    int held = 0;
    for (int d = 0; d < draws; d++) {
        struct stopping rule = *s;
        rule.confidence = confidence;
        for (uint64_t i = 0; i < 200; i++)
            x[i] = draw(&seed);
        const uint64_t n = stopping_last(&rule, x, 200);
        memcpy(sorted, x, n * sizeof *x);
        for (uint64_t i = 1; i < n; i++) /* few and nearly sorted would do; any sort does */
            for (uint64_t j = i; j && sorted[j - 1] > sorted[j]; j--) {
                const double kept = sorted[j];
                sorted[j] = sorted[j - 1];
                sorted[j - 1] = kept;
            }
        assert_true(order_interval(sorted, n, confidence, &low, &high));
        held += low <= 100 && 100 <= high;
    }
    return (double)held / draws;
}

/* At the corrected level at least 95 %, wherever the runs stop. Looks after every launch at the plain level hold less
 * often, which shows that these draws would tell. 3000 runs tell 95 % to 0.4 points (one standard error). */
static void intervals_hold_at_the_stop(void **state)
{
    static const double widths[] = {0.1, 0.15, 0.2};
    double worst_plain = 1;
    (void)state;
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        struct stopping planned, every = {.width = widths[w], .looks = STOPPING_LOOKS_MAX};
        assert_true(stopping_plan(&planned, widths[w], 6, 200));
        for (size_t i = 0; i < every.looks; i++)
            every.look[i] = 6 + i;
        const double held = coverage(&planned, planned.confidence, 3000),
                     plain = coverage(&every, 0.95, 3000);
        if (held < 0.95)
            fail_msg("width %g: %.4f of the intervals hold, expected 0.95 at least", widths[w], held);
        worst_plain = plain < worst_plain ? plain : worst_plain;
    }
    if (worst_plain > 0.94)
        fail_msg("looks after every launch: %.4f hold, so that these draws would not tell", worst_plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(intervals), cmocka_unit_test(looks),
                                       cmocka_unit_test(decisions), cmocka_unit_test(json),
                                       cmocka_unit_test(intervals_hold_at_the_stop)};
    return cmocka_run_group_tests_name("runner_stopping", tests, NULL, NULL);
}
