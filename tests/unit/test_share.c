/* The share of malloc and free, from the text of perf script: whose a sample is, what is left out, what is refused. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "share.h"

#define MI    "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0"
#define OWN   "/usr/bin/program (old) x"
#define TIMES 60 /* how often a sample is repeated: a share takes 100 */

static const struct profiler all_seen = {.sees_kernel = true}, user_seen = {.sees_kernel = false};

/* Text to read, and what it came to. */
struct reading {
    struct arena arena;
    struct buffer text;
    struct share share;
};

static void add_sample(struct reading *r, int times, int pid, double seconds, uint64_t ip, const char *object)
{
    for (int i = 0; i < times; i++)
        buffer_addf(&r->text, "%5d/%-5d %5.9f: %16llx (%s)\n", pid, pid, seconds, (unsigned long long)ip,
                    object);
}

static void add_mapping(struct reading *r, int pid, uint64_t start, uint64_t offset, const char *path)
{
    buffer_addf(
        &r->text,
        "%d/%d 1.000000000: PERF_RECORD_MMAP2 %d/%d: [0x%llx(0x200000) @ %s%llx fe:00 33 44]: r-xp %s\n", pid,
        pid, pid, pid, (unsigned long long)start, offset ? "0x" : "", (unsigned long long)offset, path);
}

static void add_birth(struct reading *r, int child, int parent)
{
    buffer_addf(&r->text, "%d/%d 1.500000000: PERF_RECORD_FORK(%d:%d):(%d:%d)\n", parent, parent, child,
                child, parent, parent);
}

static void read_text(struct reading *r, const struct profiler *p, const struct share_scope *scope)
{
    share_from_text(&r->arena, r->text.data ? r->text.data : "", r->text.length, p, scope, &r->share);
}

static void end(struct reading *r)
{
    buffer_free(&r->text);
    arena_free(&r->arena);
}

/* Not the first of a name: a sanitizer may come before. */
static void *libc(void)
{
    return dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
}

/* This process's C library: its file, where it lies, and where one of its functions does. */
static const char *libc_path(uint64_t *base)
{
    Dl_info info;
    assert_true(dladdr(dlsym(libc(), "qsort"), &info));
    *base = (uint64_t)(uintptr_t)info.dli_fbase;
    return realpath(info.dli_fname, NULL);
}

static uint64_t address_of(const char *name, uint64_t base)
{
    void *function = dlsym(libc(), name);
    assert_non_null(function);
    return (uint64_t)(uintptr_t)function - base;
}

static void a_preloaded_library_counts_whole(void **state)
{
    (void)state;
    struct reading r = {0};
    struct share_scope scope = {0};
    words_add(&r.arena, &scope.objects, "/opt/elsewhere/libmimalloc.so.2.0");
    buffer_addf(&r.text,
                "    0/0         0.000000000: PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x12090c8) @ "
                "0xffffffff81000000]: x [kernel.kallsyms]_text\n");
    add_mapping(&r, 7, 0x7f0000000000, 0x1000, MI);
    add_sample(&r, TIMES, 7, 2, 0x7f0000000010, MI);
    add_sample(&r, TIMES, 7, 2, 0xffffffff81000010, "[kernel.kallsyms]");
    add_sample(&r, 2 * TIMES, 7, 2, 0x400000, OWN);
    read_text(&r, &all_seen, &scope);
    assert_null(r.share.why);
    assert_int_equal(r.share.samples, 4 * TIMES);
    assert_int_equal(r.share.in_kernel, TIMES);
    assert_true(fabs(r.share.malloc_share - 0.25) < 1e-12);
    assert_string_equal(r.share.libc_why, "no C library was loaded");
    assert_true(isnan(r.share.libc_share));
    end(&r);
}

/* One named by a soname is found by it; one whose name only begins alike is another. */
static void names_are_whole(void **state)
{
    (void)state;
    struct reading r = {0};
    struct share_scope scope = {0};
    words_add(&r.arena, &scope.objects, "libtbbmalloc.so.2");
    add_mapping(&r, 7, 0x7f0000000000, 0, "/usr/lib/libtbbmalloc.so.2.8");
    add_sample(&r, TIMES, 7, 2, 0x7f0000000010, "/usr/lib/libtbbmalloc.so.2.8");
    add_sample(&r, TIMES, 7, 2, 0x7f0000000010, "/usr/lib/libtbbmalloc.so.22");
    read_text(&r, &all_seen, &scope);
    assert_int_equal(r.share.in_malloc, TIMES);
    end(&r);
}

