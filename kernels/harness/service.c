#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"
#include "service.h"

#define LOOK_NS      2000000 /* between two looks at something that is waited for */
#define FOLDER_START "ak-service-" /* then the process's id: tells whose it is */
#define ENV_MAX      64
#define NOT_EXECUTED 127
#define FDS_MAX      64 /* of nftw */

extern char **environ;

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void nap(void)
{
    static const struct timespec look = { 0, LOOK_NS };
    nanosleep(&look, NULL);
}

/* ---- programs ---- */

static bool executable(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}

const char *service_find(const char *name, const char *const *more)
{
    static __thread char path[4096];

    if (strchr(name, '/') != NULL)
        return executable(name) ? name : NULL;
    const char *at = getenv("PATH");
    for (at = at ? at : "/usr/local/bin:/usr/bin:/bin"; *at != '\0';) {
        size_t length = strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)length, at, name);
        if (length > 0 && executable(path))
            return path;
        at += length + (at[length] == ':');
    }
    for (; more != NULL && *more != NULL; more++) {
        snprintf(path, sizeof path, "%s/%s", *more, name);
        if (executable(path))
            return path;
    }
    return NULL;
}

/* Variables that every service has; those that tune allocators and the loader only where it is under test. */
static bool variable_passes(const char *variable, bool under_test)
{
    static const char *const always[] = { "PATH=", "HOME=", "TMPDIR=" };
    static const char *const tuning[] = { "LD_PRELOAD=", "LD_LIBRARY_PATH=", "MALLOC_", "GLIBC_TUNABLES=", "MIMALLOC_",
                                          "TCMALLOC_", "TBB_MALLOC_", "TLFL_" };
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        if (strncmp(variable, always[i], strlen(always[i])) == 0)
            return true;
    for (size_t i = 0; under_test && i < sizeof tuning / sizeof tuning[0]; i++)
        if (strncmp(variable, tuning[i], strlen(tuning[i])) == 0)
            return true;
    return false;
}

static bool variable_given(const struct service_request *r, const char *variable)
{
    size_t name = strcspn(variable, "=") + 1;
    for (const char *const *e = r->env; e != NULL && *e != NULL; e++)
        if (strncmp(*e, variable, name) == 0)
            return true;
    return false;
}

static void environment_make(const struct service_request *r, const char *env[ENV_MAX])
{
    size_t n = 0;
    env[n++] = "LANG=C";
    for (char **e = environ; *e != NULL && n < ENV_MAX / 2; e++)
        if (variable_passes(*e, r->under_test) && !variable_given(r, *e))
            env[n++] = *e;
    for (const char *const *e = r->env; e != NULL && *e != NULL && n < ENV_MAX - 1; e++)
        env[n++] = *e;
    env[n] = NULL;
}

static int output_open(const char *path)
{
    return open(path ? path : "/dev/null", path ? O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC : O_WRONLY | O_CLOEXEC, 0644);
}

/* The CPUs that this process was given: its threads are pinned later. */
static cpu_set_t allowed;

__attribute__((constructor)) static void allowed_look(void)
{
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        CPU_ZERO(&allowed); /* more CPUs than the set has: it keeps the starting thread's */
}

/* In the child, between fork and exec: only calls that are safe there. */
__attribute__((noreturn)) static void become(const struct service_request *r, const char *path, const char *const *env,
                                             pid_t parent, const int fds[3], int report)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (!r->under_test && CPU_COUNT(&allowed) > 0)
        sched_setaffinity(0, sizeof allowed, &allowed);
    bool ready = dup2(fds[0], 0) >= 0 && dup2(fds[1], 1) >= 0 && dup2(fds[2], 2) >= 0;
    ready = ready && (r->directory == NULL || chdir(r->directory) == 0);
    if (ready && r->user != 0 && geteuid() == 0) {
        gid_t group = r->group;
        ready = setgroups(1, &group) == 0 && setgid(group) == 0 && setuid(r->user) == 0;
    }
    /* After the change of user, which would clear it. */
    ready = ready && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
    if (ready)
        execve(path, (char *const *)r->argv, (char *const *)env);
    int error = errno;
    while (write(report, &error, sizeof error) < 0 && errno == EINTR)
        ;
    _exit(NOT_EXECUTED);
}

