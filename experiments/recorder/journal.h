/*
 * journal.h - each thread's events on their way into the process's spool.
 *
 * A thread's journal is its thread-local state: where the next event goes, how many objects it has made. It has a slot from
 * its first event on; a full slot is unmapped and the next one taken. journal_enter admits a call of malloc's family: it
 * returns NULL where nothing is to be recorded (not begun, failed, or this call comes from a signal handler in the middle of
 * another one), and journal_leave ends it. Between the two the thread owns its journal.
 *
 * A forked child finds `alive` wiped by the kernel, whoever forked and however, and begins a spool of its own.
 */
#ifndef AK_JOURNAL_H
#define AK_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "event.h"
#include "spool.h"

struct journal {
    unsigned char *at, *limit;  /* limit: from there on a new slot is needed; both NULL: no slot */
    struct spool_slot *slot;
    uint64_t tick, made, events;
    uint32_t thread, era;       /* era: of the process by which it has that number; 0: none */
    uint32_t born_by;           /* UINT32_MAX: nobody saw it start */
    uint64_t born_at;
    volatile bool busy;
};

#pragma GCC visibility push(hidden)

/* `recording` is set once, before the program's own code runs, and stays: blocks have a label from then on. */
extern bool journal_recording;
extern uint32_t journal_era;          /* of this process: counts forks, from 1 */
extern volatile uint32_t *journal_alive; /* the era; 0 in a forked child, and before the recording begins */
extern __thread struct journal journal_self __attribute__((tls_model("initial-exec")));

/* From the environment, when the program starts. */
void journal_begin(int argc, char **argv, char **environment);
/* How the process ends, where it says so itself. */
void journal_end(uint32_t how);
/* The slow parts of what is below. */
bool journal_admit(struct journal *);
bool journal_slot(struct journal *);
/* A thread that is about to be started: its number, and which thread starts it, after how many events. */
struct birth { uint32_t thread, by; uint64_t at; };
/* On the thread that starts it; false where nothing is recorded. */
bool journal_birth(struct birth *);
/* On the new thread, before all else. */
void journal_born(const struct birth *);
/* It can be joined by this name; whose name it is, once, or UINT32_MAX. */
void journal_named(uint32_t thread, uintptr_t name);
uint32_t journal_take_name(uintptr_t name);

static inline struct journal *journal_enter(void)
{
    struct journal *j = &journal_self;
    if (__builtin_expect(*journal_alive != j->era || j->era == 0 || j->busy, 0) && !journal_admit(j))
        return NULL;
    j->busy = true;
    __asm__ volatile("" ::: "memory");
    return j;
}

static inline void journal_leave(struct journal *j)
{
    __asm__ volatile("" ::: "memory");
    j->busy = false;
}

/* The bytes come before the count that makes them valid: a process can end between any two. */
static inline __attribute__((always_inline)) void journal_add(struct journal *j, struct event *e)
{
    if (__builtin_expect(j->at >= j->limit, 0) && !journal_slot(j))
        return;
    uint64_t tick = spool_ticks() >> SPOOL_TICK_SHIFT;
    e->wait = tick > j->tick ? tick - j->tick : 0;
    j->tick += e->wait;
    j->at = event_put(j->at, e, j->thread, j->made);
    j->made += event_makes(e->kind);
    j->events++;
    atomic_store_explicit(&j->slot->used, (uint32_t)(j->at - (unsigned char *)(j->slot + 1)), memory_order_release);
}

#pragma GCC visibility pop

#endif
