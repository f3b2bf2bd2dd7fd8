/* The real backends of this build, on this machine: software events count what happened, hardware ones count
 * or say why. */
#include "counters.h"
#include "counters_probe.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#define PAGES 500u

static char modules[PATH_MAX];

/* build/tests/unit/NAME -> build/counters */
static int find_modules(void **state)
{
    char exe[PATH_MAX] = "";
    (void)state;
    if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0)
        return -1;
    *strrchr(exe, '/') = '\0';
    snprintf(modules, sizeof modules, "%.4000s/../../counters", exe);
    return 0;
}

static const struct counter_backend *load(const char *name)
{
    char path[PATH_MAX + 32], why[COUNTER_REASON_MAX] = "";
    void *handle;
    snprintf(path, sizeof path, "%s/%s.so", modules, name);
    const struct counter_backend *b = counters_load(path, &handle, why);
    if (b == NULL || !b->available(why)) {
        print_message("skipped: %s: %s\n", name, why);
        skip();
    }
    return b;
}

static void touch_pages(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    madvise((void *)p, PAGES * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PAGES; i++)
        p[i * page] = 1;
    munmap((void *)p, PAGES * page);
}

static void software_events(void **state)
{
    static const char *const events[] = {"sw:page-faults", "sw:cpu-migrations", "sw:task-clock",
                                         "sw:context-switches"};
    struct counter_reading reading[4];
    char why[COUNTER_REASON_MAX] = "";
    (void)state;
    const struct counter_backend *b = load("perf");
    assert_int_equal(b->prepare(events, 4, 1, why), 0);
    if (b->reason(0) != NULL) {
        assert_non_null(strstr(b->reason(0), "perf_event_paranoid"));
        print_message("skipped: %s\n", b->reason(0));
        skip();
    }
    assert_int_equal(b->open(0, why), 0);
    touch_pages(); /* so that its own code and stack are there */
    b->start(0);
    touch_pages();
    usleep(1000);
    b->stop(0);
    touch_pages(); /* not counted */
    b->read(0, reading);
    b->close(0);
    for (int i = 0; i < 4; i++)
        assert_true(reading[i].valid && reading[i].running_ns == reading[i].enabled_ns);
    assert_in_range(reading[0].value, PAGES, 2 * PAGES - 100);
    assert_true(reading[1].value < 1000);
    assert_true(reading[2].value > 0);
    assert_in_range(reading[3].value, 1, 100); /* it slept */
}

