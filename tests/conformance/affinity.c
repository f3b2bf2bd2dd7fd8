/* CPUs: a process that may use only the one with the highest number, each in turn, and threads that are moved about. */
#include "tap.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* Room for more CPUs than any machine has, so that high numbers fit. */
#define MASK_CPUS  8192
#define MASK_BYTES CPU_ALLOC_SIZE(MASK_CPUS)

static int cpus[MASK_CPUS], cpu_count;

static void cpus_find(void)
{
    cpu_set_t *mask = CPU_ALLOC(MASK_CPUS);
    if (mask != NULL && sched_getaffinity(0, MASK_BYTES, mask) == 0)
        for (int i = 0; i < MASK_CPUS; i++)
            if (CPU_ISSET_S((size_t)i, MASK_BYTES, mask))
                cpus[cpu_count++] = i;
    CPU_FREE(mask);
}

static bool cpu_go(int cpu)
{
    cpu_set_t *mask = CPU_ALLOC(MASK_CPUS);
    CPU_ZERO_S(MASK_BYTES, mask);
    CPU_SET_S((size_t)cpu, MASK_BYTES, mask);
    bool gone = sched_setaffinity(0, MASK_BYTES, mask) == 0;
    CPU_FREE(mask);
    return gone;
}

static void *_Atomic handed[256];

/* Allocates, hands over, frees what others handed over; moves on now and then where there is somewhere to go. */
static void *work_body(void *argument)
{
    bool moves = argument != NULL, good = true;
    uint64_t seed = (uint64_t)(uintptr_t)&good | 1;
    for (unsigned round = 0; round < 20000; round++) {
        uint64_t dice = random_next(&seed);
        size_t size = 8 + random_size(&seed, 12);
        unsigned char *block = malloc(size);
        if (block == NULL)
            return NULL;
        block[0] = block[7] = (unsigned char)(dice % 256);
        block = atomic_exchange(&handed[dice % 256], block);
        good &= block == NULL || (block[0] == dice % 256 && block[7] == block[0]);
        free(block);
        if (moves && round % 200 == 0)
            good &= cpu_go(cpus[dice / 256 % (unsigned)cpu_count]);
    }
    return good ? &handed : NULL;
}

/* In a child: on `cpu` alone, or all over the place when that is -1. */
static bool work_on(int cpu)
{
    pid_t child = fork();
    if (child == 0) {
        pthread_t threads[3];
        bool good = cpu == -1 || cpu_go(cpu);
        for (int i = 0; i < 3; i++)
            good &= pthread_create(&threads[i], NULL, work_body, cpu == -1 ? cpus : NULL) == 0;
        for (int i = 0; i < 3; i++) {
            void *result = NULL;
            pthread_join(threads[i], &result);
            good &= result != NULL;
        }
        _exit(!good);
    }
    return child > 0 && child_good(child);
}

int main(void)
{
    enum { AT_MOST = 8 };
    tap_start(60);
    cpus_find();
    if (cpu_count == 0) {
        tap_skip("CPUs", "the affinity mask cannot be read");
        return tap_done();
    }
    tap_ok(work_on(cpus[cpu_count - 1]), "only CPU %d, the highest of %d", cpus[cpu_count - 1], cpu_count);
    for (int i = 0; i < cpu_count - 1 && i < AT_MOST; i++)
        tap_ok(work_on(cpus[i]), "only CPU %d", cpus[i]);
    if (cpu_count > 1)
        tap_ok(work_on(-1), "threads that change between %d CPUs", cpu_count);
    else
        tap_skip("threads that change between CPUs", "there is one CPU");
    return tap_done();
}
