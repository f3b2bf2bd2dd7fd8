/*
 * launches - what a program costs that does nothing, by preloaded library.
 *
 *   launches ROUNDS SEED PROGRAM NAME=LIBRARY...
 *
 * Each round starts the program once with each library, in a new random order. Prints CSV: round, name, wall time from
 * before the start to after the end (ns), CPU time of the child (us, as the kernel accounts it), largest resident size
 * (KiB). The child is started by vfork and this program is linked statically, since a new program's largest resident
 * size begins with that of its parent. Exit 1 if a launch fails or prints to stderr (the loader's way to ignore a library).
 */
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIBRARIES_MAX 64

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void shuffle(int *order, int count, uint64_t *state)
{
    for (int i = count - 1; i > 0; i--) {
        *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
        int other = (int)((*state >> 33) % (uint64_t)(i + 1));
        int kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

/* False if the program did not end well or the loader had something to say. */
static int launch(const char *program, char *preload, const char *round, const char *name)
{
    char *argv[] = {(char *)(uintptr_t)program, NULL};
    char *environment[] = {preload, "LANG=C", NULL};
    posix_spawn_file_actions_t actions;
    struct rusage usage;
    int errors[2], status;
    char said;
    pid_t child;

    if (pipe(errors) != 0)
        return 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, errors[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, errors[0]);
    posix_spawn_file_actions_addclose(&actions, errors[1]);
    uint64_t start = now_ns();
    int failed = posix_spawnp(&child, program, &actions, NULL, argv, environment);
    if (failed == 0)
        failed = wait4(child, &status, 0, &usage) != child || status != 0;
    uint64_t wall = now_ns() - start;
    posix_spawn_file_actions_destroy(&actions);
    close(errors[1]);
    failed |= read(errors[0], &said, 1) == 1;
    close(errors[0]);
    if (!failed)
        printf("%s,%s,%llu,%ld,%ld\n", round, name, (unsigned long long)wall,
               (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000L + usage.ru_utime.tv_usec +
                   usage.ru_stime.tv_usec,
               usage.ru_maxrss);
    return !failed;
}

int main(int argc, char **argv)
{
    int count = argc - 4, order[LIBRARIES_MAX];
    char *preload[LIBRARIES_MAX];
    if (count < 1 || count > LIBRARIES_MAX) {
        fputs("usage: launches ROUNDS SEED PROGRAM NAME=LIBRARY...\n", stderr);
        return 2;
    }
    uint64_t state = strtoull(argv[2], NULL, 10);
    for (int i = 0; i < count; i++) {
        char *equals = strchr(argv[4 + i], '=');
        order[i] = i;
        if (equals == NULL) {
            fprintf(stderr, "launches: '%s', expected NAME=LIBRARY\n", argv[4 + i]);
            return 2;
        }
        *equals = '\0';
        if (asprintf(&preload[i], "LD_PRELOAD=%s", equals + 1) < 0)
            return 3;
    }
    puts("round,allocator,wall_ns,cpu_us,rss_kib");
    for (int round = 1; round <= atoi(argv[1]); round++) {
        char text[16];
        snprintf(text, sizeof text, "%d", round);
        shuffle(order, count, &state);
        for (int i = 0; i < count; i++)
            if (!launch(argv[3], preload[order[i]], text, argv[4 + order[i]])) {
                fprintf(stderr, "launches: %s with %s did not end well\n", argv[3], preload[order[i]]);
                return 1;
            }
    }
    return 0;
}
