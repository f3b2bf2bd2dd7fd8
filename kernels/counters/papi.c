/*
 * papi.c - counters by PAPI, one event set a thread.
 *
 * Spellings (groups/NAME.txt, dialect papi): preset names (PAPI_TOT_CYC) or native ones (EVENT:UMASK). PAPI
 * counts user mode by default and, without its multiplexing, which stays off, an event has its counter all
 * the time or is refused; PAPI tells no enabled and running time, so both are the time between start and
 * stop.
 */
#include "counters.h"

#include <papi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Events that count, in PAPI's order: member[k] is the caller's number of the k-th event of each set. */
static struct {
    size_t n;
    const char *name[COUNTER_EVENTS_MAX];
    bool refused[COUNTER_EVENTS_MAX];
    char why[COUNTER_EVENTS_MAX][COUNTER_REASON_MAX];
    uint8_t member[COUNTER_EVENTS_MAX];
    unsigned members;
    struct papi_thread {
        int set;
        long long started_ns, stopped_ns, value[COUNTER_EVENTS_MAX];
        bool counted; /* start and stop both succeeded */
    } * thread;
    size_t thread_bytes;
} papi;

/* The component that reads the CPU's counters; what is wrong with it otherwise. */
static bool component_usable(char why[COUNTER_REASON_MAX])
{
    for (int i = 0; i < PAPI_num_components(); i++) {
        const PAPI_component_info_t *c = PAPI_get_component_info(i);
        if (c == NULL || strcmp(c->name, "perf_event") != 0)
            continue;
        if (c->disabled == 0)
            return true;
        snprintf(why, COUNTER_REASON_MAX, "PAPI's component perf_event is disabled: %.400s",
                 c->disabled_reason[0] ? c->disabled_reason : "PAPI gives no reason");
        return false;
    }
    snprintf(why, COUNTER_REASON_MAX, "this PAPI was built without the component perf_event");
    return false;
}

static bool papi_available(char why[COUNTER_REASON_MAX])
{
    int version = PAPI_library_init(PAPI_VER_CURRENT);
    if (version != PAPI_VER_CURRENT) {
        snprintf(why, COUNTER_REASON_MAX, "PAPI_library_init: %s",
                 version > 0 ? "the library is of another version than the headers" : PAPI_strerror(version));
        return false;
    }
    int rc = PAPI_thread_init(pthread_self);
    if (rc != PAPI_OK) {
        snprintf(why, COUNTER_REASON_MAX, "PAPI_thread_init: %s", PAPI_strerror(rc));
        return false;
    }
    return component_usable(why);
}

/* A new event set of the first `members` members. 0 or PAPI's error; *set is PAPI_NULL on error. */
static int set_open(int *set)
{
    *set = PAPI_NULL;
    int rc = PAPI_create_eventset(set);
    for (unsigned k = 0; rc == PAPI_OK && k < papi.members; k++)
        rc = PAPI_add_named_event(*set, papi.name[papi.member[k]]);
    if (rc != PAPI_OK && *set != PAPI_NULL) {
        PAPI_cleanup_eventset(*set);
        PAPI_destroy_eventset(set);
        *set = PAPI_NULL;
    }
    return rc;
}

static void set_close(int *set)
{
    if (*set == PAPI_NULL)
        return;
    PAPI_cleanup_eventset(*set);
    PAPI_destroy_eventset(set);
    *set = PAPI_NULL;
}

/* Error of adding the members and starting them once, as the threads will. */
static int try_members(void)
{
    long long value[COUNTER_EVENTS_MAX];
    int set = PAPI_NULL, rc = set_open(&set);
    if (rc == PAPI_OK && (rc = PAPI_start(set)) == PAPI_OK)
        rc = PAPI_stop(set, value);
    set_close(&set);
    return rc;
}

static void refuse(size_t i, int error)
{
    papi.refused[i] = true;
    if (error == PAPI_ECNFLCT)
        snprintf(papi.why[i], sizeof papi.why[i],
                 "no hardware counter is free beside %u others; AK_COUNTERS_SET picks another set of columns",
                 papi.members);
    else if (error == PAPI_ENOEVNT)
        snprintf(
            papi.why[i], sizeof papi.why[i],
            "PAPI finds no such event on this CPU (no PMU is visible, or its libpfm4 does not know the CPU)");
    else
        snprintf(papi.why[i], sizeof papi.why[i], "PAPI: %s", PAPI_strerror(error));
}

static int papi_prepare(const char *const *events, size_t n, unsigned threads, char why[COUNTER_REASON_MAX])
{
    if (n > COUNTER_EVENTS_MAX) {
        snprintf(why, COUNTER_REASON_MAX, "more than %d events", COUNTER_EVENTS_MAX);
        return -1;
    }
    if (papi.thread != NULL)
        munmap(papi.thread, papi.thread_bytes);
    memset(&papi, 0, sizeof papi);
    papi.n = n;
    papi.thread_bytes = threads * sizeof *papi.thread;
    void *memory = mmap(NULL, papi.thread_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        snprintf(why, COUNTER_REASON_MAX, "no memory for %u threads", threads);
        return -1;
    }
    papi.thread = memory;
    for (unsigned t = 0; t < threads; t++)
        papi.thread[t].set = PAPI_NULL;
    for (size_t i = 0; i < n; i++) {
        papi.name[i] = events[i];
        papi.member[papi.members++] = (uint8_t)i;
        int rc = try_members();
        if (rc != PAPI_OK) {
            papi.members--;
            refuse(i, rc);
        }
    }
    return 0;
}

static int papi_open(unsigned thread, char why[COUNTER_REASON_MAX])
{
    int rc = PAPI_register_thread();
    if (rc == PAPI_OK)
        rc = set_open(&papi.thread[thread].set);
    if (rc == PAPI_OK)
        return 0;
    snprintf(why, COUNTER_REASON_MAX, "PAPI: %s", PAPI_strerror(rc));
    return -1;
}

static void papi_start(unsigned thread)
{
    struct papi_thread *t = &papi.thread[thread];
    t->started_ns = PAPI_get_real_nsec();
    t->counted = PAPI_start(t->set) == PAPI_OK;
}

static void papi_stop(unsigned thread)
{
    struct papi_thread *t = &papi.thread[thread];
    t->counted = t->counted && PAPI_stop(t->set, t->value) == PAPI_OK;
    t->stopped_ns = PAPI_get_real_nsec();
}

static void papi_read(unsigned thread, struct counter_reading *readings)
{
    const struct papi_thread *t = &papi.thread[thread];
    for (size_t i = 0; i < papi.n; i++)
        readings[i] = (struct counter_reading){.valid = false};
    uint64_t ns = (uint64_t)(t->stopped_ns - t->started_ns);
    for (unsigned k = 0; t->counted && k < papi.members; k++)
        readings[papi.member[k]] = (struct counter_reading){(uint64_t)t->value[k], ns, ns, true};
}

static void papi_close(unsigned thread)
{
    set_close(&papi.thread[thread].set);
    PAPI_unregister_thread();
}

static const char *papi_reason(size_t event)
{
    return papi.refused[event] ? papi.why[event] : NULL;
}

extern const struct counter_backend counter_backend;
const struct counter_backend counter_backend = {
    .name = "papi",
    .dialect = "papi",
    .available = papi_available,
    .prepare = papi_prepare,
    .open = papi_open,
    .start = papi_start,
    .stop = papi_stop,
    .read = papi_read,
    .close = papi_close,
    .reason = papi_reason,
};
