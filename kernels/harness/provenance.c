#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "linked.h"
#include "provenance.h"
#include "sampler.h"

/* The name as the program's calls have it: what a static program holds, else what the loader bound. */
static void *name_find(const char *name)
{
    return linked_statically() ? linked_symbol(name) : dlsym(RTLD_DEFAULT, name);
}

static const char *object_of(const void *address)
{
    Dl_info info;
    if (linked_statically())
        return address != NULL ? "/proc/self/exe" : "(nothing)";
    return address != NULL && dladdr(address, &info) && info.dli_fname ? info.dli_fname : "(nothing)";
}

static bool same_object(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Of one allocator: one object, and in a static program both in what was linked for malloc, or neither. */
static bool same_server(const void *a, const void *b)
{
    return same_object(object_of(a), object_of(b)) && (!linked_statically() || linked_holds(a) == linked_holds(b));
}

/* dl_iterate_phdr: the note of the object that holds `address`. */
struct build_id_search { const char *address; char *hex; size_t size; };

static void note_to_hex(const char *note, const char *end, struct build_id_search *search)
{
    while (note + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *header = (const void *)note;
        const char *name = note + sizeof *header;
        const unsigned char *bytes = (const unsigned char *)name + ((header->n_namesz + 3u) & ~3u);
        if (header->n_type == NT_GNU_BUILD_ID && header->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
            for (unsigned i = 0; i < header->n_descsz && 2 * i + 2 < search->size; i++)
                snprintf(search->hex + 2 * i, 3, "%02x", bytes[i]);
            return;
        }
        note = (const char *)bytes + ((header->n_descsz + 3u) & ~3u);
    }
}

static int build_id_visit(struct dl_phdr_info *info, size_t size, void *user)
{
    struct build_id_search *search = user;
    bool holds = false;
    (void)size;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const char *start = (const char *)info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && search->address >= start && search->address < start + segment->p_memsz)
            holds = true;
    }
    if (!holds)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const char *start = (const char *)info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_NOTE && search->hex[0] == '\0')
            note_to_hex(start, start + segment->p_memsz, search);
    }
    return 1;
}

/* The object that serves, for own_symbol; NULL where it cannot be had. A static program is one. */
static void *object_open(const struct provenance *p)
{
    static char itself;
    return linked_statically() ? &itself : dlopen(p->path, RTLD_LAZY | RTLD_NOLOAD);
}

static void object_close(void *object)
{
    if (!linked_statically())
        dlclose(object);
}

/* A symbol that lies in that object itself: dlsym also searches what the object depends on, and would find the C
 * library's answer in another allocator's name. In a static program one of what serves malloc. NULL where it has none. */
static void *own_symbol(const struct provenance *p, void *object, const char *name)
{
    if (linked_statically())
        return linked_symbol(name);
    void *address = dlsym(object, name);
    return address != NULL && same_object(object_of(address), p->path) ? address : NULL;
}

typedef int (*mallctl_fn)(const char *, void *, size_t *, void *, size_t);

int64_t provenance_metadata(const struct provenance *p, const char *how)
{
    int64_t bytes = -1;
    void *object = how[0] ? object_open(p) : NULL;
    if (object == NULL)
        return -1;
    if (strncmp(how, "stat:", 5) == 0) {
        size_t (*ask)(const char *) = (size_t(*)(const char *))own_symbol(p, object, how + 5);
        if (ask != NULL && ask("metadata") != (size_t)-1)
            bytes = (int64_t)ask("metadata");
    } else if (strncmp(how, "mallctl:", 8) == 0) {
        /* jemalloc's statistics are of the last epoch; writing one makes them new. */
        mallctl_fn ask = (mallctl_fn)own_symbol(p, object, "mallctl");
        uint64_t epoch = 1;
        size_t value = 0, length = sizeof value, epoch_length = sizeof epoch;
        if (ask != NULL && ask("epoch", &epoch, &epoch_length, &epoch, sizeof epoch) == 0 &&
            ask(how + 8, &value, &length, NULL, 0) == 0)
            bytes = (int64_t)value;
    }
    object_close(object);
    return bytes;
}

