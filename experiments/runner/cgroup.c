/* The control group of this process, version 2 or 1. */
#include "machine.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

#define PATH_BYTES 4352

/* Path within the hierarchy of `controller` ("" for version 2), from the lines "ID:CONTROLLERS:PATH". */
static bool group_path(const char *controller, char *path, size_t size)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[4096];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *rest = line;
        line[strcspn(line, "\n")] = '\0';
        strsep(&rest, ":");
        char *names = strsep(&rest, ":");
        if (!names || !rest)
            continue;
        bool is_it = !*controller && !*names;
        for (char *name; *controller && (name = strsep(&names, ","));)
            is_it |= strcmp(name, controller) == 0;
        if (is_it) {
            snprintf(path, size, "%s", rest);
            found = true;
        }
    }
    if (file)
        fclose(file);
    return found;
}

/* A file of the group; within a container the path may start above what is mounted, then the mount's root
 * serves. */
static bool group_file(const char *controller, const char *name, char *path, size_t size)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char group[4096], v1[64];
    if (!group_path(controller, group, sizeof group))
        return false;
    snprintf(v1, sizeof v1, "/sys/fs/cgroup/%s", controller);
    for (int m = 0; m < (*controller ? 1 : 2); m++)
        for (int whole = 0; whole < 2; whole++) {
            snprintf(path, size, "%s%s/%s", *controller ? v1 : mounts[m], whole ? "" : group, name);
            FILE *file = fopen(path, "re");
            if (file) {
                fclose(file);
                return true;
            }
        }
    return false;
}

static bool count_in(const char *path, uint64_t *kills)
{
    char value[64];
    return machine_value(path, "oom_kill", value, sizeof value) && text_uint(value, 0, kills);
}

bool cgroup_oom_kills(uint64_t *kills)
{
    char path[PATH_BYTES];
    return (group_file("", "memory.events", path, sizeof path) && count_in(path, kills)) ||
           (group_file("memory", "memory.oom_control", path, sizeof path) && count_in(path, kills)) ||
           count_in("/proc/vmstat", kills);
}

bool cgroup_memory_limit(char *text, size_t size)
{
    char path[PATH_BYTES];
    if (group_file("", "memory.max", path, sizeof path) && machine_line(path, text, size))
        return true;
    uint64_t bytes;
    if (!group_file("memory", "memory.limit_in_bytes", path, sizeof path) || !machine_line(path, text, size))
        return false;
    if (text_uint(text, 0, &bytes) && bytes >= (uint64_t)INT64_MAX / 2)
        snprintf(text, size, "max");
    return true;
}

bool cgroup_cpu_limit(char *text, size_t size)
{
    char path[PATH_BYTES], period[64];
    if (group_file("", "cpu.max", path, sizeof path) && machine_line(path, text, size))
        return true;
    if (!group_file("cpu", "cpu.cfs_quota_us", path, sizeof path) || !machine_line(path, text, size))
        return false;
    if (*text == '-')
        snprintf(text, size, "max");
    else if (group_file("cpu", "cpu.cfs_period_us", path, sizeof path) &&
             machine_line(path, period, sizeof period)) {
        size_t length = strlen(text);
        snprintf(text + length, size - length, " %s", period);
    }
    return true;
}
