#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../experiments/witness/witness.h"
#include "kernel.h"
#include "launch.h"
#include "memory.h"
#include "service.h"
#include "subject.h"

#define PIDS_MAX 64

static const struct provenance *expected;
static struct provenance said;
static bool asked;
static char log_path[160];
static pid_t pids[PIDS_MAX];
static unsigned pid_count;

void subject_expect(const struct provenance *p)
{
    expected = p;
}

const struct provenance *subject_provenance(void)
{
    return asked ? &said : NULL;
}

const pid_t *subject_pids(unsigned *count)
{
    *count = pid_count;
    return pids;
}

/* ---- what it is started with ---- */

/* In the folder lib of the first folder above this program that has it there: where it was built, or installed. */
static bool witness_find(char path[PATH_MAX])
{
    char above[PATH_MAX], joined[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", above, sizeof above - 1);

    above[length > 0 ? length : 0] = '\0';
    for (char *end; (end = strrchr(above, '/')) != NULL;) {
        *end = '\0';
        snprintf(joined, sizeof joined, "%s/lib/" WITNESS_LIBRARY, above);
        if (realpath(joined, path) != NULL)
            return true;
    }
    return false;
}

const char *const *ak_subject_env(void)
{
    static char preload[3 * PATH_MAX], log_variable[sizeof log_path + 32];
    static const char *const env[] = { preload, log_variable, NULL };
    char witness[PATH_MAX], folder[101], why[SERVICE_WHY];
    const char *own = getenv("LD_PRELOAD");

    if (!witness_find(witness)) {
        ak_lacks("%s is not there: run make", WITNESS_LIBRARY);
        return NULL;
    }
    if (service_folder(folder, 0, 0, why) != 0) {
        ak_lacks("%s", why);
        return NULL;
    }
    snprintf(log_path, sizeof log_path, "%s/witness", folder);
    int log = open(log_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (log < 0) {
        ak_lacks("%s: %s", log_path, strerror(errno));
        return NULL;
    }
    close(log);
    /* A program may be linked with an allocator of its own: where nothing is preloaded here, what serves here is
     * there. */
    if (own == NULL || own[0] == '\0')
        own = expected->path;
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s:%s", witness, own);
    snprintf(log_variable, sizeof log_variable, WITNESS_VARIABLE "=%s", log_path);
    return env;
}

/* ---- whose allocator serves it ---- */

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A process's parent; 0 where it is gone. */
static pid_t parent_of(pid_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (proc_read(path, text, sizeof text) <= 0)
        return 0;
    char *end = strrchr(text, ')'); /* a name may hold anything */
    int parent = 0;
    return end != NULL && sscanf(end, ") %*c %d", &parent) == 1 ? parent : 0;
}

static bool child_of_subject(pid_t pid)
{
    pid_t parent = parent_of(pid);
    for (unsigned i = 0; i < pid_count; i++)
        if (parent != 0 && pids[i] == parent)
            return true;
    return false;
}

/* The line of that process: see witness.h. False where it has none, or one of what it was before it became this
 * program. */
static bool witness_read(pid_t pid, unsigned *disagreeing)
{
    size_t length;
    char *text = service_text(log_path, &length), *rest = text, link[64], program[PATH_MAX];
    bool found = false;

    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t got = readlink(link, program, sizeof program - 1);
    program[got > 0 ? got : 0] = '\0';

    for (char *line; rest != NULL && (line = strsep(&rest, "\n")) != NULL;) {
        char *field[8] = { NULL }, *at = line;
        unsigned n = 0;
        while (n < 8 && at != NULL)
            field[n++] = strsep(&at, "\t");
        if (n < 8 || strcmp(field[0], "start") != 0 || strtol(field[1], NULL, 10) != pid)
            continue;
        found = strcmp(field[7], program) == 0;
        *disagreeing = (unsigned)strtoul(field[4], NULL, 10);
        if (realpath(field[5], said.path) == NULL)
            snprintf(said.path, sizeof said.path, "%s", field[5]);
        snprintf(said.build_id, sizeof said.build_id, "%s", strcmp(field[6], "-") == 0 ? "" : field[6]);
    }
    if (text != NULL)
        ak_unmap(text, length + 1);
    return found;
}

int ak_subject(pid_t pid)
{
    unsigned disagreeing = 0;

    if (pid_count == PIDS_MAX)
        return ak_fail("more than %d processes under test", PIDS_MAX);
    /* A fork without exec has its parent's libraries, and no line of its own. */
    if (!child_of_subject(pid)) {
        asked = true;
        if (!witness_read(pid, &disagreeing)) {
            said = (struct provenance){ 0 };
            return launch_fail("wrong_allocator",
                               "process %d does not say what serves it: a static or set-uid program, or another "
                               "environment", (int)pid);
        }
        if (!same_file(said.path, expected->path) || strcmp(said.build_id, expected->build_id) != 0)
            return launch_fail("wrong_allocator", "process %d is served by %.200s, expected %.200s", (int)pid,
                               said.path, expected->path);
        if (disagreeing > 0)
            return launch_fail("wrong_allocator", "process %d: malloc is served by %.300s, but %u of free, calloc and "
                               "realloc by another object", (int)pid, said.path, disagreeing);
        snprintf(said.version, sizeof said.version, "%s", expected->version); /* the same file */
    }
    pids[pid_count++] = pid;
    return 0;
}

/* ---- its accounts ---- */

/* The number behind `key` at a line's start. */
static int64_t number_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at != NULL && (at == text || at[-1] == '\n') ? (int64_t)strtoll(at + strlen(key), NULL, 10) : 0;
}

static void switches_add(struct thread_account *a, pid_t pid)
{
    char path[512], text[4096];
    struct dirent *entry;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid, entry->d_name);
        if (entry->d_name[0] == '.' || proc_read(path, text, sizeof text) <= 0)
            continue;
        a->voluntary += number_of(text, "voluntary_ctxt_switches:");
        a->involuntary += number_of(text, "nonvoluntary_ctxt_switches:");
    }
    if (tasks != NULL)
        closedir(tasks);
}

static bool account_add(struct thread_account *a, pid_t pid)
{
    unsigned long minor, major, user, system;
    char path[64], text[1024];
    struct timespec cpu;
    clockid_t clock;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &cpu) != 0 ||
        proc_read(path, text, sizeof text) <= 0)
        return false;
    char *end = strrchr(text, ')');
    if (end == NULL || sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %lu %*u %lu %*u %lu %lu", &minor, &major, &user,
                              &system) != 4)
        return false;
    int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
    a->cpu_ns += (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec;
    a->user_ns += (int64_t)user * tick_ns;
    a->sys_ns += (int64_t)system * tick_ns;
    a->minor_faults += (int64_t)minor;
    a->major_faults += (int64_t)major;
    switches_add(a, pid);
    return true;
}

/* Less than a tick is counted as the program's own. */
void subject_parts(struct thread_account *used)
{
    double user = (double)used->user_ns, system = (double)used->sys_ns;
    used->user_ns = user + system > 0 ? (int64_t)((double)used->cpu_ns * user / (user + system)) : used->cpu_ns;
    used->sys_ns = used->cpu_ns - used->user_ns;
}

struct thread_account subject_account(bool *known)
{
    struct thread_account a = { 0 };
    *known = pid_count > 0;
    for (unsigned i = 0; i < pid_count; i++)
        *known = account_add(&a, pids[i]) && *known;
    return a;
}