static void functions_of_malloc_are_told(void **state)
{
    (void)state;
    static const char *const inside[] = {"malloc",   "free",        "calloc",         "realloc",
                                         "memalign", "malloc_trim", "posix_memalign", "malloc_info"};
    static const char *const outside[] = {"qsort",  "printf",       "obstack_free",
                                          "getenv", "reallocarray", "mtrace"};
    struct arena a = {0};
    uint64_t base, from, to;
    const char *why;
    char *path = (char *)(uintptr_t)libc_path(&base);
    assert_true(share_libc_malloc(&a, path, &from, &to, &why));
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        assert_in_range(address_of(inside[i], base), from, to - 1);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        if (dlsym(libc(), outside[i])) /* newer ones have no mtrace */
            assert_not_in_range(address_of(outside[i], base), from, to - 1);
    assert_in_range(to - from, 0x1000, 0x10000);
    assert_false(share_libc_malloc(&a, "/nonexistent", &from, &to, &why));
    assert_non_null(why);
    free(path);
    arena_free(&a);
}

/* By addresses, through the mapping of each process or that of the one it was forked from. */
static void the_c_library_counts_by_address(void **state)
{
    (void)state;
    struct reading r = {0};
    struct share_scope scope = {0};
    uint64_t base, at = 0x7f1200000000;
    char *path = (char *)(uintptr_t)libc_path(&base);
    uint64_t malloc_at = at + address_of("malloc", base), qsort_at = at + address_of("qsort", base);
    add_mapping(&r, 7, at, 0, path);
    add_birth(&r, 8, 7);
    add_sample(&r, TIMES, 7, 2, malloc_at, path);
    add_sample(&r, TIMES, 8, 2, malloc_at + 1, path);
    add_sample(&r, 2 * TIMES, 8, 2, qsort_at, path);
    add_sample(&r, 4 * TIMES, 9, 2, 0x400000, OWN);
    read_text(&r, &all_seen, &scope);
    assert_null(r.share.why);
    assert_true(fabs(r.share.malloc_share - 2.0 / 8) < 1e-12);
    assert_true(fabs(r.share.libc_share - 4.0 / 8) < 1e-12);
    /* a process of which no mapping is known */
    add_sample(&r, TIMES, 11, 2, malloc_at, path);
    read_text(&r, &all_seen, &scope);
    assert_non_null(strstr(r.share.why, "not known in which function"));
    assert_true(isnan(r.share.malloc_share));
    assert_false(isnan(r.share.libc_share));
    free(path);
    end(&r);
}

static void scope_is_kept(void **state)
{
    (void)state;
    struct reading r = {0};
    const uint64_t pid[] = {4, 7};
    struct share_scope scope = {.pid = pid, .pids = 2, .from_ns = 2000000000, .to_ns = 3000000000};
    words_add(&r.arena, &scope.objects, MI);
    add_mapping(&r, 7, 0x7f0000000000, 0, MI);
    add_birth(&r, 8, 7);
    add_birth(&r, 9, 8);
    add_birth(&r, 10, 3);
    add_sample(&r, 1000, 7, 1.999999999, 0x400000, OWN);
    add_sample(&r, TIMES, 7, 2, 0x7f0000000010, MI);
    add_sample(&r, TIMES, 7, 3, 0x400000, OWN);
    add_sample(&r, 1000, 7, 3.000000001, 0x400000, OWN);
    add_sample(&r, TIMES, 9, 2.5, 0x400000, OWN);
    add_sample(&r, TIMES, 10, 2.5, 0x400000, OWN);
    read_text(&r, &all_seen, &scope);
    assert_int_equal(r.share.samples, 2 * TIMES);
    assert_true(fabs(r.share.malloc_share - 1.0 / 2) < 1e-12);
    scope.children = true;
    read_text(&r, &all_seen, &scope);
    assert_int_equal(r.share.samples, 3 * TIMES);
    scope.pids = 0;
    read_text(&r, &all_seen, &scope);
    assert_int_equal(r.share.samples, 4 * TIMES);
    end(&r);
}

/* Where the kernel hides its own samples, its time as the system accounts it makes up for them. */
static void hidden_time_is_accounted(void **state)
{
    (void)state;
    struct reading r = {0};
    struct share_scope scope = {.user_ns = 6e8, .system_ns = 4e8};
    words_add(&r.arena, &scope.objects, MI);
    add_mapping(&r, 7, 0x7f0000000000, 0, MI);
    add_sample(&r, TIMES, 7, 2, 0x7f0000000010, MI);
    add_sample(&r, TIMES, 7, 2, 0x400000, OWN);
    read_text(&r, &user_seen, &scope);
    assert_true(fabs(r.share.malloc_share - 0.3) < 1e-12);
    assert_false(r.share.user_only);
    read_text(&r, &all_seen, &scope);
    assert_true(fabs(r.share.malloc_share - 0.5) < 1e-12);
    scope.user_ns = 0;
    read_text(&r, &user_seen, &scope);
    assert_true(r.share.user_only);
    end(&r);
}

