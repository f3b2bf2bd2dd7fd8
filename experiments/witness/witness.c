/*
 * witness.c - libak-witness.so, preloaded before an allocator: tells which object serves malloc in each process of
 * a command, what that process becomes, and how it ended. The loader only warns of a library that it cannot load, a
 * program may bring a malloc of its own, and a child may be static or have another environment: so only what this
 * says counts as served. See witness.h.
 *
 * It allocates nothing and keeps no file open. A process costs two to four short writes more, the same under every
 * allocator.
 */
#include "witness.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ID_BYTES 32
#define VISIBLE  __attribute__((visibility("default")))

/* Known from the start on, and inherited by a fork. */
static char log_path[4096], object[4096], program[4096];
static char build_id[2 * ID_BYTES + 1] = "-";
static unsigned disagreeing;
static bool says;

/* The file that a symbol resolves to. A program at a fixed address shows its own call stub for it. */
static const void *resolve(const char *name, Dl_info *info)
{
    const ElfW(Sym) *symbol = NULL;
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found || !dladdr1(found, info, (void **)&symbol, RTLD_DL_SYMENT))
        return NULL;
    if (symbol && symbol->st_shndx == SHN_UNDEF) {
        found = dlsym(RTLD_NEXT, name);
        if (!found || !dladdr(found, info))
            return NULL;
    }
    return info->dli_fbase;
}

/* The build-id among the notes of one segment in memory. */
static void take_note(const unsigned char *at, size_t length)
{
    while (length >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)at;
        const size_t name = (note->n_namesz + 3u) & ~3u, desc = (note->n_descsz + 3u) & ~3u;
        const size_t all = sizeof *note + name + desc;
        if (all > length)
            return;
        const unsigned char *bytes = at + sizeof *note + name;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= ID_BYTES)
            for (unsigned i = 0; i < note->n_descsz; i++)
                snprintf(build_id + 2 * i, 3, "%02x", bytes[i]);
        at += all;
        length -= all;
    }
}

