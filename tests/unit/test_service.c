/* test_service.c - programs that a kernel starts beside itself: their environment, output, ends and folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"
#include "service.h"

#define LONG_MS 20000 /* a limit for what takes no time */

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

const struct kernel kernel = { .name = "test", .what = "a test", .run = nothing, .verify = nothing_wrong };

static char folder[101], out[160], err[160];

static int folder_make(void **state)
{
    char why[SERVICE_WHY] = "";
    (void)state;
    if (service_folder(folder, 0, 0, why) != 0)
        return -1;
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(err, sizeof err, "%s/err", folder);
    return 0;
}

/* Run `script` to its end. */
static void run(struct service *s, const char *script, bool under_test, const char *const *env)
{
    const char *argv[] = { "sh", "-c", script, NULL };
    const struct service_request r = { .argv = argv, .env = env, .out = out, .err = err, .under_test = under_test };
    char why[SERVICE_WHY] = "";

    assert_int_equal(service_start(s, &r, why), 0);
    assert_int_equal(service_wait(s, LONG_MS), 0);
}

static void ends_are_told(void **state)
{
    struct service s;
    (void)state;
    run(&s, "echo one; echo two >&2; echo; exit 3", false, NULL);
    assert_string_equal(service_end(&s), "exit status 3");
    char line[64];
    service_complaint(out, line, sizeof line);
    assert_string_equal(line, "one");
    service_complaint(err, line, sizeof line);
    assert_string_equal(line, "two");
    run(&s, "kill -SEGV $$", false, NULL);
    assert_non_null(strstr(service_end(&s), "signal 11"));
}

/* What comes after a fatal error is its consequence. */
static void the_cause_is_told(void **state)
{
    struct service s;
    char line[64];
    (void)state;
    run(&s, "echo starting; echo 'FATAL:  no room'; echo 'HINT:  make some'; echo removed; exit 1", false, NULL);
    service_complaint(out, line, sizeof line);
    assert_string_equal(line, "FATAL:  no room");
}

static void cpus_told(char line[512], bool under_test)
{
    struct service s;
    run(&s, "grep Cpus_allowed_list /proc/self/status", under_test, NULL);
    service_complaint(out, line, 512);
}

/* A kernel's thread is pinned; what it starts has the CPUs that the kernel was given, but for the one under test. */
static void pins_are_not_handed_on(void **state)
{
    cpu_set_t all, one;
    char before[512], beside[512], tested[512];
    int cpu = 0;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2)
        skip();
    cpus_told(before, true);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    cpus_told(beside, false);
    cpus_told(tested, true);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_string_equal(beside, before);
    assert_string_not_equal(tested, before);
}

static void a_missing_program_is_refused(void **state)
{
    const char *argv[] = { "/no/such/program", NULL };
    struct service s;
    char why[SERVICE_WHY] = "";
    (void)state;
    assert_int_equal(service_start(&s, &(struct service_request){ .argv = argv }, why), -1);
    assert_string_equal(why, "/no/such/program: No such file or directory");
    assert_true(service_ended(&s));
    assert_null(service_find("no-such-program", NULL));
    const char *here[] = { "sh", NULL };
    assert_int_equal(service_start(&s, &(struct service_request){ .argv = here, .directory = "/no/such" }, why), -1);
}

static void only_the_one_under_test_is_preloaded(void **state)
{
    struct service s;
    char line[512];
    const char *const more[] = { "EXTRA=yes", NULL };
    (void)state;
    setenv("MIMALLOC_TEST", "1", 1);
    setenv("SECRET", "1", 1);
    run(&s, "env | grep -c -e ^MIMALLOC_TEST= -e ^EXTRA= -e ^SECRET=", false, more);
    service_complaint(out, line, sizeof line);
    assert_string_equal(line, "1");
    run(&s, "env | grep -c -e ^MIMALLOC_TEST= -e ^EXTRA= -e ^SECRET=", true, more);
    service_complaint(out, line, sizeof line);
    assert_string_equal(line, "2");
}

static void stopped_by_its_signal_or_by_force(void **state)
{
    const char *polite[] = { "sleep", "1000", NULL };
    const char *deaf[] = { "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done", NULL };
    struct service s;
    char why[SERVICE_WHY] = "", line[16] = "";
    (void)state;
    assert_int_equal(service_start(&s, &(struct service_request){ .argv = polite }, why), 0);
    assert_false(service_ended(&s));
    assert_int_equal(service_stop(&s, SIGTERM, LONG_MS), 0);
    assert_true(WIFSIGNALED(s.status) && WTERMSIG(s.status) == SIGTERM);
    assert_int_equal(service_start(&s, &(struct service_request){ .argv = deaf, .out = out }, why), 0);
    while (line[0] == '\0') /* its trap is set */
        service_complaint(out, line, sizeof line);
    assert_int_equal(service_stop(&s, SIGTERM, 100), -1);
    assert_true(WIFSIGNALED(s.status) && WTERMSIG(s.status) == SIGKILL);
}

static void silence_is_told(void **state)
{
    const char *quiet[] = { "sleep", "1000", NULL }, *gone[] = { "true", NULL };
    struct service s;
    char why[SERVICE_WHY] = "";
    uint16_t port = service_port();
    (void)state;
    assert_true(port > 0);
    assert_int_equal(service_start(&s, &(struct service_request){ .argv = quiet }, why), 0);
    assert_int_equal(service_listens(&s, NULL, port, 20, why), -1);
    assert_non_null(strstr(why, "does not listen"));
    service_stop(&s, SIGKILL, LONG_MS);
    assert_int_equal(service_start(&s, &(struct service_request){ .argv = gone }, why), 0);
    assert_int_equal(service_listens(&s, NULL, port, LONG_MS, why), -1);
    assert_non_null(strstr(why, "exit status 0"));
}

/* A process that is killed leaves its folder, and the next one removes it. */
static void folders_go(void **state)
{
    int pipes[2];
    char left[101] = "", kept[101] = "";
    struct stat s;
    (void)state;
    for (int kill_it = 1; kill_it >= 0; kill_it--) {
        assert_int_equal(pipe(pipes), 0);
        pid_t child = fork();
        if (child == 0) {
            char number[16];
            snprintf(number, sizeof number, "%d", pipes[1]);
            execl("/proc/self/exe", "self", "folder", kill_it ? "kill" : "exit", number, (char *)NULL);
            _exit(9);
        }
        close(pipes[1]);
        char *at = kill_it ? left : kept;
        assert_int_equal(read(pipes[0], at, 100) > 0, 1);
        close(pipes[0]);
        waitpid(child, NULL, 0);
        if (kill_it)
            assert_int_equal(stat(left, &s), 0);
    }
    assert_int_equal(stat(left, &s), -1);
    assert_int_equal(stat(kept, &s), -1);
}

/* The process that folders_go starts. */
static int folder_process(const char *how, int fd)
{
    char path[101], why[SERVICE_WHY];
    if (service_folder(path, 0, 0, why) != 0 || write(fd, path, strlen(path)) < 0)
        return 1;
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4)
        return folder_process(argv[2], atoi(argv[3]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_are_told),
        cmocka_unit_test(the_cause_is_told),
        cmocka_unit_test(pins_are_not_handed_on),
        cmocka_unit_test(a_missing_program_is_refused),
        cmocka_unit_test(only_the_one_under_test_is_preloaded),
        cmocka_unit_test(stopped_by_its_signal_or_by_force),
        cmocka_unit_test(silence_is_told),
        cmocka_unit_test(folders_go),
    };
    return cmocka_run_group_tests(tests, folder_make, NULL);
}
