#include "cputime.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

#define DEPTH_MOST 64 /* of descendants; a loop cannot be, but processes change while they are read */

static uint64_t of_tree(int pid, unsigned depth)
{
    char path[64];
    uint64_t sum = 0;
    const struct dirent *task;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = depth < DEPTH_MOST ? opendir(path) : NULL;
    while (tasks && (task = readdir(tasks))) {
        uint64_t ns;
        int child, thread;
        if (!isdigit((unsigned char)*task->d_name) || sscanf(task->d_name, "%d", &thread) != 1)
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, thread);
        FILE *file = fopen(path, "re");
        if (file && fscanf(file, "%" SCNu64, &ns) == 1)
            sum += ns;
        if (file)
            fclose(file);
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, thread);
        file = fopen(path, "re");
        while (file && fscanf(file, "%d", &child) == 1)
            sum += of_tree(child, depth + 1);
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return sum;
}

uint64_t cputime_of_tree(int pid)
{
    return pid ? of_tree(pid, 0) : 0;
}
