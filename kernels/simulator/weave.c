/* weave.c - see weave.h. */
#include "weave.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "turns.h"

/* A log has room for that many entries more than its longest turn: of system calls. */
#define LOG_MARGIN 4096

/* Looks at the other side's word before it sleeps: some 20 microseconds. */
#define SPINS 1000

/* What is left of a log that is being played. */
struct cursor {
    struct weave_log *log;
    uint64_t *at, *end;
};

struct weave_log weave_logs[TURNS_MAX];

static struct {
    struct model *model;
    unsigned end; /* threads above were never there */
    uint32_t quantum;
    uint64_t seed;
    bool alone; /* no thread of the model: a child of fork, or before weave_start */
} weave = {.alone = true};

/* The round that the model's thread has to play: `state` says whose turn it is to touch the rest. A futex. */
static struct {
    _Atomic uint32_t state;
    unsigned n;
    struct cursor cursor[TURNS_MAX];
} job;
enum { JOB_DONE, JOB_GIVEN };

/* ---- turns ---- */

/* xorshift64* (S. Vigna, An experimental exploration of Marsaglia's xorshift generators, 2016). */
static uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1d;
}

void weave_init(struct model *model, uint32_t quantum, uint64_t seed)
{
    weave.model = model;
    weave.quantum = quantum;
    weave.seed = seed;
}

void weave_reseed(unsigned thread)
{
    uint64_t mixed = (weave.seed + thread + 1) * 0x9e3779b97f4a7c15;
    weave_logs[thread].random = (mixed ^ mixed >> 31) | 1;
}

void weave_add(unsigned thread, unsigned core)
{
    struct weave_log *log = &weave_logs[thread];
    if (log->entry == NULL) {
        size_t capacity = weave.quantum * 3 / 2 + LOG_MARGIN;
        log->entry = mmap(NULL, 2 * capacity * sizeof *log->entry, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        log->other = log->entry + capacity;
    }
    log->count = 0;
    weave_put(log, ENTRY_CORE, 0, core);
    weave_reseed(thread);
    weave_turn(thread);
    if (thread >= weave.end)
        weave.end = thread + 1;
}

void weave_turn(unsigned thread)
{
    struct weave_log *log = &weave_logs[thread];
    log->limit = weave.quantum / 2 + (uint32_t)(random_next(&log->random) % (weave.quantum + 1)) + 1;
}

/* ---- play ---- */

/* An entry that is no access; returns where the log goes on. */
static uint64_t *play_other(struct weave_log *log, uint64_t *entry)
{
    uint64_t address = *entry & ENTRY_ADDRESS;
    switch ((enum entry_kind)(*entry >> ENTRY_KIND_AT)) {
    case ENTRY_START: model_count(weave.model, log->core, true); break;
    case ENTRY_STOP: model_count(weave.model, log->core, false); break;
    case ENTRY_CORE: log->core = (uint32_t)address; break;
    case ENTRY_FORGET: model_forget(weave.model, address, *++entry); break;
    case ENTRY_BIND:
        model_bind(weave.model, address, entry[1], entry[2]);
        entry += 2;
        break;
    default: break;
    }
    return entry + 1;
}

static uint64_t *play_one(struct weave_log *log, uint64_t *entry)
{
    uint64_t kind = *entry >> ENTRY_KIND_AT;
    if (__builtin_expect(kind > ENTRY_ATOMIC, 0))
        return play_other(log, entry);
    model_access(weave.model, log->core, *entry & ENTRY_ADDRESS, 1u << (*entry >> ENTRY_SHIFT_AT & 7),
                 (enum model_kind)kind);
    return entry + 1;
}

/* One access of each log in turn. */
static void play(struct cursor *cursor, unsigned n)
{
    while (n > 0) {
        unsigned left = 0;
        for (unsigned i = 0; i < n; i++) {
            uint64_t *at = play_one(cursor[i].log, cursor[i].at);
            if (at == cursor[i].end)
                continue;
            if (left != i)
                cursor[left] = cursor[i];
            cursor[left++].at = at;
        }
        n = left;
    }
}

/* ---- the model's thread ---- */

static void job_await(uint32_t state)
{
    for (int spins = 0; atomic_load_explicit(&job.state, memory_order_acquire) != state; spins++)
        if (spins < SPINS)
            __builtin_ia32_pause();
        else
            syscall(SYS_futex, &job.state, FUTEX_WAIT_PRIVATE, !state, NULL, NULL, 0);
}

static void job_pass(uint32_t state)
{
    atomic_store_explicit(&job.state, state, memory_order_release);
    syscall(SYS_futex, &job.state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *job_thread(void *nothing)
{
    for (;;) {
        job_await(JOB_GIVEN);
        play(job.cursor, job.n);
        job_pass(JOB_DONE);
    }
    return nothing;
}

static void after_fork(void)
{
    weave.alone = true;
}

void weave_start(unsigned cpu)
{
    pthread_t thread;
    pthread_attr_t attributes;
    cpu_set_t set;
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    sigset_t all, before;
    sigfillset(&all); /* signals are the program's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    CPU_ZERO(&set);
    for (unsigned i = 0; i < cpus && i < CPU_SETSIZE; i++)
        if (i != cpu)
            CPU_SET(i, &set);
    pthread_attr_init(&attributes);
    if (CPU_COUNT(&set) > 0)
        pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    weave.alone = pthread_create(&thread, &attributes, job_thread, NULL) != 0 &&
                  pthread_create(&thread, NULL, job_thread, NULL) != 0;
    pthread_attr_destroy(&attributes);
    pthread_atfork(NULL, NULL, after_fork);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void weave_round(void)
{
    if (!weave.alone)
        job_await(JOB_DONE);
    job.n = 0;
    for (unsigned thread = 0; thread < weave.end; thread++) {
        struct weave_log *log = &weave_logs[thread];
        if (log->count == 0)
            continue;
        uint64_t *entry = log->entry;
        job.cursor[job.n++] = (struct cursor){log, entry, entry + log->count};
        log->entry = log->other;
        log->other = entry;
        log->count = 0;
    }
    if (weave.alone)
        play(job.cursor, job.n);
    else if (job.n > 0)
        job_pass(JOB_GIVEN);
}

const struct model_counts *weave_counts(unsigned thread)
{
    if (!weave.alone)
        job_await(JOB_DONE);
    return model_counts(weave.model, weave_logs[thread].core);
}