static void what_is_not_enough_is_refused(void **state)
{
    (void)state;
    struct reading r = {0};
    struct share_scope scope = {0};
    read_text(&r, &all_seen, &scope);
    assert_non_null(strstr(r.share.why, "0 samples"));
    words_add(&r.arena, &scope.objects, MI);
    add_sample(&r, SHARE_SAMPLES_MIN - 1, 7, 2, 0x400000, OWN);
    read_text(&r, &all_seen, &scope);
    assert_non_null(strstr(r.share.why, "99 samples"));
    assert_true(isnan(r.share.malloc_share) && isnan(r.share.libc_share));
    add_sample(&r, 1, 7, 2, 0x400000, OWN);
    read_text(&r, &all_seen, &scope);
    assert_string_equal(r.share.why, MI " was not loaded");
    scope.objects.count = 0;
    read_text(&r, &all_seen, &scope);
    assert_non_null(strstr(r.share.why, "static"));
    end(&r);
}

/* A line here and there may be broken, by a file's name; more are a reason to believe nothing. */
static void broken_lines_are_counted(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "x",
        "7/7",
        "7/7 2.5",
        "7/7 2.5: 10 (x)",
        "7/7 2.500000000:",
        "7/7 2.500000000: zz (x)",
        "7/7 2.500000000: 10",
        "7/7 2.500000000: 10 (x",
        "7/7 2.500000000: 10 x)",
        "-7/7 2.500000000: 10 (x)",
        "7/7 99999999999.500000000: 10 (x)",
        "7/7 2.500000000: 11111111111111111 (x)",
        "7/7 1.000000000: PERF_RECORD_MMAP2 7/7: [0x7f",
        "7/7 1.000000000: PERF_RECORD_MMAP2 7/7: [0x7f(0x2) @ 0 a]: ",
        "7/7 1.000000000: PERF_RECORD_FORK(8:8",
        "7/7 1.000000000: PERF_RECORD_FORK",
    };
    enum { BROKEN = sizeof broken / sizeof *broken };
    struct reading r = {0};
    struct share_scope scope = {0};
    words_add(&r.arena, &scope.objects, MI);
    add_mapping(&r, 7, 0x7f0000000000, 0, MI);
    add_sample(&r, 100 * (BROKEN + 2), 7, 2, 0x400000, OWN);
    buffer_addf(&r.text, "\n7/7 2.000000000: PERF_RECORD_SWITCH_OF_SOME_KIND\n");
    for (size_t i = 0; i < BROKEN; i++)
        buffer_addf(&r.text, "%s\n", broken[i]);
    buffer_add(&r.text, "7/7 2.0\0", 8); /* and one that is cut within */
    buffer_add(&r.text, "\n", 1);
    read_text(&r, &all_seen, &scope);
    assert_null(r.share.why);
    assert_int_equal(r.share.samples, 100 * (BROKEN + 2));
    for (int i = 0; i < 2; i++)
        buffer_addf(&r.text, "%09000d\n", 7); /* longer than any line may be */
    read_text(&r, &all_seen, &scope);
    assert_non_null(strstr(r.share.why, "lines of perf script are not understood"));
    char number[8];
    snprintf(number, sizeof number, "%d ", BROKEN + 3);
    assert_true(strncmp(r.share.why, number, strlen(number)) == 0);
    assert_true(isnan(r.share.malloc_share) && isnan(r.share.libc_share));
    end(&r);
}

static void lost_records_are_counted(void **state)
{
    (void)state;
    struct reading r = {0};
    struct share_scope scope = {0};
    words_add(&r.arena, &scope.objects, MI);
    add_mapping(&r, 7, 0x7f0000000000, 0, MI);
    add_sample(&r, 1000, 7, 2, 0x400000, OWN);
    buffer_addf(&r.text, "7/7 2.000000000: PERF_RECORD_LOST lost 10\n");
    read_text(&r, &all_seen, &scope);
    assert_null(r.share.why);
    buffer_addf(&r.text, "7/7 2.000000000: PERF_RECORD_LOST lost 1\n");
    read_text(&r, &all_seen, &scope);
    assert_string_equal(r.share.why, "perf lost 11 records");
    end(&r);
}

/* Processes that are each other's parents end a search. */
static void a_circle_of_parents_ends(void **state)
{
    (void)state;
    struct reading r = {0};
    uint64_t pid = 5;
    struct share_scope scope = {.pid = &pid, .pids = 1, .children = true};
    add_birth(&r, 7, 8);
    add_birth(&r, 8, 7);
    add_sample(&r, TIMES, 7, 2, 0x10, "/lib/libc.so.6");
    read_text(&r, &all_seen, &scope);
    assert_int_equal(r.share.samples, 0);
    pid = 7;
    read_text(&r, &all_seen, &scope);
    assert_int_equal(r.share.samples, TIMES);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_preloaded_library_counts_whole),
        cmocka_unit_test(names_are_whole),
        cmocka_unit_test(functions_of_malloc_are_told),
        cmocka_unit_test(the_c_library_counts_by_address),
        cmocka_unit_test(scope_is_kept),
        cmocka_unit_test(hidden_time_is_accounted),
        cmocka_unit_test(what_is_not_enough_is_refused),
        cmocka_unit_test(broken_lines_are_counted),
        cmocka_unit_test(lost_records_are_counted),
        cmocka_unit_test(a_circle_of_parents_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
