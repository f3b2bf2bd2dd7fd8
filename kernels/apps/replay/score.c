#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel.h"
#include "options.h"
#include "score.h"

#define PARTS_MAX 4096u /* threads that a launch can have */

/* An object on its way through the decoding. */
struct object {
    uint32_t slot, size;
    bool     remote; /* another thread takes it: its slot is used once */
    bool     live;
};

struct reading {
    struct score *score;
    const struct trace *trace;
    struct object **object;   /* by thread and number */
    uint32_t *part_of;        /* of a thread; NO_SLOT: it has no events */
    uint32_t **spare;         /* by part: slots to use again, the last one first */
    uint64_t *spares;
    uint64_t *events;         /* by thread: marks too, which births count */
    uint32_t *first_born, *next_born; /* by thread: children, in the order of their births */
    uint64_t live;
    char    *why;
    size_t   why_size;
};

/* ---- first: who takes what ---- */

static bool visit_takers(void *user, const struct trace_cursor *c, const struct event *e, uint64_t time)
{
    struct reading *r = user;
    (void)time;
    r->score->part[r->part_of[c->thread]].inherited_count += e->kind == EVENT_INHERIT;
    if (event_takes(e->kind) && e->thread != c->thread)
        r->object[e->thread][e->number].remote = true;
    return true;
}

/* ---- then: steps ---- */

static struct step *step_add(struct part *p, enum step_kind kind, uint64_t time)
{
    p->time[p->steps] = time * TRACE_UNIT_NS;
    struct step *s = &p->step[p->steps++];
    *s = (struct step){ .kind = (uint8_t)kind };
    return s;
}

/* Children that were born after the event at hand, and before the next one. */
static void births_add(struct reading *r, uint32_t thread, uint64_t time)
{
    struct part *p = &r->score->part[r->part_of[thread]];
    for (uint32_t child; (child = r->first_born[thread]) != NO_SLOT && r->trace->thread[child].born_at <= r->events[thread];) {
        step_add(p, STEP_BEAR, time)->slot = r->part_of[child];
        r->first_born[thread] = r->next_born[child];
    }
}

static void object_take(struct reading *r, const struct trace_cursor *c, const struct event *e, struct step *s)
{
    struct object *o = &r->object[e->thread][e->number];
    uint32_t part = r->part_of[e->thread];

    s->old_slot = o->slot;
    s->old_part = (uint16_t)part;
    if (e->thread == c->thread)
        r->spare[part][r->spares[part]++] = o->slot;
    o->live = false;
    r->score->part[part].live_at_end--;
    r->live -= o->size;
}

static void object_make(struct reading *r, const struct trace_cursor *c, const struct event *e, uint32_t *slot)
{
    struct object *o = &r->object[c->thread][c->made];
    uint32_t part = r->part_of[c->thread];
    struct part *p = &r->score->part[part];

    o->size = (uint32_t)e->size;
    o->slot = *slot = !o->remote && r->spares[part] > 0 ? r->spare[part][--r->spares[part]] : (uint32_t)p->slots++;
    o->live = true;
    p->live_at_end++;
    r->live += e->size;
    if (r->live > r->score->live_peak)
        r->score->live_peak = r->live;
}

static void inherit(struct reading *r, const struct trace_cursor *c, const struct event *e)
{
    struct part *p = &r->score->part[r->part_of[c->thread]];
    uint32_t slot;
    /* There from the start: no slot that another block had before. */
    uint64_t spares = r->spares[r->part_of[c->thread]];
    r->spares[r->part_of[c->thread]] = 0;
    object_make(r, c, e, &slot);
    r->spares[r->part_of[c->thread]] = spares;
    p->inherited[p->inherited_count] = slot;
    p->inherited_size[p->inherited_count++] = (uint32_t)e->size;
}

