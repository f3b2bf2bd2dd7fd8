/* The format of traces: numbers, events, a round trip, every place where a trace can be cut, and every byte that can change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "crc32.h"
#include "trace.h"

#define CHECK_VALUE 0xcbf43926u /* of the nine digits, in every description of this CRC */

static char path[] = "/tmp/ak-trace-XXXXXX";

static int file_make(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd) != 0;
}

static int file_remove(void **state)
{
    (void)state;
    return unlink(path);
}

static void crc(void **state)
{
    (void)state;
    assert_true(crc32_of(0, "123456789", 9) == CHECK_VALUE);
    assert_true(crc32_of(crc32_of(0, "1234", 4), "56789", 5) == CHECK_VALUE);
    assert_true(crc32_of(0, "", 0) == 0);
}

static void numbers(void **state)
{
    static const uint64_t some[] = { 0, 1, 127, 128, 16383, 16384, UINT32_MAX, 1ull << 62, UINT64_MAX };
    unsigned char bytes[16];
    uint64_t value;
    (void)state;
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        unsigned char *end = number_put(bytes, some[i]);
        assert_true(number_get(bytes, end, &value) == end);
        assert_true(value == some[i]);
        assert_null(number_get(bytes, end - 1, &value));
    }
    memset(bytes, 0xff, sizeof bytes); /* never ends, and 65 bits */
    assert_null(number_get(bytes, bytes + sizeof bytes, &value));
    memset(bytes, 0x80, 9);
    bytes[9] = 2;
    assert_null(number_get(bytes, bytes + 10, &value));
}

static void events(void **state)
{
    static const struct event some[] = {
        { EVENT_MALLOC, 0, 0, 0, 0, 0 },           { EVENT_MALLOC, 1000000, UINT64_MAX, 0, 0, 0 },
        { EVENT_CALLOC, 3, 77, 0, 0, 0 },          { EVENT_ALIGNED, 1, 100, 12, 0, 0 },
        { EVENT_FREE, 9, 0, 0, 5, 9 },             { EVENT_FREE, 9, 0, 0, 5, 0 },
        { EVENT_FREE, 0, 0, 0, 65535, 1ull << 40 }, { EVENT_REALLOC, 2, 500, 0, 5, 3 },
        { EVENT_REALLOC, 2, 500, 0, 4, 300 },      { EVENT_INHERIT, 0, 8, 0, 0, 0 },
        { EVENT_JOIN, 0, 0, 0, 7, 0 },
    };
    unsigned char bytes[EVENT_BYTES_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        struct event e;
        unsigned char *end = event_put(bytes, &some[i], 5, 10);
        assert_true(end <= bytes + sizeof bytes);
        assert_true(event_get(bytes, end, &e, 5, 10) == end);
        assert_memory_equal(&e, &some[i], sizeof e);
        for (unsigned char *cut = bytes; cut < end; cut++)
            assert_null(event_get(bytes, cut, &e, 5, 10));
    }
    struct event e;
    unsigned char *end = event_put(bytes, &(struct event){ .kind = EVENT_FREE, .thread = 5, .number = 3 }, 5, 10);
    assert_null(event_get(bytes, end, &e, 5, 6)); /* an object that is not made yet */
}

/* ---- whole traces ---- */

struct draft {
    struct trace_facts facts;
    struct trace_thread thread[3];
    unsigned char bytes[3][256];
    size_t used[3];
};

static void draft_add(struct draft *d, uint32_t thread, struct event e)
{
    unsigned char *at = d->bytes[thread] + d->used[thread];
    d->used[thread] += (size_t)(event_put(at, &e, thread, d->thread[thread].objects) - at);
    d->thread[thread].objects += event_makes(e.kind);
    d->thread[thread].events++;
    d->facts.calls += event_is_call(e.kind);
}

static void draft_write(const struct draft *d)
{
    struct trace_writer w;
    struct trace_fault f;
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(trace_begin(&w, file, &d->facts, d->thread, &f));
    for (uint32_t t = 0; t < d->facts.threads; t++)
        if (d->used[t] > 0)
            assert_true(trace_events(&w, t, 0, 0, d->thread[t].events, d->bytes[t], d->used[t]));
    assert_true(trace_end(&w));
    assert_int_equal(fclose(file), 0);
}

