#include "orphans.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 500 /* of PAUSE_NS: what cannot die (uninterruptible I/O) is left after that */
#define PAUSE_NS   10000000

static bool adopting;

/* Send `signal_number` (0: none) to every child; how many there are, or -1 where the kernel does not tell. */
static int each_child(int signal_number)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "re");
    int child, count = 0;
    if (!children)
        return -1;
    while (fscanf(children, "%d", &child) == 1) {
        if (signal_number)
            kill(child, signal_number);
        count++;
    }
    fclose(children);
    return count;
}

void orphans_adopt(void)
{
    adopting = each_child(0) == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

void orphans_end(void)
{
    const struct timespec pause_time = {0, PAUSE_NS};
    for (int round = 0; adopting && round < ROUNDS_MAX; round++) {
        each_child(SIGKILL);
        pid_t gone;
        while ((gone = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (gone < 0 && errno == ECHILD)
            return;
        nanosleep(&pause_time, NULL);
    }
}
