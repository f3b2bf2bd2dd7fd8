/*
 * recorder.c - libak-record.so, preloaded by `ak record`: where it begins and ends.
 *
 * The linker flag initfirst has it begin before every other object of the program.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "journal.h"

#define EXPORTED __attribute__((visibility("default")))

static __attribute__((constructor)) void begin(int argc, char **argv, char **environment)
{
    journal_begin(argc, argv, environment);
}

static __attribute__((destructor)) void end(void)
{
    journal_end(SPOOL_EXIT);
}

/* So that a process which says nothing has become another program, or was killed. */
EXPORTED _Noreturn void _exit(int status)
{
    journal_end(SPOOL__EXIT);
    for (;;)
        syscall(SYS_exit_group, status);
}

EXPORTED _Noreturn void _Exit(int status)
{
    _exit(status);
}

EXPORTED _Noreturn void quick_exit(int status)
{
    void (*leave)(int) = (void (*)(int))dlsym(RTLD_NEXT, "quick_exit");
    journal_end(SPOOL__EXIT);
    leave(status);
    _exit(status);
}
