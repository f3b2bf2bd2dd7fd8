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

/* What a thread that sleeps finds out. */
enum turn { TURN_NOT_YET, TURN_MINE, TURN_LET_THROUGH };

struct thread {
    _Atomic uint32_t turn; /* enum turn. A futex */
    uint8_t state;
    bool joined;
    bool expired;
    uint32_t mask;       /* WAITING for, with `key` */
    uint64_t key, since; /* `since` orders those who wait */
    uint64_t end;        /* of the wait, or TURNS_NEVER */
    uint64_t clock;
};

static struct {
    struct thread thread[TURNS_MAX];
    uint32_t end;    /* numbers from here on were never used */
    uint32_t chosen; /* whose turn it is; turns_runner, as soon as it knows */
    uint64_t now, waits;
    void (*advance)(void);
    const volatile uint32_t *gone;
    uint32_t stirred;
    pthread_mutex_t lock;
} turns = {.chosen = NOBODY, .lock = PTHREAD_MUTEX_INITIALIZER};

bool turns_have_begun;
_Atomic uint32_t turns_runner = NOBODY;

static void runner_is(uint32_t thread)
{
    atomic_store_explicit(&turns_runner, thread, memory_order_relaxed);
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- who is next ---- */

/* When a thread can run: its clock, or the end of its wait. */
static inline uint64_t turn_when(const struct thread *thread)
{
    return thread->state == READY ? thread->clock : thread->state == WAITING ? thread->end : TURNS_NEVER;
}

/* The thread that can run first but for `except`, or NOBODY. */
static uint32_t turn_first(uint32_t except)
{
    uint32_t first = NOBODY;
    uint64_t when = TURNS_NEVER;
    for (uint32_t i = 0; i < turns.end; i++)
        if (turn_when(&turns.thread[i]) < when && i != except) {
            first = i;
            when = turn_when(&turns.thread[i]);
        }
    return first;
}

/* Its wait is over; the end may have been before the wait began. */
static void turn_expire(struct thread *thread)
{
    thread->state = READY;
    thread->expired = true;
    thread->clock = later(thread->clock, thread->end);
}

/* Under the lock. NOBODY when none can run. */
static uint32_t turn_next(void)
{
    uint32_t next = turn_first(NOBODY);
    if (next != NOBODY && turns.thread[next].state == WAITING)
        turn_expire(&turns.thread[next]);
    if (next == NOBODY || turns.thread[next].clock > turns.now) {
        if (next != NOBODY)
            turns.now = turns.thread[next].clock;
        if (turns.advance != NULL)
            turns.advance();
    }
    return next;
}

static void turn_give(uint32_t thread, enum turn what)
{
    atomic_store_explicit(&turns.thread[thread].turn, what, memory_order_release);
    futex(&turns.thread[thread].turn, FUTEX_WAKE, 1);
}

static void turn_take(unsigned me)
{
    struct thread *thread = &turns.thread[me];
    uint32_t turn;
    while ((turn = atomic_load_explicit(&thread->turn, memory_order_acquire)) == TURN_NOT_YET)
        futex(&thread->turn, FUTEX_WAIT, TURN_NOT_YET);
    atomic_store_explicit(&thread->turn, TURN_NOT_YET, memory_order_relaxed);
    thread->joined = turn == TURN_MINE;
    if (!thread->joined)
        return;
    runner_is(me);
    while (turns.gone != NULL && *turns.gone != 0)
        sched_yield();
    turns.gone = NULL;
}

/* Gives the turn to the next; true when that is `me`. */
static bool turn_pass(unsigned me)
{
    pthread_mutex_lock(&turns.lock);
    uint32_t next = turns.chosen = turn_next();
    if (next != me)
        runner_is(NOBODY); /* before one that comes back can be it */
    pthread_mutex_unlock(&turns.lock);
    if (next == me)
        return true;
    if (next != NOBODY)
        turn_give(next, TURN_MINE);
    return false;
}

/* ---- the caller's side ---- */

void turns_begin(unsigned me, void (*advance)(void))
{
    turns.advance = advance;
    turns.chosen = me;
    runner_is(me);
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
}

bool turns_astray(unsigned me)
{
    return turns.thread[me].state == READY && !turns.thread[me].joined;
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
    return first == NOBODY ? TURNS_NEVER : turn_when(&turns.thread[first]);
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

bool turns_wait(unsigned me, uint64_t clock, uint64_t key, uint32_t mask, uint64_t end)
{
    struct thread *thread = &turns.thread[me];
    thread->key = key;
    thread->mask = mask;
    thread->end = end;
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
    bool nobody = turns.chosen == NOBODY;
    if (nobody)
        turns.chosen = me;
    else
        turns.stirred++;
    pthread_mutex_unlock(&turns.lock);
    if (nobody)
        runner_is(me);
    else
        turn_take(me);
}

void turns_fork(unsigned me, bool (*between)(unsigned thread))
{
    turns_have_begun = false;
    for (uint32_t i = 0; i < turns.end; i++)
        if (i != me && turns.thread[i].state == READY && between(i)) {
            turn_give(i, TURN_LET_THROUGH);
            turns.stirred++;
        }
}

void turns_forked(unsigned me, bool child)
{
    for (uint32_t i = 0; child && i < turns.end; i++)
        if (i != me)
            turns.thread[i].state = ABSENT;
    if (child)
        pthread_mutex_init(&turns.lock, NULL); /* one that is not there may have held it */
    turns_have_begun = true;
}

uint32_t turns_stirred(void)
{
    return turns.stirred;
}