static bool visit_steps(void *user, const struct trace_cursor *c, const struct event *e, uint64_t time)
{
    static const enum step_kind made_by[] = { [EVENT_MALLOC] = STEP_MALLOC, [EVENT_CALLOC] = STEP_CALLOC,
                                              [EVENT_ALIGNED] = STEP_ALIGNED };
    struct reading *r = user;
    struct part *p = &r->score->part[r->part_of[c->thread]];
    struct step *s;

    if (event_makes(e->kind) && e->size > UINT32_MAX) {
        snprintf(r->why, r->why_size, "a block of %" PRIu64 " bytes, and a replay takes blocks below 4 GiB", e->size);
        return false;
    }
    if (p->slots == UINT32_MAX) {
        snprintf(r->why, r->why_size, "more blocks of one thread than a replay can keep");
        return false;
    }
    switch (e->kind) {
    case EVENT_MALLOC:
    case EVENT_CALLOC:
    case EVENT_ALIGNED:
        s = step_add(p, made_by[e->kind], time);
        s->size = (uint32_t)e->size;
        s->align_log2 = (uint8_t)e->align_log2;
        object_make(r, c, e, &s->slot);
        break;
    case EVENT_REALLOC:
        s = step_add(p, e->thread == c->thread ? STEP_REALLOC : STEP_REALLOC_REMOTE, time);
        s->size = (uint32_t)e->size;
        object_take(r, c, e, s);
        object_make(r, c, e, &s->slot);
        break;
    case EVENT_FREE:
        s = step_add(p, e->thread == c->thread ? STEP_FREE : STEP_FREE_REMOTE, time);
        object_take(r, c, e, s);
        break;
    case EVENT_INHERIT:
        inherit(r, c, e);
        break;
    case EVENT_JOIN:
        if (r->part_of[e->thread] != NO_SLOT)
            step_add(p, STEP_JOIN, time)->slot = r->part_of[e->thread];
        break;
    case EVENT_KINDS:
        break;
    }
    p->calls += event_is_call(e->kind);
    r->events[c->thread]++;
    births_add(r, c->thread, time);
    return true;
}

/* ---- pieces ---- */

