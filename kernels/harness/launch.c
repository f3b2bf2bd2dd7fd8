#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "barrier.h"
#include "blocks.h"
#include "clock.h"
#include "counters.h"
#include "launch.h"
#include "options.h"
#include "simclock.h"
#include "sizes.h"
#include "subject.h"

#define STACK_BYTES      (256u << 10)
#define STACK_PREFAULT   (64u << 10)
#if defined __SANITIZE_THREAD__ /* its thread-local storage lies on the stack, and is large */
#define HEIR_STACK_BYTES (2u << 20)
#else
#define HEIR_STACK_BYTES STACK_BYTES
#endif
#if defined __GLIBC__ /* a thread's CPUs are among its attributes; else it pins itself once it runs */
#define BORN_PINNED 1
#else
#define BORN_PINNED 0
#endif
#define SPINS            20000u  /* about 0.5 ms before a waiter sleeps */
#define YIELDS           8u      /* before a waiter without a CPU of its own naps */
#define DEFAULT_GRAIN    64u
#define WARM_UP_OPS_MAX  200000u
#define MEMORY_SHARE     4u      /* the memory pass does a quarter of the throughput pass's work */
#define BATCH_SHARE      2u      /* the batch pass half of the latency pass's */
#define OTHER_SAMPLES    8u      /* at setup, after each pass, at the end */
#define METRICS_MAX      128u
#define REST_NAP_NS      50000000
#define LAYOUTS          61u     /* of the harness's memory in the simulated machine, by the seed */
#define LOCKS_TRIALS     10u
#define LOCKS_NS         10000u  /* to ask an allocator for the times of its lock takes less */
#define STIR_CALLS       2000u   /* some allocators look up once in a thousand calls that a cache did not serve */
#define STIR_SMALL       64u
#define STIR_LARGE       65536u

struct launch launch;

/* gate: workers and coordinator; team: workers alone. `failed` is read by workers behind a gate only. */
static struct barrier gate, team;
static atomic_bool failed;
static uint32_t size_table[SIZE_TABLE_ENTRIES] __attribute__((aligned(PAGE_BYTES)));
static const char *passes;

/* ---- what kernels call ---- */

void ak_barrier(struct ctx *c)
{
    (void)c;
    barrier_wait(&team);
}

