#include "seal.h"
#include "../recorder/spool.h"
#include "output.h"
#include "places.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct seal_clock seal_clock_now(void)
{
    struct timespec t;
    uint64_t before = spool_ticks();
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t tick = before + (spool_ticks() - before) / 2;
    return (struct seal_clock){tick, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec};
}

/* ---- spools ---- */

struct spool {
    const unsigned char *data;
    size_t size;
    const struct spool_head *head;
    uint64_t slots; /* that lie in the file */
};

static bool spool_open(const char *file, struct spool *s, struct fault *f)
{
    struct stat st;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    void *data = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0
                     ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (data == MAP_FAILED)
        return fault_set(f, AK_ENVIRONMENT, "%s: %s", file, strerror(error));
    *s = (struct spool){data, (size_t)st.st_size, data, 0};
    if (s->size >= SPOOL_HEAD_BYTES)
        s->slots = (s->size - SPOOL_HEAD_BYTES) / SPOOL_SLOT_BYTES;
    return true;
}

static void spool_close(struct spool *s)
{
    munmap((void *)(uintptr_t)s->data, s->size);
}

/* A slot, or NULL where its thread had not begun to use it. */
static const struct spool_slot *spool_slot(const struct spool *s, uint64_t number)
{
    const struct spool_slot *slot = (const void *)(s->data + SPOOL_HEAD_BYTES + number * SPOOL_SLOT_BYTES);
    bool whole = slot->magic == SPOOL_MAGIC && slot->used <= SPOOL_SLOT_BYTES - sizeof *slot;
    return whole && slot->used > 0 ? slot : NULL;
}

/* Walk the events of a slot. False at its end, or at what is no event: the recorder then has a bug. */
struct slot_cursor {
    const unsigned char *at, *end;
    uint32_t thread;
    uint64_t tick, made;
};

static struct slot_cursor slot_start(const struct spool_slot *slot)
{
    const unsigned char *bytes = (const unsigned char *)(slot + 1);
    return (struct slot_cursor){bytes, bytes + slot->used, slot->thread, slot->tick, slot->made};
}

static bool slot_next(struct slot_cursor *c, struct event *e)
{
    if (c->at == c->end || !(c->at = event_get(c->at, c->end, e, c->thread, c->made)))
        return false;
    c->tick += e->wait;
    return true;
}

/* Entries of all threads, and what the facts count. False where the spool is not what the recorder writes. */
static bool threads_count(const struct spool *s, struct recorded *r)
{
    struct event e;
    for (uint32_t t = 0; t < r->facts.threads; t++)
        r->thread[t].born_by = TRACE_NOBODY;
    for (uint64_t n = 0; n < s->slots; n++) {
        const struct spool_slot *slot = spool_slot(s, n);
        if (!slot)
            continue;
        if (slot->thread >= r->facts.threads)
            return false;
        struct trace_thread *t = &r->thread[slot->thread];
        struct slot_cursor c = slot_start(slot);
        uint64_t events = 0;
        for (; slot_next(&c, &e); events++) {
            c.made += event_makes(e.kind);
            r->facts.calls += event_is_call(e.kind);
        }
        if (c.at != c.end)
            return false;
        r->events += events;
        r->last_tick = c.tick > r->last_tick ? c.tick : r->last_tick;
        *t = (struct trace_thread){t->events + events, c.made, slot->born_by, slot->born_at, 0};
    }
    return true;
}

static bool recorded_read(struct arena *a, const char *file, struct recorded *r, struct fault *f)
{
    struct spool s;
    *r = (struct recorded){.file = file};
    if (!spool_open(file, &s, f))
        return false;
    bool whole = s.size >= SPOOL_HEAD_BYTES && s.head->magic == SPOOL_MAGIC;
    if (whole) {
        r->facts = (struct trace_facts){.pid = s.head->pid,
                                        .parent = s.head->parent,
                                        .started_unix_ns = s.head->started_unix_ns,
                                        .unseen = s.head->unseen,
                                        .threads = s.head->threads ? s.head->threads : 1};
        snprintf(r->facts.command, sizeof r->facts.command, "%s", text_clean(a, s.head->command));
        snprintf(r->facts.served, sizeof r->facts.served, "%s", s.head->served);
        if (r->facts.threads > TRACE_THREADS_MAX)
            r->facts.threads = TRACE_THREADS_MAX;
        r->started_tick = s.head->started_tick;
        r->own = s.head->own;
        r->ended = s.head->ended;
        r->thread = arena_alloc(a, r->facts.threads * sizeof *r->thread);
        if (!threads_count(&s, r))
            fault_set(f, AK_ENVIRONMENT, "%s: the recorder's file is damaged", file);
    }
    spool_close(&s);
    return f->code == AK_DONE;
}

