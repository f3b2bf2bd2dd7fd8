/*
 * calls.c - what programs may do besides what the kernels of this suite do: the simulated machine has to live with it.
 *
 *   calls bad          pointers that lead nowhere, in every call that the machine looks into
 *   calls fork         a fork while the others are at work
 *   calls spawn        posix_spawn then
 *   calls leave        the first thread ends, and another one waits for it
 *   calls timeouts     waits that nobody ends, by all clocks, while the others are at work
 *   calls alone        the same, and nobody is at work
 *   calls constant     a sleep whose time lies in memory that cannot be written
 *   calls move         a thread goes to another core in its timed region
 *   calls make         threads are made in a timed region, one after the other
 *   calls many         several threads make short ones, in all more than there may be at a time
 *
 * Prints a name and what it saw, a line each; microseconds are of the simulated clock.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../kernels/simulator/protocol.h"

enum { OTHERS = 3, WAIT_US = 100 };

extern char **environ;
static atomic_bool enough;
static pthread_t other[OTHERS];
static _Atomic uint64_t work;

/* ---- the others, at work ---- */

static void *at_work(void *nothing)
{
    volatile uint64_t own[64] = {0};
    while (!atomic_load_explicit(&enough, memory_order_relaxed)) {
        for (int i = 0; i < 64; i++)
            own[i] += (uint64_t)i;
        atomic_fetch_add(&work, 1);
    }
    return nothing;
}

static void others_start(void)
{
    for (int i = 0; i < OTHERS; i++)
        if (pthread_create(&other[i], NULL, at_work, NULL) != 0)
            exit(1);
    while (atomic_load(&work) < 100)
        ;
}

static void others_end(void)
{
    atomic_store(&enough, true);
    for (int i = 0; i < OTHERS; i++)
        pthread_join(other[i], NULL);
}

/* ---- pointers that lead nowhere ---- */

#define NOWHERE ((void *)0x10)

static void say(const char *what, long result)
{
    printf("%s %s\n", what, result >= 0 ? "0" : strerrorname_np(errno));
}

static void do_bad(void)
{
    static const char constant[64] = "";
    int pipes[2];
    uint32_t word = 0;
    others_start();
    if (pipe(pipes) != 0)
        exit(1);
    say("wait", syscall(SYS_futex, NOWHERE, FUTEX_WAIT, 0, NULL, NULL, 0));
    say("wait-until", syscall(SYS_futex, &word, FUTEX_WAIT, 0, NOWHERE, NULL, 0));
    say("wake", syscall(SYS_futex, NOWHERE, FUTEX_WAKE, 1, NULL, NULL, 0));
    say("write", syscall(SYS_write, pipes[1], NOWHERE, 8));
    say("action", syscall(SYS_rt_sigaction, SIGUSR1, NOWHERE, NULL, 8));
    say("affinity", syscall(SYS_sched_setaffinity, 0, 8, NOWHERE));
    say("get-affinity", syscall(SYS_sched_getaffinity, 0, 128, NOWHERE));
    say("time", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, NOWHERE));
    say("munmap", syscall(SYS_munmap, (void *)4096, UINT64_MAX - 8192));
    say("policy", syscall(SYS_set_mempolicy, 2, NOWHERE, 64));
    for (long op = SIM_HELLO; op <= SIM_TIMES; op++) {
        syscall(SIM_CALL, op, NOWHERE);
        syscall(SIM_CALL, op, constant);
    }
    others_end();
    puts("alive 1");
}

/* ---- processes ---- */

static void say_child(const char *what, pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    printf("%s %d\n", what, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void do_fork(void)
{
    others_start();
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            char *block = malloc(1000);
            _exit(block != NULL && usleep(1000) == 0 ? 40 + i : 1);
        }
        say_child("child", child);
    }
    others_end();
    puts("alive 1");
}

static void do_spawn(void)
{
    char *argv[] = {"true", NULL};
    pid_t child;
    others_start();
    if (posix_spawnp(&child, "true", NULL, NULL, argv, environ) != 0)
        exit(1);
    say_child("child", child);
    others_end();
    puts("alive 1");
}

static pthread_t first;

static void *after_first(void *nothing)
{
    int rc = pthread_join(first, NULL);
    printf("joined %d\n", rc);
    fflush(stdout);
    exit(0);
    return nothing;
}

static void do_leave(void)
{
    pthread_t thread;
    first = pthread_self();
    if (pthread_create(&thread, NULL, after_first, NULL) != 0)
        exit(1);
    pthread_exit(NULL);
}

/* ---- time ---- */

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static struct timespec in_us(clockid_t clock, long us)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += us * 1000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static void say_waited(const char *what, int error, uint64_t since)
{
    printf("%s %s\n%s-us %llu\n", what, error == 0 ? "0" : strerrorname_np(error), what,
           (unsigned long long)(now_us() - since));
}

