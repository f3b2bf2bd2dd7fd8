/* INI files, registries and sweeps: what is refused, with which words, at which line. */
#include "inifile.h"
#include "test_runner_fixture.h"

struct bad {
    const char *text, *message;
};

static void bad_ini(void **state)
{
    struct fixture *x = *state;
    static const struct bad cases[] = {
        {"a = 1\nb\n", ":2: 'b', expected key = value"},
        {"a = 1\n\n a = 2\n", ":3: 'a' again, expected once (first at line 1)"},
        {"[s]\na = 1\n[s]\n", ":3: section [s] again"},
        {"[s\n", ":1: section without ']'"},
        {"[]\n", ":1: section name ''"},
        {"[a b]\n", ":1: section name 'a b'"},
        {"[s] x\n", ":1: text after [s]"},
        {"= 1\n", ":1: '' before '='"},
        {"a b = 1\n", ":1: 'a b ' before '='"},
        {"a:b = 1\n", ":1: 'a:b ' before '='"},
        {"k = \xff\n", ":1: byte 5 is not UTF-8"},
        {"[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\n", ":1: section name"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa = 1\n", "a key of 1 to 49 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ini_file file;
        struct fault f = {0};
        char *path = fixture_write(x, "bad.ini", cases[i].text);
        assert_false(inifile_read(&x->arena, path, &file, &f));
        assert_int_equal(f.code, AK_USAGE);
        assert_has(f.text, cases[i].message);
        assert_has(f.text, "bad.ini");
        assert_null(strchr(f.text, '\n'));
    }
}

static void long_lines(void **state)
{
    struct fixture *x = *state;
    struct ini_file file;
    struct fault f = {0};
    char *long_value = arena_alloc(&x->arena, 5001);
    memset(long_value, 'x', 5000);
    char *path = fixture_write(x, "long.ini", arena_printf(&x->arena, "a = 1\nb = %s\n", long_value));
    assert_false(inifile_read(&x->arena, path, &file, &f));
    assert_has(f.text, ":2: a line of 5004 bytes");
    long_value[3000] = '\0'; /* beyond inih's own limit, and not cut */
    f = (struct fault){0};
    path = fixture_write(x, "long.ini", arena_printf(&x->arena, "a = %s\n", long_value));
    assert_true(inifile_read(&x->arena, path, &file, &f));
    assert_int_equal(strlen(file.entry[0].value), 3000);
}

static void good_ini(void **state)
{
    struct fixture *x = *state;
    struct ini_file file;
    char *path = fixture_write(
        x, "good.ini", "\xef\xbb\xbf# c\r\na=1 # comment\n\n[s] # c\n  b = x#y  \nc =\n[empty]\nlast = end");
    assert_true(inifile_read(&x->arena, path, &file, &x->fault));
    assert_int_equal(file.entries, 4);
    assert_string_equal(file.entry[0].value, "1");
    assert_int_equal(file.entry[0].line, 2);
    assert_string_equal(file.entry[1].value, "x#y");
    assert_string_equal(file.entry[2].value, "");
    assert_string_equal(file.entry[3].section, "empty");
    assert_int_equal(file.sections, 2);
    assert_non_null(inifile_find(&file, "s", "b"));
    assert_null(inifile_find(&file, "s", "a"));
}

static void files_that_are_none(void **state)
{
    struct fixture *x = *state;
    struct ini_file file;
    static const char *const paths[] = {"/nonexistent/x.ini", "/tmp", "/dev/zero"};
    for (size_t i = 0; i < 3; i++) {
        struct fault f = {0};
        assert_false(inifile_read(&x->arena, paths[i], &file, &f));
        assert_int_equal(f.code, AK_USAGE);
    }
    struct fault f = {0};
    char *path = fixture_write_bytes(x, "nul.ini", "a = 1\nb = \0\n", 12);
    assert_false(inifile_read(&x->arena, path, &file, &f));
    assert_has(f.text, ":2: byte 5");
}

static void bad_registry(void **state)
{
    struct fixture *x = *state;
    static const struct bad cases[] = {
        {"", "no section"},
        {"label = x\n", ":1: 'label' before any section"},
        {"[a]\ncolour = 9\n", ":2: colour = '9', expected a number from 1 to 8"},
        {"[a]\ncolour = red\n", ":2: colour = 'red'"},
        {"[a]\nrequired = maybe\n", ":2: required = 'maybe', expected yes or no"},
        {"[a]\nversion = call:me\n", ":2: version = 'call:me', expected string:SYMBOL"},
        {"[a]\nlibary = x.so\n", ":2: unknown key 'libary' (did you mean 'library'?)"},
        {"[a]\nlabel =\n", ":2: label is empty"},
        {"[a]\nkernels = x,,y\n", ":2: empty item"},
        {"[a]\nenv = A=1, 2B=x\n", ":2: env = '2B=x', expected NAME=VALUE"},
        {"[a]\nenv = A\n", ":2: env = 'A', expected NAME=VALUE"},
        {"[a]\nenv = LD_PRELOAD=x.so\n", ":2: env = 'LD_PRELOAD=x.so'"},
        {"[a/b]\n", ":1: allocator 'a/b'"},
        {"[a]\n[a]\n", ":2: section [a] again"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct registry r = {0};
        struct fault f = {0};
        assert_false(registry_read(&x->arena, fixture_write(x, "r.ini", cases[i].text), &r, &f));
        assert_int_equal(f.code, AK_USAGE);
        assert_has(f.text, cases[i].message);
    }
}

static void registries_add_up(void **state)
{
    struct fixture *x = *state;
    size_t before = x->registry.count;
    char *path = fixture_write(x, "more.ini", "[aa]\nlabel = other\n[dd]\nlibrary = lib/d.so\ncolour = 3\n");
    assert_true(registry_read(&x->arena, path, &x->registry, &x->fault));
    assert_int_equal(x->registry.count, before + 1);
    assert_string_equal(registry_find(&x->registry, "aa")->label, "other");
    assert_has(registry_find(&x->registry, "dd")->library, "/lib/d.so");
    assert_int_equal(*registry_find(&x->registry, "dd")->library, '/');
    assert_false(registry_add_library(&x->arena, &x->registry, "a b", "x.so", &x->fault));
    assert_int_equal(x->fault.code, AK_USAGE);
}

static void bad_sweeps(void **state)
{
    struct fixture *x = *state;
    static const struct bad cases[] = {
        {"allocators = aa\n", "no 'kernel'"},
        {"kernel = churn\n", "no 'allocators'"},
        {"kernel = chrun\nallocators = aa\n", ":1: unknown kernel 'chrun' (did you mean 'churn'?)"},
        {"kernel = churn,\nallocators = aa\n", ":1: kernel has an empty item"},
        {"kernel = churn, churn\nallocators = aa\n", ":1: kernel lists churn twice"},
        {"kernel = churn\nallocators = aaa\n", ":2: unknown allocator 'aaa' (did you mean 'aa'?)"},
        {"kernel = churn\nallocators = aa\nthread = 1\n",
         ":3: unknown key 'thread' (did you mean 'threads'?)"},
        {"kernel = null\nallocators = aa\nlive_blocks = 1\n", ":3: unknown key 'live_blocks'"},
        {"kernel = churn\nallocators = aa\nthreads = 0\n",
         ":3: threads = '0', expected a whole number from 1 to 4096"},
        {"kernel = churn\nallocators = aa\nthreads = 1,,2\n", ":3: threads has an empty item"},
        {"kernel = churn\nallocators = aa\nthreads =\n", ":3: threads has an empty item"},
        {"kernel = churn\nallocators = aa\nthreads = 1.5\n", ":3: threads = '1.5'"},
        {"kernel = churn\nallocators = aa\nthreads = 1, 1\n", ":3: threads lists 1 twice"},
        {"kernel = churn\nallocators = aa\nops = 99999999999999999999\n", ":3: ops = '99999999999999999999'"},
        {"kernel = churn\nallocators = aa\nops = 1e6\n", ":3: ops = '1e6'"},
        {"kernel = churn\nallocators = aa\nreps = 1, 2\n", ":3: reps = '1, 2', expected one value"},
        {"kernel = churn\nallocators = aa\ntouch = pgae\n", ":3: touch = 'pgae', expected one of none, page"},
        {"kernel = churn\nallocators = aa\nlive_blocks = 100001\n",
         ":3: live_blocks = '100001', expected a whole number from 1 to 100000"},
        {"kernel = share\nallocators = aa\nvariant = shred\n",
         ":3: unknown variant 'shred' (did you mean 'shared'?)"},
        {"kernel = churn\nallocators = aa\nplacement = node:x\n", ":3: placement = 'node:x'"},
        {"kernel = churn\nallocators = aa\ncounters = pappi\n", ":3: counters = 'pappi'"},
        {"kernel = churn\nallocators = aa\n[qick]\n",
         ":3: section [qick] is no preset (did you mean 'quick'?)"},
        {"kernel = churn\nallocators = aa\n[smoke]\nthreads = x\n",
         ":4: threads = 'x'"}, /* not the chosen preset */
        {"kernel = churn\nallocators = aa\nchrun.ops = 1\n", ":3: unknown kernel 'chrun' before '.ops'"},
        {"kernel = churn\nallocators = aa\nnull.ops = 1\n",
         ":3: 'null.ops', but null is no kernel of this sweep"},
        {"kernel = churn\nallocators = aa\nchurn.reps = 1\n", ":3: 'reps' for one kernel"},
        {"kernel = churn\nallocators = aa\nsize = 16\nsize_min = 8\n", ":4: 'size_min' beside 'size'"},
        {"kernel = churn\nallocators = aa\nsize_min = 9\nsize_max = 8\n", "size_min 9 above size_max 8"},
        {"kernel = churn\nallocators = aa\nsize_dist = normal\n", ":3: size_dist = 'normal'"},
        {"kernel = churn\nallocators = aa\nsize_dist = file:none\n", "none is no file"},
        {"kernel = null\nallocators = floor\nnull.allocators = floor\n", "plans no launch"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sweep s;
        struct plan p;
        if (fixture_plan(x, cases[i].text, "quick", &s, &p))
            fail_msg("accepted: %s", cases[i].text);
        assert_int_equal(x->fault.code, AK_USAGE);
        assert_has(x->fault.text, cases[i].message);
        assert_has(x->fault.text, "test.sweep");
    }
    struct sweep s;
    assert_false(fixture_sweep(x, "kernel = churn\nallocators = aa\n", "quik", &s));
    assert_has(x->fault.text, "unknown preset 'quik' (did you mean 'quick'?)");
}

static void levels(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    assert_true(
        fixture_sweep(x,
                      "kernel = churn, null\nallocators = aa, bb\nthreads = 1\nnull.threads = 2\nseed = 5\n"
                      "[quick]\nthreads = 4\nops = 7\n[smoke]\nseed = 6\n",
                      "quick", &s));
    assert_string_equal(sweep_get(&s, "churn", "threads")->value, "4");
    assert_string_equal(sweep_get(&s, "null", "threads")->value, "2");
    assert_string_equal(sweep_get(&s, "churn", "ops")->value, "7");
    assert_string_equal(sweep_get(&s, NULL, "seed")->value, "5");
    assert_string_equal(sweep_get(&s, NULL, "reps")->value, "3"); /* the preset's file */
    assert_null(sweep_get(&s, NULL, "settle_ms"));
    sweep_override(&x->arena, &s, "threads", "8 16");
    assert_string_equal(sweep_get(&s, "null", "threads")->value, "8 16");
    sweep_override(&x->arena, &s, "reps", "none");
    assert_false(sweep_check(&x->arena, &s, &x->kernels, &x->registry, &x->fault));
    assert_has(x->fault.text, "--reps: reps = 'none'");
}

/* A kernel that only the registry knows is a slip of the pen. */
static void kernels_of_the_registry(void **state)
{
    struct fixture *x = *state;
    assert_true(registry_check(&x->arena, &x->registry, &x->kernels.names, &x->fault));
    char *path = fixture_write(x, "more.ini", "[mine]\nlibrary = x.so\nkernels = null, chrun\n");
    assert_true(registry_read(&x->arena, path, &x->registry, &x->fault));
    assert_false(registry_check(&x->arena, &x->registry, &x->kernels.names, &x->fault));
    assert_int_equal(x->fault.code, AK_USAGE);
    assert_has(x->fault.text, "more.ini:3: unknown kernel 'chrun' (did you mean 'churn'?)");
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)
    const struct CMUnitTest tests[] = {
        WITH(bad_ini),
        WITH(long_lines),
        WITH(good_ini),
        WITH(files_that_are_none),
        WITH(bad_registry),
        WITH(registries_add_up),
        WITH(bad_sweeps),
        WITH(levels),
        WITH(kernels_of_the_registry),
    };
    return cmocka_run_group_tests_name("runner_files", tests, NULL, NULL);
}