static uint64_t steps_until(const struct part *p, uint64_t time)
{
    uint64_t low = 0, high = p->steps;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (p->time[middle] <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The time by which a share of all steps was done: by halving. Times never fall within a part, and what a step waits for
 * has no later time than it. */
static void pieces_cut(struct score *s)
{
    uint64_t all = 0, last = 0;
    for (uint32_t i = 0; i < s->parts; i++) {
        const struct part *p = &s->part[i];
        all += p->steps;
        last = p->steps > 0 && p->time[p->steps - 1] > last ? p->time[p->steps - 1] : last;
    }
    uint64_t from = 0;
    for (unsigned piece = 0; piece < PIECES; piece++) {
        uint64_t wanted = all * (piece + 1) / PIECES, low = from, high = last;
        while (low < high) {
            uint64_t middle = low + (high - low) / 2, done = 0;
            for (uint32_t i = 0; i < s->parts; i++)
                done += steps_until(&s->part[i], middle);
            if (done < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        from = low;
        for (uint32_t i = 0; i < s->parts; i++)
            s->part[i].piece_end[piece] = piece + 1 == PIECES ? s->part[i].steps : steps_until(&s->part[i], low);
    }
}

/* ---- the whole ---- */

/* Who is born is told by a mark on its parent; with equal counts the one with the lower number is first. */
static void births_sort(struct reading *r)
{
    const struct trace *t = r->trace;
    for (uint32_t i = 0; i < t->facts.threads; i++)
        r->first_born[i] = r->next_born[i] = NO_SLOT;
    for (uint32_t i = t->facts.threads; i-- > 0;) {
        uint32_t parent = t->thread[i].born_by;
        if (parent == TRACE_NOBODY || r->part_of[i] == NO_SLOT || r->part_of[parent] == NO_SLOT || t->thread[i].born_at == 0)
            continue;
        uint32_t *link = &r->first_born[parent];
        while (*link != NO_SLOT && t->thread[*link].born_at < t->thread[i].born_at)
            link = &r->next_born[*link];
        r->next_born[i] = *link;
        *link = i;
        r->score->part[r->part_of[i]].gated = true;
    }
}

static void parts_map(struct reading *r)
{
    struct score *s = r->score;
    const struct trace *t = r->trace;

    for (uint32_t i = 0; i < t->facts.threads; i++) {
        r->object[i] = ak_map(t->thread[i].objects * sizeof **r->object);
        r->part_of[i] = t->thread[i].events > 0 ? s->parts++ : NO_SLOT;
    }
    s->part = ak_map(s->parts * sizeof *s->part);
    for (uint32_t i = 0; i < t->facts.threads; i++) {
        if (r->part_of[i] == NO_SLOT)
            continue;
        struct part *p = &s->part[r->part_of[i]];
        uint64_t children = 0;
        for (uint32_t child = 0; child < t->facts.threads; child++)
            children += t->thread[child].born_by == i;
        p->thread = i;
        p->step = ak_map((t->thread[i].events + children) * sizeof *p->step);
        p->time = ak_map((t->thread[i].events + children) * sizeof *p->time);
        r->spare[r->part_of[i]] = ak_map(t->thread[i].objects * sizeof **r->spare);
    }
}

static void inherited_map(struct score *s)
{
    for (uint32_t i = 0; i < s->parts; i++) {
        struct part *p = &s->part[i];
        p->inherited = ak_map(p->inherited_count * sizeof *p->inherited);
        p->inherited_size = ak_map(p->inherited_count * sizeof *p->inherited_size);
        p->inherited_count = 0;
    }
}

static void working_map(struct reading *r)
{
    uint32_t threads = r->trace->facts.threads;
    r->object = ak_map(threads * sizeof *r->object);
    r->part_of = ak_map(threads * sizeof *r->part_of);
    r->spare = ak_map(threads * sizeof *r->spare);
    r->spares = ak_map(threads * sizeof *r->spares);
    r->events = ak_map(threads * sizeof *r->events);
    r->first_born = ak_map(threads * sizeof *r->first_born);
    r->next_born = ak_map(threads * sizeof *r->next_born);
}

static void working_unmap(struct reading *r)
{
    const struct trace *t = r->trace;
    uint32_t threads = t->facts.threads;
    for (uint32_t i = 0; i < threads; i++) {
        ak_unmap(r->object[i], t->thread[i].objects * sizeof **r->object);
        if (r->part_of[i] != NO_SLOT)
            ak_unmap(r->spare[r->part_of[i]], t->thread[i].objects * sizeof **r->spare);
    }
    ak_unmap(r->object, threads * sizeof *r->object);
    ak_unmap(r->part_of, threads * sizeof *r->part_of);
    ak_unmap(r->spare, threads * sizeof *r->spare);
    ak_unmap(r->spares, threads * sizeof *r->spares);
    ak_unmap(r->events, threads * sizeof *r->events);
    ak_unmap(r->first_born, threads * sizeof *r->first_born);
    ak_unmap(r->next_born, threads * sizeof *r->next_born);
}

static int decode(struct score *s, const struct trace *t, char *why, size_t why_size)
{
    struct reading r = { .score = s, .trace = t, .why = why, .why_size = why_size };

    s->facts = t->facts;
    working_map(&r);
    parts_map(&r);
    int rc = 0;
    if (s->parts == 0 || s->parts > PARTS_MAX) {
        snprintf(why, why_size, "%" PRIu32 " threads with events, and a replay takes 1 to %u", s->parts, PARTS_MAX);
        rc = EXIT_USAGE;
    } else {
        trace_walk(t, visit_takers, &r);
        inherited_map(s);
        births_sort(&r);
        rc = trace_walk(t, visit_steps, &r) ? 0 : EXIT_USAGE;
    }
    for (uint32_t i = 0; i < s->parts; i++) {
        s->calls += s->part[i].calls;
        s->part[i].mark = ak_map(s->part[i].slots * sizeof *s->part[i].mark);
        s->part[i].block = ak_map(s->part[i].slots * sizeof *s->part[i].block);
        s->part[i].size = ak_map(s->part[i].slots * sizeof *s->part[i].size);
    }
    if (rc == 0)
        pieces_cut(s);
    working_unmap(&r);
    return rc;
}

int score_read(struct score *s, const char *path, char *why, size_t why_size)
{
    struct trace trace;
    struct trace_fault fault;

    *s = (struct score){ 0 };
    if (!trace_open(&trace, path, &fault)) {
        snprintf(why, why_size, "%s: %s", path, fault.text);
        return fault.environment ? EXIT_ENVIRONMENT : EXIT_USAGE;
    }
    char reason[160] = "";
    int rc = decode(s, &trace, reason, sizeof reason);
    if (rc != 0)
        snprintf(why, why_size, "%s: %s", path, reason);
    trace_close(&trace);
    return rc;
}