static int trouble(char *why, const char *what, int error)
{
    snprintf(why, SERVICE_WHY, "%.400s: %s", what, strerror(error));
    return -1;
}

int service_start(struct service *s, const struct service_request *r, char why[SERVICE_WHY])
{
    const char *env[ENV_MAX], *found = service_find(r->argv[0], NULL);
    char path[4096];
    int report[2], error = 0;

    *s = (struct service){ 0 };
    if (found == NULL)
        return trouble(why, r->argv[0], ENOENT);
    snprintf(path, sizeof path, "%s", found);
    environment_make(r, env);
    if (pipe2(report, O_CLOEXEC) != 0)
        return trouble(why, "pipe", errno);
    const int fds[3] = { open("/dev/null", O_RDONLY | O_CLOEXEC), output_open(r->out), output_open(r->err) };
    pid_t parent = getpid(), pid = -1;
    error = errno;
    if (fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0) {
        pid = fork();
        error = errno;
        if (pid == 0)
            become(r, path, env, parent, fds, report[1]);
    }
    close(report[1]);
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (pid > 0) {
        ssize_t got;
        while ((got = read(report[0], &error, sizeof error)) < 0 && errno == EINTR)
            ;
        if (got == (ssize_t)sizeof error) {
            waitpid(pid, NULL, 0);
            pid = -1;
        }
    }
    close(report[0]);
    if (pid < 0)
        return trouble(why, path, error);
    s->pid = pid;
    return 0;
}

bool service_ended(struct service *s)
{
    if (s->pid == 0)
        return true;
    pid_t got = waitpid(s->pid, &s->status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return false;
    s->pid = 0;
    return true;
}

int service_wait(struct service *s, uint64_t timeout_ms)
{
    uint64_t end = now_ms() + timeout_ms;
    while (!service_ended(s)) {
        if (now_ms() >= end)
            return -1;
        nap();
    }
    return 0;
}

int service_stop(struct service *s, int signal_number, uint64_t grace_ms)
{
    if (service_ended(s))
        return 0;
    kill(s->pid, signal_number);
    if (service_wait(s, grace_ms) == 0)
        return 0;
    kill(s->pid, SIGKILL);
    while (!service_ended(s))
        nap();
    return -1;
}

const char *service_end(const struct service *s)
{
    static __thread char words[64];
    if (WIFSIGNALED(s->status))
        snprintf(words, sizeof words, "signal %d (%s)", WTERMSIG(s->status), strsignal(WTERMSIG(s->status)));
    else
        snprintf(words, sizeof words, "exit status %d", WEXITSTATUS(s->status));
    return words;
}

/* ---- where they listen ---- */

static bool connects(const char *path, uint16_t port)
{
    struct sockaddr_un local = { .sun_family = AF_UNIX };
    struct sockaddr_in loopback = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return false;
    if (path != NULL)
        snprintf(local.sun_path, sizeof local.sun_path, "%s", path);
    bool well = path ? connect(fd, (struct sockaddr *)&local, sizeof local) == 0
                     : connect(fd, (struct sockaddr *)&loopback, sizeof loopback) == 0;
    close(fd);
    return well;
}

int service_listens(struct service *s, const char *path, uint16_t port, uint64_t timeout_ms, char why[SERVICE_WHY])
{
    for (uint64_t end = now_ms() + timeout_ms; !connects(path, port); nap()) {
        if (service_ended(s)) {
            snprintf(why, SERVICE_WHY, "ended before it listened: %s", service_end(s));
            return -1;
        }
        if (now_ms() >= end) {
            snprintf(why, SERVICE_WHY, "does not listen after %llu ms", (unsigned long long)timeout_ms);
            return -1;
        }
    }
    return 0;
}

uint16_t service_port(void)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof any;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return 0;
    bool well = bind(fd, (struct sockaddr *)&any, sizeof any) == 0 && getsockname(fd, (struct sockaddr *)&any, &length) == 0;
    close(fd);
    return well ? ntohs(any.sin_port) : 0;
}