static int by_start(const void *a, const void *b)
{
    const struct recorded *x = a, *y = b;
    return (x->started_tick > y->started_tick) - (x->started_tick < y->started_tick);
}

bool recording_read(struct arena *a, const char *folder, struct recording *rec, struct fault *f)
{
    *rec = (struct recording){.what = ""};
    struct words names = names_in(a, folder, "");
    for (size_t i = 0; i < names.count; i++) {
        if (strcmp(names.word[i], SPOOL_CONTROL) == 0)
            continue;
        rec->process = arena_grow(a, rec->process, rec->count, sizeof *rec->process);
        if (!recorded_read(a, arena_printf(a, "%s/%s", folder, names.word[i]), &rec->process[rec->count++],
                           f))
            return false;
    }
    if (rec->count)
        qsort(rec->process, rec->count, sizeof *rec->process, by_start);
    FILE *file = fopen(arena_printf(a, "%s/" SPOOL_CONTROL, folder), "re");
    struct spool_control control;
    if (file && fread(&control, sizeof control, 1, file) == 1) {
        rec->error = control.error;
        rec->failed_pid = control.pid;
        rec->what = arena_strndup(a, control.what, strnlen(control.what, sizeof control.what));
    }
    if (!file || fclose(file) != 0)
        return fault_set(f, AK_ENVIRONMENT, "%s/" SPOOL_CONTROL ": %s", folder, strerror(errno));
    return true;
}

/* ---- the trace ---- */

/* Time of a tick, in a trace's units since the process began. */
struct rate {
    double units_per_tick;
    double origin;
};

static uint64_t units_at(const struct rate *r, uint64_t tick)
{
    double units = ((double)tick - r->origin) * r->units_per_tick;
    return units > 0 ? (uint64_t)units : 0;
}

/* One slot becomes one block; the events are the same but for their times. */
static bool slot_write(struct trace_writer *w, const struct spool_slot *slot, const struct rate *rate,
                       uint64_t *time)
{
    static unsigned char
        bytes[3 * SPOOL_SLOT_BYTES]; /* a time takes more bytes at most where its unit is smaller */
    unsigned char *at = bytes;
    struct slot_cursor c = slot_start(slot);
    struct event e;
    uint64_t events = 0, base = *time;
    for (; slot_next(&c, &e); events++) {
        uint64_t now = units_at(rate, c.tick);
        e.wait = now > *time ? now - *time : 0;
        *time += e.wait;
        at = event_put(at, &e, c.thread, c.made);
        c.made += event_makes(e.kind);
    }
    return trace_events(w, slot->thread, base, slot->made, events, bytes, (size_t)(at - bytes));
}

static bool trace_write(const struct spool *s, const struct recorded *r, const struct rate *rate, FILE *file,
                        uint64_t *time, struct trace_fault *f)
{
    struct trace_writer w;
    bool good = trace_begin(&w, file, &r->facts, r->thread, f);
    for (uint64_t n = 0; good && n < s->slots; n++) {
        const struct spool_slot *slot = spool_slot(s, n);
        if (slot)
            good = slot_write(&w, slot, rate, &time[slot->thread]);
    }
    return good && trace_end(&w);
}

static bool seal(struct arena *a, const struct spool *s, struct recorded *r, const struct rate *rate,
                 const char *path, struct fault *f)
{
    uint64_t *time = arena_alloc(a, r->facts.threads * sizeof *time);
    struct trace_fault fault = {0};
    r->facts.duration_ns = units_at(rate, r->last_tick) * TRACE_UNIT_NS;
    struct output out;
    bool good = output_open(a, &out, path, f) &&
                (trace_write(s, r, rate, out.file, time, &fault) ||
                 fault_set(f, AK_ENVIRONMENT, "%s: %s", path, strerror(errno))) &&
                output_commit(&out, f);
    output_discard(&out);
    return good;
}

bool recorded_seal(struct arena *a, struct recorded *r, const char *end, const struct seal_clock *from,
                   const struct seal_clock *to, const char *path, struct fault *f)
{
    struct spool s;
    if (!spool_open(r->file, &s, f))
        return false;
    double ticks = (double)(to->tick - from->tick) / (1 << SPOOL_TICK_SHIFT),
           ns = (double)(to->ns - from->ns);
    struct rate rate = {ns / ticks / TRACE_UNIT_NS, (double)(r->started_tick >> SPOOL_TICK_SHIFT)};
    snprintf(r->facts.end, sizeof r->facts.end, "%s", end);
    bool good = seal(a, &s, r, &rate, path, f);
    spool_close(&s);
    return good;
}
