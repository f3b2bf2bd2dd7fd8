/* Signal handlers and small stacks.
 *
 * malloc in a handler that interrupts malloc is undefined in C and not promised here. What is: a handler that interrupts
 * anything else may allocate, also when that is the first call of its thread, and on a stack as small as the system allows.
 */
#include "tap.h"

#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t handled, handled_badly;

/* One block of every order of magnitude, and what else the family does. */
static bool use_all(void)
{
    bool good = true;
    for (unsigned bits = 0; bits < 19; bits += 2) {
        size_t size = (size_t)1 << bits;
        char *block = malloc(size), *wide = aligned_alloc(4096, size), *zeroed = calloc(1, size);
        good &= block != NULL && wide != NULL && zeroed != NULL;
        if (!good)
            return false;
        block[0] = wide[0] = zeroed[size - 1] = 1;
        block = realloc(block, size * 3);
        good &= block != NULL && block[0] == 1;
        free(block);
        free(wide);
        free(zeroed);
    }
    char *huge = malloc((size_t)8 << 20);
    good &= huge != NULL;
    free(huge);
    return good;
}

static void handler(int number)
{
    (void)number;
    int before = errno;
    handled++;
    if (!use_all())
        handled_badly++;
    errno = before;
}

static void *first_body(void *argument)
{
    raise(SIGUSR1); /* before anything else asks for memory in this thread */
    return use_all() ? argument : NULL;
}

static void test_first(void)
{
    void *result = NULL;
    bool good = true;
    for (uintptr_t i = 1; i <= 20; i++) {
        pthread_t thread;
        good &=
            pthread_create(&thread, NULL, first_body, (void *)i) == 0 && pthread_join(thread, &result) == 0;
        good &= result == (void *)i;
    }
    tap_ok(good && handled == 20 && handled_badly == 0, "the first call of a thread comes from a handler");
}

static void test_timer(void)
{
    const struct itimerval once = {{0, 0}, {0, 300}};
    char *block = malloc(1000);
    uint64_t seed = 9;
    handled = 0;
    for (int i = 0; i < 100; i++) {
        setitimer(ITIMER_REAL, &once, NULL);
        while (handled == i) /* no call of the allocator in here */
            block[random_next(&seed) % 1000]++;
    }
    free(block);
    tap_ok(handled == 100 && handled_badly == 0, "100 handlers that interrupt other work allocate");
}

/* A handler on a stack of its own, of 12 KiB and what the system needs. */
static void test_alternate(void)
{
    static char room[1 << 17];
    size_t size = (size_t)sysconf(_SC_MINSIGSTKSZ);
    stack_t stack = {.ss_sp = room, .ss_size = (size_t)12288 + (size < 1 << 16 ? size : 1 << 16)}, before;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR2, &action, NULL);
    handled = 0;
    sigaltstack(&stack, &before);
    raise(SIGUSR2);
    sigaltstack(&before, NULL);
    tap_ok(handled == 1 && handled_badly == 0, "a handler on an alternate stack of %zu KiB allocates",
           stack.ss_size >> 10);
}

static void *small_body(void *argument)
{
    bool good = use_all();
    malloc_trim(0);
    return good ? argument : NULL;
}

static void test_small_stacks(void)
{
    pthread_attr_t attributes;
    pthread_t threads[8];
    bool good = true;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN);
    for (uintptr_t i = 0; i < 8; i++)
        good &= pthread_create(&threads[i], &attributes, small_body, (void *)(i + 1)) == 0;
    for (uintptr_t i = 0; i < 8; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        good &= result == (void *)(i + 1);
    }
    tap_ok(good, "threads with the smallest stacks there are (%zu KiB) use the whole family",
           (size_t)PTHREAD_STACK_MIN >> 10);
}

int main(void)
{
    struct sigaction action = {.sa_handler = handler};
    tap_start(60);
    sigaction(SIGUSR1, &action, NULL);
    test_first();
    sigaction(SIGALRM, &action, NULL); /* from here on the timer has it, and the alarm of tap_start with it */
    test_timer();
    signal(SIGALRM, SIG_DFL);
    tap_start(60);
    test_alternate();
    test_small_stacks();
    return tap_done();
}