/* ---- folders ---- */

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *place)
{
    (void)s, (void)type, (void)place;
    remove(path);
    return 0;
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, FDS_MAX, FTW_DEPTH | FTW_PHYS);
}

static char folder_made[16][101];
static unsigned folders_made;
static pid_t folders_of;

static void folders_remove(void)
{
    while (folders_of == getpid() && folders_made > 0)
        remove_tree(folder_made[--folders_made]);
}

static const char *folder_parent(void)
{
    const char *parent = getenv("TMPDIR");
    return parent != NULL && parent[0] == '/' && strlen(parent) < 60 ? parent : "/tmp";
}

/* What launches left that were killed: named after a process that is no more. */
static void folders_sweep(void)
{
    char path[4096];
    struct dirent *entry;
    DIR *parent = opendir(folder_parent());

    while (parent != NULL && (entry = readdir(parent)) != NULL) {
        struct stat s;
        if (strncmp(entry->d_name, FOLDER_START, sizeof FOLDER_START - 1) != 0)
            continue;
        pid_t pid = (pid_t)strtol(entry->d_name + sizeof FOLDER_START - 1, NULL, 10);
        snprintf(path, sizeof path, "%s/%s", folder_parent(), entry->d_name);
        bool ours = lstat(path, &s) == 0 && S_ISDIR(s.st_mode) && (s.st_uid == geteuid() || geteuid() == 0);
        if (ours && pid > 0 && kill(pid, 0) != 0 && errno == ESRCH)
            remove_tree(path);
    }
    if (parent != NULL)
        closedir(parent);
}

int service_folder(char path[101], uid_t user, gid_t group, char why[SERVICE_WHY])
{
    if (folders_made == sizeof folder_made / sizeof folder_made[0])
        return trouble(why, "too many folders", ENOSPC);
    if (folders_made == 0) {
        folders_sweep();
        folders_of = getpid();
        atexit(folders_remove);
    }
    snprintf(path, 101, "%s/" FOLDER_START "%d-XXXXXX", folder_parent(), (int)getpid());
    if (mkdtemp(path) == NULL) {
        snprintf(why, SERVICE_WHY, "%s: %s: TMPDIR names a folder to write to", folder_parent(), strerror(errno));
        return -1;
    }
    snprintf(folder_made[folders_made++], 101, "%s", path);
    if (user != 0 && geteuid() == 0 && chown(path, user, group) != 0)
        return trouble(why, path, errno);
    return 0;
}

/* ---- what they wrote ---- */

char *service_text(const char *path, size_t *length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat s;
    char *text = NULL;

    *length = 0;
    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode)) {
        size_t size = (size_t)s.st_size;
        ssize_t got;
        text = ak_map(size + 1);
        while (*length < size && (got = read(fd, text + *length, size - *length)) > 0)
            *length += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    return text;
}

void service_complaint(const char *path, char *line, size_t size)
{
    static const char *const causes[] = { "PANIC:", "FATAL:", "ERROR:", "error:", "Fatal error", "[emerg]" };
    size_t length;
    char *text = service_text(path, &length), *said = text;

    line[0] = '\0';
    if (text == NULL)
        return;
    for (char *at = text, *end; *at != '\0'; at = end) {
        end = at + strcspn(at, "\n");
        said = end > at ? at : said;
        bool cause = false;
        if (*end == '\n')
            *end++ = '\0';
        for (size_t i = 0; !cause && i < sizeof causes / sizeof causes[0]; i++)
            cause = strstr(at, causes[i]) != NULL;
        if (cause)
            break;
    }
    snprintf(line, size, "%s", said);
    ak_unmap(text, length + 1);
}
