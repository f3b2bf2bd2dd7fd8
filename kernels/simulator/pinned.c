/* pinned.c - see pinned.h. Addresses of the program are addresses here: QEMU user mode maps x86-64 onto itself. */
#include "pinned.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

/* Some day in 2020, so that dates are dates. */
#define PINNED_EPOCH_S 1577836800

static struct {
    struct machine machine;
    uint64_t random;
} pinned;

void pinned_init(const struct machine *machine, uint64_t seed)
{
    pinned.machine = *machine;
    pinned.random = seed;
}

/* splitmix64 (G. Steele et al., Fast splittable pseudorandom number generators, OOPSLA 2014). */
static uint64_t random_next(void)
{
    uint64_t z = pinned.random += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void answer_random(char *at, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        at[i] = (char)random_next();
}

/* The kernel wrote `bytes` of a mask, and the C library takes the rest for zero. */
static void answer_affinity(unsigned char *mask, int64_t bytes)
{
    unsigned cores = machine_cores(&pinned.machine);
    memset(mask, 0, (size_t)bytes);
    for (unsigned core = 0; core < cores && core / 8 < bytes; core++)
        mask[core / 8] |= (unsigned char)(1 << core % 8);
}

uint64_t pinned_ns(const struct timespec *shown)
{
    if (shown->tv_sec < PINNED_EPOCH_S)
        return 0;
    return (uint64_t)(shown->tv_sec - PINNED_EPOCH_S) * 1000000000 + (uint64_t)shown->tv_nsec;
}

void pinned_answer(int64_t number, const uint64_t argument[6], int64_t result, unsigned core, uint64_t now_ns)
{
    if (result < 0)
        return;
    uint64_t s = PINNED_EPOCH_S + now_ns / 1000000000, ns = now_ns % 1000000000;
    switch (number) {
    case SYS_clock_gettime:
        *(struct timespec *)argument[1] = (struct timespec){.tv_sec = (time_t)s, .tv_nsec = (long)ns};
        break;
    case SYS_gettimeofday:
        if (argument[0] != 0)
            *(struct timeval *)argument[0] = (struct timeval){.tv_sec = (time_t)s, .tv_usec = (long)(ns / 1000)};
        break;
    case SYS_time:
        if (argument[0] != 0)
            *(time_t *)argument[0] = (time_t)s;
        break;
    case SYS_getrandom: answer_random((char *)argument[0], result); break;
    case SYS_sched_getaffinity: answer_affinity((unsigned char *)argument[2], result); break;
    case SYS_getcpu:
        if (argument[0] != 0)
            *(uint32_t *)argument[0] = core;
        if (argument[1] != 0)
            *(uint32_t *)argument[1] = core / pinned.machine.cores_per_node;
        break;
    default: break;
    }
}
