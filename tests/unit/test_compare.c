/* The pure parts of ak compare: ratios and their intervals, verdicts, the witness's words, what a program is. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "compare.h"
#include "compare_report.h"
#include "compare_witness.h"

static struct arena arena;

static int give_back(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

/* ---- ratios ---- */

static void ratios(void **state)
{
    (void)state;
    const double base[] = {1, 2, 4, 8, 16, 32}, twice[] = {2, 4, 8, 16, 32, 64};
    struct ratio r = ratio_of(twice, base, 6);
    assert_int_equal(r.pairs, 6);
    assert_float_equal(r.value, 2, 1e-12); /* paired: the rounds differ by more than the allocators */
    assert_float_equal(r.low, 2, 1e-12);
    assert_float_equal(r.high, 2, 1e-12);
    assert_float_equal(r.spread, 0, 1e-12);
    const double mixed[] = {1.1, 1.0, 0.9, 1.3, 1.2, 1.05}, ones[] = {1, 1, 1, 1, 1, 1};
    r = ratio_of(mixed, ones, 6);
    assert_float_equal(r.value, sqrt(1.05 * 1.1), 1e-12);
    assert_float_equal(r.low, 0.9, 1e-12); /* of six, the extremes */
    assert_float_equal(r.high, 1.3, 1e-12);
}

static void no_interval_under_six(void **state)
{
    (void)state;
    const double base[] = {1, 1, 1, 1, 1, NAN}, mine[] = {1, 2, 1, 2, 1, 2},
                 none[] = {NAN, NAN, 0, NAN, NAN, NAN};
    struct ratio r = ratio_of(mine, base, 6);
    assert_int_equal(r.pairs, 5);
    assert_true(isfinite(r.value));
    assert_true(isnan(r.low) && isnan(r.high));
    assert_int_equal(ratio_pairs_needed(&r, 0.98), 1);
    r = ratio_of(none, mine, 6);
    assert_int_equal(r.pairs, 0);
    assert_true(isnan(r.value) && isnan(r.spread));
    assert_int_equal(ratio_pairs_needed(&r, 0.98), 6);
}

/* More noise takes more launches, more distance fewer, and none ends in a number that nobody would wait for. */
static void launches_needed(void **state)
{
    (void)state;
    struct ratio r = {.pairs = 10, .value = 0.95, .low = 0.9, .high = 1, .spread = 0.05};
    const uint64_t some = ratio_pairs_needed(&r, 0.98);
    const double distance = log(0.95 / 0.98);
    assert_true(fabs((double)(some + 10) - pow(1.96 * 1.2533 * 0.05 / distance, 2)) <= 1.5);
    r.spread = 0.1;
    assert_true(ratio_pairs_needed(&r, 0.98) > some);
    r.value = 0.98;
    assert_true(ratio_pairs_needed(&r, 0.98) == UINT64_MAX);
    r.value = 0.5;
    assert_int_equal(ratio_pairs_needed(&r, 0.98), 1); /* enough by the spread, yet undecided: look on */
    r.pairs = 6;
    assert_int_equal(ratio_pairs_needed(&r, 0.98), 3); /* until the interval leaves out the extremes */
}

static void medians(void **state)
{
    (void)state;
    double some[] = {3, NAN, 1, 2, NAN}, even[] = {4, 1, 2, 3}, none[] = {NAN};
    assert_float_equal(median_of(some, 5), 2, 0);
    assert_float_equal(median_of(even, 4), 2.5, 0);
    assert_true(isnan(median_of(none, 1)));
    assert_true(isnan(median_of(none, 0)));
}

/* ---- verdicts ---- */

static const struct ratio no_change = {.pairs = 10, .value = 1, .low = 0.99, .high = 1.01, .spread = 0.01};

static struct ratio cpu_is = {.value = NAN, .low = NAN, .high = NAN};

static enum verdict verdict_of(struct ratio time, struct ratio memory, double more, double share)
{
    const struct verdict_facts facts = {time, memory, more, share, cpu_is};
    struct verdict_given given = verdict_give(&arena, &facts);
    assert_true(*given.words);
    assert_int_equal(given.more > 0, given.verdict == VERDICT_UNKNOWN);
    return given.verdict;
}

static struct ratio between(double low, double value, double high)
{
    return (struct ratio){.pairs = 10, .value = value, .low = low, .high = high, .spread = 0.05};
}

