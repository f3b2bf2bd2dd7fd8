/* Event group files: what they say, how a CPU is matched, what is malformed and where, and the shipped ones.
 * */
#include "groups.h"

#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[PATH_MAX];
static char path[PATH_MAX + 32];
static struct group group;

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "%s/ak-groups-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    return rmdir(dir);
}

static const char *put(const char *name, const char *text)
{
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

#define HEAD "family good\nwhat a CPU\nmatch any\n"

static void good_file(void **state)
{
    char why[COUNTER_REASON_MAX] = "";
    (void)state;
    put("good.txt", "# a comment\n" HEAD "\n"
                    "event  a  perf=cpu:0x1 papi=A:B:C # another\n"
                    "event  b  perf=cpu:0x2\r\n"
                    "software s perf=sw:cpu-migrations\n"
                    "column l3_miss = (a + b) / 2 | demand; core\n"
                    "column l3_miss = a | same\n"
                    "absent hitm_local | no event\n"
                    "set one = cycles l3_miss\n");
    group = (struct group){.n_texts = 0};
    assert_int_equal(group_parse(path, &group, why), 0);
    assert_string_equal(group.family, "good");
    assert_int_equal(group.n_events, 3);
    assert_string_equal(group.event[0].spelling[DIALECT_PAPI], "A:B:C");
    assert_string_equal(group.event[1].spelling[DIALECT_PERF], "cpu:0x2");
    assert_null(group.event[1].spelling[DIALECT_PAPI]);
    assert_true(group.event[2].software);
    assert_int_equal(group.n_columns, 2);
    assert_string_equal(group.column[1].meaning, "demand; core");
    assert_string_equal(group.absent[COUNTER_HITM_LOCAL], "no event");
    assert_int_equal(group.set[0].n, 2);
    group_drop(&group);
}

static void bad_files(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {HEAD "nonsense here\n", "bad.txt:4: unknown statement 'nonsense'"},
        {HEAD "event a\n", ":4: event 'a' has no spelling"},
        {HEAD "event a perf\n", ":4: expected DIALECT=SPELLING"},
        {HEAD "event a vtune=x\n", ":4: expected DIALECT=SPELLING"},
        {HEAD "event a perf=x perf=y\n", ":4: event 'a' is spelled twice"},
        {HEAD "event a perf=x\nevent a perf=y\n", ":5: event 'a' is defined twice"},
        {HEAD "column cycles = a | m\n", ":4: unknown event 'a'"},
        {HEAD "event a perf=x\ncolumn cycles = a\n", ":5: expected 'column NAME = FORMULA | MEANING'"},
        {HEAD "event a perf=x\ncolumn cycles = a | \n", ":5: expected"},
        {HEAD "event a perf=x\ncolumn cycles = 3 | m\n", "names no event"},
        {HEAD "event a perf=x\ncolumn cycles = a | same\n", ":5: 'same' without a line"},
        {HEAD "event a perf=x\ncolumn wheels = a | m\n", ":5: unknown column 'wheels'"},
        {HEAD "absent wheels | m\n", ":4: unknown column 'wheels'"},
        {HEAD "absent cycles\n", ":4: expected 'absent NAME | REASON'"},
        {HEAD "set s = cycles cycles\n", ":4: column 'cycles' stands twice"},
        {HEAD "set s = wheels\n", ":4: unknown column"},
        {HEAD "set s =\n", ":4: set 's' is empty"},
        {HEAD "set s cycles\n", ":4: expected 'set NAME"},
        {"family good\nwhat x\nmatch model=\n", ":3: expected 'match KEY=VALUE"},
        {"family good\nwhat x\nmatch model=9-3\n", ":3: expected 'match KEY=VALUE"},
        {"family good\nwhat x\nmatch model=-3\n", ":3: expected 'match KEY=VALUE"},
        {"family good\nwhat x\nmatch model=3,\n", ":3: expected 'match KEY=VALUE"},
        {"family good\nwhat x\nmatch speed=3\n", ":3: expected 'match KEY=VALUE"},
        {"family bad\nwhat x\n", "without a match line"},
        {"family bad\nmatch any\n", "without 'what TEXT'"},
        {"what x\nmatch any\n", "without 'family NAME'"},
        {"family other\nwhat x\nmatch any\n", "is not what the file is called"},
        {"family\n", ":1: expected text after 'family'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char why[COUNTER_REASON_MAX] = "";
        put("bad.txt", cases[i].text);
        group = (struct group){.n_texts = 0};
        int rc = group_parse(path, &group, why);
        group_drop(&group);
        if (rc != -2 || strstr(why, cases[i].why) == NULL)
            fail_msg("case %zu: rc %d, '%s' lacks '%s'", i, rc, why, cases[i].why);
    }
}

/* Text no one meant: whatever it is, the parser says no in words and touches nothing else. */
static void random_text(void **state)
{
    static const char alphabet[] = "event column set match family what = | ( ) + 0x cycles \n\n# \t\001\377";
    uint64_t seed = 1;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        char text[512], why[COUNTER_REASON_MAX] = "";
        size_t n = 0;
        while (n < sizeof text - 1) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[n++] = alphabet[(seed >> 33) % (sizeof alphabet - 1)];
        }
        text[n] = '\0';
        put("bad.txt", text);
        group = (struct group){.n_texts = 0};
        assert_int_equal(group_parse(path, &group, why), -2);
        assert_non_null(strstr(why, "bad.txt:"));
        group_drop(&group);
    }
}