static void wait_all_clocks(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition;
    uint32_t word = 7;
    sem_t sem;
    sem_init(&sem, 0, 0);
    pthread_cond_init(&condition, NULL);
    pthread_mutex_lock(&lock);

    struct timespec end = in_us(CLOCK_MONOTONIC, WAIT_US);
    uint64_t since = now_us();
    int rc = pthread_cond_clockwait(&condition, &lock, CLOCK_MONOTONIC, &end);
    say_waited("monotonic", rc, since);

    end = in_us(CLOCK_REALTIME, WAIT_US);
    since = now_us();
    rc = sem_timedwait(&sem, &end);
    say_waited("realtime", rc == 0 ? 0 : errno, since);

    end = (struct timespec){.tv_nsec = WAIT_US * 1000};
    since = now_us();
    rc = (int)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 7, &end, NULL, 0);
    say_waited("relative", rc == 0 ? 0 : errno, since);
    printf("word %u\nspan %ld\n", word, end.tv_nsec); /* as they were */

    since = now_us();
    rc = nanosleep(&end, NULL);
    say_waited("sleep", rc, since);

    end = in_us(CLOCK_MONOTONIC, WAIT_US);
    since = now_us();
    rc = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
    say_waited("sleep-until", rc, since);
}

static void do_constant(void)
{
    static const struct timespec constant = {.tv_nsec = WAIT_US * 1000};
    others_start();
    say("constant", nanosleep(&constant, NULL));
    others_end();
    puts("alive 1");
}

static void say_stirred(void)
{
    struct sim_reading reading = {0};
    syscall(SIM_CALL, SIM_READ, &reading);
    printf("stirred %u\n", reading.stirred);
}

static void do_timeouts(void)
{
    others_start();
    wait_all_clocks();
    others_end();
    puts("alive 1");
}

static void do_alone(void)
{
    wait_all_clocks();
    puts("alive 1");
}

/* ---- cores ---- */

static void do_move(void)
{
    enum { ROUNDS = 10000 };
    static volatile uint64_t word;
    struct sim_reading before, after;
    for (int core = 0; core < 2; core++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(core, &set);
        if (core == 0)
            syscall(SIM_CALL, SIM_START);
        for (int i = 0; i < ROUNDS; i++)
            word++;
        sched_setaffinity(0, sizeof set, &set); /* the second time it goes from core 0 to 1 */
    }
    for (int i = 0; i < ROUNDS; i++)
        word++;
    syscall(SIM_CALL, SIM_STOP);
    syscall(SIM_CALL, SIM_READ, &before);
    syscall(SIM_CALL, SIM_READ, &after);
    printf("stores %llu\ncore %u\nagain %llu\n", (unsigned long long)before.model.stores, before.core,
           (unsigned long long)after.model.stores);
}

/* ---- threads that make threads ---- */

enum { LIVES = 20, LIFE_ROUNDS = 20000, MAKERS = 8, SHORT_LIVES = 160, SHORT_ROUNDS = 2000 };

static void *live(void *rounds)
{
    static volatile uint64_t word;
    for (uintptr_t i = 0; i < (uintptr_t)rounds; i++)
        word++;
    return NULL;
}

static void make(unsigned lives, uintptr_t rounds)
{
    pthread_t thread;
    for (unsigned i = 0; i < lives; i++)
        if (pthread_create(&thread, NULL, live, (void *)rounds) != 0 || pthread_join(thread, NULL) != 0)
            exit(1);
}

static void do_make(void)
{
    struct sim_reading reading;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(5, &set);
    sched_setaffinity(0, sizeof set, &set); /* they are born there */
    syscall(SIM_CALL, SIM_START);
    make(LIVES, LIFE_ROUNDS);
    syscall(SIM_CALL, SIM_STOP);
    make(LIVES, LIFE_ROUNDS); /* not counted */
    syscall(SIM_CALL, SIM_READ, &reading);
    printf("stores %llu\ninstructions %llu\ncore %u\n", (unsigned long long)reading.model.stores,
           (unsigned long long)reading.instructions, reading.core);
}

/* Lives of different lengths: there is always one, so that QEMU's numbers for threads grow. */
static void *make_many(void *number)
{
    make(SHORT_LIVES, SHORT_ROUNDS + SHORT_ROUNDS / 4 * (uintptr_t)number);
    return NULL;
}

static void do_many(void)
{
    pthread_t maker[MAKERS];
    for (int i = 0; i < MAKERS; i++)
        if (pthread_create(&maker[i], NULL, make_many, (void *)(uintptr_t)i) != 0)
            exit(1);
    for (int i = 0; i < MAKERS; i++)
        pthread_join(maker[i], NULL);
    puts("alive 1");
}

/* ---- */

static void *first_thread(void *nothing)
{
    return nothing;
}

static const struct {
    const char *name;
    void (*body)(void);
} bodies[] = {{"bad", do_bad},           {"fork", do_fork},   {"spawn", do_spawn},       {"leave", do_leave},
              {"timeouts", do_timeouts}, {"alone", do_alone}, {"constant", do_constant}, {"move", do_move},
              {"make", do_make},         {"many", do_many}};

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 2 || pthread_create(&thread, NULL, first_thread, NULL) != 0 ||
        pthread_join(thread, NULL) != 0)
        return 2;
    syscall(SIM_CALL, SIM_BEGIN);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (strcmp(bodies[i].name, argv[1]) == 0) {
            bodies[i].body();
            say_stirred();
            return 0;
        }
    return 2;
}
