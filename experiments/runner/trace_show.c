#include "trace_show.h"
#include "places.h"
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SIZE_CLASSES 65 /* 0, then by the number of bits */
#define BAR_WIDTH    40
#define THREADS_TOLD 16

struct view {
    const struct trace *trace;
    uint64_t **size; /* by thread and number: of objects that live */
    uint64_t calls[EVENT_KINDS], class[SIZE_CLASSES];
    uint64_t made, live, blocks, live_peak, blocks_at_peak, peak_time, remote;
};

static void take(struct view *v, uint32_t thread, uint64_t number)
{
    v->live -= v->size[thread][number];
    v->blocks--;
}

static void make(struct view *v, uint32_t thread, uint64_t number, uint64_t size, uint64_t time)
{
    v->size[thread][number] = size;
    v->class[size ? 64 - __builtin_clzll(size) : 0]++;
    v->made++;
    v->blocks++;
    v->live += size;
    if (v->live > v->live_peak) {
        v->live_peak = v->live;
        v->blocks_at_peak = v->blocks;
        v->peak_time = time;
    }
}

static bool visit(void *user, const struct trace_cursor *c, const struct event *e, uint64_t time)
{
    struct view *v = user;
    v->calls[e->kind]++;
    if (event_takes(e->kind)) {
        take(v, e->thread, e->number);
        v->remote += e->thread != c->thread;
    }
    if (event_makes(e->kind))
        make(v, c->thread, c->made, e->size, time);
    return v->live <= TRACE_SIZE_MAX;
}

static void print_classes(const struct view *v)
{
    uint64_t most = 1;
    for (unsigned i = 0; i < SIZE_CLASSES; i++)
        most = v->class[i] > most ? v->class[i] : most;
    printf("\nsizes, requested bytes\n");
    for (unsigned i = 0; i < SIZE_CLASSES; i++)
        if (v->class[i])
            printf("%20" PRIu64 " to %-20" PRIu64 " %12" PRIu64 "  %.*s\n", i ? (uint64_t)1 << (i - 1) : 0,
                   i ? ((uint64_t)1 << (i - 1)) * 2 - 1 : 0, v->class[i],
                   (int)((double)v->class[i] / (double)most * BAR_WIDTH + 0.5),
                   "########################################");
}

static void print_threads(const struct trace *t)
{
    uint32_t with_events = 0;
    for (uint32_t i = 0; i < t->facts.threads; i++)
        with_events += t->thread[i].events > 0;
    printf("\nthreads         %" PRIu32 " with events\n", with_events);
    for (uint32_t i = 0, told = 0; i < t->facts.threads && told < THREADS_TOLD; i++) {
        if (t->thread[i].events == 0)
            continue;
        told++;
        printf("  %-5" PRIu32 " %12" PRIu64 " events, %12" PRIu64 " objects", i, t->thread[i].events,
               t->thread[i].objects);
        if (t->thread[i].born_by != TRACE_NOBODY)
            printf(", started by %" PRIu32, t->thread[i].born_by);
        putchar('\n');
    }
}

static void print_view(const struct view *v)
{
    const struct trace_facts *facts = &v->trace->facts;
    char started[32] = "";
    time_t seconds = (time_t)(facts->started_unix_ns / 1000000000u);
    struct tm utc;
    if (gmtime_r(&seconds, &utc))
        strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    printf("command         %s\nprocess         %" PRIu64
           ", ended: %s\nserved by       %s\nstarted         %s\n"
           "duration        %.6f s\n",
           facts->command, facts->pid, facts->end, facts->served, started, (double)facts->duration_ns / 1e9);
    printf("calls           %" PRIu64 ": malloc %" PRIu64 ", calloc %" PRIu64 ", aligned %" PRIu64
           ", realloc %" PRIu64 ", free %" PRIu64 "\n",
           facts->calls, v->calls[EVENT_MALLOC], v->calls[EVENT_CALLOC], v->calls[EVENT_ALIGNED],
           v->calls[EVENT_REALLOC], v->calls[EVENT_FREE]);
    printf("on other threads %" PRIu64 " of the objects taken\n", v->remote);
    printf("inherited       %" PRIu64 " objects that were there before\n", v->calls[EVENT_INHERIT]);
    if (facts->unseen)
        printf("not in it       %" PRIu64 " calls of signal handlers in the middle of another call\n",
               facts->unseen);
    printf("live at peak    %" PRIu64 " bytes in %" PRIu64 " blocks, at %.6f s\n", v->live_peak,
           v->blocks_at_peak, (double)v->peak_time * TRACE_UNIT_NS / 1e9);
    printf("live at end     %" PRIu64 " bytes in %" PRIu64 " blocks\n", v->live, v->blocks);
    print_threads(v->trace);
    print_classes(v);
}

bool trace_show(struct arena *a, const char *path, struct fault *f)
{
    struct trace trace;
    struct trace_fault fault;
    if (access(path, R_OK) != 0)
        return fault_set(f, AK_USAGE, "%s: %s; expected a trace of ak record", path, strerror(errno));
    if (!trace_open(&trace, path, &fault))
        return fault_set(f, fault.environment ? AK_ENVIRONMENT : AK_USAGE, "%s: %s", path, fault.text);
    struct view view = {.trace = &trace, .size = arena_alloc(a, trace.facts.threads * sizeof *view.size)};
    for (uint32_t i = 0; i < trace.facts.threads; i++)
        view.size[i] = arena_alloc(a, (trace.thread[i].objects + 1) * sizeof **view.size);
    if (trace_walk(&trace, visit, &view))
        print_view(&view);
    else if (view.live > TRACE_SIZE_MAX)
        fault_set(f, AK_USAGE, "%s: more live bytes than a process has addresses: the trace is damaged",
                  path);
    else
        fault_set(f, AK_ENVIRONMENT, "%s: out of memory", path);
    trace_close(&trace);
    return f->code == AK_DONE;
}
