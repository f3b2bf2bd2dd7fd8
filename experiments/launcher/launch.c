/*
 * ak-launch - starts one kernel from a small process, and leaves nothing running. See launch.h.
 *
 * A chain of two parent-death signals covers every order of deaths: ak gone -> SIGTERM here -> the group is
 * killed; ak-launch gone -> SIGKILL to the kernel. Each link is checked once after it was set, since the
 * parent may have gone before. Descendants that leave the group are adopted (subreaper) and killed one by
 * one.
 */
#include "launch.h"
#include "standard_fds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_NO_EXEC = 127 };

static int print_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    (void)user;
    if (info->dlpi_name && *info->dlpi_name)
        puts(info->dlpi_name);
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* In the child. Never returns; a failed exec leaves errno in the pipe, which a successful one closes. */
static _Noreturn void become_program(char **argv, const char *directory, const char *preload, pid_t launcher,
                                     int error_fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
        _exit(EXIT_NO_EXEC);
    setpgid(0, 0);
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL); /* ak ignores SIGPIPE and SIGXFSZ; ignored signals survive exec */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if ((*directory && chdir(directory) != 0) || setenv("LD_PRELOAD", preload, 1) != 0)
        goto failed;
    execv(argv[0], argv);
failed:;
    int error = errno;
    if (write(error_fd, &error, sizeof error) < 0)
        _exit(EXIT_NO_EXEC);
    _exit(EXIT_NO_EXEC);
}

/* Kill the group, and those that left it and were adopted; reap all. The list of children is read again
 * until it is empty, since the killed may have had children of their own. */
static void kill_all(pid_t group)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    for (int round = 0; round < 1000; round++) {
        kill(-group, SIGKILL);
        FILE *children = fopen(path, "re");
        int child;
        if (children) {
            while (fscanf(children, "%d", &child) == 1)
                kill(child, SIGKILL);
            fclose(children);
        }
        pid_t gone = waitpid(-1, NULL, 0);
        if (gone < 0 && errno == ECHILD)
            return;
    }
}

int main(int argc, char **argv)
{
    if (!standard_fds_reserve())
        return EXIT_NO_EXEC;
    if (argc == 2 && strcmp(argv[1], "--where") == 0) {
        dl_iterate_phdr(print_object, NULL);
        return 0;
    }
    if (argc < 7) {
        fputs("usage: ak-launch PARENT REPORT_FD TIMEOUT_MS DIRECTORY PRELOAD PROGRAM [ARGUMENTS...]\n"
              "       ak-launch --where\n"
              "Started by ak; run a kernel by itself instead.\n",
              stderr);
        return EXIT_USAGE;
    }
    const pid_t parent = (pid_t)strtol(argv[1], NULL, 10);
    const int report_fd = (int)strtol(argv[2], NULL, 10);
    const uint64_t timeout_ns = strtoull(argv[3], NULL, 10) * 1000000u;

    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    sigaddset(&watched, SIGHUP);
    sigaddset(&watched, SIGUSR1);
    sigprocmask(SIG_BLOCK, &watched, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        return EXIT_NO_EXEC;

    int error_pipe[2];
    if (fcntl(report_fd, F_SETFD, FD_CLOEXEC) != 0 || pipe2(error_pipe, O_CLOEXEC) != 0) {
        perror("ak-launch");
        return EXIT_NO_EXEC;
    }
    struct launch_report report = {.magic = LAUNCH_MAGIC};
    const pid_t self = getpid();
    const uint64_t start = now_ns();
    const pid_t child = fork();
    if (child == 0)
        become_program(argv + 6, argv[4], argv[5], self, error_pipe[1]);
    if (child < 0) {
        report.end = LAUNCH_NO_EXEC;
        report.code = errno;
        return write(report_fd, &report, sizeof report) == sizeof report ? 0 : EXIT_NO_EXEC;
    }
    setpgid(child, child); /* whoever is first of the two */
    close(error_pipe[1]);

    bool killed = false;
    int status = 0;
    struct rusage usage = {0};
    for (;;) {
        pid_t gone = wait4(child, &status, WNOHANG, &usage);
        if (gone == child || (gone < 0 && errno == ECHILD))
            break;
        uint64_t waited = now_ns() - start;
        struct timespec left = {3600, 0};
        if (timeout_ns && waited < timeout_ns)
            left = (struct timespec){(time_t)((timeout_ns - waited) / 1000000000u),
                                     (long)((timeout_ns - waited) % 1000000000u)};
        else if (timeout_ns)
            left = (struct timespec){0, 0};
        siginfo_t info;
        int signal_number = killed ? sigwaitinfo(&watched, &info) : sigtimedwait(&watched, &info, &left);
        if (signal_number == SIGUSR1 && info.si_code == SI_QUEUE) /* not reaped yet: the pid is its own */
            kill(child, info.si_value.sival_int);
        if (signal_number == SIGTERM || signal_number == SIGINT || signal_number == SIGHUP)
            report.end = LAUNCH_STOPPED;
        else if (signal_number < 0 && errno == EAGAIN && timeout_ns && now_ns() - start >= timeout_ns)
            report.end = LAUNCH_TIMED_OUT;
        else
            continue;
        kill(-child, SIGKILL);
        kill(child, SIGKILL); /* it may not have made its group yet */
        killed = true;
    }
    report.wall_ns = now_ns() - start;
    kill_all(child);
    int error;
    if (killed) {
        report.code = SIGKILL;
    } else if (read(error_pipe[0], &error, sizeof error) == sizeof error) {
        report.end = LAUNCH_NO_EXEC;
        report.code = error;
    } else if (WIFSIGNALED(status)) {
        report.end = LAUNCH_SIGNALLED;
        report.code = WTERMSIG(status);
    } else {
        report.end = LAUNCH_EXITED;
        report.code = WEXITSTATUS(status);
    }
    report.user_us = (uint64_t)usage.ru_utime.tv_sec * 1000000u + (uint64_t)usage.ru_utime.tv_usec;
    report.system_us = (uint64_t)usage.ru_stime.tv_sec * 1000000u + (uint64_t)usage.ru_stime.tv_usec;
    report.maxrss_bytes = (uint64_t)usage.ru_maxrss * 1024u;
    report.minor_faults = (uint64_t)usage.ru_minflt;
    report.major_faults = (uint64_t)usage.ru_majflt;
    report.voluntary_switches = (uint64_t)usage.ru_nvcsw;
    report.involuntary_switches = (uint64_t)usage.ru_nivcsw;
    report.pid = child;
    return write(report_fd, &report, sizeof report) == sizeof report ? 0 : EXIT_NO_EXEC;
}