/* Thread 0 makes three, starts thread 1, which takes one of them and grows another; 0 joins it. Thread 2 has no events. */
static struct draft draft_sound(void)
{
    struct draft d = { .facts = { .pid = 42, .parent = 7, .started_unix_ns = 1, .duration_ns = 160, .threads = 3,
                                  .command = "prog arg", .served = "/lib/libc.so", .end = "exit status 0" } };
    for (unsigned t = 0; t < 3; t++)
        d.thread[t].born_by = TRACE_NOBODY;
    draft_add(&d, 0, (struct event){ EVENT_MALLOC, 1, 100, 0, 0, 0 });
    draft_add(&d, 0, (struct event){ EVENT_CALLOC, 1, 200, 0, 0, 0 });
    draft_add(&d, 0, (struct event){ EVENT_ALIGNED, 1, 300, 6, 0, 0 });
    d.thread[1].born_by = 0;
    d.thread[1].born_at = 3;
    draft_add(&d, 1, (struct event){ EVENT_FREE, 2, 0, 0, 0, 1 }); /* the clock of its CPU is behind */
    draft_add(&d, 1, (struct event){ EVENT_REALLOC, 5, 1000, 0, 0, 2 });
    draft_add(&d, 1, (struct event){ EVENT_INHERIT, 0, 40, 0, 0, 0 });
    draft_add(&d, 1, (struct event){ EVENT_FREE, 0, 0, 0, 1, 1 });
    draft_add(&d, 0, (struct event){ EVENT_JOIN, 1, 0, 0, 1, 0 });
    draft_add(&d, 0, (struct event){ EVENT_FREE, 1, 0, 0, 1, 0 });
    return d;
}

static bool opens(struct trace_fault *f)
{
    struct trace t;
    if (!trace_open(&t, path, f))
        return false;
    trace_close(&t);
    return true;
}

struct seen {
    unsigned count;
    uint32_t thread[16];
    enum event_kind kind[16];
    uint64_t time[16];
};

static bool see(void *user, const struct trace_cursor *c, const struct event *e, uint64_t time)
{
    struct seen *s = user;
    assert_true(s->count < 16);
    s->thread[s->count] = c->thread;
    s->kind[s->count] = e->kind;
    s->time[s->count++] = time;
    return true;
}

static void round_trip(void **state)
{
    static const uint32_t threads[] = { 0, 0, 0, 1, 1, 1, 1, 0, 0 };
    static const enum event_kind kinds[] = { EVENT_MALLOC, EVENT_CALLOC, EVENT_ALIGNED, EVENT_FREE, EVENT_REALLOC, EVENT_INHERIT,
                                             EVENT_FREE, EVENT_JOIN, EVENT_FREE };
    struct draft d = draft_sound();
    struct trace_fault f;
    struct trace t;
    struct seen s = { 0 };
    (void)state;
    draft_write(&d);
    if (!trace_open(&t, path, &f))
        fail_msg("%s", f.text);
    assert_int_equal(t.facts.pid, 42);
    assert_int_equal(t.facts.calls, 7);
    assert_string_equal(t.facts.command, "prog arg");
    assert_string_equal(t.facts.served, "/lib/libc.so");
    assert_string_equal(t.facts.end, "exit status 0");
    assert_int_equal(t.thread[1].born_at, 3);
    assert_true(trace_walk(&t, see, &s));
    assert_int_equal(s.count, 9);
    for (unsigned i = 0; i < s.count; i++) {
        assert_int_equal(s.thread[i], threads[i]);
        assert_int_equal(s.kind[i], kinds[i]);
        assert_true(i == 0 || s.time[i] >= s.time[i - 1]);
    }
    trace_close(&t);
}