static void verdicts(void **state)
{
    (void)state;
    const double mib = 1 << 20;
    assert_int_equal(verdict_of(between(0.90, 0.93, 0.97), no_change, 0, 0.3), VERDICT_WORTH);
    assert_int_equal(verdict_of(between(0.90, 0.93, 0.97), no_change, 0, NAN), VERDICT_WORTH);
    assert_int_equal(verdict_of(between(0.90, 0.93, 0.97), between(1.2, 1.3, 1.4), 10 * mib, 0.3),
                     VERDICT_COSTS_MEMORY);
    /* a larger share of next to nothing is no cost */
    assert_int_equal(verdict_of(between(0.90, 0.93, 0.97), between(1.2, 1.3, 1.4), mib / 2, 0.3),
                     VERDICT_WORTH);
    /* nor one that may be none */
    assert_int_equal(verdict_of(between(0.90, 0.93, 0.97), between(1.0, 1.3, 1.4), 10 * mib, 0.3),
                     VERDICT_WORTH);
    /* as fast, with less memory */
    assert_int_equal(verdict_of(no_change, between(0.6, 0.7, 0.8), -10 * mib, 0.3), VERDICT_WORTH);
    assert_int_equal(verdict_of(between(1.03, 1.05, 1.1), between(0.6, 0.7, 0.8), -10 * mib, 0.3),
                     VERDICT_NOT_WORTH);
    assert_int_equal(verdict_of(no_change, no_change, 0, 0.3), VERDICT_NOT_WORTH);
    assert_int_equal(verdict_of(between(1.1, 1.2, 1.3), no_change, 0, 0.3), VERDICT_NOT_WORTH);
    /* undecided: the rule decides where the share is known */
    assert_int_equal(verdict_of(between(0.90, 0.97, 1.05), no_change, 0, 0.3), VERDICT_UNKNOWN);
    assert_int_equal(verdict_of(between(0.90, 0.97, 1.05), no_change, 0, NAN), VERDICT_UNKNOWN);
    assert_int_equal(verdict_of(between(0.90, 0.97, 1.05), no_change, 0, 0.05), VERDICT_NOT_WORTH);
    /* measured beats the rule */
    assert_int_equal(verdict_of(between(0.90, 0.93, 0.97), no_change, 0, 0.05), VERDICT_WORTH);
    /* no interval, no verdict, whatever the share */
    const struct ratio few = {.pairs = 5, .value = 0.5, .low = NAN, .high = NAN, .spread = 0.01};
    assert_int_equal(verdict_of(few, few, 0, 0.05), VERDICT_UNKNOWN);
    const struct ratio nothing = {.value = NAN, .low = NAN, .high = NAN, .spread = NAN};
    assert_int_equal(verdict_of(nothing, nothing, NAN, 0.3), VERDICT_NONE);
    cpu_is = no_change; /* a gain that nothing explains */
    assert_int_equal(verdict_of(between(0.90, 0.93, 0.97), no_change, 0, 0.05), VERDICT_UNKNOWN);
    assert_int_equal(verdict_of(between(0.90, 0.93, 0.97), no_change, 0, 0.3), VERDICT_WORTH);
    cpu_is = between(0.90, 0.93, 0.97);
    assert_int_equal(verdict_of(between(0.90, 0.93, 0.97), no_change, 0, 0.05), VERDICT_WORTH);
    cpu_is = (struct ratio){.value = NAN, .low = NAN, .high = NAN};
}

static const char *words_of(struct ratio time, struct ratio cpu, enum verdict *verdict)
{
    const struct verdict_facts facts = {time, no_change, 0, 0.3, cpu};
    const struct verdict_given given = verdict_give(&arena, &facts);
    *verdict = given.verdict;
    return given.words;
}

/* CPU time is told where it is clear and time is not; it decides nothing. */
static void cpu_time(void **state)
{
    (void)state;
    const struct ratio open = between(0.8, 0.95, 1.1), less = between(0.9, 0.92, 0.95), none = {.low = NAN};
    enum verdict verdict;
    assert_non_null(strstr(words_of(open, less, &verdict), "CPU time is clearer: 8.0 % less"));
    assert_int_equal(verdict, VERDICT_UNKNOWN);
    assert_non_null(strstr(words_of(open, between(1.1, 1.2, 1.3), &verdict), "20.0 % more"));
    assert_int_equal(verdict, VERDICT_UNKNOWN);
    assert_null(strstr(words_of(open, open, &verdict), "CPU time"));
    assert_null(strstr(words_of(open, none, &verdict), "CPU time"));
    assert_null(strstr(words_of(less, less, &verdict), "CPU time"));
    assert_null(strstr(words_of(between(1.1, 1.2, 1.3), less, &verdict), "CPU time"));
}

