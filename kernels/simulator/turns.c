/* turns.c - see turns.h. */
#include "turns.h"

#include <limits.h>
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
    bool joined, ran; /* this round */
    bool timed, expired;
    uint32_t mask; /* WAITING for */
    uint64_t key, since;
};

static struct {
    struct thread thread[TURNS_MAX];
    uint32_t end; /* numbers above were never used */
    uint32_t running;
    void (*round)(void);
    uint64_t waits; /* orders those who wait */
    const volatile uint32_t *gone;
    uint32_t stirred;
    pthread_mutex_t lock;
} turns = {.running = NOBODY, .lock = PTHREAD_MUTEX_INITIALIZER};

bool turns_have_begun;

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void turn_give(unsigned thread)
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
    thread->joined = true;
    while (turns.gone != NULL && *turns.gone != 0)
        sched_yield();
    turns.gone = NULL;
}

/* ---- who is next ---- */

/* The next thread of this round, or NOBODY. */
static uint32_t turn_left(uint32_t after)
{
    for (uint32_t i = after; i < turns.end; i++)
        if (turns.thread[i].state == READY && !turns.thread[i].ran)
            return i;
    return NOBODY;
}

/* All wait: the time of the one whose wait is the oldest of those that have an end has come. */
static bool turn_expire(void)
{
    struct thread *oldest = NULL;
    for (uint32_t i = 0; i < turns.end; i++) {
        struct thread *thread = &turns.thread[i];
        if (thread->state == OUTSIDE)
            return false;
        if (thread->state == WAITING && thread->timed && (oldest == NULL || thread->since < oldest->since))
            oldest = thread;
    }
    if (oldest == NULL)
        return false;
    oldest->state = READY;
    oldest->expired = true;
    return true;
}

/* Under the lock. NOBODY when none can run. */
static uint32_t turn_next(uint32_t me)
{
    uint32_t next = turn_left(me == NOBODY ? 0 : me + 1);
    if (next != NOBODY)
        return next;
    turns.round();
    for (uint32_t i = 0; i < turns.end; i++)
        turns.thread[i].ran = false;
    next = turn_left(0);
    if (next == NOBODY && turn_expire())
        next = turn_left(0);
    return next;
}

/* Gives the turn to the next; true when that is `me`. */
static bool turn_pass(unsigned me)
{
    pthread_mutex_lock(&turns.lock);
    turns.thread[me].ran = true;
    uint32_t next = turns.running = turn_next(me);
    pthread_mutex_unlock(&turns.lock);
    if (next == me)
        return true;
    if (next != NOBODY)
        turn_give(next);
    return false;
}

/* ---- the caller's side ---- */

void turns_begin(unsigned me, void (*round)(void))
{
    turns.round = round;
    turns.running = me;
    turns_add(me);
    turns.thread[me].joined = true;
    turns_have_begun = true;
}

void turns_add(unsigned thread)
{
    pthread_mutex_lock(&turns.lock);
    turns.thread[thread] = (struct thread){.state = READY};
    if (thread >= turns.end)
        turns.end = thread + 1;
    pthread_mutex_unlock(&turns.lock);
}

void turns_join(unsigned me)
{
    turn_take(me);
}

bool turns_joined(unsigned me)
{
    return turns.thread[me].joined;
}

void turns_yield(unsigned me)
{
    if (!turn_pass(me))
        turn_take(me);
}

void turns_leave(unsigned me, const volatile uint32_t *gone)
{
    pthread_mutex_lock(&turns.lock);
    turns.thread[me].state = ABSENT;
    turns.gone = gone;
    pthread_mutex_unlock(&turns.lock);
    turn_pass(me);
}

bool turns_wait(unsigned me, uint64_t key, uint32_t mask, bool timed)
{
    struct thread *thread = &turns.thread[me];
    thread->key = key;
    thread->mask = mask;
    thread->timed = timed;
    thread->expired = false;
    thread->since = turns.waits++;
    thread->state = WAITING;
    turns_yield(me);
    return !thread->expired;
}

unsigned turns_wake(uint64_t key, uint32_t mask, unsigned most)
{
    unsigned woken = 0;
    for (; woken < most; woken++) {
        struct thread *first = NULL;
        for (uint32_t i = 0; i < turns.end; i++) {
            struct thread *thread = &turns.thread[i];
            if (thread->state == WAITING && thread->key == key && (thread->mask & mask) != 0 &&
                (first == NULL || thread->since < first->since))
                first = thread;
        }
        if (first == NULL)
            break;
        first->state = READY;
    }
    return woken;
}

void turns_go_outside(unsigned me)
{
    turns.thread[me].state = OUTSIDE;
    turn_pass(me);
}

void turns_come_back(unsigned me)
{
    pthread_mutex_lock(&turns.lock);
    turns.thread[me].state = READY;
    turns.thread[me].ran = true; /* from the next round on */
    bool free = turns.running == NOBODY;
    if (free)
        turns.running = me;
    else
        turns.stirred++;
    pthread_mutex_unlock(&turns.lock);
    if (!free)
        turn_take(me);
}

uint32_t turns_stirred(void)
{
    return turns.stirred;
}
