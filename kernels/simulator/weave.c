/* weave.c - see weave.h. */
#include "weave.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A log has room for that many entries more than its longest turn: of system calls, a few each. */
#define LOG_MARGIN 64

/* Looks at the other side's word before it sleeps: some 20 microseconds. */
#define SPINS 1000

struct weave_log weave_log[TURNS_MAX];

static struct {
    struct mode_setting setting;
    unsigned end;    /* threads from here on were never there */
    uint32_t length; /* of the turns of this round, in entries */
    uint64_t random; /* state of the generator */
    uint64_t slept;  /* ns of the simulated time in which nobody executed anything */
    bool alone;      /* the model has no thread: in a child of fork, or where none could be started */
} weave;

/* What is left of a log that is being played. */
struct cursor {
    struct weave_log *log;
    uint64_t *at, *end;
};

/* The round that the model's thread has to play: `state` says whose turn it is to touch the rest. A futex. */
static struct {
    _Atomic uint32_t state;
    unsigned n;
    struct cursor cursor[TURNS_MAX];
} job;
enum { JOB_DONE, JOB_GIVEN };

void weave_init(const struct mode_setting *setting)
{
    weave.setting = *setting;
    weave.random = (setting->seed + 1) * 0x9e3779b97f4a7c15 | 1;
}

/* ---- play ---- */

/* An entry that is no access; returns where the log goes on. */
static uint64_t *play_other(struct weave_log *log, uint64_t *entry)
{
    struct model *model = weave.setting.model;
    uint64_t address = *entry & ENTRY_ADDRESS;
    switch ((enum entry_kind)(*entry >> ENTRY_KIND_AT)) {
    case ENTRY_START:
        log->counted = true;
        model_count(model, log->core, true);
        break;
    case ENTRY_STOP: model_count(model, log->core, false); break;
    case ENTRY_BORN:
        log->counted = false;
        log->core = (uint32_t)address;
        break;
    case ENTRY_MOVE:
        if (log->counted)
            model_move(model, log->core, (unsigned)address);
        log->core = (uint32_t)address;
        break;
    case ENTRY_FORGET: model_forget(model, address, *++entry); break;
    case ENTRY_BIND:
        model_bind(model, address, entry[1], entry[2]);
        entry += 2;
        break;
    default: break;
    }
    return entry + 1;
}

/* An instruction that changes a word in memory loads and stores it: nobody comes between. */
static bool is_change(const uint64_t *entry)
{
    return entry[1] - entry[0] == (uint64_t)(ENTRY_STORE - ENTRY_LOAD) << ENTRY_KIND_AT;
}

static void play_access(struct weave_log *log, uint64_t entry)
{
    model_access(weave.setting.model, log->core, entry & ENTRY_ADDRESS, 1u << (entry >> ENTRY_SHIFT_AT & 7),
                 (enum model_kind)(entry >> ENTRY_KIND_AT));
}

static void play_one(struct cursor *cursor)
{
    uint64_t *entry = cursor->at;
    if (__builtin_expect(*entry >> ENTRY_KIND_AT > ENTRY_ATOMIC, 0)) {
        cursor->at = play_other(cursor->log, entry);
        return;
    }
    play_access(cursor->log, *entry);
    if (is_change(entry) && entry + 1 < cursor->end)
        play_access(cursor->log, *++entry);
    cursor->at = entry + 1;
}

