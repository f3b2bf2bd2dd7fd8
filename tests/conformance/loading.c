/* Shared objects that come and go: plugins with blocks of their own, and the allocator's library itself. */
#include "tap.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>

enum { GIVEN = 200 };

/* The plugins lie beside this program. */
static const char *plugin_path(const char *plugin)
{
    static char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 40);
    path[length < 0 ? 0 : length] = '\0';
    char *name = strrchr(path, '/');
    strcpy(name == NULL ? path : name + 1, "plugins/");
    strcat(path, plugin);
    return path;
}

static void *visit_body(void *visit)
{
    return (void *)(uintptr_t)((int (*)(void))visit)();
}

static bool plugin_round(char **given, unsigned round)
{
    void *plugin = dlopen(plugin_path("held.so"), RTLD_NOW | RTLD_LOCAL), *result = NULL;
    if (plugin == NULL)
        return false;
    void *visit = dlsym(plugin, "held_visit");
    char *(*give)(size_t, char) = (char *(*)(size_t, char))dlsym(plugin, "held_give");
    if (visit == NULL || give == NULL)
        return false;
    pthread_t thread;
    bool good = visit_body(visit) != NULL && pthread_create(&thread, NULL, visit_body, visit) == 0 &&
                pthread_join(thread, &result) == 0 && result != NULL;
    for (unsigned i = 0; i < GIVEN; i++) {
        free(given[i]);
        given[i] = give(10 + i * 40 + round, (char)i);
    }
    return good && dlclose(plugin) == 0;
}

static void test_plugins(void)
{
    char *given[GIVEN] = {NULL};
    bool good = true;
    size_t after_ten = 0, mappings = 0;
    for (unsigned round = 0; round < 100 && good; round++) {
        good = plugin_round(given, round);
        for (unsigned i = 0; i < GIVEN && good; i++)
            good = given[i] != NULL && given[i][0] == (char)i && given[i][9 + i * 40 + round] == (char)i;
        if (round == 9) {
            quarantine_empty(); /* it fills up for a while */
            after_ten = resident_now();
            mappings = mapping_count();
        }
    }
    for (unsigned i = 0; i < GIVEN; i++)
        free(given[i]);
    quarantine_empty();
    tap_ok(good, "a plugin is opened and closed 100 times; its blocks outlive it");
    tap_ok(resident_now() < after_ten + ((size_t)1 << 20) && mapping_count() < mappings + 20,
           "that costs nothing in the end: %zu KiB resident after 10 rounds, %zu after 100", after_ten >> 10,
           resident_now() >> 10);
    void *none = dlopen("no-such-plugin.so", RTLD_NOW);
    const char *why = dlerror();
    tap_ok(none == NULL && why != NULL && strstr(why, "no-such-plugin") != NULL,
           "a plugin that is not there: dlerror says so");
}

/* ---- the library's own thread-local storage ---- */

static size_t tls_bytes = SIZE_MAX;

static int tls_find(struct dl_phdr_info *object, size_t size, void *base)
{
    (void)size;
    size_t bytes = 0;
    bool found = false;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_TLS)
            bytes = part->p_memsz;
        if (part->p_type == PT_LOAD &&
            object->dlpi_addr + part->p_vaddr - part->p_vaddr % part->p_align == (uintptr_t)base)
            found = true;
    }
    if (found)
        tls_bytes = bytes;
    return found;
}

/* Initial-exec storage of a library that is opened late comes out of a reserve that all such libraries share: 1,664 bytes
 * in glibc. */
static void test_tls(void)
{
    Dl_info info;
    if (!tap_tlfl("thread-local storage of the library is small"))
        return;
    if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) != 0)
        dl_iterate_phdr(tls_find, info.dli_fbase);
    tap_ok(tls_bytes <= 256, "thread-local storage of the library is small: %zu bytes", tls_bytes);
}

/* ---- the library opened late, and closed again ---- */

static pthread_barrier_t closing;

