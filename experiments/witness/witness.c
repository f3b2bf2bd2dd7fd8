/*
 * witness.c - libak-witness.so, preloaded before an allocator: tells which object serves malloc in each process of a
 * command, and how that process ended. The loader only warns of a library that it cannot load, a program may bring a malloc
 * of its own, and a child may be static or have another environment: so only what this says counts as served. See witness.h.
 *
 * It allocates nothing and keeps no file open. A process costs two short writes more, the same under every allocator.
 */
#include "witness.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ID_BYTES 32

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

static void say(const char *kind)
{
    char line[sizeof object + sizeof program + 256];
    struct rusage used;
    const int error = errno;
    if (!says || getrusage(RUSAGE_SELF, &used) != 0)
        return;
    const long long us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000ll + used.ru_utime.tv_usec +
                         used.ru_stime.tv_usec;
    const int length = snprintf(line, sizeof line, "%s\t%d\t%d\t%lld\t%u\t%s\t%s\t%s\n", kind, (int)getpid(),
                                (int)getppid(), us, disagreeing, object, build_id, program);
    const int file = open(log_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file >= 0) {
        if (length > 0 && (size_t)length < sizeof line && write(file, line, (size_t)length) != length)
            says = false; /* a full disk: a missing line is a process that was not seen */
        close(file);
    }
    errno = error;
}

__attribute__((constructor)) static void begin(void)
{
    static const char *const others[] = {"free", "calloc", "realloc"};
    const char *path = getenv(WITNESS_VARIABLE);
    Dl_info info, other;
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
    copy_name(program, sizeof program, program);
    says = true;
    say("start");
}

__attribute__((destructor)) static void end(void)
{
    say("end");
}

/* Shells and servers end their forked children by these, past all destructors. */
__attribute__((visibility("default"))) _Noreturn void _exit(int status)
{
    say("end");
    for (;;)
        syscall(SYS_exit_group, status);
}

__attribute__((visibility("default"))) _Noreturn void _Exit(int status)
{
    _exit(status);
}
