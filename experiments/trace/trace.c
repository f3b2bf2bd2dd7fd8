#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc32.h"
#include "trace.h"

/*
 * The file is the 8 bytes of MAGIC, the version in 4, and blocks. A block is a head of 16 bytes and its payload:
 *   kind 4, thread 4, length of the payload 4, CRC of those 12 and the payload 4; all little-endian.
 * First one of facts, then events, then one end, with which the file ends.
 */
#define MAGIC       "aktrace\n"
#define MAGIC_BYTES 8
#define START_BYTES 12
#define HEAD_BYTES  16
#define FACTS_MAX   (8u << 20) /* payload of the facts: threads, and some text */
#define THREAD_MAX  40         /* bytes of a thread's entry */

enum block_kind { BLOCK_FACTS = 1, BLOCK_EVENTS = 2, BLOCK_END = 3 };

static bool fault_at(struct trace_fault *f, uint64_t offset, const char *format, ...)
{
    va_list arguments;
    int used = snprintf(f->text, sizeof f->text, "at byte %" PRIu64 ": ", offset);
    va_start(arguments, format);
    vsnprintf(f->text + used, sizeof f->text - (size_t)used, format, arguments);
    va_end(arguments);
    f->environment = false;
    return false;
}

static bool fault_system(struct trace_fault *f, const char *what)
{
    snprintf(f->text, sizeof f->text, "%s: %s", what, strerror(errno));
    f->environment = true;
    return false;
}

static unsigned char *word_put(unsigned char *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        *at++ = (unsigned char)(value >> 8 * i);
    return at;
}