/* ---- the witness ---- */

#define GOOD  "\t0\t/lib/good.so\tabcd\t"
#define OTHER "\t0\t/lib/other.so\tef01\t"

static void judge(const char *log, struct tree tree, struct reach *r)
{
    struct testimony t;
    testimony_read(&arena, log, strlen(log), &t);
    testimony_judge(&arena, &t, &tree, "/lib/good.so", "abcd", r);
}

static void served(void **state)
{
    (void)state;
    struct reach r;
    const struct tree tree = {.main_pid = 10, .cpu_us = 101000};
    judge("start\t10\t9\t1000" GOOD "/bin/gcc\n"
          "start\t11\t10\t500" GOOD "/bin/cc1\n"
          "end\t11\t10\t60000" GOOD "/bin/cc1\n"
          "end\t12\t10\t30000" GOOD "/bin/gcc\n" /* a fork that became nothing else */
          "end\t10\t9\t10000" GOOD "/bin/gcc\n",
          tree, &r);
    assert_int_equal(r.processes, 3);
    assert_int_equal(r.served, 3);
    assert_float_equal(r.share, 1, 0);
    assert_false(r.main_lost);
    assert_null(r.other);
    assert_string_equal(r.object, "/lib/good.so");
}

static void partly_served(void **state)
{
    (void)state;
    struct reach r;
    const struct tree tree = {.main_pid = 10, .cpu_us = 100000};
    judge("start\t10\t9\t1000" GOOD "/bin/sh\n"
          "end\t11\t10\t40000" OTHER "/bin/own\n"
          "end\t10\t9\t10000" GOOD "/bin/sh\n",
          tree, &r);
    assert_int_equal(r.processes, 2);
    assert_int_equal(r.served, 1);
    /* 48 ms of the 100 were in processes that said nothing, less 1 ms for the end of each that did */
    assert_float_equal(r.share, 10. / 98, 1e-9);
    assert_non_null(strstr(r.other, "/bin/own"));
    /* one whose free is of another object is not served */
    judge("end\t10\t9\t10000\t1\t/lib/good.so\tabcd\t/bin/sh\n", tree, &r);
    assert_int_equal(r.served, 0);
    /* nor one of another build */
    judge("end\t10\t9\t10000\t0\t/lib/good.so\tabce\t/bin/sh\n", tree, &r);
    assert_int_equal(r.served, 0);
}

/* `env -i program`: env tells of itself, what it becomes does not. */
static void lost(void **state)
{
    (void)state;
    struct reach r;
    struct tree tree = {.main_pid = 10, .cpu_us = 100000};
    judge("start\t10\t9\t1000" GOOD "/usr/bin/env\n", tree, &r);
    assert_true(r.main_lost);
    assert_int_equal(r.served, 0);
    assert_float_equal(r.share, 0, 0);
    assert_string_equal(r.main_seen, "/usr/bin/env");
    /* a server that a signal ended can say nothing: what it ran at last tells */
    tree.main_killed = true;
    tree.main_program = "/usr/bin/server";
    judge("start\t10\t9\t1000" GOOD "/usr/bin/env\n", tree, &r);
    assert_true(r.main_lost);
    assert_int_equal(r.served, 0);
    judge("start\t10\t9\t1000" GOOD "/usr/bin/server\n", tree, &r);
    assert_false(r.main_lost);
    assert_int_equal(r.served, 1);
    assert_float_equal(r.share, 1, 0);
    /* it became another program that tells too */
    judge("start\t10\t9\t1000" OTHER "/usr/bin/env\nstart\t10\t9\t2000" GOOD "/usr/bin/server\n", tree, &r);
    assert_int_equal(r.processes, 1);
    assert_int_equal(r.served, 1);
    judge("", tree, &r);
    assert_int_equal(r.processes, 0);
    assert_true(r.main_lost);
}

/* `sort n | head -3` and `timeout 1 program`: a signal ends the one that does the work, which tells no CPU time. */
static void killed(void **state)
{
    (void)state;
    struct reach r;
    const struct tree tree = {.main_pid = 10, .cpu_us = 305000};
    judge("start\t10\t9\t1000" GOOD "/bin/sh\n"
          "start\t11\t10\t50" GOOD "/bin/sh\n"
          "exec\t11\t10\t100" GOOD "/bin/sort\n"
          "start\t11\t10\t900" GOOD "/bin/sort\n"
          "start\t12\t10\t900" GOOD "/bin/head\n"
          "end\t12\t10\t1000" GOOD "/bin/head\n"
          "end\t10\t9\t2000" GOOD "/bin/sh\n",
          tree, &r);
    assert_int_equal(r.processes, 3);
    assert_int_equal(r.served, 3);
    assert_float_equal(r.share, 1, 0);
    assert_null(r.other);
    assert_string_equal(r.program, "/bin/sort"); /* what is left of the tree's time is its */
    /* of another object: no less unserved for its end */
    judge("start\t11\t10\t900" OTHER "/bin/sort\n"
          "end\t10\t9\t3000" GOOD "/bin/sh\n",
          tree, &r);
    assert_int_equal(r.served, 1);
    assert_float_equal(r.share, 3. / 304, 1e-9);
    assert_non_null(strstr(r.other, "/bin/sort"));
}

