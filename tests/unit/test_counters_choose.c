/*
 * Choosing and collecting, with backends made for the purpose (fakes/backend.c): the order of `auto`,
 * libraries that abort, exit or hang, and every way in which a count is refused.
 */
#include "counters.h"

#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

extern char **environ;

static char dir[PATH_MAX], groups[PATH_MAX + 16];
static bool built;

static const char test_group[] = "family test\nwhat a test\nmatch any\n"
                                 "event one   papi=first likwid=first perf=first\n"
                                 "event two   papi=second likwid=second perf=second\n"
                                 "event three papi=third perf=third\n"
                                 "event four  papi=nofourth\n"
                                 "software soft perf=sw5\n"
                                 "column cycles = one | of the test\n"
                                 "column l3_access = two + three | of the test\n"
                                 "column l3_miss = two | of the test\n"
                                 "column hitm_local = four | of the test\n"
                                 "column l1d_miss = one - two * 3 | negative where all count alike\n"
                                 "column migrations = soft | of the test\n"
                                 "absent hitm_remote | a test has no sockets\n"
                                 "set near = cycles l3_miss\nset far = cycles l3_access hitm_local\n";

static void put(const char *name, const char *text)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", groups, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* The source tree that this test was built in. */
static void find_root(char root[PATH_MAX])
{
    char probe[PATH_MAX + 64];
    if (readlink("/proc/self/exe", root, PATH_MAX - 1) < 0)
        snprintf(root, PATH_MAX, "/");
    for (char *slash; (slash = strrchr(root, '/')) != NULL;) {
        *slash = '\0';
        snprintf(probe, sizeof probe, "%s/tests/unit/fakes/backend.c", root);
        if (access(probe, R_OK) == 0)
            return;
    }
    snprintf(root, PATH_MAX, ".");
}

/* Compile the fake once and lay it out as four backends. False where there is no compiler. */
static bool build_fakes(void)
{
    static const char *const names[] = {"papi", "likwid", "perf", "sim"};
    char root[PATH_MAX] = "", source[PATH_MAX + 64], include[PATH_MAX + 64], so[PATH_MAX + 64];
    const char *cc = getenv("CC") && *getenv("CC") ? getenv("CC") : "cc";
    find_root(root);
    snprintf(source, sizeof source, "%s/tests/unit/fakes/backend.c", root);
    snprintf(include, sizeof include, "-I%s/kernels/counters", root);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(so, sizeof so, "%s/%s.so", dir, names[i]);
        char *argv[] = {(char *)cc, "-D_GNU_SOURCE", "-fPIC", "-shared", include, source, "-o", so, NULL};
        pid_t pid;
        int status = 1;
        if (posix_spawnp(&pid, cc, NULL, NULL, argv, environ) != 0 || waitpid(pid, &status, 0) < 0 ||
            status != 0)
            return false;
    }
    return true;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "%s/ak-fakes-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(groups, sizeof groups, "%s", dir);
    put("test.txt", test_group);
    setenv("AK_COUNTERS_DIR", dir, 1);
    setenv("AK_GROUPS_DIR", groups, 1);
    setenv("AK_COUNTERS_DEADLINE_MS", "500", 1);
    built = build_fakes();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    return rmdir(dir);
}

static int fakes(const char *papi, const char *likwid, const char *perf)
{
    setenv("FAKE_papi", papi, 1);
    setenv("FAKE_likwid", likwid, 1);
    setenv("FAKE_perf", perf, 1);
    unsetenv("AK_COUNTERS_SET");
    if (!built) {
        print_message("skipped: no compiler for the fake backends (CC)\n");
        skip();
    }
    return 0;
}

/* Choose, count on `threads` threads, and give the result. */
static const struct counter_result *count(const char *name, unsigned threads)
{
    char why[COUNTER_REASON_MAX] = "";
    int rc = counters_choose(name, threads, why);
    if (rc != 0)
        fail_msg("%s: %d, %s", name, rc, why);
    for (unsigned t = 0; t < threads; t++) {
        counters_open(t);
        counters_start(t);
        counters_stop(t);
        counters_collect(t);
        counters_close(t);
    }
    return counters_result();
}

static void lacks(const struct counter_result *r, enum counter_column c, const char *why)
{
    if (r->have[c] || strstr(r->column_reason[c], why) == NULL)
        fail_msg("%s: have %d, '%s' lacks '%s'", counter_column_name[c], r->have[c], r->column_reason[c],
                 why);
}

