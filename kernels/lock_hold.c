/*
 * lock_hold - what it costs to hand a lock over, by how many want it and by how far apart they are (--placement).
 *
 * Work per op: the lock is taken, one word of each of `lines` lines is written and `hold` steps are worked under it, it
 * is dropped, and `think` steps are worked. A step is one multiplication that needs the last one's result, in a loop of
 * three instructions: three cycles on x86-64 processors of the last years, and three in the simulated machine.
 *
 * spin: test-and-test-and-set; ticket; mcs (J. Mellor-Crummey and M. Scott, 1991); mutex: pthread_mutex_t; parking:
 * PAUSEs in growing numbers, then a futex, as tlfl's lock is (allocators/tlfl/lock.c). Those that spin yield where
 * threads exceed CPUs.
 *
 * A lock's own word also holds how often it was taken, and whoever drops it writes that by the very store that lets go
 * (mutex: into the rest of its line). So with no `lines` too it is proved that no two held the lock at once, and no
 * further line moves for it; and who finds the number that it left was the last owner: all others are hand-overs.
 * Where handover_ratio is far below 1 (few want the lock, or the owner gets it again), and where threads exceed CPUs, the
 * time of an op is none of a hand-over.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"

#define LINES_MAX       16
#define PARKING_SPINS   2000 /* these two as LOCK_SPINS and LOCK_BACKOFF of tlfl */
#define PARKING_BACKOFF 256
#define MCS_FREE        1u
#define STEP_TRIALS     5
#define STEP_TRIAL      20000 /* steps: some 20 us */

enum kind { SPIN, TICKET, MCS, MUTEX, PARKING };

