/*
 * event.h - one allocation event of a thread, and its bytes in a trace.
 *
 * An object is a block from the call that gave it to the call that took it back. Its name is the thread that made it and
 * how many that thread had made before: no address, so a block that got an old one's address is another object. An event
 * names the object that it takes; that this one was made before, on whichever thread, is all the order there is between
 * threads, with births and joins.
 *
 *   number    7 bits a byte, lowest first; the top bit says that more follow (LEB128), 64 bits at most
 *   event     number: time since the thread's last event << 3 | kind; then what the kind has:
 *     MALLOC, CALLOC   size                       makes an object of `size` requested bytes (of calloc: the product)
 *     ALIGNED          log2 of alignment, size
 *     REALLOC          object, size               takes one, makes one
 *     FREE             object
 *     INHERIT          size                       makes one that was there before the recorder: inherited by fork, mostly
 *     JOIN             thread                     all of that thread's events were before
 *   object    number: (made by this thread so far - its number) << 1, which is 2 or more, or
 *             number: thread << 1 | 1, and its number, where another thread made it
 */
#ifndef AK_EVENT_H
#define AK_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind {
    EVENT_MALLOC, EVENT_CALLOC, EVENT_ALIGNED, EVENT_REALLOC, EVENT_FREE, EVENT_INHERIT, EVENT_JOIN, EVENT_KINDS
};

#define EVENT_KIND_BITS 3
#define EVENT_BYTES_MAX 48 /* no event has more */
#define EVENT_LOG_MAX   63

struct event {
    enum event_kind kind;
    uint64_t wait;        /* since the thread's last event, in units of time */
    uint64_t size;        /* requested bytes, of kinds that make an object */
    unsigned align_log2;  /* ALIGNED */
    uint32_t thread;      /* JOIN: that one; REALLOC, FREE: the maker of the object that is taken */
    uint64_t number;      /* REALLOC, FREE: its number */
};

static inline bool event_makes(enum event_kind kind)
{
    return kind != EVENT_FREE && kind != EVENT_JOIN;
}

static inline bool event_takes(enum event_kind kind)
{
    return kind == EVENT_FREE || kind == EVENT_REALLOC;
}

/* A call of the program; the others are marks. */
static inline bool event_is_call(enum event_kind kind)
{
    return kind != EVENT_INHERIT && kind != EVENT_JOIN;
}

/* One or two bytes, as most take, without a branch that chance decides: the second one is written in any case. */
static inline unsigned char *number_put(unsigned char *at, uint64_t value)
{
    if (__builtin_expect(value < 1u << 14, 1)) {
        unsigned more = value > 0x7f;
        at[0] = (unsigned char)(value | more << 7);
        at[1] = (unsigned char)(value >> 7);
        return at + 1 + more;
    }
    for (; value >= 0x80; value >>= 7)
        *at++ = (unsigned char)(value | 0x80);
    *at++ = (unsigned char)value;
    return at;
}

/* NULL where it does not end before `end`, or is more than 64 bits. */
static inline const unsigned char *number_get(const unsigned char *at, const unsigned char *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
        uint64_t part = *at & 0x7f;
        if (shift == 63 && part > 1)
            return NULL;
        *value |= part << shift;
        if (!(*at++ & 0x80))
            return at;
    }
    return NULL;
}

/* `self` and `made`: the thread, and how many objects it has made so far. Returns where the next byte goes. Inlined, since
 * the recorder knows the kind. */
static inline __attribute__((always_inline)) unsigned char *event_put(unsigned char *at, const struct event *e,
                                                                      uint32_t self, uint64_t made)
{
    at = number_put(at, e->wait << EVENT_KIND_BITS | e->kind);
    if (e->kind == EVENT_ALIGNED)
        at = number_put(at, e->align_log2);
    if (event_takes(e->kind)) {
        if (e->thread == self) {
            at = number_put(at, (made - e->number) << 1);
        } else {
            at = number_put(at, (uint64_t)e->thread << 1 | 1);
            at = number_put(at, e->number);
        }
    }
    if (e->kind == EVENT_JOIN)
        return number_put(at, e->thread);
    return event_makes(e->kind) ? number_put(at, e->size) : at;
}

/* NULL where the bytes are no event. */
static inline const unsigned char *event_get(const unsigned char *at, const unsigned char *end, struct event *e,
                                             uint32_t self, uint64_t made)
{
    uint64_t value;

    *e = (struct event){ 0 };
    if ((at = number_get(at, end, &value)) == NULL || (value & 7) >= EVENT_KINDS)
        return NULL;
    e->kind = (enum event_kind)(value & 7);
    e->wait = value >> EVENT_KIND_BITS;
    if (e->kind == EVENT_ALIGNED) {
        if ((at = number_get(at, end, &value)) == NULL || value > EVENT_LOG_MAX)
            return NULL;
        e->align_log2 = (unsigned)value;
    }
    if (event_takes(e->kind)) {
        if ((at = number_get(at, end, &value)) == NULL)
            return NULL;
        if (value & 1) {
            if (value >> 1 > UINT32_MAX || value >> 1 == self || (at = number_get(at, end, &e->number)) == NULL)
                return NULL;
            e->thread = (uint32_t)(value >> 1);
        } else {
            if (value == 0 || value >> 1 > made)
                return NULL;
            e->thread = self;
            e->number = made - (value >> 1);
        }
    }
    if (e->kind == EVENT_JOIN) {
        if ((at = number_get(at, end, &value)) == NULL || value > UINT32_MAX || value == self)
            return NULL;
        e->thread = (uint32_t)value;
        return at;
    }
    return event_makes(e->kind) ? number_get(at, end, &e->size) : at;
}

#endif