static void matching(void **state)
{
    static const struct {
        const char *line;
        struct cpu_id cpu;
        bool matches;
    } cases[] = {
        {"vendor=A family=6 model=0x55", {.vendor = "A", .family = 6, .model = 0x55}, true},
        {"vendor=A family=6 model=0x55", {.vendor = "B", .family = 6, .model = 0x55}, false},
        {"model=1-3,7", {.model = 2}, true},
        {"model=1-3,7", {.model = 7}, true},
        {"model=1-3,7", {.model = 4}, false},
        {"implementer=0x41 part=0xd0c", {.implementer = 0x41, .part = 0xd0c}, true},
        {"implementer=0x41 part=0xd0c", {.implementer = 0x41, .part = 0xd40}, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        group = (struct group){.n_matches = 1, .matches = {cases[i].line}};
        assert_int_equal(group_matches(&group, &cases[i].cpu), cases[i].matches);
    }
}

static void who_am_i(void **state)
{
    char why[COUNTER_REASON_MAX];
    struct cpu_id cpu;
    (void)state;
    put("x86",
        "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: X 17\n\n"
        "processor\t: 1\nvendor_id\t: Other\nmodel\t\t: 9\n");
    assert_int_equal(cpu_identify(path, &cpu, why), 0);
    assert_string_equal(cpu.vendor, "GenuineIntel");
    assert_int_equal(cpu.family, 6);
    assert_int_equal(cpu.model, 143);
    put("arm", "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n");
    assert_int_equal(cpu_identify(path, &cpu, why), 0);
    assert_int_equal(cpu.implementer, 0x41);
    assert_int_equal(cpu.part, 0xd0c);
    assert_int_equal(cpu_identify("/no/such/file", &cpu, why), -1);
    remove(path);
    snprintf(path, sizeof path, "%s/x86", dir);
    remove(path);
}

static void choosing(void **state)
{
    char why[COUNTER_REASON_MAX] = "";
    struct cpu_id one = {.vendor = "V", .model = 1}, two = {.vendor = "V", .model = 2};
    (void)state;
    remove_dir(NULL);
    make_dir(NULL);
    assert_int_equal(group_choose(dir, &one, &group, why), -3);
    put("one.txt", "family one\nwhat x\nmatch vendor=V model=1\nevent a perf=x\ncolumn cycles = a | m\n");
    assert_int_equal(group_choose(dir, &one, &group, why), 0);
    assert_string_equal(group.family, "one");
    group_drop(&group);
    assert_int_equal(group_choose(dir, &two, &group, why), -3);
    put("all.txt", "family all\nwhat x\nmatch always\nsoftware s perf=sw:x\ncolumn migrations = s | m\n");
    put("any.txt", "family any\nwhat x\nmatch any\nevent b perf=x\ncolumn cycles = b | m\n");
    assert_int_equal(group_choose(dir, &two, &group, why), 0);
    assert_string_equal(group.family, "any");
    assert_int_equal(group.n_events, 2);
    group_drop(&group);
    put("two.txt", "family two\nwhat x\nmatch vendor=V model=1-9\n");
    assert_int_equal(group_choose(dir, &one, &group, why), -2);
    assert_non_null(strstr(why, "matched by one.txt as well"));
    put("two.txt", "family two\nwhat x\nmatch model=1-9\nbroken\n");
    assert_int_equal(group_choose(dir, &two, &group, why), -2);
    assert_non_null(strstr(why, "two.txt:4:"));
}

/* The source tree that this test was built in. */
static void shipped_dir(char out[PATH_MAX])
{
    char up[PATH_MAX] = "";
    if (readlink("/proc/self/exe", up, sizeof up - 1) < 0)
        up[0] = '\0';
    for (char *slash; (slash = strrchr(up, '/')) != NULL;) {
        *slash = '\0';
        if ((size_t)snprintf(out, PATH_MAX, "%.4000s/kernels/counters/groups", up) < PATH_MAX &&
            access(out, R_OK) == 0)
            return;
    }
    snprintf(out, PATH_MAX, "kernels/counters/groups");
}

/* Every shipped file parses; the columns it leaves out it explains, for at least one dialect each is there.
 * */
static void shipped_files(void **state)
{
    char shipped[PATH_MAX], file[PATH_MAX + NAME_MAX + 2], why[COUNTER_REASON_MAX] = "";
    unsigned files = 0;
    (void)state;
    shipped_dir(shipped);
    DIR *d = opendir(shipped);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (strstr(e->d_name, ".txt") == NULL)
            continue;
        files++;
        snprintf(file, sizeof file, "%s/%s", shipped, e->d_name);
        group = (struct group){.n_texts = 0};
        if (group_parse(file, &group, why) != 0)
            fail_msg("%s", why);
        uint32_t used = 0, told = 0, software = 0, free_of_charge = 0;
        for (unsigned i = 0; i < group.n_events; i++)
            software |= group.event[i].software ? 1u << i : 0;
        for (unsigned i = 0; i < group.n_columns; i++) {
            used |= group.column[i].formula.events;
            told |= 1u << group.column[i].column;
            if ((group.column[i].formula.events & ~software) == 0)
                free_of_charge |= 1u << group.column[i].column;
        }
        for (unsigned i = 0; i < group.n_events; i++)
            if (!(used >> i & 1))
                fail_msg("%s: event %s is in no formula", file, group.event[i].name);
        for (int c = 0; c < COUNTER_MIGRATIONS && !group.always; c++)
            if (!(told >> c & 1) == (group.absent[c] == NULL))
                fail_msg("%s: column %s must be given or explained, not both or neither", file,
                         counter_column_name[c]);
        uint32_t in_sets = 0;
        for (unsigned s = 0; s < group.n_sets; s++)
            in_sets |= group.set[s].columns;
        for (int c = 0; c < COUNTER_MIGRATIONS && !group.always; c++)
            if ((told >> c & 1) && !((in_sets | free_of_charge) >> c & 1))
                fail_msg("%s: column %s is in no set", file, counter_column_name[c]);
        group_drop(&group);
    }
    closedir(d);
    assert_true(files >= 10);
}

