/* turns.c - see turns.h. */
#include "turns.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum state { ABSENT, READY, WAITING, OUTSIDE };

#define NOBODY UINT32_MAX

struct thread {
    _Atomic uint32_t turn; /* 1: it is its turn. A futex */
    uint8_t state;
    bool joined;
    bool timed, expired;
    uint32_t mask;       /* WAITING for, with `key` */
    uint64_t key, since; /* `since` orders those who wait */
    uint64_t clock;
};

static struct {
    struct thread thread[TURNS_MAX];
    uint32_t end; /* numbers from here on were never used */
    uint32_t running;
    uint64_t now, waits;
    void (*advance)(void);
    const volatile uint32_t *gone;
    uint32_t stirred;
    pthread_mutex_t lock;
} turns = {.running = NOBODY, .lock = PTHREAD_MUTEX_INITIALIZER};

bool turns_have_begun;

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- who is next ---- */

/* The READY thread with the smallest clock but for `except`, or NOBODY. */
static uint32_t turn_first(uint32_t except)
{
    uint32_t first = NOBODY;
    for (uint32_t i = 0; i < turns.end; i++)
        if (turns.thread[i].state == READY && i != except &&
            (first == NOBODY || turns.thread[i].clock < turns.thread[first].clock))
            first = i;
    return first;
}

/* All wait: the time of the one whose wait is the oldest of those that have an end has come. */
static void turn_expire(void)
{
    struct thread *oldest = NULL;
    for (uint32_t i = 0; i < turns.end; i++) {
        struct thread *thread = &turns.thread[i];
        if (thread->state == OUTSIDE)
            return;
        if (thread->state == WAITING && thread->timed && (oldest == NULL || thread->since < oldest->since))
            oldest = thread;
    }
    if (oldest != NULL) {
        oldest->state = READY;
        oldest->expired = true;
    }
}

/* Under the lock. NOBODY when none can run. */
static uint32_t turn_next(void)
{
    uint32_t next = turn_first(NOBODY);
    if (next == NOBODY) {
        turn_expire();
        next = turn_first(NOBODY);
    }
    if (next == NOBODY || turns.thread[next].clock > turns.now) {
        if (next != NOBODY)
            turns.now = turns.thread[next].clock;
        if (turns.advance != NULL)
            turns.advance();
    }
    return next;
}

static void turn_give(uint32_t thread)
{
    atomic_store_explicit(&turns.thread[thread].turn, 1, memory_order_release);
    futex(&turns.thread[thread].turn, FUTEX_WAKE, 1);
}

static void turn_take(unsigned me)
{
    struct thread *thread = &turns.thread[me];
    while (atomic_load_explicit(&thread->turn, memory_order_acquire) == 0)
        futex(&thread->turn, FUTEX_WAIT, 0);
    atomic_store_explicit(&thread->turn, 0, memory_order_relaxed);
    while (turns.gone != NULL && *turns.gone != 0)
        sched_yield();
    turns.gone = NULL;
}

/* Gives the turn to the next; true when that is `me`. */
static bool turn_pass(unsigned me)
{
    pthread_mutex_lock(&turns.lock);
    uint32_t next = turns.running = turn_next();
    pthread_mutex_unlock(&turns.lock);
    if (next == me)
        return true;
    if (next != NOBODY)
        turn_give(next);
    return false;
}

/* ---- the caller's side ---- */

void turns_begin(unsigned me, void (*advance)(void))
{
    turns.advance = advance;
    turns.running = me;
    turns_add(me, 0);
    turns.thread[me].joined = true;
    turns_have_begun = true;
}

void turns_add(unsigned thread, uint64_t clock)
{
    pthread_mutex_lock(&turns.lock);
    turns.thread[thread] = (struct thread){.state = READY, .clock = clock};
    if (thread >= turns.end)
        turns.end = thread + 1;
    pthread_mutex_unlock(&turns.lock);
}

void turns_join(unsigned me)
{
    turn_take(me);
    turns.thread[me].joined = true;
}

bool turns_joined(unsigned me)
{
    return turns.thread[me].joined;
}

void turns_yield(unsigned me, uint64_t clock)
{
    turns.thread[me].clock = clock;
    if (!turn_pass(me))
        turn_take(me);
}

uint64_t turns_rival(unsigned me)
{
    uint32_t first = turn_first(me);
    return first == NOBODY ? UINT64_MAX : turns.thread[first].clock;
}

unsigned turns_running(void)
{
    return turns.running;
}

uint64_t turns_now(void)
{
    return turns.now;
}

uint64_t turns_clock(unsigned thread)
{
    return turns.thread[thread].clock;
}

void turns_leave(unsigned me, const volatile uint32_t *gone)
{
    pthread_mutex_lock(&turns.lock);
    turns.thread[me].state = ABSENT;
    turns.gone = gone;
    pthread_mutex_unlock(&turns.lock);
    turn_pass(me);
}

bool turns_wait(unsigned me, uint64_t clock, uint64_t key, uint32_t mask, bool timed)
{
    struct thread *thread = &turns.thread[me];
    thread->key = key;
    thread->mask = mask;
    thread->timed = timed;
    thread->expired = false;
    thread->since = turns.waits++;
    thread->state = WAITING;
    turns_yield(me, clock);
    return !thread->expired;
}

/* The one that has waited for longest, or NULL. */
static struct thread *turn_waiter(uint64_t key, uint32_t mask)
{
    struct thread *first = NULL;
    for (uint32_t i = 0; i < turns.end; i++) {
        struct thread *thread = &turns.thread[i];
        if (thread->state == WAITING && thread->key == key && (thread->mask & mask) != 0 &&
            (first == NULL || thread->since < first->since))
            first = thread;
    }
    return first;
}

unsigned turns_wake(uint64_t clock, uint64_t key, uint32_t mask, unsigned most)
{
    unsigned woken = 0;
    for (struct thread *thread; woken < most && (thread = turn_waiter(key, mask)) != NULL; woken++) {
        thread->state = READY;
        thread->clock = later(thread->clock, clock);
    }
    return woken;
}

void turns_go_outside(unsigned me, uint64_t clock)
{
    turns.thread[me].clock = clock;
    turns.thread[me].state = OUTSIDE;
    turn_pass(me);
}

void turns_come_back(unsigned me)
{
    pthread_mutex_lock(&turns.lock);
    turns.thread[me].state = READY;
    turns.thread[me].clock = later(turns.thread[me].clock, turns.now);
    bool nobody = turns.running == NOBODY;
    if (nobody)
        turns.running = me;
    else
        turns.stirred++;
    pthread_mutex_unlock(&turns.lock);
    if (!nobody)
        turn_take(me);
}

uint32_t turns_stirred(void)
{
    return turns.stirred;
}
