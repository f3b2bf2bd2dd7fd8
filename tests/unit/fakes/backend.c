/*
 * backend.c - a counter backend that behaves as its environment says: FAKE_<file's name>=BEHAVIOUR.
 *
 *   absent                       available says no
 *   abort, exit, hang            what a broken library does to its caller
 *   hardware                     every event counts 1000, except those whose spelling begins with no (reason)
 *   software                     only events whose spelling begins with sw count
 *   multiplexed, negative, zero, never, unread   the event spelled "first" reads so; others count
 *   dead                         the event spelled "second" reads 0, here and in the trial
 *   noopen                       a thread other than 0 cannot open
 */
#include "counters.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef FAKE_NAME
#define FAKE_NAME "fake"
#endif

static const char *spelling[COUNTER_EVENTS_MAX];
static size_t events;

static const char *behaviour(void)
{
    static char name[64];
    Dl_info info;
    if (dladdr((void *)spelling, &info) == 0)
        return "absent";
    const char *slash = strrchr(info.dli_fname, '/'), *base = slash ? slash + 1 : info.dli_fname;
    snprintf(name, sizeof name, "FAKE_%.*s", (int)strcspn(base, "."), base);
    const char *value = getenv(name);
    return value ? value : "absent";
}

static bool is(const char *text)
{
    return strcmp(behaviour(), text) == 0;
}

static bool fake_available(char why[COUNTER_REASON_MAX])
{
    if (is("abort"))
        abort();
    if (is("exit"))
        exit(7);
    while (is("hang"))
        sleep(1);
    snprintf(why, COUNTER_REASON_MAX, "the fake is absent");
    if (is("absent"))
        return false;
    why[0] = '\0';
    return true;
}

static int fake_prepare(const char *const *list, size_t n, unsigned threads, char why[COUNTER_REASON_MAX])
{
    (void)threads, (void)why;
    memcpy(spelling, list, n * sizeof *list);
    events = n;
    return 0;
}

static int fake_open(unsigned thread, char why[COUNTER_REASON_MAX])
{
    snprintf(why, COUNTER_REASON_MAX, "the fake opens thread 0 only");
    return is("noopen") && thread != 0 ? -1 : 0;
}

static void fake_touch(unsigned thread)
{
    (void)thread;
}

static const char *fake_reason(size_t event)
{
    if (is("software") && strncmp(spelling[event], "sw", 2) != 0)
        return "the fake has software events only";
    return strncmp(spelling[event], "no", 2) == 0 ? "the fake does not know it" : NULL;
}

static void fake_read(unsigned thread, struct counter_reading *readings)
{
    (void)thread;
    for (size_t i = 0; i < events; i++) {
        bool first = strcmp(spelling[i], "first") == 0, second = strcmp(spelling[i], "second") == 0;
        readings[i] = (struct counter_reading){1000, 5000, 5000, true};
        if (fake_reason(i) != NULL || (first && is("unread")))
            readings[i].valid = false;
        if (first && is("multiplexed"))
            readings[i].running_ns = 2500;
        if (first && is("never"))
            readings[i].running_ns = 0;
        if (first && is("negative"))
            readings[i].value = (uint64_t)-5;
        if ((first && is("zero")) || (second && is("dead")))
            readings[i].value = 0;
    }
}

extern const struct counter_backend counter_backend;
const struct counter_backend counter_backend = {
    .name = FAKE_NAME,
    .dialect = FAKE_NAME,
    .available = fake_available,
    .prepare = fake_prepare,
    .open = fake_open,
    .start = fake_touch,
    .stop = fake_touch,
    .read = fake_read,
    .close = fake_touch,
    .reason = fake_reason,
};
