/*
 * known.c - a program whose cache misses are known by arithmetic, for the simulated machine (kernels/simulator).
 *
 *   known atomic THREADS ROUNDS STRIDE   all threads add to one word, by a locked instruction
 *   known line   THREADS ROUNDS STRIDE   each adds to its own word of one line (more than 8 threads: of two, and so on)
 *   known padded THREADS ROUNDS STRIDE   each adds to a line of its own
 *   known scan   BYTES PASSES            one thread reads a word of each line, PASSES times after a first pass
 *   known lock   THREADS ROUNDS STRIDE   a spin lock is taken, held for HOLD instructions and more, and let go
 *
 * The reads of a scan, from its second pass on, and the takings of a lock are timed as calls: `took` is the
 * mean, in cycles.
 *
 *   known fault  THREADS ROUNDS          the first touches what is not there, while the others are at work
 *   known abort  THREADS ROUNDS          or aborts
 *
 * Thread i runs on core i * STRIDE. Prints what the machine counted, a line an event, sums over the threads, and how many
 * cycles the whole took.
 */
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../kernels/simulator/protocol.h"

enum { THREADS_MAX = MACHINE_CORES_MAX, LINE = 64, WORDS = LINE / sizeof(uint64_t), HOLD = 500, THINK = 100 };

static const char *mode;
static unsigned long threads, rounds, stride;
static pthread_barrier_t together;
static struct sim_reading reading[THREADS_MAX];

static struct {
    alignas(LINE) _Atomic uint64_t shared;
    alignas(LINE) _Atomic uint32_t lock;
    alignas(LINE) volatile uint64_t packed[THREADS_MAX];
    struct {
        alignas(LINE) volatile uint64_t own;
    } padded[THREADS_MAX];
} words;

static void spin(unsigned instructions)
{
    for (unsigned i = 0; i < instructions / 2; i++)
        __asm__ volatile("");
}

static void add_atomic(unsigned long me)
{
    (void)me;
    for (unsigned long i = 0; i < rounds; i++)
        atomic_fetch_add(&words.shared, 1);
}

static void add_line(unsigned long me)
{
    for (unsigned long i = 0; i < rounds; i++)
        words.packed[me]++;
}

static void add_padded(unsigned long me)
{
    for (unsigned long i = 0; i < rounds; i++)
        words.padded[me].own++;
}

static void take_lock(unsigned long me)
{
    (void)me;
    for (unsigned long i = 0; i < rounds; i++) {
        SIM_CALL_BEGINS();
        while (atomic_exchange_explicit(&words.lock, 1, memory_order_acquire) != 0)
            while (atomic_load_explicit(&words.lock, memory_order_relaxed) != 0)
                __builtin_ia32_pause();
        SIM_CALL_ENDS(SIM_TIMED_NOTHING);
        spin(HOLD);
        atomic_store_explicit(&words.lock, 0, memory_order_release);
        spin(THINK);
    }
}

static volatile char *volatile nowhere; /* unknown to the compiler */

static void fault_first(unsigned long me)
{
    if (me == 0)
        *nowhere = 1;
    add_padded(me);
}

static void abort_first(unsigned long me)
{
    if (me == 0)
        abort();
    add_padded(me);
}

static const struct {
    const char *name;
    void (*body)(unsigned long me);
} bodies[] = {{"atomic", add_atomic}, {"line", add_line},     {"padded", add_padded},
              {"lock", take_lock},    {"fault", fault_first}, {"abort", abort_first}};

static void body_run(unsigned long me)
{
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (strcmp(bodies[i].name, mode) == 0)
            bodies[i].body(me);
}

static void *thread_main(void *number)
{
    unsigned long me = (uintptr_t)number, core = me * stride;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set); /* refused by the host, seen by the machine */
    pthread_barrier_wait(&together);
    syscall(SIM_CALL, SIM_START);
    body_run(me);
    syscall(SIM_CALL, SIM_STOP);
    pthread_barrier_wait(&together);
    syscall(SIM_CALL, SIM_READ, &reading[me]);
    return NULL;
}