/* One access of each log in turn. */
static void play(struct cursor *cursor, unsigned n)
{
    while (n > 0) {
        unsigned left = 0;
        for (unsigned i = 0; i < n; i++) {
            play_one(&cursor[i]);
            if (cursor[i].at == cursor[i].end)
                continue;
            if (left != i)
                cursor[left] = cursor[i];
            left++;
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

/* By the thread that runs, which alone gives jobs: the model is then at rest. */
static void before_fork(void)
{
    if (!weave.alone)
        job_await(JOB_DONE);
}

static void after_fork(void)
{
    weave.alone = true;
}

/* On any CPU but `cpu`, if there is another. */
static void job_start(unsigned cpu)
{
    pthread_t thread;
    pthread_attr_t attributes;
    cpu_set_t set;
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    CPU_ZERO(&set);
    for (unsigned i = 0; i < cpus && i < CPU_SETSIZE; i++)
        if (i != cpu)
            CPU_SET(i, &set);
    sigset_t all, before;
    sigfillset(&all); /* signals are the program's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    weave.alone = pthread_create(&thread, &attributes, job_thread, NULL) != 0 &&
                  pthread_create(&thread, NULL, job_thread, NULL) != 0;
    pthread_attr_destroy(&attributes);
    pthread_atfork(before_fork, NULL, after_fork);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- rounds ---- */

/* xorshift64* (S. Vigna, An experimental exploration of Marsaglia's xorshift generators, 2016). */
static uint64_t random_next(void)
{
    uint64_t x = weave.random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    weave.random = x;
    return x * 0x2545f4914f6cdd1d;
}

/* Half the quantum to one and a half: turns of one length would run in step with loops of the program. Those of a round are
 * of one length, so that all of a log meets the others. */
static void round_start(void)
{
    uint32_t quantum = weave.setting.quantum;
    weave.length = quantum - quantum / 2 + (uint32_t)(random_next() % (quantum + 1));
}

/* A round is over: the logs of all threads go to the model, and are empty. */
static void round_over(void)
{
    if (!weave.alone)
        job_await(JOB_DONE);
    job.n = 0;
    for (unsigned thread = 0; thread < weave.end; thread++) {
        struct weave_log *log = &weave_log[thread];
        if (log->count == 0)
            continue;
        uint64_t *entry = log->entry;
        unsigned place = (unsigned)(random_next() % (job.n + 1)); /* the order of the logs is random, too */
        job.cursor[job.n++] = job.cursor[place];
        job.cursor[place] = (struct cursor){log, entry, entry + log->count};
        log->entry = log->other;
        log->other = entry;
        log->count = 0;
    }
    if (weave.alone)
        play(job.cursor, job.n);
    else if (job.n > 0)
        job_pass(JOB_GIVEN);
    round_start();
}

/* ---- turns ---- */

static void turn_start(unsigned thread)
{
    weave_log[thread].limit = weave.length;
    weave_log[thread].start = *weave.setting.instructions;
}

static void turn_end(unsigned thread)
{
    struct weave_log *log = &weave_log[thread], *account = &weave_log[log->account];
    if (account->counting)
        account->instructions += *weave.setting.instructions - log->start;
    log->start = *weave.setting.instructions;
}

void weave_turn_over(unsigned thread)
{
    turn_end(thread);
    turns_yield(thread, turns_now() + 1);
    turn_start(thread);
}

/* ---- the mode ---- */

static void weave_born(unsigned thread, unsigned core)
{
    struct weave_log *log = &weave_log[thread];
    if (log->entry == NULL) {
        size_t capacity = weave.setting.quantum * 3ul / 2 + LOG_MARGIN;
        log->entry = mmap(NULL, 2 * capacity * sizeof *log->entry, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (log->entry == MAP_FAILED) {
            fputs("simulator: no memory for the log of a thread\n", stderr);
            _Exit(3);
        }
        log->other = log->entry + capacity;
    }
    if (thread >= weave.end)
        weave.end = thread + 1;
    unsigned creator = turns_running();
    log->account = creator < TURNS_MAX && weave_log[creator].counting ? creator : thread;
    log->counting = false;
    log->instructions = 0;
    weave_put(log, ENTRY_BORN, 0, core);
    turns_add(thread, turns_now());
}

static void weave_begin(unsigned thread, unsigned cpu)
{
    job_start(cpu);
    round_start();
    weave_born(thread, 0);
    turns_begin(thread, round_over);
    turn_start(thread);
}

static void weave_join(unsigned thread)
{
    turns_join(thread);
    turn_start(thread);
}

static void weave_died(unsigned thread, const volatile uint32_t *gone)
{
    turn_end(thread);
    turns_leave(thread, gone);
}

/* All instructions on one core: no rate is to be had from it. */
static uint64_t weave_now_ns(unsigned thread)
{
    (void)thread;
    return *weave.setting.instructions * 1000 / weave.setting.machine.mhz + weave.slept;
}

/* The round in which a time comes, if a round took a cycle an access. */
static uint64_t round_of(uint64_t now_ns, uint64_t end_ns)
{
    uint64_t left = end_ns > now_ns ? end_ns - now_ns : 0;
    return turns_now() + 1 + left / 1000 * weave.setting.machine.mhz / weave.setting.quantum;
}

static bool weave_wait(unsigned thread, uint64_t key, uint32_t mask, uint64_t end_ns)
{
    turn_end(thread);
    uint64_t now_ns = weave_now_ns(thread);
    bool woken = turns_wait(thread, turns_now() + 1, key, mask,
                            end_ns == TURNS_NEVER ? end_ns : round_of(now_ns, end_ns));
    turn_start(thread);
    now_ns = weave_now_ns(thread);
    if (!woken && now_ns < end_ns)
        weave.slept += end_ns - now_ns;
    return woken;
}

static void weave_wake(unsigned thread, uint64_t key, uint32_t mask, unsigned most)
{
    (void)thread;
    turns_wake(turns_now() + 1, key, mask, most);
}

static void weave_go_outside(unsigned thread)
{
    turn_end(thread);
    turns_go_outside(thread, turns_now() + 1);
}

static void weave_come_back(unsigned thread)
{
    turns_come_back(thread);
    turn_start(thread);
}

/* System calls log a few entries without a look at the limit; this is the look. */
static struct weave_log *log_with_room(unsigned thread)
{
    if (weave_log[thread].count >= weave_log[thread].limit)
        weave_turn_over(thread);
    return &weave_log[thread];
}

static void weave_move(unsigned thread, unsigned core)
{
    weave_put(log_with_room(thread), ENTRY_MOVE, 0, core);
}

static void weave_forget(unsigned thread, uint64_t address, uint64_t bytes)
{
    struct weave_log *log = log_with_room(thread);
    weave_put(log, ENTRY_FORGET, 0, address);
    log->entry[log->count++] = bytes;
}

static void weave_bind(unsigned thread, uint64_t address, uint64_t bytes, uint64_t mask)
{
    struct weave_log *log = log_with_room(thread);
    weave_put(log, ENTRY_BIND, 0, address);
    log->entry[log->count++] = bytes;
    log->entry[log->count++] = mask;
}

static void weave_region(unsigned thread, bool start)
{
    turn_end(thread);
    weave_log[thread].counting = start;
    weave_put(log_with_room(thread), start ? ENTRY_START : ENTRY_STOP, 0, 0);
}

/* The round has to end first, and to be played. */
static void weave_read(unsigned thread, struct sim_reading *reading)
{
    struct weave_log *log = &weave_log[thread];
    weave_turn_over(thread);
    if (!weave.alone)
        job_await(JOB_DONE);
    const struct model_counts *counts = model_counts(weave.setting.model, log->core);
    uint64_t accesses = counts->loads + counts->stores + counts->atomics;
    *reading = (struct sim_reading){
        .model = *counts,
        .instructions = log->instructions,
        .cycles = log->instructions + counts->cycles - accesses * weave.setting.machine.l1.latency,
        .core = log->core,
        .stirred = turns_stirred()};
}

const struct mode weave_mode = {
    .name = "weave",
    .begin = weave_begin,
    .born = weave_born,
    .join = weave_join,
    .died = weave_died,
    .idle = weave_turn_over,
    .wait = weave_wait,
    .wake = weave_wake,
    .go_outside = weave_go_outside,
    .come_back = weave_come_back,
    .now_ns = weave_now_ns,
    .move = weave_move,
    .forget = weave_forget,
    .bind = weave_bind,
    .region = weave_region,
    .read = weave_read,
};