static void shipped_matches(void **state)
{
    static const struct {
        struct cpu_id cpu;
        const char *family;
    } cases[] = {
        {{.vendor = "simulated"}, "sim"},
        {{.vendor = "GenuineIntel", .family = 6, .model = 0x55}, "intel-skylake-sp"},
        {{.vendor = "GenuineIntel", .family = 6, .model = 0x6a}, "intel-icelake-sp"},
        {{.vendor = "GenuineIntel", .family = 6, .model = 0x8f}, "intel-sapphire-rapids"},
        {{.vendor = "GenuineIntel", .family = 6, .model = 0xb7}, "intel-alder-lake"},
        {{.vendor = "GenuineIntel", .family = 6, .model = 0x3f}, "generic"},
        {{.vendor = "AuthenticAMD", .family = 23, .model = 0x31}, "amd-zen2"},
        {{.vendor = "AuthenticAMD", .family = 23, .model = 0x01}, "generic"},
        {{.vendor = "AuthenticAMD", .family = 25, .model = 0x01}, "amd-zen3"},
        {{.vendor = "AuthenticAMD", .family = 25, .model = 0x11}, "amd-zen4"},
        {{.vendor = "AuthenticAMD", .family = 25, .model = 0x21}, "amd-zen3"},
        {{.vendor = "AuthenticAMD", .family = 25, .model = 0x61}, "amd-zen4"},
        {{.vendor = "AuthenticAMD", .family = 26, .model = 0x02}, "amd-zen5"},
        {{.implementer = 0x41, .part = 0xd0c}, "arm-neoverse-n1"},
        {{.implementer = 0x41, .part = 0xd40}, "arm-neoverse-v1"},
        {{.vendor = ""}, "generic"},
    };
    char shipped[PATH_MAX], why[COUNTER_REASON_MAX] = "";
    (void)state;
    shipped_dir(shipped);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (group_choose(shipped, &cases[i].cpu, &group, why) != 0)
            fail_msg("%s", why);
        assert_string_equal(group.family, cases[i].family);
        group_drop(&group);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_file),     cmocka_unit_test(bad_files),       cmocka_unit_test(random_text),
        cmocka_unit_test(matching),      cmocka_unit_test(who_am_i),        cmocka_unit_test(choosing),
        cmocka_unit_test(shipped_files), cmocka_unit_test(shipped_matches),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