static int find_object(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    bool is_it = false;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) /* the first loaded page is where dladdr says it begins */
        is_it |= info->dlpi_phdr[i].p_type == PT_LOAD &&
                 (info->dlpi_addr + (info->dlpi_phdr[i].p_vaddr & ~(ElfW(Addr))4095)) == (ElfW(Addr))base;
    for (unsigned i = 0; is_it && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            take_note((const unsigned char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
                      info->dlpi_phdr[i].p_memsz);
    return is_it;
}

/* Tabs and line ends would break the line. */
static void copy_name(char *to, size_t room, const char *from)
{
    size_t i = 0;
    for (; from[i] && i + 1 < room; i++)
        to[i] = (unsigned char)from[i] < ' ' ? '?' : from[i];
    to[i] = '\0';
}

/* `what`: the program of the line. */
static void say_of(const char *kind, pid_t pid, pid_t parent, long long us, const char *what)
{
    char name[sizeof program], line[sizeof object + sizeof program + 256];
    const int error = errno;
    if (!says)
        return;
    copy_name(name, sizeof name, what);
    const int length = snprintf(line, sizeof line, "%s\t%d\t%d\t%lld\t%u\t%s\t%s\t%s\n", kind, (int)pid,
                                (int)parent, us, disagreeing, object, build_id, name);
    const int file = open(log_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file >= 0) {
        if (length > 0 && (size_t)length < sizeof line && write(file, line, (size_t)length) != length)
            says = false; /* a full disk: a missing line is a process that was not seen */
        close(file);
    }
    errno = error;
}

static void say(const char *kind, const char *what)
{
    struct rusage used;
    const int error = errno;
    if (getrusage(RUSAGE_SELF, &used) == 0)
        say_of(kind, getpid(), getppid(),
               (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000ll + used.ru_utime.tv_usec +
                   used.ru_stime.tv_usec,
               what);
    errno = error;
}

static void forked(void)
{
    say("start", program);
}

/* What comes after this library, be it the C library's or another preloaded one's. */
static int (*next_execve)(const char *, char *const *, char *const *);
static int (*next_execvpe)(const char *, char *const *, char *const *);
static int (*next_fexecve)(int, char *const *, char *const *);
typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *,
                           const posix_spawnattr_t *, char *const *, char *const *);
static spawn_function *next_spawn, *next_spawnp;

static void find_next(void)
{
    *(void **)&next_execve = dlsym(RTLD_NEXT, "execve");
    *(void **)&next_execvpe = dlsym(RTLD_NEXT, "execvpe");
    *(void **)&next_fexecve = dlsym(RTLD_NEXT, "fexecve");
    *(void **)&next_spawn = dlsym(RTLD_NEXT, "posix_spawn");
    *(void **)&next_spawnp = dlsym(RTLD_NEXT, "posix_spawnp");
}

__attribute__((constructor)) static void begin(void)
{
    static const char *const others[] = {"free", "calloc", "realloc"};
    const char *path = getenv(WITNESS_VARIABLE);
    Dl_info info, other;
    find_next();
    if (!path || strlen(path) >= sizeof log_path)
        return;
    const void *base = resolve("malloc", &info);
    if (!base)
        return;
    memcpy(log_path, path, strlen(path) + 1);
    copy_name(object, sizeof object, info.dli_fname);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        disagreeing += resolve(others[i], &other) != base;
    dl_iterate_phdr(find_object, (void *)base);
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    says = true;
    pthread_atfork(NULL, NULL, forked);
    say("start", program);
}

__attribute__((destructor)) static void end(void)
{
    say("end", program);
}

/* Shells and servers end their forked children by these, past all destructors. */
VISIBLE _Noreturn void _exit(int status)
{
    say("end", program);
    for (;;)
        syscall(SYS_exit_group, status);
}

VISIBLE _Noreturn void _Exit(int status)
{
    _exit(status);
}

/* ---- a process becomes another program, or starts one ---- */

/* It is still what it was where that fails. */
static int failed(void)
{
    say("start", program);
    return -1;
}

VISIBLE int execve(const char *path, char *const argv[], char *const env[])
{
    if (!next_execve)
        find_next();             /* another library's constructor came first */
    if (access(path, F_OK) != 0) /* shells try every folder of PATH */
        return next_execve(path, argv, env);
    say("exec", path);
    next_execve(path, argv, env);
    return failed();
}

VISIBLE int execvpe(const char *file, char *const argv[], char *const env[])
{
    if (!next_execvpe)
        find_next();
    say("exec", file);
    next_execvpe(file, argv, env);
    return failed();
}

VISIBLE int fexecve(int fd, char *const argv[], char *const env[])
{
    if (!next_fexecve)
        find_next();
    say("exec", argv[0] ? argv[0] : "?");
    next_fexecve(fd, argv, env);
    return failed();
}

VISIBLE int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

VISIBLE int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

/* The arguments of a list call, up to its NULL, and the environment behind that. */
#define LISTED(first, call, environment)                                                                     \
    va_list list, again;                                                                                     \
    size_t count = 1;                                                                                        \
    va_start(list, first);                                                                                   \
    va_copy(again, list);                                                                                    \
    while (va_arg(again, char *))                                                                            \
        count++;                                                                                             \
    va_end(again);                                                                                           \
    char *argv[count + 1];                                                                                   \
    argv[0] = (char *)(uintptr_t)(first);                                                                    \
    for (size_t i = 1; i <= count; i++)                                                                      \
        argv[i] = va_arg(list, char *);                                                                      \
    char *const *env = environment;                                                                          \
    va_end(list);                                                                                            \
    return call(target, argv, env)

VISIBLE int execl(const char *target, const char *first, ...)
{
    LISTED(first, execve, environ);
}

VISIBLE int execlp(const char *target, const char *first, ...)
{
    LISTED(first, execvpe, environ);
}

VISIBLE int execle(const char *target, const char *first, ...)
{
    LISTED(first, execve, va_arg(list, char *const *));
}

static int spawn(spawn_function *next, pid_t *pid, const char *path,
                 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                 char *const argv[], char *const env[])
{
    pid_t started = 0;
    const int error = next(&started, path, actions, attributes, argv, env);
    if (error == 0 && pid)
        *pid = started;
    if (error == 0)
        say_of("spawn", started, getpid(), 0, path);
    return error;
}

VISIBLE int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[], char *const env[])
{
    if (!next_spawn)
        find_next();
    return spawn(next_spawn, pid, path, actions, attributes, argv, env);
}

VISIBLE int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const argv[], char *const env[])
{
    if (!next_spawnp)
        find_next();
    return spawn(next_spawnp, pid, file, actions, attributes, argv, env);
}
