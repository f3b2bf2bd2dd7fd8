/*
 * cost - what a command costs.
 *
 *   cost COMMAND...
 *
 * Runs it with its output thrown away. Prints CSV: wall time (ns), CPU time of it and its children (ns, as the kernel accounts
 * it), largest resident size (KiB). Exit 1 if it fails.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t time_ns(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

int main(int argc, char **argv)
{
    posix_spawn_file_actions_t actions;
    struct rusage usage;
    pid_t child;
    int status;

    if (argc < 2) {
        fputs("usage: cost COMMAND...\n", stderr);
        return 2;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    uint64_t start = now_ns();
    int rc = posix_spawnp(&child, argv[1], &actions, NULL, argv + 1, environ);
    if (rc != 0) {
        fprintf(stderr, "cost: %s: %s\n", argv[1], strerror(rc));
        return 1;
    }
    if (wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "cost: %s failed\n", argv[1]);
        return 1;
    }
    printf("%" PRIu64 ",%" PRIu64 ",%ld\n", now_ns() - start, time_ns(usage.ru_utime) + time_ns(usage.ru_stime),
           usage.ru_maxrss);
    return 0;
}