/* Uses the library, and ends after it was closed. */
static void *late_body(void *library)
{
    void *(*its_malloc)(size_t) = (void *(*)(size_t))dlsym(library, "malloc");
    void (*its_free)(void *) = (void (*)(void *))dlsym(library, "free");
    bool good = its_malloc != malloc;
    for (size_t size = 1; size < 300000; size = size * 2 + 1) {
        char *block = its_malloc(size);
        good &= block != NULL;
        content_fill(block, size, 3);
        good &= content_good(block, size, size, 3);
        its_free(block);
    }
    pthread_barrier_wait(&closing);
    pthread_barrier_wait(&closing);
    return (void *)(uintptr_t)good;
}

static int main_late(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *result = NULL;
    pthread_t thread;
    pthread_barrier_init(&closing, NULL, 2);
    if (library == NULL || pthread_create(&thread, NULL, late_body, library) != 0)
        return 1;
    pthread_barrier_wait(&closing);
    dlclose(library);
    pthread_barrier_wait(&closing);
    pthread_join(thread, &result);
    pid_t child = fork(); /* what it registered for fork */
    if (child == 0)
        _exit(0);
    return result == NULL || child < 0 || !child_good(child);
}

static void test_late(void)
{
    Dl_info info;
    if (!tap_tlfl("the library opened late"))
        return;
    pid_t child = fork();
    if (child == 0) {
        if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) == 0)
            _exit(1);
        unsetenv("LD_PRELOAD");
        execl("/proc/self/exe", "loading", "late", info.dli_fname, (char *)NULL);
        _exit(1);
    }
    tap_ok(child > 0 && child_good(child),
           "the library opened late, used, closed, and a thread that used it ends");
}

/* ---- fork handlers of another library ---- */

static pthread_barrier_t taken;

/* Has the lock that a fork waits for, and needs memory that no thread has at hand before it gives it up. */
static void *holder_body(void *unused)
{
    void (*take)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "forklock_take");
    void (*drop)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "forklock_drop");
    bool (*wanted)(void) = (bool (*)(void))dlsym(RTLD_DEFAULT, "forklock_wanted");
    void *blocks[100];
    bool good = true;
    (void)unused;
    take();
    pthread_barrier_wait(&taken);
    while (!wanted())
        sched_yield();
    for (int i = 0; i < 100; i++)
        good &= (blocks[i] = malloc(150000)) != NULL;
    drop();
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
    return (void *)(uintptr_t)good;
}

static int main_forklock(void)
{
    pthread_t holder;
    void *result = NULL;
    alarm(20);
    pthread_barrier_init(&taken, NULL, 2);
    if (dlsym(RTLD_DEFAULT, "forklock_take") == NULL || pthread_create(&holder, NULL, holder_body, NULL) != 0)
        return 1;
    pthread_barrier_wait(&taken);
    pid_t child = fork();
    if (child == 0) {
        free(malloc(100));
        _exit(0);
    }
    bool good = child > 0 && child_good(child);
    pthread_join(holder, &result);
    return !good || result == NULL;
}

/* The allocator takes its locks for a fork after all that others do there, though their constructors may run first. */
static void test_forklock(void)
{
    char preload[2 * PATH_MAX];
    const char *before = getenv("LD_PRELOAD");
    snprintf(preload, sizeof preload, "%s:%s", before == NULL ? "" : before, plugin_path("forklock.so"));
    pid_t child = fork();
    if (child == 0) {
        setenv("LD_PRELOAD", preload, 1);
        execl("/proc/self/exe", "loading", "forklock", (char *)NULL);
        _exit(1);
    }
    tap_ok(child > 0 && child_good(child),
           "a fork waits for a lock of another library, whose holder waits for memory");
}

int main(int count, char **arguments)
{
    tap_start(60);
    if (count == 3 && strcmp(arguments[1], "late") == 0)
        return main_late(arguments[2]);
    if (count == 2 && strcmp(arguments[1], "forklock") == 0)
        return main_forklock();
    test_plugins();
    test_tls();
    test_late();
    test_forklock();
    return tap_done();
}