void ak_relax(unsigned *spins)
{
    static const struct timespec nap = { 0, 20000 };

    ++*spins;
    if (!launch.oversubscribed && *spins % 1024 != 0)
        cpu_pause();
    else if (!launch.oversubscribed || *spins < YIELDS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

bool ak_failed(void)
{
    return atomic_load_explicit(&failed, memory_order_relaxed);
}

struct ctx *ak_ctx(unsigned thread)
{
    return &launch.worker[thread].ctx;
}

int ak_cpu(unsigned thread)
{
    return launch.worker[thread].cpu;
}

size_t ak_usable(void *block)
{
    return launch.no_alloc || served.usable == NULL ? 0 : served.usable(block);
}

bool ak_look(unsigned index, struct look *look)
{
    if (index >= launch.samples)
        return false;
    const struct sample *s = &launch.timeline[index];
    *look = (struct look){ s->t_ns, s->resident.rss, s->live, s->usable,
                           launch.ran_memory && index >= launch.memory_first &&
                               index < launch.memory_first + param_int("mem_steps") };
    return true;
}

uint64_t ak_resident(const char **why)
{
    struct resident now = resident_now();
    *why = now.known ? NULL : resident_reason();
    return now.known ? now.rss - now.lazy_free : 0;
}

void ak_stir(struct ctx *c)
{
    for (unsigned i = 0; i < STIR_CALLS; i++)
        c->free(c->malloc(i % 2 ? STIR_SMALL : STIR_LARGE));
}

/* The first failure is the one that is told. */
static int fail_keep(const char *status, const char *format, va_list arguments)
{
    bool first = false;
    if (!atomic_compare_exchange_strong(&failed, &first, true))
        return 1;
    launch.status = status;
    vsnprintf(launch.failure, sizeof launch.failure, format, arguments);
    return 1;
}

#define FAIL_KEEP(status, format)        \
    va_list arguments;                   \
    va_start(arguments, format);         \
    fail_keep(status, format, arguments); \
    va_end(arguments);                   \
    return 1

int launch_fail(const char *status, const char *format, ...)
{
    FAIL_KEEP(status, format);
}

int ak_fail(const char *format, ...)
{
    FAIL_KEEP("verify_failed", format);
}

int ak_crashed(const char *format, ...)
{
    FAIL_KEEP("crash", format);
}

int ak_lacks(const char *format, ...)
{
    FAIL_KEEP("skipped", format);
}

int ak_no_memory(size_t size)
{
    return launch_fail("oom", "malloc(%zu) returned NULL", size);
}

static pthread_mutex_t metric_lock = PTHREAD_MUTEX_INITIALIZER;
static struct metric metrics[METRICS_MAX];
static unsigned metric_count;
static struct matrix_cell *matrix;
static unsigned matrix_count;
static size_t matrix_room;

void ak_metric(const char *name, const char *unit, double value, const char *reason)
{
    pthread_mutex_lock(&metric_lock);
    if (metric_count < METRICS_MAX) {
        struct metric *m = &metrics[metric_count++];
        snprintf(m->name, sizeof m->name, "%s", name);
        snprintf(m->unit, sizeof m->unit, "%s", unit);
        snprintf(m->reason, sizeof m->reason, "%s", reason ? reason : "");
        m->value = value;
        m->known = reason == NULL;
    }
    pthread_mutex_unlock(&metric_lock);
}

void ak_matrix(unsigned from_cpu, unsigned to_cpu, const char *state, double ns)
{
    pthread_mutex_lock(&metric_lock);
    if (matrix_count == matrix_room) {
        size_t room = matrix_room ? 2 * matrix_room : 1024;
        struct matrix_cell *grown = ak_map(room * sizeof *grown);
        if (matrix != NULL) {
            memcpy(grown, matrix, matrix_room * sizeof *grown);
            ak_unmap(matrix, matrix_room * sizeof *grown);
        }
        matrix = grown;
        matrix_room = room;
    }
    struct matrix_cell *cell = &matrix[matrix_count++];
    cell->from = from_cpu;
    cell->to = to_cpu;
    cell->ns = ns;
    snprintf(cell->state, sizeof cell->state, "%s", state);
    pthread_mutex_unlock(&metric_lock);
}

const struct metric *launch_metric(unsigned index)
{
    return index < metric_count ? &metrics[index] : NULL;
}

const struct matrix_cell *launch_matrix(unsigned index)
{
    return index < matrix_count ? &matrix[index] : NULL;
}

uint64_t launch_grain(void)
{
    return kernel.grain ? kernel.grain() : DEFAULT_GRAIN;
}

/* ---- the worker ---- */

static bool pass_wanted(const char *pass)
{
    if ((kernel.once || kernel.app) && strcmp(pass, "throughput") != 0)
        return false;
    if (kernel.whole && strcmp(pass, "batch") == 0)
        return false;
    if (launch.simulated && strcmp(pass, "throughput") != 0 && !(simclock.there && strcmp(pass, "latency") == 0))
        return false;
    return strstr(passes, pass) != NULL;
}

/* Park while the coordinator looks. */
static void park(void)
{
    barrier_wait(&gate);
    barrier_wait(&gate);
}

static void run_checked(struct ctx *c, uint64_t iters)
{
    if (iters == 0 || atomic_load(&failed))
        return;
    if (kernel.run(c, iters) != 0)
        ak_fail("%s: run failed on thread %u", kernel.name, c->thread);
    c->iters_done += iters;
}

static struct thread_account account(void)
{
    if (kernel.subject) {
        bool known;
        struct thread_account a = subject_account(&known);
        if (!known)
            ak_crashed("the program under test is gone");
        return a;
    }
    return kernel.makes_threads ? account_of_process() : account_now();
}

/* No clock and no account: they would tell of the host, and their system calls be counted. */
static void pass_simulated(struct worker *w)
{
    struct ctx *c = &w->ctx;
    barrier_wait(&team);
    counters_start(c->thread);
    run_checked(c, launch.ops);
    counters_stop(c->thread);
    w->ops = kernel.ops ? kernel.ops(c, launch.ops) : launch.ops;
    counters_collect(c->thread);
}

/* A function of its own, so that a profiler can be told of it. */
__attribute__((noinline)) static void pass_throughput(struct worker *w)
{
    struct ctx *c = &w->ctx;
    barrier_wait(&team);
    w->before = account();
    counters_start(c->thread);
    w->start = clock_start();
    run_checked(c, launch.ops);
    w->stop = clock_stop();
    counters_stop(c->thread);
    w->after = account();
    w->ops = kernel.ops ? kernel.ops(c, launch.ops) : launch.ops;
    counters_collect(c->thread);
}

static uint64_t latency_ops(void)
{
    uint64_t ops = param_int("lat_ops");
    return ops ? ops : launch.ops;
}

static void calls_straight(struct ctx *c)
{
    c->malloc = served.malloc;
    c->free = served.free;
    c->realloc = served.realloc;
    c->calloc = served.calloc;
    c->aligned_alloc = served.aligned_alloc;
}

static void calls_timed(struct ctx *c)
{
    c->malloc = timed_malloc;
    c->free = timed_free;
    c->realloc = timed_realloc;
    c->calloc = timed_calloc;
    c->aligned_alloc = served.aligned_alloc != NULL ? timed_aligned_alloc : NULL;
}

static void calls_marked(struct ctx *c)
{
    c->malloc = marked_malloc;
    c->free = marked_free;
    c->calloc = marked_calloc;
    c->aligned_alloc = served.aligned_alloc != NULL ? marked_aligned_alloc : NULL;
}

static void pass_batch(struct worker *w)
{
    uint64_t grain = launch_grain(), batches = latency_ops() / (BATCH_SHARE * grain);
    barrier_wait(&team);
    for (uint64_t i = 0; i < (batches ? batches : 1) && !atomic_load_explicit(&failed, memory_order_relaxed); i++) {
        uint64_t start = clock_start();
        run_checked(&w->ctx, grain);
        hist_add(&w->hists[HIST_PAIR], clock_stop() - start);
    }
}

static void pass_latency(struct worker *w)
{
    struct ctx *c = &w->ctx;
    if (launch.simulated)
        calls_marked(c);
    else
        calls_timed(c);
    barrier_wait(&team);
    run_checked(c, latency_ops());
    calls_straight(c);
}

/* Idle with a little activity. */
static void rest(struct ctx *c, uint64_t ms)
{
    static const struct timespec nap = { 0, REST_NAP_NS };

    if (ms == 0 || launch.simulated)
        return;
    uint64_t end = clock_raw_ns() + ms * 1000000u;

    while (clock_raw_ns() < end) {
        ak_stir(c);
        nanosleep(&nap, NULL);
    }
}

static void pass_memory(struct worker *w)
{
    uint64_t steps = param_int("mem_steps"), share = launch.ops / (MEMORY_SHARE * steps);
    for (uint64_t i = 0; i < steps; i++) {
        run_checked(&w->ctx, kernel.step ? kernel.step(&w->ctx) : share ? share : 1);
        rest(&w->ctx, param_int("mem_idle_ms"));
        park();
    }
}

static void live_set_map(struct live_set *live, uint64_t slots)
{
    live->slots = slots;
    if (slots == 0)
        return;
    live->block = ak_map(slots * sizeof live->block[0]);
    live->size = ak_map(slots * sizeof live->size[0]);
}

static void stack_prefault(void)
{
    volatile char stack[STACK_PREFAULT];
    for (size_t i = 0; i < sizeof stack; i += PAGE_BYTES)
        stack[i] = 0;
}

/* The largest size that is asked for under --no-alloc, but no more than a stub should hold: see ctx.reach. */
static size_t stub_bytes(void)
{
    uint64_t most = kernel.sizes == SIZES_NONE || launch.size_max < STUB_REACH ? STUB_REACH : launch.size_max;
    return most + STUB_SPREAD + CACHE_LINE;
}

static void calls_belong_to(struct worker *w)
{
    sampler_use(&w->sampler);
    stub_init(w->stub_pool);
}

/* ---- threads that a kernel makes ---- */

struct life {
    struct worker *worker;
    int (*body)(struct ctx *, uint64_t);
    uint64_t n;
    int      rc;
};

static void *heir_main(void *argument)
{
    struct life *life = argument;
    calls_belong_to(life->worker);
    life->rc = life->body(&life->worker->ctx, life->n);
    return NULL;
}

static void heir_prepare(struct worker *w)
{
    pthread_attr_init(&w->heir);
    pthread_attr_setstack(&w->heir, ak_map(HEIR_STACK_BYTES), HEIR_STACK_BYTES);
}

int ak_thread(struct ctx *c, int (*body)(struct ctx *, uint64_t), uint64_t n)
{
    struct worker *w = &launch.worker[c->thread];
    struct life life = { w, body, n, 0 };
    pthread_t heir;
    int rc = pthread_create(&heir, &w->heir, heir_main, &life);

    if (rc != 0)
        return ak_fail("a thread cannot be started: %s", strerror(rc));
    pthread_join(heir, NULL);
    return life.rc;
}

/* The simulated machine reads where the thread wants to be, and the call itself may fail: the host has fewer CPUs. */
static void pin_self(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return;
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    struct ctx *c = &w->ctx;

    if (launch.simulated || !BORN_PINNED)
        pin_self(w->cpu);
    /* Mapped and first touched here, on the worker's own CPU, so that it lies on the worker's node. */
    stack_prefault();
    w->hists = ak_map(HIST_CALLS * sizeof *w->hists);
    c->priv = ak_map(kernel.priv_bytes);
    live_set_map(&c->live, kernel.live_slots ? kernel.live_slots() : 0);
    sampler_init(&w->sampler, w->hists, c->rng.state ^ 0x9a5, (uint32_t)param_int("lat_gap"));
    w->stub_pool = launch.no_alloc ? ak_map(stub_bytes()) : NULL;
    calls_belong_to(w);
    if (kernel.makes_threads)
        heir_prepare(w);
    if (counters_open(c->thread) != 0 && param_word("counters")[0] != 'a')
        ak_fail("counters: the %s backend opened on no more than %u threads", param_word("counters"), c->thread);
    park(); /* baseline */

    if (kernel.setup != NULL && !atomic_load(&failed) && kernel.setup(c) != 0)
        ak_fail("%s: setup failed on thread %u", kernel.name, c->thread);
    park(); /* a failure on one thread must be seen by all before a kernel's own barriers */
    if (!kernel.once && !kernel.app && !kernel.whole)
        run_checked(c, launch.ops / 4 < WARM_UP_OPS_MAX ? launch.ops / 4 : WARM_UP_OPS_MAX);
    park();
    if (launch.ran_throughput && launch.simulated)
        pass_simulated(w);
    else if (launch.ran_throughput)
        pass_throughput(w);
    park();
    if (launch.ran_batch)
        pass_batch(w);
    park();
    if (launch.ran_latency)
        pass_latency(w);
    park();
    if (launch.ran_memory)
        pass_memory(w);
    if (!atomic_load(&failed) && kernel.verify(c) != 0)
        ak_fail("%s: verification failed on thread %u", kernel.name, c->thread);
    park();
    if (kernel.teardown != NULL)
        kernel.teardown(c);
    park(); /* freed */
    rest(c, param_int("settle_ms"));
    park(); /* settled */
    counters_close(c->thread);
    return NULL;
}

/* ---- the coordinator ---- */

/* With the moment: again where something came between the two. */
static void locks_ask(struct sample *s)
{
    for (unsigned i = 0; served.locks != NULL && i < LOCKS_TRIALS; i++) {
        s->locks_ns = launch.simulated ? 0 : clock_raw_ns();
        served.locks(&s->locks_in);
        if (launch.simulated || clock_raw_ns() - s->locks_ns < LOCKS_NS)
            return;
    }
}

static struct sample sample_now(void)
{
    static uint64_t origin;
    struct sample s = { .resident = resident_now() };

    uint64_t now = launch.simulated ? 0 : clock_raw_ns();
    if (origin == 0)
        origin = now;
    s.t_ns = now - origin;
    locks_ask(&s);
    for (unsigned t = 0; t < launch.threads; t++) {
        const struct live_set *live = &launch.worker[t].ctx.live;
        for (uint64_t i = 0; i < live->slots; i++)
            if (live->block[i] != NULL) {
                s.live += live->size[i];
                s.usable += ak_usable(live->block[i]);
            }
    }
    if (served.locks != NULL)
        served.locks(&s.locks_out);
    return s;
}

/* Wait until all have parked, look, and let them go on. */
static struct sample look(void)
{
    barrier_wait(&gate);
    struct sample s = sample_now();
    barrier_wait(&gate);
    return s;
}

static const struct sample *look_and_keep(void)
{
    launch.timeline[launch.samples] = look();
    return &launch.timeline[launch.samples++];
}

static void end_keep(struct sample end)
{
    launch.end = launch.timeline[launch.samples++] = end;
    launch.high_water = resident_high_water();
}

static void peaks_find(void)
{
    for (unsigned i = 0; i < launch.samples; i++) {
        const struct sample *s = &launch.timeline[i];
        if (s->resident.known && (launch.rss_peak == NULL || s->resident.rss > launch.rss_peak->resident.rss))
            launch.rss_peak = s;
        if (launch.live_peak == NULL || s->live > launch.live_peak->live)
            launch.live_peak = s;
        if (launch.usable_peak == NULL || s->usable > launch.usable_peak->usable)
            launch.usable_peak = s;
    }
}

static void account_sum(struct thread_account *sum, const struct worker *w)
{
    struct thread_account used = account_difference(w->after, w->before);
    sum->user_ns += used.user_ns;
    sum->sys_ns += used.sys_ns;
    sum->cpu_ns += used.cpu_ns;
    sum->minor_faults += used.minor_faults;
    sum->major_faults += used.major_faults;
    sum->voluntary += used.voluntary;
    sum->involuntary += used.involuntary;
    sum->run_delay_ns += used.run_delay_ns;
    sum->delay_known = sum->delay_known && used.delay_known;
    /* Two clocks of 10^-5 agreement: a thread that never blocked may come out a little below zero. */
    int64_t blocked = (int64_t)clock_ns((double)(w->stop - w->start)) - used.cpu_ns - used.run_delay_ns;
    launch.blocked_ns += blocked > 0 ? blocked : 0;
}

static void totals_add(void)
{
    const struct worker *first = &launch.worker[0], *last = first;

    launch.used.delay_known = true;
    for (unsigned t = 0; t < launch.threads; t++) {
        const struct worker *w = &launch.worker[t];
        first = w->start < first->start ? w : first;
        last = w->stop > last->stop ? w : last;
        launch.ops_done += w->ops;
        account_sum(&launch.used, w);
        for (unsigned h = 0; h < HIST_CALLS; h++)
            hist_merge(&launch.hists[h], &w->hists[h]);
    }
    launch.wall_ticks = last->stop > first->start ? last->stop - first->start : 0;
    /* The account that the first to start took holds nothing of the pass, that of the last to stop all of it. */
    if (kernel.makes_threads)
        launch.used = account_difference(last->after, first->before);
    if (kernel.subject)
        subject_parts(&launch.used);
}

static void worker_init(struct worker *w, unsigned thread, void *shared)
{
    struct ctx *c = &w->ctx;

    w->cpu = launch.placement->threads ? launch.placement->cpu[thread] : -1;
    calls_straight(c);
    c->thread = thread;
    c->threads = launch.threads;
    c->no_alloc = launch.no_alloc;
    c->reach = launch.no_alloc ? STUB_REACH - 1 : SIZE_MAX;
    c->rng.state = (param_int("seed") + 1) * 0x9e3779b97f4a7c15u ^ ((uint64_t)thread + 1) * 0xbf58476d1ce4e5b9u;
    c->shared = shared;
    c->size_table = size_table;
}

/* What the table really holds: a file's sizes are its own. */
static void sizes_range(void)
{
    launch.size_min = launch.size_max = size_table[0];
    for (unsigned i = 1; i < SIZE_TABLE_ENTRIES; i++) {
        launch.size_min = size_table[i] < launch.size_min ? size_table[i] : launch.size_min;
        launch.size_max = size_table[i] > launch.size_max ? size_table[i] : launch.size_max;
    }
    if (strncmp(param_word("size_dist"), "file:", 5) != 0) {
        launch.size_min = param_int("size_min");
        launch.size_max = param_int("size_max");
    }
}

static int threads_start(char *why, size_t why_size)
{
    static cpu_set_t set;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);

    for (unsigned t = 0; t < launch.threads; t++) {
        struct worker *w = &launch.worker[t];
        CPU_ZERO(&set);
        if (w->cpu >= 0 && w->cpu < CPU_SETSIZE && !launch.simulated) {
            CPU_SET(w->cpu, &set);
#if BORN_PINNED
            pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
#endif
        }
        int rc = pthread_create(&w->thread, &attributes, worker_main, w);
        if (rc != 0) {
            snprintf(why, why_size, "thread %u of %u cannot be started: %s", t + 1, launch.threads, strerror(rc));
            return EXIT_ENVIRONMENT;
        }
    }
    pthread_attr_destroy(&attributes);
    return 0;
}

int launch_check(char *why, size_t why_size)
{
    if (kernel.app && options.no_alloc) {
        snprintf(why, why_size, "--no-alloc: the libraries of this kernel call the allocator, no stub can stand for it");
        return EXIT_USAGE;
    }
    if (kernel.subject && param_int("threads") > 1) {
        snprintf(why, why_size, "--threads: one thread starts the program under test and its load");
        return EXIT_USAGE;
    }
    int rc = sizes_fill(size_table, param_word("size_dist"), param_int("size_min"), param_int("size_max"),
                        param_int("seed"), why, why_size);
    if (rc != 0)
        return rc;
    sizes_range();
    uint64_t least = kernel.size_least ? kernel.size_least() : 1;
    if (kernel.sizes != SIZES_NONE && launch.size_min < least) {
        snprintf(why, why_size, "--size_min: a size of %llu bytes, this kernel needs %llu as it is asked to run",
                 (unsigned long long)launch.size_min, (unsigned long long)least);
        return EXIT_USAGE;
    }
    const char *refusal = kernel.refuse ? kernel.refuse() : NULL;
    if (refusal != NULL) {
        snprintf(why, why_size, "%s", refusal);
        return EXIT_USAGE;
    }
    return 0;
}

int launch_run(const struct provenance *served_by, char *why, size_t why_size)
{
    subject_expect(served_by);
    passes = param_word("passes");
    launch.ran_throughput = pass_wanted("throughput");
    launch.ran_batch = pass_wanted("batch");
    launch.ran_latency = pass_wanted("latency");
    launch.ran_memory = pass_wanted("memory");

    int rc = launch_check(why, why_size);
    if (rc != 0)
        return rc;
    /* The coordinator must not spin where the process's CPU time counts, nobody where one core runs at a time. */
    bool spare = launch.threads < launch.placement->cpus && !kernel.makes_threads;
    barrier_init(&gate, launch.threads + 1, spare && !launch.simulated ? SPINS : 0);
    barrier_init(&team, launch.threads, launch.oversubscribed || launch.simulated ? 0 : SPINS);
    if (launch.simulated) /* addresses are not random there: replicates shall differ in them all the same */
        ak_map(param_int("seed") % LAYOUTS * PAGE_BYTES);
    launch.worker = ak_map(launch.threads * sizeof *launch.worker);
    launch.hists = ak_map(HIST_CALLS * sizeof *launch.hists);
    launch.timeline = ak_map((param_int("mem_steps") + OTHER_SAMPLES) * sizeof *launch.timeline);
    void *shared = ak_map(kernel.shared_bytes ? kernel.shared_bytes() : 0);
    for (unsigned t = 0; t < launch.threads; t++)
        worker_init(&launch.worker[t], t, shared);
    if (threads_start(why, why_size) != 0)
        return EXIT_ENVIRONMENT;

    resident_now(); /* faults in what a look needs, before the baseline */
    launch.baseline = look();
    launch.timeline[launch.samples++] = launch.baseline;
    struct sample up = look(); /* setup done */
    if (kernel.subject)
        launch.baseline = launch.timeline[0] = up;
    launch.pass_before = look_and_keep(); /* warm-up */
    struct machine_account before = machine_account_now();
    launch.pass_after = look_and_keep(); /* throughput */
    launch.machine = machine_account_now();
    launch.machine.total -= before.total;
    launch.machine.steal -= before.steal;
    look_and_keep(); /* batch */
    look_and_keep(); /* latency */
    launch.memory_first = launch.samples;
    if (launch.ran_memory)
        for (uint64_t i = 0; i < param_int("mem_steps"); i++)
            look_and_keep();
    barrier_wait(&gate); /* verified, nothing freed yet */
    if (!launch.no_alloc && !atomic_load(&failed))
        blocks_check();
    launch.metadata = launch.no_alloc ? -1 : provenance_metadata(served_by, param_word("metadata_call"));
    if (kernel.subject) /* teardown stops it */
        end_keep(sample_now());
    barrier_wait(&gate);
    struct sample freed = look(), settled = look();
    if (!kernel.subject) {
        launch.timeline[launch.samples++] = freed;
        end_keep(settled);
    }
    for (unsigned t = 0; t < launch.threads; t++)
        pthread_join(launch.worker[t].thread, NULL);
    if (simclock.there)
        simclock_read();
    totals_add();
    peaks_find();
    if (kernel.report != NULL && !atomic_load(&failed))
        kernel.report();
    return 0;
}