/* One aligned word: the lock in its low half, which is all that takers change, and how often it was taken. */
union word {
    _Atomic uint64_t whole;
    struct { _Atomic uint32_t lock, taken; };
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lock is the low half of the word");

struct ticket {
    _Alignas(CACHE_SECTOR) _Atomic uint32_t next;
    _Alignas(CACHE_SECTOR) _Atomic uint32_t serving; /* and so the number of those that were served */
};

/* A waiter of mcs; in its thread's memory, and on lines of its own. */
struct waiter {
    _Alignas(CACHE_SECTOR) struct waiter *_Atomic next;
    _Atomic uint64_t granted; /* 0: not yet; else times taken before, plus 1 */
};

struct mutex {
    pthread_mutex_t lock;
    uint32_t        taken;
};
_Static_assert(sizeof(struct mutex) <= CACHE_LINE, "in the line that its owner writes anyway");

/* c->shared: the lock in use, and what is written under it. */
struct shared {
    union {
        _Alignas(CACHE_SECTOR) union word word; /* spin: 0 free, 1 held; parking: 2 besides, somebody may sleep */
        struct ticket ticket;
        _Atomic uint64_t tail;                  /* mcs: the last waiter, or times taken * 2 + MCS_FREE */
        struct mutex mutex;
    };
    struct { _Alignas(CACHE_SECTOR) volatile uint64_t word; } line[LINES_MAX];
};

struct state {
    struct waiter waiter;
    enum kind kind;
    uint64_t hold, think, lines;
    uint64_t handovers;
    uint32_t left;  /* times taken when this thread last dropped the lock */
    double step_ns; /* of the first thread; 0: the clock stands still */
};

static const struct param params[] = {
    { "hold", PARAM_INT, "30", "steps", 0, 1000000, NULL, "work under the lock; a step takes three cycles" },
    { "think", PARAM_INT, "30", "steps", 0, 1000000, NULL, "work between two acquisitions" },
    { "lines", PARAM_INT, "1", "count", 0, LINES_MAX, NULL, "lines written under the lock, its own apart" },
    { 0 },
};

static size_t shared_bytes(void)
{
    return sizeof(struct shared);
}

static inline __attribute__((always_inline)) void work(uint64_t steps)
{
    uint64_t value = 1;
    for (; steps > 0; steps--) {
        value *= 0x9e3779b97f4a7c15u;
        __asm__ volatile("" : "+r"(value));
    }
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- the locks: take returns how often it was taken before, drop is told how often with this time ---- */

static inline uint32_t spin_take(union word *w)
{
    unsigned spins = 0;
    while (atomic_exchange_explicit(&w->lock, 1, memory_order_acquire) != 0)
        do
            ak_relax(&spins);
        while (atomic_load_explicit(&w->lock, memory_order_relaxed) != 0);
    return atomic_load_explicit(&w->taken, memory_order_relaxed);
}

static inline void spin_drop(union word *w, uint32_t taken)
{
    atomic_store_explicit(&w->whole, (uint64_t)taken << 32, memory_order_release);
}

static inline uint32_t ticket_take(struct ticket *t)
{
    unsigned spins = 0;
    uint32_t mine = atomic_fetch_add_explicit(&t->next, 1, memory_order_relaxed);
    while (atomic_load_explicit(&t->serving, memory_order_acquire) != mine)
        ak_relax(&spins);
    return mine;
}

static inline void ticket_drop(struct ticket *t, uint32_t taken)
{
    atomic_store_explicit(&t->serving, taken, memory_order_release);
}

static inline uint32_t mcs_take(_Atomic uint64_t *tail, struct waiter *me)
{
    unsigned spins = 0;
    uint64_t granted;
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->granted, 0, memory_order_relaxed);
    uint64_t last = atomic_exchange_explicit(tail, (uint64_t)(uintptr_t)me, memory_order_acq_rel);
    if (last & MCS_FREE)
        return (uint32_t)(last >> 1);
    atomic_store_explicit(&((struct waiter *)(uintptr_t)last)->next, me, memory_order_release);
    while ((granted = atomic_load_explicit(&me->granted, memory_order_acquire)) == 0)
        ak_relax(&spins);
    return (uint32_t)(granted - 1);
}

static inline void mcs_drop(_Atomic uint64_t *tail, struct waiter *me, uint32_t taken)
{
    unsigned spins = 0;
    uint64_t last = (uint64_t)(uintptr_t)me;
    struct waiter *next = atomic_load_explicit(&me->next, memory_order_acquire);
    if (next == NULL && atomic_compare_exchange_strong_explicit(tail, &last, (uint64_t)taken << 1 | MCS_FREE,
                                                                memory_order_release, memory_order_relaxed))
        return;
    while (next == NULL) { /* it has joined the queue and not said so yet */
        ak_relax(&spins);
        next = atomic_load_explicit(&me->next, memory_order_acquire);
    }
    atomic_store_explicit(&next->granted, (uint64_t)taken + 1, memory_order_release);
}

static inline uint32_t mutex_take(struct mutex *m)
{
    pthread_mutex_lock(&m->lock);
    return m->taken;
}

static inline void mutex_drop(struct mutex *m, uint32_t taken)
{
    m->taken = taken;
    pthread_mutex_unlock(&m->lock);
}

static __attribute__((noinline)) void parking_wait(union word *w)
{
    unsigned wait = 1;
    for (unsigned i = 0; i < PARKING_SPINS; i += wait) {
        uint32_t unheld = 0;
        if (atomic_load_explicit(&w->lock, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_weak_explicit(&w->lock, &unheld, 1, memory_order_acquire, memory_order_relaxed))
            return;
        wait = wait < PARKING_BACKOFF ? 2 * wait : wait;
        for (unsigned pauses = 0; pauses < wait; pauses++)
            relax();
    }
    while (atomic_exchange_explicit(&w->lock, 2, memory_order_acquire) != 0)
        syscall(SYS_futex, &w->lock, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static inline uint32_t parking_take(union word *w)
{
    uint32_t unheld = 0;
    if (!atomic_compare_exchange_strong_explicit(&w->lock, &unheld, 1, memory_order_acquire, memory_order_relaxed))
        parking_wait(w);
    return atomic_load_explicit(&w->taken, memory_order_relaxed);
}

static inline void parking_drop(union word *w, uint32_t taken)
{
    if ((uint32_t)atomic_exchange_explicit(&w->whole, (uint64_t)taken << 32, memory_order_release) == 2)
        syscall(SYS_futex, &w->lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static inline __attribute__((always_inline)) uint32_t lock_take(enum kind kind, struct shared *shared, struct waiter *me)
{
    switch (kind) {
    case SPIN: return spin_take(&shared->word);
    case TICKET: return ticket_take(&shared->ticket);
    case MCS: return mcs_take(&shared->tail, me);
    case MUTEX: return mutex_take(&shared->mutex);
    default: return parking_take(&shared->word);
    }
}

static inline __attribute__((always_inline)) void lock_drop(enum kind kind, struct shared *shared, struct waiter *me,
                                                            uint32_t taken)
{
    switch (kind) {
    case SPIN: spin_drop(&shared->word, taken); break;
    case TICKET: ticket_drop(&shared->ticket, taken); break;
    case MCS: mcs_drop(&shared->tail, me, taken); break;
    case MUTEX: mutex_drop(&shared->mutex, taken); break;
    default: parking_drop(&shared->word, taken); break;
    }
}

/* While nobody holds it. */
static uint32_t lock_taken(enum kind kind, const struct shared *shared)
{
    switch (kind) {
    case TICKET: return atomic_load(&shared->ticket.serving);
    case MCS: return (uint32_t)(atomic_load(&shared->tail) >> 1);
    case MUTEX: return shared->mutex.taken;
    default: return atomic_load(&shared->word.taken);
    }
}

/* ---- the kernel ---- */

static double step_measure(void)
{
    double best = 0;
    for (unsigned i = 0; i < STEP_TRIALS; i++) {
        double start = ak_now_ns();
        work(STEP_TRIAL);
        double ns = (ak_now_ns() - start) / STEP_TRIAL;
        best = i == 0 || ns < best ? ns : best;
    }
    return best;
}

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    struct shared *shared = c->shared;

    s->kind = variant_is("spin") ? SPIN : variant_is("ticket") ? TICKET : variant_is("mcs") ? MCS
            : variant_is("mutex") ? MUTEX : PARKING;
    s->hold = param_int("hold");
    s->think = param_int("think");
    s->lines = param_int("lines");
    if (c->thread != 0)
        return 0;
    s->step_ns = step_measure();
    if (s->kind == MCS)
        atomic_store(&shared->tail, MCS_FREE);
    else if (s->kind == MUTEX)
        pthread_mutex_init(&shared->mutex.lock, NULL);
    return 0;
}

/* Inlined once for each lock. */
static inline __attribute__((always_inline)) int turns(struct ctx *c, uint64_t iters, enum kind kind)
{
    struct state *s = c->priv;
    struct shared *shared = c->shared;
    const uint64_t hold = s->hold, think = s->think, lines = s->lines;
    uint64_t handovers = 0;
    uint32_t left = s->left;

    for (uint64_t i = 0; i < iters; i++) {
        uint32_t taken = lock_take(kind, shared, &s->waiter);
        for (uint64_t line = 0; line < lines; line++)
            shared->line[line].word += 1;
        work(hold);
        handovers += taken != left;
        left = taken + 1;
        lock_drop(kind, shared, &s->waiter, left);
        work(think);
    }
    s->left = left;
    s->handovers += handovers;
    return 0;
}

static int run(struct ctx *c, uint64_t iters)
{
    const struct state *s = c->priv;
    switch (s->kind) {
    case SPIN: return turns(c, iters, SPIN);
    case TICKET: return turns(c, iters, TICKET);
    case MCS: return turns(c, iters, MCS);
    case MUTEX: return turns(c, iters, MUTEX);
    default: return turns(c, iters, PARKING);
    }
}

/* Increments that got lost are those of two owners at once. */
static int verify(struct ctx *c)
{
    const struct state *s = c->priv;
    const struct shared *shared = c->shared;
    uint64_t ops = c->iters_done * c->threads;
    uint32_t taken = lock_taken(s->kind, shared);

    if (taken != (uint32_t)ops)
        return ak_fail("the lock was taken %llu times and counts %u (modulo 2^32)", (unsigned long long)ops, taken);
    for (uint64_t line = 0; line < s->lines; line++)
        if (shared->line[line].word != ops)
            return ak_fail("line %llu was written %llu times under the lock and counts %llu", (unsigned long long)line,
                           (unsigned long long)ops, (unsigned long long)shared->line[line].word);
    return 0;
}

static void report(void)
{
    const struct state *first = ak_ctx(0)->priv;
    uint64_t ops = ak_ctx(0)->iters_done * ak_ctx(0)->threads, handovers = 0;

    for (unsigned t = 0; t < ak_ctx(0)->threads; t++)
        handovers += ((const struct state *)ak_ctx(t)->priv)->handovers;
    ak_metric("handovers", "count", (double)handovers, NULL);
    ak_metric("handover_ratio", "0..1", ops > 0 ? (double)handovers / (double)ops : 0, ops > 0 ? NULL : "no op was done");
    ak_metric("step_ns", "ns", first->step_ns,
              first->step_ns > 0 ? NULL : "the clock stands still in the simulated machine: a step takes three cycles");
}

const struct kernel kernel = {
    .name = "lock_hold",
    .what = "handing a lock over, by the number of waiters and by distance",
    .variants = "spin|ticket|mcs|mutex|parking",
    .params = params,
    .op = "one acquisition of the lock",
    .no_alloc = true,
    .once = true,
    .default_ops = 100000,
    .priv_bytes = sizeof(struct state),
    .shared_bytes = shared_bytes,
    .setup = setup,
    .run = run,
    .verify = verify,
    .report = report,
};
