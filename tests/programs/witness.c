/* witness.c - preloaded beside the allocator: each program that starts appends a line "NAME OBJECT" to the file that
 * WITNESS names, OBJECT being what its malloc came from. The loader only warns of a library that it cannot load, and a
 * program may bring a malloc of its own; so a run is taken for one under the allocator only if this says so. To be preloaded
 * before the allocator.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE 512

__attribute__((constructor)) static void testify(void)
{
    const char *path = getenv("WITNESS");
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *found = dlsym(RTLD_DEFAULT, "malloc");
    char line[LINE];
    if (path == NULL || found == NULL || dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0)
        return;
    if (symbol != NULL &&
        symbol->st_shndx == SHN_UNDEF) { /* a program at a fixed address shows its call stub */
        found = dlsym(RTLD_NEXT, "malloc");
        if (found == NULL || dladdr(found, &info) == 0)
            return;
    }
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0)
        return;
    int length = snprintf(line, sizeof line, "%s %s\n", program_invocation_short_name, info.dli_fname);
    if (length > 0 && length < LINE && write(file, line, (size_t)length) != length)
        perror(path); /* the missing line is what counts */
    close(file);
}