/* A child that became a program without the witness: it is named, and what is left of the tree's time is its. */
static void became_another(void **state)
{
    (void)state;
    struct reach r;
    const struct tree tree = {.main_pid = 10, .cpu_us = 104000};
    const char *const ways[] = {"exec", "spawn"};
    for (size_t i = 0; i < 2; i++) {
        judge(arena_printf(&arena,
                           "start\t10\t9\t1000" GOOD "/bin/sh\n%s\t11\t10\t0" GOOD
                           "./static\nend\t10\t9\t3000" GOOD "/bin/sh\n",
                           ways[i]),
              tree, &r);
        assert_int_equal(r.processes, 2);
        assert_int_equal(r.served, 1);
        assert_float_equal(r.share, 3. / 103, 1e-9);
        assert_non_null(strstr(r.other, "./static"));
        assert_false(r.main_lost);
    }
    /* beside one that a signal ended, nobody knows whose it is: to each the same */
    judge("start\t12\t10\t900" GOOD "/bin/sort\n"
          "exec\t11\t10\t0" GOOD "./static\n"
          "end\t10\t9\t3000" GOOD "/bin/sh\n",
          tree, &r);
    assert_int_equal(r.served, 2);
    assert_float_equal(r.share, 53. / 103, 1e-9);
    /* a spawned one's own start may come before the line of its spawn */
    judge("start\t11\t10\t900" GOOD "/bin/work\n"
          "spawn\t11\t10\t0" GOOD "work\n"
          "end\t11\t10\t101000" GOOD "/bin/work\n"
          "end\t10\t9\t3000" GOOD "/bin/sh\n",
          tree, &r);
    assert_int_equal(r.served, 2);
    assert_float_equal(r.share, 1, 0);
    judge("start\t10\t9\t1000" GOOD "/bin/env\nexec\t10\t9\t1000" GOOD "prog\n", tree, &r);
    assert_true(r.main_lost);
    assert_int_equal(r.served, 0);
    assert_string_equal(r.main_seen, "/bin/env");
    assert_string_equal(r.main_became, "prog");
}

/* Whatever stands in the log, nothing is believed that is no line. */
static void torn(void **state)
{
    (void)state;
    static const char *const bad[] = {"start\t10\t9\t1000" GOOD "/bin/sh",
                                      "end\n",
                                      "\n",
                                      "stop\t1\t1\t1" GOOD "x\n",
                                      "end\t-1\t1\t1" GOOD "x\n",
                                      "end\t1\t1\t1x" GOOD "x\n",
                                      "end\t99999999999\t1\t1" GOOD "x\n",
                                      "end\t1\t1\t1\t9\to\tb\tp\n"};
    struct testimony t;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        testimony_read(&arena, bad[i], strlen(bad[i]), &t);
        assert_int_equal(t.processes, 0);
        assert_int_equal(t.torn, 1);
    }
}

/* ---- what a program is ---- */

static const char *write_program(const char *name, const void *bytes, size_t length)
{
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, length, f), length);
    fclose(f);
    assert_int_equal(chmod(name, 0755), 0);
    return name;
}