static void order_of_auto(void **state)
{
    (void)state;
    fakes("hardware", "hardware", "hardware");
    assert_string_equal(count("auto", 1)->backend, "fake");
    assert_true(counters_result()->have[COUNTER_L3_ACCESS]); /* the dialect of papi has all its events */

    fakes("absent", "hardware", "hardware");
    const struct counter_result *r = count("auto", 1);
    assert_true(r->have[COUNTER_CYCLES]);
    lacks(r, COUNTER_L3_ACCESS, "gives no event"); /* likwid's lacks the third */
    assert_non_null(strstr(r->reason, "papi: the fake is absent"));

    fakes("absent", "software", "hardware");
    r = count("auto", 1);
    assert_true(r->have[COUNTER_L3_ACCESS] && r->have[COUNTER_MIGRATIONS]); /* perf */
    assert_non_null(strstr(r->reason, "likwid: the fake has software events only"));

    fakes("absent", "absent", "software");
    r = count("auto", 1);
    assert_true(r->have[COUNTER_MIGRATIONS]);
    assert_true(r->value[COUNTER_MIGRATIONS] == 1000);
    lacks(r, COUNTER_CYCLES, "software events only");
    assert_non_null(strstr(r->reason, "perf: software events only"));

    fakes("absent", "absent", "absent");
    r = count("auto", 1);
    assert_string_equal(r->backend, "none");
    for (int c = 0; c < COUNTER_COLUMNS; c++)
        lacks(r, c, "no backend counts");
    assert_non_null(
        strstr(r->reason, "papi: the fake is absent; likwid: the fake is absent; perf: the fake is absent"));
}

static void broken_libraries(void **state)
{
    (void)state;
    fakes("abort", "exit", "hardware");
    const struct counter_result *r = count("auto", 1);
    assert_true(r->have[COUNTER_CYCLES]);
    assert_non_null(strstr(r->reason, "papi: died of signal 6"));
    assert_non_null(strstr(r->reason, "likwid: ended the process with exit code 7"));
    fakes("hang", "absent", "absent");
    r = count("auto", 1);
    assert_non_null(strstr(r->reason, "papi: gave no answer within 0.5 s"));
}

static void demanded(void **state)
{
    char why[COUNTER_REASON_MAX];
    (void)state;
    fakes("absent", "hardware", "hardware");
    assert_int_equal(counters_choose("papi", 1, why), -3);
    assert_string_equal(why, "the fake is absent");
    assert_int_equal(counters_choose("likwid", 1, why), 0);
    assert_int_equal(counters_choose("vtune", 1, why), -2);
    assert_non_null(strstr(why, "unknown counter backend 'vtune'"));
    assert_int_equal(counters_choose("none", 1, why), 0);
    assert_string_equal(counters_result()->backend, "none");
    assert_int_not_equal(counters_result()->reason[0], '\0');
}

static void sums_and_meanings(void **state)
{
    (void)state;
    fakes("absent", "absent", "hardware");
    const struct counter_result *r = count("auto", 3);
    assert_true(r->value[COUNTER_CYCLES] == 3000);
    assert_true(r->value[COUNTER_L3_ACCESS] == 6000);
    assert_string_equal(r->meaning[COUNTER_CYCLES], "of the test");
    assert_true(r->enabled_ns == 15000 && r->running_ns == 15000);
    lacks(r, COUNTER_HITM_REMOTE, "a test has no sockets");
    lacks(r, COUNTER_HITM_LOCAL, "gives no event");
    lacks(r, COUNTER_L1D_MISS, "came out negative");
}