/* The version by the library's own call; symbols are looked up in that object alone. */
static void version_ask(struct provenance *p, const char *how)
{
    const char *argument = strchr(how, ':');
    argument = argument ? argument + 1 : "";
    char *out = p->version;
    size_t size = sizeof p->version;

    if (strcmp(how, "file") == 0) {
        const char *suffix = strstr(p->path, ".so.");
        snprintf(out, size, "%s", suffix ? suffix + strlen(".so.") : "");
        return;
    }
    void *object = object_open(p);
    if (object == NULL)
        return;
    if (strncmp(how, "string:", 7) == 0) {
        const char *(*ask)(void) = (const char *(*)(void))own_symbol(p, object, argument);
        const char *answer = ask != NULL ? ask() : NULL;
        snprintf(out, size, "%s", answer != NULL ? answer : "");
    } else if (strncmp(how, "hundreds:", 9) == 0) {
        int (*ask)(void) = (int (*)(void))own_symbol(p, object, argument);
        int v = ask != NULL ? ask() : 0;
        if (v >= 10000)
            snprintf(out, size, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
        else if (v > 0)
            snprintf(out, size, "%d.%d.%d", v / 100, v / 10 % 10, v % 10);
    } else if (strncmp(how, "mallctl:", 8) == 0) {
        mallctl_fn ask = (mallctl_fn)own_symbol(p, object, "mallctl");
        const char *text = NULL;
        size_t length = sizeof text;
        if (ask != NULL && ask(argument, &text, &length, NULL, 0) == 0 && text != NULL)
            snprintf(out, size, "%s", text);
    } else if (strncmp(how, "tc:", 3) == 0) {
        const char *(*ask)(int *, int *, const char **) =
            (const char *(*)(int *, int *, const char **))own_symbol(p, object, argument);
        int major = 0, minor = 0;
        const char *patch = "";
        if (ask != NULL && ask(&major, &minor, &patch) != NULL)
            snprintf(out, size, "%d.%d%s", major, minor, patch ? patch : "");
    } else if (strncmp(how, "text:", 5) == 0) {
        const char *text = own_symbol(p, object, argument);
        snprintf(out, size, "%s", text != NULL ? text : "");
    }
    object_close(object);
}

#define CALLS 4

static void object_check(struct provenance *p, const char *expect, const char *const calls[CALLS],
                         const void *const address[CALLS])
{
    const char *wanted = expect;
    if (strcmp(expect, "libc") == 0)
        wanted = object_of(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    for (unsigned i = 0; i < CALLS && p->trouble[0] == '\0'; i++) {
        const char *object = object_of(address[i]);
        if (wanted[0] != '\0' && !same_object(object, wanted))
            snprintf(p->trouble, sizeof p->trouble, "%s is served by %.2000s, expected %.2000s", calls[i], object,
                     wanted);
        else if (!same_object(object, p->path))
            snprintf(p->trouble, sizeof p->trouble, "%s is served by %.2000s, but malloc by %.2000s", calls[i], object,
                     p->path);
    }
}

/* The program is the one expected; all calls are of the archive that was linked for them, or, with "libc", none is. */
static void linked_check(struct provenance *p, const char *expect, const char *const calls[CALLS],
                         const void *const address[CALLS])
{
    const bool libc = strcmp(expect, "libc") == 0;
    for (unsigned i = 0; i < CALLS && p->trouble[0] == '\0'; i++) {
        if (address[i] == NULL)
            snprintf(p->trouble, sizeof p->trouble,
                     "this static program has no name %s: it was stripped, and proves nothing", calls[i]);
        else if (libc && linked_holds(address[i]))
            snprintf(p->trouble, sizeof p->trouble,
                     "%s is of an allocator that was linked in, expected the C library's", calls[i]);
        else if (!libc && expect[0] != '\0' && !linked_holds(address[i]))
            snprintf(p->trouble, sizeof p->trouble, "%s is the C library's, expected that of an allocator linked in",
                     calls[i]);
        else if (!same_server(address[i], address[0]))
            snprintf(p->trouble, sizeof p->trouble, "%s is not of the allocator that malloc is of", calls[i]);
    }
    if (p->trouble[0] == '\0' && !libc && expect[0] != '\0' && !same_object(p->path, expect))
        snprintf(p->trouble, sizeof p->trouble, "malloc is served by %.2000s, expected %.2000s", p->path, expect);
}

void provenance_find(struct provenance *p, const char *expect, const char *version_call)
{
    static const char *const calls[CALLS] = { "malloc", "free", "calloc", "realloc" };
    const void *address[CALLS];

    memset(p, 0, sizeof *p);
    for (unsigned i = 0; i < CALLS; i++)
        address[i] = name_find(calls[i]);
    served.malloc = (void *(*)(size_t))(uintptr_t)address[0];
    served.free = (void (*)(void *))(uintptr_t)address[1];
    served.calloc = (void *(*)(size_t, size_t))(uintptr_t)address[2];
    served.realloc = (void *(*)(void *, size_t))(uintptr_t)address[3];
    served.aligned_alloc = (void *(*)(size_t, size_t))name_find("aligned_alloc");
    served.usable = (size_t(*)(void *))name_find("malloc_usable_size");
    served.locks = (void (*)(struct lock_times *))name_find("tlfl_lock_times");

    if (!same_server((const void *)(uintptr_t)served.aligned_alloc, address[0]))
        served.aligned_alloc = NULL; /* free could not take its blocks */
    if (!same_server((const void *)(uintptr_t)served.usable, address[0]))
        served.usable = NULL; /* the C library's would read another allocator's blocks */
    if (!same_server((const void *)(uintptr_t)served.locks, address[0]))
        served.locks = NULL;
    if (realpath(object_of(address[0]), p->path) == NULL)
        snprintf(p->path, sizeof p->path, "%s", object_of(address[0]));
    struct build_id_search search = { address[0], p->build_id, sizeof p->build_id };
    dl_iterate_phdr(build_id_visit, &search);

    if (linked_statically())
        linked_check(p, expect, calls, address);
    else
        object_check(p, expect, calls, address);
    if (p->trouble[0] == '\0')
        version_ask(p, version_call);
}