static void targets(void **state)
{
    (void)state;
    struct target t;
    struct fault f = {0};
    char folder[] = "/tmp/ak-test-compare-XXXXXX", elf[64] = "\177ELF";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_true(target_find(&arena, "compare", "sh", &t, &f));
    assert_null(t.refusal);
    elf[4] = 1;
    assert_true(target_find(&arena, "compare", write_program("./a", elf, sizeof elf), &t, &f));
    assert_non_null(strstr(t.refusal, "32-bit"));
    elf[4] = 2;
    elf[18] = 1; /* of a machine that never was common */
    assert_true(target_find(&arena, "compare", write_program("./a", elf, sizeof elf), &t, &f));
    assert_non_null(strstr(t.refusal, "another kind of machine"));
    assert_true(target_find(&arena, "compare", write_program("./a", elf, 20), &t, &f));
    assert_non_null(strstr(t.refusal, "damaged"));
    write_program("./b c", "#!./a\n", 6);
    assert_true(target_find(&arena, "compare", "./b c", &t, &f));
    assert_non_null(strstr(t.refusal, "./b c is run by ./a"));
    assert_true(
        target_find(&arena, "compare", write_program("./d", "#!/usr/bin/env -S X=1 sh -u\n", 28), &t, &f));
    assert_null(t.refusal);
    assert_string_equal(t.path, "./d");
    static const char *const bad[][2] = {
        {"#!./e\n", "too deep"},   {"#!/nowhere/x\n", "not there"},
        {"#!\n", "names nothing"}, {"#!/usr/bin/env no-such-program\n", "not found"},
        {"echo\n", "neither"},     {"", "neither"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        f = (struct fault){0};
        assert_false(
            target_find(&arena, "compare", write_program("./e", bad[i][0], strlen(bad[i][0])), &t, &f));
        assert_int_equal(f.code, AK_USAGE);
        assert_non_null(strstr(f.text, bad[i][1]));
    }
    unlink("./a");
    unlink("./b c");
    unlink("./d");
    unlink("./e");
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- a comparison ---- */

/* What failed gives no number: not to medians, not to ratios, not to the CSV. */
static void failures_give_no_numbers(void **state)
{
    (void)state;
    char *command[] = {(char[]){"prog"}, (char[]){"it's, \"so\""}, NULL};
    struct contender contenders[2] = {
        {.name = "glibc", .label = "glibc", .version = "1", .real = "/l", .build_id = "", .no_share = "none"},
        {.name = "mine", .label = "mine", .version = "", .real = "/m", .build_id = "", .no_share = "none"}};
    struct compare_launch launches[14] = {{0}};
    struct comparison cmp = {.options = {.command = command, .runs = 7},
                             .target = {.program = "/bin/prog"},
                             .contender = contenders,
                             .contenders = 2,
                             .launch = launches,
                             .launches = 14,
                             .rounds = 7};
    for (size_t i = 0; i < 14; i++)
        launches[i] = (struct compare_launch){.contender = i % 2,
                                              .kind = KIND_TIMED,
                                              .round = i / 2 + 1,
                                              .wall_ns = i % 2 ? 300 : 600,
                                              .rss_peak_bytes = 1 << 20,
                                              .detail = "",
                                              .said = "",
                                              .started_at = ""};
    launches[3].status = COMPARE_FAILED; /* round 2 of mine */
    launches[3].wall_ns = 1;
    launches[3].detail = "exit status 3";
    launches[3].exit_code = 3;
    struct compare_summary s;
    compare_summarise(&arena, &cmp, 1, &s);
    assert_int_equal(s.ok, 6);
    assert_int_equal(s.failed, 1);
    assert_int_equal(s.wall.pairs, 6);
    assert_float_equal(s.wall.value, 0.5, 1e-12);
    assert_float_equal(s.wall_ns, 300, 0);
    assert_int_equal(s.given.verdict, VERDICT_WORTH);
    assert_string_equal(compare_command_text(&arena, &cmp), "prog 'it'\\''s, \"so\"'");
    struct buffer csv = {0};
    compare_csv(&cmp, &csv);
    assert_non_null(strstr(csv.data, "failed,exit status 3,3,,,,,,,,,,,,,,"));
    assert_null(strstr(csv.data, "nan"));
    buffer_free(&csv);
    json_t *json = compare_json(&arena, &cmp);
    assert_non_null(json);
    assert_int_equal(json_array_size(json_object_get(json, "failures")), 1);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(ratios, give_back),
        cmocka_unit_test_teardown(no_interval_under_six, give_back),
        cmocka_unit_test_teardown(launches_needed, give_back),
        cmocka_unit_test_teardown(medians, give_back),
        cmocka_unit_test_teardown(verdicts, give_back),
        cmocka_unit_test_teardown(cpu_time, give_back),
        cmocka_unit_test_teardown(served, give_back),
        cmocka_unit_test_teardown(partly_served, give_back),
        cmocka_unit_test_teardown(killed, give_back),
        cmocka_unit_test_teardown(became_another, give_back),
        cmocka_unit_test_teardown(lost, give_back),
        cmocka_unit_test_teardown(torn, give_back),
        cmocka_unit_test_teardown(targets, give_back),
        cmocka_unit_test_teardown(failures_give_no_numbers, give_back),
    };
    return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}