static uint32_t word_get(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap(void *memory, size_t bytes)
{
    if (memory != NULL)
        munmap(memory, bytes + 1);
}

/* ---- writing ---- */

static bool bytes_write(struct trace_writer *w, const void *bytes, size_t length)
{
    return fwrite(bytes, 1, length, w->file) == length || fault_system(w->fault, "cannot be written");
}

/* The payload may lie in two pieces. */
static bool block_write(struct trace_writer *w, enum block_kind kind, uint32_t thread, const unsigned char *first,
                        size_t first_length, const unsigned char *second, size_t second_length)
{
    unsigned char head[HEAD_BYTES], *at = word_put(head, kind);
    at = word_put(at, thread);
    at = word_put(at, (uint32_t)(first_length + second_length));
    uint32_t crc = crc32_of(0, head, HEAD_BYTES - 4);
    word_put(at, crc32_of(crc32_of(crc, first, first_length), second, second_length));
    w->blocks++;
    return bytes_write(w, head, HEAD_BYTES) && bytes_write(w, first, first_length) &&
           (second_length == 0 || bytes_write(w, second, second_length));
}

static unsigned char *text_put(unsigned char *at, const char *text)
{
    size_t length = strlen(text);
    at = number_put(at, length);
    memcpy(at, text, length);
    return at + length;
}

bool trace_begin(struct trace_writer *w, FILE *file, const struct trace_facts *facts, const struct trace_thread *thread,
                 struct trace_fault *f)
{
    size_t room = sizeof *facts + 128 + (size_t)facts->threads * THREAD_MAX;
    unsigned char start[START_BYTES], *payload = map(room), *at = payload;
    const uint64_t numbers[] = { facts->pid, facts->parent, facts->started_unix_ns, facts->duration_ns, TRACE_UNIT_NS,
                                 facts->calls, facts->unseen, facts->threads };

    *w = (struct trace_writer){ file, 0, f };
    if (payload == NULL)
        return fault_system(f, "no memory");
    memcpy(start, MAGIC, MAGIC_BYTES);
    word_put(start + MAGIC_BYTES, TRACE_VERSION);
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        at = number_put(at, numbers[i]);
    at = text_put(text_put(text_put(at, facts->command), facts->served), facts->end);
    for (uint32_t t = 0; t < facts->threads; t++) {
        at = number_put(number_put(at, thread[t].events), thread[t].objects);
        at = number_put(at, thread[t].born_by == TRACE_NOBODY ? 0 : (uint64_t)thread[t].born_by + 1);
        at = number_put(at, thread[t].born_at);
    }
    bool good = bytes_write(w, start, START_BYTES) && block_write(w, BLOCK_FACTS, 0, payload, (size_t)(at - payload), NULL, 0);
    unmap(payload, room);
    return good;
}

bool trace_events(struct trace_writer *w, uint32_t thread, uint64_t time, uint64_t made, uint64_t events,
                  const unsigned char *bytes, size_t length)
{
    unsigned char base[3 * 10];
    unsigned char *at = number_put(number_put(number_put(base, time), made), events);
    return block_write(w, BLOCK_EVENTS, thread, base, (size_t)(at - base), bytes, length);
}

bool trace_end(struct trace_writer *w)
{
    unsigned char count[10], *at = number_put(count, w->blocks);
    return block_write(w, BLOCK_END, 0, count, (size_t)(at - count), NULL, 0) &&
           (fflush(w->file) == 0 || fault_system(w->fault, "cannot be written"));
}

/* ---- reading: facts ---- */

struct block {
    uint64_t offset;
    uint32_t kind, thread, length;
    const unsigned char *payload, *end;
};

/* The block at an offset, its bounds checked. */
static bool block_get(const struct trace *t, uint64_t offset, struct block *b, struct trace_fault *f)
{
    const unsigned char *at = t->data + offset;

    if (t->size - offset < HEAD_BYTES)
        return fault_at(f, offset, "the file ends, expected a block: the trace is cut");
    *b = (struct block){ offset, word_get(at), word_get(at + 4), word_get(at + 8), at + HEAD_BYTES, NULL };
    if (b->kind < BLOCK_FACTS || b->kind > BLOCK_END || b->length > FACTS_MAX)
        return fault_at(f, offset, "no head of a block: the trace is damaged");
    if (t->size - offset - HEAD_BYTES < b->length)
        return fault_at(f, offset, "the file ends inside a block of %" PRIu32 " bytes: the trace is cut", b->length);
    b->end = b->payload + b->length;
    if (crc32_of(crc32_of(0, at, HEAD_BYTES - 4), b->payload, b->length) != word_get(at + HEAD_BYTES - 4))
        return fault_at(f, offset, "the checksum of the block is wrong: the trace is damaged");
    return true;
}

static uint64_t block_next(const struct block *b)
{
    return b->offset + HEAD_BYTES + b->length;
}

static const unsigned char *text_get(const unsigned char *at, const unsigned char *end, char *text, size_t size)
{
    uint64_t length;
    if (at == NULL || (at = number_get(at, end, &length)) == NULL || length > (uint64_t)(end - at) || length >= size)
        return NULL;
    memcpy(text, at, length);
    text[length] = '\0';
    return at + length;
}

static bool thread_get(const unsigned char **at, const unsigned char *end, struct trace_thread *t)
{
    uint64_t n[4];
    for (unsigned i = 0; i < 4; i++)
        if ((*at = number_get(*at, end, &n[i])) == NULL)
            return false;
    *t = (struct trace_thread){ n[0], n[1], n[2] == 0 ? TRACE_NOBODY : (uint32_t)(n[2] - 1), n[3], 0 };
    return n[2] <= TRACE_THREADS_MAX;
}

static bool facts_get(struct trace *t, const struct block *b, struct trace_fault *f)
{
    struct trace_facts *facts = &t->facts;
    const unsigned char *at = b->payload;
    uint64_t n[8];

    if (b->kind != BLOCK_FACTS)
        return fault_at(f, b->offset, "expected the block of facts");
    for (unsigned i = 0; i < 8 && at != NULL; i++)
        at = number_get(at, b->end, &n[i]);
    at = text_get(at, b->end, facts->command, sizeof facts->command);
    at = text_get(at, b->end, facts->served, sizeof facts->served);
    at = text_get(at, b->end, facts->end, sizeof facts->end);
    if (at == NULL || n[4] != TRACE_UNIT_NS || n[7] == 0 || n[7] > TRACE_THREADS_MAX)
        return fault_at(f, b->offset, "the facts cannot be read");
    facts->pid = n[0];
    facts->parent = n[1];
    facts->started_unix_ns = n[2];
    facts->duration_ns = n[3];
    facts->calls = n[5];
    facts->unseen = n[6];
    facts->threads = (uint32_t)n[7];
    if ((t->thread = map(facts->threads * sizeof *t->thread)) == NULL)
        return fault_system(f, "no memory");
    for (uint32_t i = 0; i < facts->threads; i++)
        if (!thread_get(&at, b->end, &t->thread[i]) ||
            (t->thread[i].born_by != TRACE_NOBODY && t->thread[i].born_by >= facts->threads))
            return fault_at(f, b->offset, "the entry of thread %" PRIu32 " cannot be read", i);
    return at == b->end || fault_at(f, b->offset, "bytes are left behind the facts");
}

/* ---- reading: events ---- */

static bool base_get(const struct block *b, struct trace_cursor *c, uint64_t *events)
{
    c->at = number_get(b->payload, b->end, &c->time);
    c->at = c->at ? number_get(c->at, b->end, &c->made) : NULL;
    c->at = c->at ? number_get(c->at, b->end, events) : NULL;
    c->end = b->end;
    c->block = b->offset;
    return c->at != NULL;
}

/* One block's events by themselves; `seen` goes on over the blocks of its thread. */
static bool block_check(const struct trace *t, const struct block *b, struct trace_cursor *seen, struct trace_fault *f)
{
    struct trace_cursor c = { .thread = b->thread };
    struct event e;
    uint64_t events;

    if (!base_get(b, &c, &events) || c.made != seen->made || c.time < seen->time)
        return fault_at(f, b->offset, "the block does not go on where its thread's last one ended");
    seen->time = c.time;
    for (uint64_t i = 0; i < events; i++) {
        const unsigned char *next = event_get(c.at, c.end, &e, b->thread, seen->made);
        if (next == NULL || (event_takes(e.kind) && e.thread >= t->facts.threads) ||
            (e.kind == EVENT_JOIN && e.thread >= t->facts.threads) ||
            (event_takes(e.kind) && e.number >= t->thread[e.thread].objects) ||
            __builtin_add_overflow(seen->time, e.wait, &seen->time))
            return fault_at(f, (uint64_t)(c.at - t->data), "no event, or one of an object or thread that is not there");
        if (e.size > TRACE_SIZE_MAX || 1ull << e.align_log2 > TRACE_SIZE_MAX || seen->time > TRACE_TIME_MAX)
            return fault_at(f, (uint64_t)(c.at - t->data), "a size, an alignment or a time that no program can have");
        c.at = next;
        seen->made += event_makes(e.kind);
        seen->events++;
    }
    return c.at == c.end || fault_at(f, (uint64_t)(c.at - t->data), "bytes are left behind the block's events");
}

static bool blocks_check(struct trace *t, struct trace_cursor *seen, struct trace_fault *f)
{
    struct block b;
    uint64_t offset = START_BYTES, blocks = 0, told;

    for (;; offset = block_next(&b), blocks++) {
        if (!block_get(t, offset, &b, f))
            return false;
        if (b.kind == BLOCK_END)
            break;
        if (blocks == 0 ? !facts_get(t, &b, f) : b.kind != BLOCK_EVENTS || b.thread >= t->facts.threads)
            return f->text[0] != '\0' ? false : fault_at(f, offset, "expected a block of events of one of %" PRIu32 " threads",
                                                        t->facts.threads);
        if (blocks == 0)
            continue;
        if (t->thread[b.thread].first_block == 0)
            t->thread[b.thread].first_block = offset;
        if (!block_check(t, &b, &seen[b.thread], f))
            return false;
    }
    if (blocks == 0 || number_get(b.payload, b.end, &told) != b.end || told != blocks)
        return fault_at(f, offset, "the end tells of another number of blocks than the %" PRIu64 " before it", blocks);
    if (block_next(&b) != t->size)
        return fault_at(f, block_next(&b), "bytes follow the end");
    for (uint32_t i = 0; i < t->facts.threads; i++)
        if (seen[i].events != t->thread[i].events || seen[i].made != t->thread[i].objects)
            return fault_at(f, offset,
                            "thread %" PRIu32 " has %" PRIu64 " events and %" PRIu64 " objects, its entry says %" PRIu64
                            " and %" PRIu64, i, seen[i].events, seen[i].made, t->thread[i].events, t->thread[i].objects);
    return true;
}

/* ---- reading: the walk ---- */

/* What a thread waits for: that `by` made more than `number` objects, has done `number` events, or has ended. */
enum wait_for { WAIT_MADE, WAIT_DONE, WAIT_ENDED };

/* A thread's place. Threads that can go on are in the heap, smallest time first; the others hang in the list of the thread
 * that they wait for. */
struct walker {
    struct trace_cursor cursor;
    struct event event; /* the next one, read */
    uint64_t time;      /* of it */
    bool     ended;
    enum wait_for wait_for;
    uint64_t number;
    uint32_t waiters, next; /* first that waits for this one; next in the list this one is in */
};

struct walk {
    const struct trace *trace;
    struct walker *walker;
    uint32_t *heap, count;
    uint64_t now;
};

static struct trace_cursor cursor_start(const struct trace *t, uint32_t thread)
{
    struct trace_cursor c = { .thread = thread, .block = t->thread[thread].first_block };
    return c;
}

/* The block at hand, or the thread's next one where `after` is its offset. */
static bool cursor_block(const struct trace *t, struct trace_cursor *c, uint64_t offset)
{
    uint64_t events;
    for (; offset != 0;) {
        const unsigned char *at = t->data + offset;
        struct block b = { offset, word_get(at), word_get(at + 4), word_get(at + 8), at + HEAD_BYTES, NULL };
        b.end = b.payload + b.length;
        if (b.kind == BLOCK_END)
            return false;
        if (b.kind == BLOCK_EVENTS && b.thread == c->thread) {
            base_get(&b, c, &events);
            if (c->at != c->end)
                return true;
        }
        offset = block_next(&b);
    }
    return false;
}

static bool cursor_next(const struct trace *t, struct trace_cursor *c, struct event *e)
{
    if (c->at == c->end && !cursor_block(t, c, c->at == NULL ? c->block : (uint64_t)(c->end - t->data)))
        return false;
    c->last = c->at;
    c->at = event_get(c->at, c->end, e, c->thread, c->made);
    c->time += e->wait;
    return true;
}

static bool walker_before(const struct walk *w, uint32_t a, uint32_t b)
{
    const struct walker *x = &w->walker[a], *y = &w->walker[b];
    return x->time != y->time ? x->time < y->time : a < b;
}

static void heap_add(struct walk *w, uint32_t thread)
{
    uint32_t at = w->count++;
    for (; at > 0 && walker_before(w, thread, w->heap[(at - 1) / 2]); at = (at - 1) / 2)
        w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = thread;
}

static uint32_t heap_take(struct walk *w)
{
    uint32_t first = w->heap[0], last = w->heap[--w->count], at = 0;
    for (uint32_t child; (child = 2 * at + 1) < w->count; at = child) {
        if (child + 1 < w->count && walker_before(w, w->heap[child + 1], w->heap[child]))
            child++;
        if (!walker_before(w, w->heap[child], last))
            break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = last;
    return first;
}

static bool satisfied(const struct walker *by, enum wait_for wait_for, uint64_t number)
{
    return by->ended || (wait_for == WAIT_MADE && by->cursor.made > number) ||
           (wait_for == WAIT_DONE && by->cursor.events >= number);
}

/* Let a thread wait, or go into the heap. */
static void settle(struct walk *w, uint32_t thread, uint32_t by, enum wait_for wait_for, uint64_t number)
{
    struct walker *self = &w->walker[thread];
    if (by == TRACE_NOBODY || satisfied(&w->walker[by], wait_for, number)) {
        heap_add(w, thread);
        return;
    }
    self->wait_for = wait_for;
    self->number = number;
    self->next = w->walker[by].waiters;
    w->walker[by].waiters = thread;
}

static void settle_event(struct walk *w, uint32_t thread)
{
    const struct event *e = &w->walker[thread].event;
    if (e->kind == EVENT_JOIN)
        settle(w, thread, e->thread, WAIT_ENDED, 0);
    else if (event_takes(e->kind) && e->thread != thread)
        settle(w, thread, e->thread, WAIT_MADE, e->number);
    else
        settle(w, thread, TRACE_NOBODY, WAIT_MADE, 0);
}

/* Read the next event, or end. */
static void advance(struct walk *w, uint32_t thread)
{
    struct walker *self = &w->walker[thread];
    self->ended = !cursor_next(w->trace, &self->cursor, &self->event);
    self->time = self->cursor.time;
}

static void waiters_wake(struct walk *w, uint32_t thread)
{
    struct walker *self = &w->walker[thread];
    uint32_t *link = &self->waiters;
    while (*link != TRACE_NOBODY) {
        uint32_t one = *link;
        struct walker *waiter = &w->walker[one];
        if (!satisfied(self, waiter->wait_for, waiter->number)) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        if (waiter->wait_for == WAIT_DONE) /* born: what does its first event wait for? */
            settle_event(w, one);
        else
            heap_add(w, one);
    }
}

static bool walk_run(struct walk *w, trace_visit *visit, void *user)
{
    const struct trace *t = w->trace;
    for (uint32_t i = 0; i < t->facts.threads; i++) {
        w->walker[i] = (struct walker){ .cursor = cursor_start(t, i), .waiters = TRACE_NOBODY, .next = TRACE_NOBODY };
        advance(w, i);
    }
    for (uint32_t i = 0; i < t->facts.threads; i++) {
        if (w->walker[i].ended)
            continue;
        uint32_t parent = t->thread[i].born_by;
        if (parent == TRACE_NOBODY || satisfied(&w->walker[parent], WAIT_DONE, t->thread[i].born_at))
            settle_event(w, i);
        else
            settle(w, i, parent, WAIT_DONE, t->thread[i].born_at);
    }
    while (w->count > 0) {
        uint32_t thread = heap_take(w);
        struct walker *self = &w->walker[thread];
        w->now = self->time > w->now ? self->time : w->now;
        if (!visit(user, &self->cursor, &self->event, w->now))
            return false;
        self->cursor.made += event_makes(self->event.kind);
        self->cursor.events++;
        advance(w, thread);
        waiters_wake(w, thread);
        if (!self->ended)
            settle_event(w, thread);
    }
    return true;
}

bool trace_walk(const struct trace *t, trace_visit *visit, void *user)
{
    size_t room = t->facts.threads * (sizeof(struct walker) + sizeof(uint32_t));
    struct walk w = { .trace = t, .walker = map(room) };
    if (w.walker == NULL)
        return false;
    w.heap = (uint32_t *)(w.walker + t->facts.threads);
    bool good = walk_run(&w, visit, user);
    unmap(w.walker, room);
    return good;
}

/* ---- reading: what only the whole tells ---- */

struct whole {
    const struct trace *trace;
    uint64_t *first;       /* of a thread's objects in `taken`, by thread */
    unsigned char *taken;  /* a bit an object */
    uint64_t calls, events;
    struct trace_fault *fault;
};

static bool whole_visit(void *user, const struct trace_cursor *c, const struct event *e, uint64_t time)
{
    struct whole *w = user;
    (void)time;
    w->calls += event_is_call(e->kind);
    w->events++;
    if (!event_takes(e->kind))
        return true;
    uint64_t bit = w->first[e->thread] + e->number;
    if (w->taken[bit / 8] >> bit % 8 & 1)
        return fault_at(w->fault, (uint64_t)(c->last - w->trace->data), "object %" PRIu64 " of thread %" PRIu32 " is taken twice",
                        e->number, e->thread);
    w->taken[bit / 8] |= (unsigned char)(1u << bit % 8);
    return true;
}

static bool whole_check(const struct trace *t, struct trace_fault *f)
{
    uint64_t objects = 0, events = 0;
    struct whole w = { .trace = t, .first = map(t->facts.threads * sizeof *w.first), .fault = f };

    for (uint32_t i = 0; i < t->facts.threads && w.first != NULL; i++) {
        w.first[i] = objects;
        objects += t->thread[i].objects;
        events += t->thread[i].events;
    }
    w.taken = w.first != NULL ? map(objects / 8 + 1) : NULL;
    bool good = w.taken != NULL || fault_system(f, "no memory");
    if (good && !trace_walk(t, whole_visit, &w) && f->text[0] == '\0')
        good = fault_system(f, "no memory");
    good = good && f->text[0] == '\0';
    if (good && w.events != events)
        good = fault_at(f, 0, "threads wait for each other: %" PRIu64 " of %" PRIu64 " events cannot come", events - w.events,
                        events);
    if (good && w.calls != t->facts.calls)
        good = fault_at(f, 0, "%" PRIu64 " calls, the facts say %" PRIu64, w.calls, t->facts.calls);
    unmap(w.taken, objects / 8 + 1);
    unmap(w.first, t->facts.threads * sizeof *w.first);
    return good;
}

static bool file_map(struct trace *t, const char *path, struct trace_fault *f)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool good = fd >= 0 && fstat(fd, &s) == 0;
    if (good && !S_ISREG(s.st_mode)) {
        close(fd);
        return fault_at(f, 0, "no regular file, expected a trace");
    }
    if (good && s.st_size > 0) {
        void *data = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        good = data != MAP_FAILED;
        t->data = good ? data : NULL;
        t->size = good ? (size_t)s.st_size : 0;
    }
    if (!good)
        fault_system(f, "cannot be read");
    if (fd >= 0)
        close(fd);
    return good;
}

bool trace_open(struct trace *t, const char *path, struct trace_fault *f)
{
    *t = (struct trace){ 0 };
    f->text[0] = '\0';
    if (!file_map(t, path, f))
        return false;
    struct trace_cursor *seen = NULL;
    size_t room = TRACE_THREADS_MAX * sizeof *seen;
    bool good = true;
    if (t->size < START_BYTES || memcmp(t->data, MAGIC, MAGIC_BYTES) != 0)
        good = fault_at(f, 0, t->size < START_BYTES ? "the file ends, expected a trace" : "no trace of ak record");
    else if (word_get(t->data + MAGIC_BYTES) != TRACE_VERSION)
        good = fault_at(f, MAGIC_BYTES, "version %" PRIu32 " of the format, expected %d", word_get(t->data + MAGIC_BYTES),
                        TRACE_VERSION);
    else if ((seen = map(room)) == NULL)
        good = fault_system(f, "no memory");
    good = good && blocks_check(t, seen, f) && whole_check(t, f);
    unmap(seen, room);
    if (!good)
        trace_close(t);
    return good;
}

void trace_close(struct trace *t)
{
    unmap(t->thread, t->facts.threads * sizeof *t->thread);
    if (t->data != NULL)
        munmap((void *)(uintptr_t)t->data, t->size);
    *t = (struct trace){ 0 };
}