static unsigned char *contents(size_t *size)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    *size = (size_t)st.st_size;
    unsigned char *bytes = malloc(*size);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void contents_write(const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Wherever it is cut, the place that is told lies in what is left, or at its end. */
static void cut(void **state)
{
    struct draft d = draft_sound();
    struct trace_fault f;
    size_t size;
    (void)state;
    draft_write(&d);
    unsigned char *bytes = contents(&size);
    for (size_t left = 0; left < size; left++) {
        unsigned long long at;
        contents_write(bytes, left);
        assert_false(opens(&f));
        assert_false(f.environment);
        assert_int_equal(sscanf(f.text, "at byte %llu: ", &at), 1);
        assert_true(at <= left);
        assert_non_null(strstr(f.text, "the file ends"));
    }
    contents_write(bytes, size);
    assert_true(opens(&f));
    bytes = realloc(bytes, size + 1);
    bytes[size] = 0;
    contents_write(bytes, size + 1);
    assert_false(opens(&f));
    assert_non_null(strstr(f.text, "bytes follow the end"));
    free(bytes);
}

static void flipped(void **state)
{
    struct draft d = draft_sound();
    struct trace_fault f;
    size_t size;
    (void)state;
    draft_write(&d);
    unsigned char *bytes = contents(&size);
    for (size_t i = 0; i < 8 * size; i++) {
        unsigned long long at;
        bytes[i / 8] ^= (unsigned char)(1u << i % 8);
        contents_write(bytes, size);
        if (opens(&f))
            fail_msg("bit %zu of byte %zu changed, and nobody saw it", i % 8, i / 8);
        assert_int_equal(sscanf(f.text, "at byte %llu: ", &at), 1);
        assert_true(at <= i / 8);
        bytes[i / 8] ^= (unsigned char)(1u << i % 8);
    }
    free(bytes);
}

static void refused(struct draft *d, const char *why)
{
    struct trace_fault f;
    draft_write(d);
    if (opens(&f))
        fail_msg("a trace was read that should be refused: %s", why);
    if (strstr(f.text, why) == NULL)
        fail_msg("'%s' is not in '%s'", why, f.text);
}

/* What is well written and cannot be. */
static void unsound(void **state)
{
    struct draft d = draft_sound();
    (void)state;
    draft_add(&d, 0, (struct event){ EVENT_FREE, 0, 0, 0, 0, 1 });
    refused(&d, "taken twice");
    d = draft_sound();
    draft_add(&d, 0, (struct event){ EVENT_FREE, 0, 0, 0, 2, 0 });
    refused(&d, "not there");
    d = draft_sound();
    draft_add(&d, 0, (struct event){ EVENT_JOIN, 0, 0, 0, 9, 0 });
    refused(&d, "not there");
    d = draft_sound(); /* 0 waits for what 1 makes after it has joined 0 */
    draft_add(&d, 1, (struct event){ EVENT_JOIN, 0, 0, 0, 0, 0 });
    draft_add(&d, 1, (struct event){ EVENT_MALLOC, 0, 1, 0, 0, 0 });
    refused(&d, "wait for each other");
    d = draft_sound();
    d.facts.calls++;
    refused(&d, "the facts say");
    d = draft_sound();
    d.thread[2].events++;
    refused(&d, "its entry says");
    d = draft_sound();
    draft_add(&d, 0, (struct event){ EVENT_MALLOC, 0, TRACE_SIZE_MAX + 1, 0, 0, 0 });
    refused(&d, "that no program can have");
    d = draft_sound();
    draft_add(&d, 0, (struct event){ EVENT_ALIGNED, 0, 1, 63, 0, 0 });
    refused(&d, "that no program can have");
    d = draft_sound();
    draft_add(&d, 0, (struct event){ EVENT_MALLOC, TRACE_TIME_MAX, 1, 0, 0, 0 });
    refused(&d, "that no program can have");
    d = draft_sound();
    d.thread[1].born_at = 100; /* its parent ends before that: it is born then */
    draft_write(&d);
    struct trace_fault f;
    assert_false(opens(&f)); /* but 0 joins it, and so never ends */
}

static void not_there(void **state)
{
    struct trace t;
    struct trace_fault f;
    (void)state;
    assert_false(trace_open(&t, "/nonexistent/file", &f));
    assert_true(f.environment);
    assert_false(trace_open(&t, "/tmp", &f));
    assert_false(f.environment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc),        cmocka_unit_test(numbers), cmocka_unit_test(events),
        cmocka_unit_test(round_trip), cmocka_unit_test(cut),     cmocka_unit_test(flipped),
        cmocka_unit_test(unsound),    cmocka_unit_test(not_there),
    };
    return cmocka_run_group_tests(tests, file_make, file_remove);
}
