/* test_subject.c - the process under test is another one: who serves it, and the accounts of all its processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <gnu/libc-version.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "buildid.h"
#include "kernel.h"
#include "launch.h"
#include "service.h"
#include "subject.h"

static int nothing(struct ctx *c, uint64_t n)
{
    (void)c, (void)n;
    return 0;
}

static int nothing_wrong(struct ctx *c)
{
    (void)c;
    return 0;
}

const struct kernel kernel = { .name = "test", .what = "a test", .run = nothing, .verify = nothing_wrong, .subject = true };

static struct provenance libc;
static struct service server;
static char folder[101], out[160];

/* What the C library is, whatever serves this program. */
static int libc_find(void **state)
{
    struct arena a = { 0 };
    char why_folder[SERVICE_WHY];
    const char *why = NULL, *id;
    Dl_info info;
    (void)state;
    if (dladdr((void *)(uintptr_t)gnu_get_libc_version, &info) == 0 || realpath(info.dli_fname, libc.path) == NULL ||
        (id = elf_build_id(&a, libc.path, &why)) == NULL || service_folder(folder, 0, 0, why_folder) != 0)
        return -1;
    snprintf(libc.build_id, sizeof libc.build_id, "%s", id);
    snprintf(libc.version, sizeof libc.version, "a version");
    snprintf(out, sizeof out, "%s/out", folder);
    arena_free(&a);
    unsetenv("LD_PRELOAD");
    subject_expect(&libc);
    return 0;
}

/* A shell with a script that says a number; returns once it did, with that. */
static long start(const char *script, const char *const *env)
{
    const char *argv[] = { "sh", "-c", script, NULL };
    const struct service_request r = { .argv = argv, .env = env, .out = out };
    char why[SERVICE_WHY] = "", line[32] = "";
    unlink(out);
    assert_int_equal(service_start(&server, &r, why), 0);
    for (unsigned tries = 0; tries < 10000 && line[0] == '\0'; tries++, usleep(2000))
        service_complaint(out, line, sizeof line);
    assert_true(line[0] != '\0');
    return strtol(line, NULL, 10);
}

static void its_processes_add_up(void **state)
{
    bool known;
    unsigned count;
    (void)state;
    assert_null(subject_provenance());
    subject_account(&known);
    assert_false(known);
    const char *const *env = ak_subject_env();
    assert_non_null(env);
    pid_t child = (pid_t)start("(while :; do i=$((i + 1)); done) & echo $!; wait", env);

    assert_int_equal(ak_subject(server.pid), 0);
    assert_string_equal(subject_provenance()->path, libc.path);
    assert_string_equal(subject_provenance()->build_id, libc.build_id);
    assert_string_equal(subject_provenance()->version, "a version");
    struct resident one = resident_now();
    assert_true(one.known && one.rss > 0);
    struct thread_account alone = subject_account(&known);
    assert_true(known);

    assert_int_equal(ak_subject(child), 0);
    assert_true(subject_pids(&count)[1] == child && count == 2);
    assert_true(resident_now().rss > one.rss && resident_high_water() > one.rss);
    struct thread_account a = subject_account(&known), b = a;
    assert_true(known && a.minor_faults > alone.minor_faults);
    for (unsigned tries = 0; tries < 10000 && b.cpu_ns <= a.cpu_ns; tries++, usleep(1000))
        b = subject_account(&known);
    assert_true(b.cpu_ns > a.cpu_ns); /* the child works, the server waits */
    struct thread_account used = account_difference(b, a);
    subject_parts(&used);
    assert_int_equal(used.user_ns + used.sys_ns, used.cpu_ns);
    assert_true(used.user_ns >= 0 && used.sys_ns >= 0);

    kill(child, SIGKILL);
    service_stop(&server, SIGKILL, 1000);
    subject_account(&known);
    assert_false(known);
    assert_false(resident_now().known);
}

static void who_says_nothing_is_refused(void **state)
{
    (void)state;
    start("echo 1; sleep 1000", NULL);
    assert_int_equal(ak_subject(server.pid), 1);
    assert_string_equal(launch.status, "wrong_allocator");
    assert_non_null(strstr(launch.failure, "does not say"));
    assert_string_equal(subject_provenance()->path, "");
    service_stop(&server, SIGTERM, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_processes_add_up),
        cmocka_unit_test(who_says_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, libc_find, NULL);
}