/* A migration must be seen: excluding the kernel would make it 0. */
static void migrations(void **state)
{
    static const char *const events[] = {"sw:cpu-migrations"};
    struct counter_reading reading;
    char why[COUNTER_REASON_MAX] = "";
    cpu_set_t before, one;
    (void)state;
    const struct counter_backend *b = load("perf");
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    if (b->prepare(events, 1, 1, why) != 0 || b->reason(0) != NULL || CPU_COUNT(&before) < 2) {
        print_message("skipped: %s\n", b->reason(0) ? b->reason(0) : "one CPU only");
        skip();
    }
    assert_int_equal(b->open(0, why), 0);
    b->start(0);
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &before)) {
            CPU_ZERO(&one);
            CPU_SET(c, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
    b->stop(0);
    sched_setaffinity(0, sizeof before, &before);
    b->read(0, &reading);
    b->close(0);
    assert_true(reading.valid);
    assert_true(reading.value >= 1);
}

static void hardware_events_count_or_say_why(void **state)
{
    static const char *const events[] = {"hw:cycles",          "cpu:0x0", "nosuchpmu:0x1", "sw:nosuch",
                                         "cache:l9:read:miss", "junk"};
    struct counter_reading reading[6];
    char why[COUNTER_REASON_MAX] = "";
    (void)state;
    const struct counter_backend *b = load("perf");
    assert_int_equal(b->prepare(events, 6, 1, why), 0);
    assert_non_null(strstr(b->reason(2), "no PMU called nosuchpmu"));
    for (int i = 3; i < 6; i++)
        assert_non_null(strstr(b->reason(i), "not a perf event"));
    if (b->reason(0) != NULL) {
        assert_true(strstr(b->reason(0), "ENOENT") || strstr(b->reason(0), "paranoid") ||
                    strstr(b->reason(0), "PMU"));
        print_message("skipped: %s\n", b->reason(0));
        skip();
    }
    assert_int_equal(b->open(0, why), 0);
    b->start(0);
    touch_pages();
    b->stop(0);
    b->read(0, reading);
    b->close(0);
    assert_true(reading[0].valid);
}

/* The whole way of a hardware event, where there is none: the PMU called `software`, spelled by raw codes,
 * stands in for one. PAPI's perf:: events do for PAPI. Task clock and page faults count, the last event never
 * moves and must not become a 0. */
static const char stand_ins[] = "family stand-ins\nwhat a test\nmatch any\n"
                                "event clock  perf=software:0x1 papi=perf::TASK-CLOCK\n"
                                "event faults perf=software:0x2 papi=perf::PAGE-FAULTS\n"
                                "event dummy  perf=software:0x9 papi=perf::MAJOR-FAULTS\n"
                                "column cycles = clock | task clock\n"
                                "column l3_miss = faults | page faults\n"
                                "column hitm_local = dummy | nothing\n"
                                "column hitm_remote = faults + dummy | nothing\n"
                                "set all = cycles l3_miss hitm_local hitm_remote\n";

static void *worker(void *arg)
{
    unsigned thread = *(unsigned *)arg;
    if (counters_open(thread) != 0)
        return arg;
    touch_pages();
    counters_start(thread);
    touch_pages();
    counters_stop(thread);
    touch_pages();
    counters_collect(thread);
    counters_close(thread);
    return NULL;
}

/* Count with the stand-ins through backend `name` on two threads, and check what came of it. */
static void count_stand_ins(const char *name)
{
    char dir[PATH_MAX], file[PATH_MAX + 32], why[COUNTER_REASON_MAX] = "";
    unsigned number[2] = {0, 1};
    pthread_t thread[2];
    void *failed;
    if (strcmp(name, "perf") == 0)
        load(name); /* skips where it cannot be; PAPI is best loaded once only */
    snprintf(dir, sizeof dir, "%s/ak-stand-ins-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(dir));
    snprintf(file, sizeof file, "%s/stand-ins.txt", dir);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(stand_ins, f);
    fclose(f);
    setenv("AK_GROUPS_DIR", dir, 1);
    setenv("AK_COUNTERS_DIR", modules, 1);
    int rc = counters_choose(name, 2, why);
    remove(file);
    rmdir(dir);
    unsetenv("AK_GROUPS_DIR");
    if (rc != 0 && strcmp(name, "perf") != 0) {
        print_message("skipped: %s: %s\n", name, why);
        skip();
    }
    if (rc != 0)
        fail_msg("%s", why);
    for (int t = 0; t < 2; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, worker, &number[t]), 0);
    for (int t = 0; t < 2; t++) {
        pthread_join(thread[t], &failed);
        assert_null(failed);
    }
    const struct counter_result *r = counters_result();
    assert_string_equal(r->backend, name);
    assert_true(r->have[COUNTER_CYCLES] && r->value[COUNTER_CYCLES] > 0);
    assert_true(r->have[COUNTER_L3_MISS]);
    assert_in_range((uint64_t)r->value[COUNTER_L3_MISS], 2 * PAGES, 4 * PAGES - 200);
    assert_false(r->have[COUNTER_HITM_LOCAL]);
    assert_non_null(strstr(r->column_reason[COUNTER_HITM_LOCAL], "read 0 here and in a trial"));
    assert_false(r->have[COUNTER_HITM_REMOTE]);
    assert_true(r->enabled_ns > 0 && r->running_ns > 0 && r->running_ns <= r->enabled_ns);
}

static void stand_in_events(void **state)
{
    (void)state;
    count_stand_ins("perf");
}

static void stand_in_events_of_papi(void **state)
{
    (void)state;
    count_stand_ins("papi");
}

/* papi and likwid as installed here, through the harness: they count, or there is a reason, and this process
 * lives. */
static void whatever_is_installed(void **state)
{
    static const char *const names[] = {"papi", "likwid", "perf"};
    (void)state;
    setenv("AK_COUNTERS_DIR", modules, 1);
    for (size_t i = 0; i < 3; i++) {
        char why[COUNTER_REASON_MAX] = "";
        int rc = counters_choose(names[i], 1, why);
        assert_true(rc == 0 || (rc == -3 && why[0] != '\0'));
        print_message("%s: %s\n", names[i], rc == 0 ? "counts" : why);
    }
    setenv("LIKWID_MODE", "1", 1);
    char why[COUNTER_REASON_MAX] = "";
    unsetenv("AK_COUNTERS_DIR");
    assert_int_equal(counters_choose("likwid", 1, why), -3);
    unsetenv("LIKWID_MODE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(software_events),
        cmocka_unit_test(migrations),
        cmocka_unit_test(hardware_events_count_or_say_why),
        cmocka_unit_test(stand_in_events),
        cmocka_unit_test(stand_in_events_of_papi),
        cmocka_unit_test(whatever_is_installed),
    };
    return cmocka_run_group_tests(tests, find_modules, NULL);
}
