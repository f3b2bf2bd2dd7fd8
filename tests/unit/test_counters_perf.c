/* The real backends of this build, on this machine: software events count what happened, hardware ones count
 * or say why. */
#include "counters.h"
#include "counters_probe.h"

#include <limits.h>
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
        cmocka_unit_test(whatever_is_installed),
    };
    return cmocka_run_group_tests(tests, find_modules, NULL);
}
