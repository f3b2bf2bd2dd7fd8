/*
 * none.c - the backend that counts nothing: every column stays empty, and says so.
 *
 * Also the one to copy for a new backend: all that the harness asks of one, and no more. `--counters none`
 * itself loads no module at all, so that the heap of such a run stays as the allocator left it.
 */
#include "counters.h"

static size_t events_asked;

static bool none_available(char why[COUNTER_REASON_MAX])
{
    why[0] = '\0';
    return true;
}

static int none_prepare(const char *const *events, size_t n, unsigned threads, char why[COUNTER_REASON_MAX])
{
    (void)events, (void)threads, (void)why;
    events_asked = n;
    return 0;
}

static int none_open(unsigned thread, char why[COUNTER_REASON_MAX])
{
    (void)thread, (void)why;
    return 0;
}

static void none_touch(unsigned thread)
{
    (void)thread;
}

static void none_read(unsigned thread, struct counter_reading *readings)
{
    (void)thread;
    for (size_t i = 0; i < events_asked; i++)
        readings[i] = (struct counter_reading){.valid = false};
}

static const char *none_reason(size_t event)
{
    (void)event;
    return "not counted: the backend is none";
}

extern const struct counter_backend counter_backend;
const struct counter_backend counter_backend = {
    .name = "none",
    .dialect = "none",
    .available = none_available,
    .prepare = none_prepare,
    .open = none_open,
    .start = none_touch,
    .stop = none_touch,
    .read = none_read,
    .close = none_touch,
    .reason = none_reason,
};