static void *first_thread(void *nothing)
{
    return nothing;
}

static void read_timed(const volatile char *at)
{
    SIM_CALL_BEGINS();
    (void)*at;
    SIM_CALL_ENDS(SIM_TIMED_NOTHING);
}

static void run_scan(void)
{
    unsigned long bytes = threads, passes = rounds;
    const volatile char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(1);
    for (unsigned long pass = 0; pass <= passes; pass++) {
        if (pass == 1)
            syscall(SIM_CALL, SIM_START);
        for (unsigned long i = 0; i < bytes; i += LINE)
            if (pass > 0)
                read_timed(&at[i]);
            else
                (void)at[i];
    }
    syscall(SIM_CALL, SIM_STOP);
    syscall(SIM_CALL, SIM_READ, &reading[0]);
}

static void run_threads(void)
{
    pthread_t thread[THREADS_MAX];
    pthread_barrier_init(&together, NULL, (unsigned)threads);
    for (unsigned long i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, thread_main, (void *)i) != 0)
            exit(1);
    for (unsigned long i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
}

#define PRINT(name, value)                                                                                   \
    do {                                                                                                     \
        uint64_t sum = 0;                                                                                    \
        for (size_t i = 0; i < THREADS_MAX; i++)                                                             \
            sum += reading[i].value;                                                                         \
        printf("%s %llu\n", name, (unsigned long long)sum);                                                  \
    } while (0)

/* From the first start of a region to the last end, in cycles: only the timed mode knows. */
static void print_span(void)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < THREADS_MAX; i++)
        if (reading[i].last != 0) {
            first = reading[i].first < first ? reading[i].first : first;
            last = reading[i].last > last ? reading[i].last : last;
        }
    if (last != 0)
        printf("span %llu\n", (unsigned long long)(last - first));
}

/* Only the timed mode knows. */
static void print_took(void)
{
    static struct sim_times times;
    const struct hist *took = &times.call[SIM_TIMED_NOTHING];
    syscall(SIM_CALL, SIM_TIMES, &times);
    if (took->samples == 0)
        return;
    printf("took %.0f\n", (double)took->sum / (double)took->samples);
}

int main(int argc, char **argv)
{
    struct sim_hello hello = {0};
    pthread_t first;
    if (argc < 4)
        return 2;
    mode = argv[1];
    threads = strtoul(argv[2], NULL, 10);
    rounds = strtoul(argv[3], NULL, 10);
    stride = argc > 4 ? strtoul(argv[4], NULL, 10) : 1;
    syscall(SIM_CALL, SIM_HELLO, &hello);
    if (hello.version != SIM_VERSION)
        return 3;
    if (pthread_create(&first, NULL, first_thread, NULL) != 0 || pthread_join(first, NULL) != 0)
        return 1;
    syscall(SIM_CALL, SIM_BEGIN);
    if (strcmp(mode, "scan") == 0)
        run_scan();
    else if (threads > THREADS_MAX)
        return 2;
    else
        run_threads();
    PRINT("loads", model.loads);
    PRINT("stores", model.stores);
    PRINT("atomics", model.atomics);
    PRINT("l1_miss", model.l1_miss);
    PRINT("l2_miss", model.l2_miss);
    PRINT("l3_miss", model.l3_miss);
    PRINT("hitm_local", model.hitm_local);
    PRINT("hitm_remote", model.hitm_remote);
    PRINT("true_sharing", model.true_sharing);
    PRINT("false_sharing", model.false_sharing);
    PRINT("cross_node", model.cross_node);
    PRINT("instructions", instructions);
    PRINT("cycles", cycles);
    PRINT("stirred", stirred);
    print_span();
    print_took();
    return 0;
}