static void refusals(void **state)
{
    static const struct {
        const char *how, *why;
    } cases[] = {
        {"multiplexed", "first: was multiplexed: on the hardware for 50.0 %"},
        {"negative", "first: read negative (-5)"},
        {"zero", "first: read 0 although the thread ran"},
        {"never", "first: was never on the hardware"},
        {"unread", "first: could not be read"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fakes("absent", "absent", cases[i].how);
        const struct counter_result *r = count("perf", 2);
        lacks(r, COUNTER_CYCLES, cases[i].why);
        assert_true(r->have[COUNTER_L3_MISS]); /* the other events stand */
        assert_non_null(strstr(r->reason, cases[i].why + strlen("first: ")));
    }
    fakes("absent", "absent", "dead");
    const struct counter_result *r = count("perf", 1);
    assert_true(r->have[COUNTER_CYCLES]);
    lacks(r, COUNTER_L3_MISS, "second: read 0 here and in a trial");
    lacks(r, COUNTER_L3_ACCESS, "second: read 0 here and in a trial"); /* a sum with a dead part is no sum */
    fakes("absent", "absent", "noopen");
    r = count("perf", 2);
    lacks(r, COUNTER_CYCLES, "thread 1: the fake opens thread 0 only");
    fakes("hardware", "absent", "absent");
    r = count("papi", 1);
    lacks(r, COUNTER_HITM_LOCAL, "nofourth: the fake does not know it");
}

static void sets(void **state)
{
    (void)state;
    fakes("absent", "absent", "hardware");
    setenv("AK_COUNTERS_SET", "near", 1);
    const struct counter_result *r = count("perf", 1);
    assert_true(r->have[COUNTER_L3_MISS] && r->have[COUNTER_MIGRATIONS]);
    lacks(r, COUNTER_L3_ACCESS, "not in the set 'near'");
    setenv("AK_COUNTERS_SET", "3", 1); /* wraps around to the second */
    r = count("perf", 1);
    assert_true(r->have[COUNTER_L3_ACCESS]);
    lacks(r, COUNTER_L3_MISS, "not in the set 'far'");
}

/* The simulated machine: its own group file, no trial, and a 0 that stands. */
static void simulated(void **state)
{
    char why[COUNTER_REASON_MAX], file[PATH_MAX + 64];
    (void)state;
    fakes("hardware", "absent", "absent");
    put("sim.txt", "family sim\nwhat x\nmatch vendor=simulated\nsoftware first sim=first\nsoftware second sim=second\n"
                   "column cycles = first | of the test\ncolumn sim_cross_node = second | of the test\n"
                   "column sim_stirred = first | of the test\n");
    setenv("FAKE_sim", "absent", 1);
    assert_int_equal(counters_choose("sim", 1, why), -3);
    assert_string_equal(why, "the fake is absent");
    setenv("FAKE_sim", "zero", 1);
    const struct counter_result *r = count("sim", 3);
    assert_int_equal(r->columns, COUNTER_COLUMNS);
    assert_true(r->have[COUNTER_CYCLES] && r->value[COUNTER_CYCLES] == 0);
    assert_true(r->have[COUNTER_SIM_CROSS_NODE] && r->value[COUNTER_SIM_CROSS_NODE] == 3000);
    assert_true(r->have[COUNTER_SIM_STIRRED]);
    setenv("FAKE_sim", "never", 1); /* its events have no time on any hardware */
    assert_true(count("sim", 1)->have[COUNTER_CYCLES]);
    r = count("papi", 1);
    assert_int_equal(r->columns, COUNTER_NATIVE);
    assert_null(strstr(r->reason, "sim_"));
    snprintf(file, sizeof file, "%s/sim.so", dir);
    remove(file);
    assert_int_equal(counters_choose("sim", 1, why), -3);
    assert_string_equal(why, "not built: run make");
    snprintf(file, sizeof file, "%s/sim.txt", groups);
    remove(file);
}

static void malformed_groups(void **state)
{
    char why[COUNTER_REASON_MAX];
    (void)state;
    fakes("hardware", "absent", "absent");
    put("broken.txt", "family broken\nwhat x\nmatch model=1\nwrong\n");
    assert_int_equal(counters_choose("auto", 1, why), -2);
    assert_non_null(strstr(why, "broken.txt:4: unknown statement 'wrong'"));
    assert_int_equal(counters_choose("perf", 1, why), -2);
    assert_int_equal(counters_choose("none", 1, why), 0);
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/broken.txt", groups);
    remove(path);
    setenv("AK_GROUPS_DIR", "/no/such/folder", 1);
    assert_string_equal(count("auto", 1)->backend, "none");
    assert_non_null(strstr(counters_result()->reason, "/no/such/folder"));
    assert_int_equal(counters_choose("perf", 1, why), -3);
    setenv("AK_GROUPS_DIR", groups, 1);
}

struct seen {
    unsigned n;
    char text[1024];
};

static void note(const char *name, const char *what, bool can, const char *why, void *user)
{
    struct seen *s = user;
    assert_int_not_equal(what[0], '\0');
    size_t used = strlen(s->text);
    snprintf(s->text + used, sizeof s->text - used, "%s=%d(%s) ", name, can, why);
    s->n++;
}

static void survey(void **state)
{
    struct seen s = {.n = 0};
    (void)state;
    fakes("abort", "absent", "software");
    counters_survey(note, &s);
    assert_int_equal(s.n, 5);
    assert_non_null(strstr(s.text, "papi=0(died of signal 6"));
    assert_non_null(strstr(s.text, "likwid=0(the fake is absent)"));
    assert_non_null(strstr(s.text, "perf=1(software events only: the fake has software events only)"));
    assert_non_null(strstr(s.text, "sim=0(not built"));
    assert_non_null(strstr(s.text, "none=1()"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_of_auto),     cmocka_unit_test(broken_libraries), cmocka_unit_test(demanded),
        cmocka_unit_test(sums_and_meanings), cmocka_unit_test(refusals),         cmocka_unit_test(sets),
        cmocka_unit_test(simulated),         cmocka_unit_test(malformed_groups), cmocka_unit_test(survey),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
