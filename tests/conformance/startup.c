/* Start and end of a process: constructors, dlsym, exit handlers, dlopen of the allocator. */
#include "tap.h"

#include <malloc.h>
#include <pthread.h>

static char *early;
static size_t early_usable;
static void *early_symbol;

__attribute__((constructor(101))) static void first(void)
{
    early_symbol = dlsym(RTLD_DEFAULT, "pthread_create"); /* allocates in some versions of libc */
    early = malloc(1000);
    content_fill(early, 1000, 1);
    early = realloc(early, 100000);
    early_usable = malloc_usable_size(early);
    free(calloc(10, 10));
}

static void at_exit(void)
{
    char *late = malloc(5000);
    content_fill(late, 5000, 2);
    if (!content_good(late, 5000, 5000, 2))
        _exit(9);
    free(late);
    free(early);
}

__attribute__((destructor(101))) static void last(void)
{
    free(malloc(100000));
    void *block = malloc(10);
    if (block == NULL)
        _exit(9);
}

static void *nothing(void *argument)
{
    return malloc(100) == NULL ? argument : NULL;
}

/* Exits in every way, each in a child. */
static void test_exits(void)
{
    pid_t child = fork();
    if (child == 0) {
        atexit(at_exit);
        exit(0);
    }
    tap_ok(child > 0 && child_good(child), "exit handlers and destructors allocate and free");
    child = fork();
    if (child == 0) {
        pthread_t thread;
        atexit(at_exit);
        pthread_create(&thread, NULL, nothing, NULL);
        pthread_exit(NULL);
    }
    tap_ok(child > 0 && child_good(child), "the main thread ends by pthread_exit");
    child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "startup", "again", (char *)NULL);
        _exit(1);
    }
    tap_ok(child > 0 && child_good(child), "exec");
}

/* A process with another malloc opens the library, which then serves by its own names only. */
static void test_dlopen(void)
{
    Dl_info info;
    if (!allocator_is_tlfl() || dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) == 0) {
        tap_skip("dlopen of the library", "a promise of tlfl");
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        unsetenv("LD_PRELOAD");
        execl("/proc/self/exe", "startup", "dlopen", info.dli_fname, (char *)NULL);
        _exit(1);
    }
    tap_ok(child > 0 && child_good(child), "dlopen of the library: its thread-local storage fits");
}

static void *opened_body(void *library)
{
    void *(*its_malloc)(size_t) = (void *(*)(size_t))dlsym(library, "malloc");
    void (*its_free)(void *) = (void (*)(void *))dlsym(library, "free");
    bool good = its_malloc != malloc;
    for (size_t size = 1; size < 100000; size = size * 3 / 2 + 1) {
        char *block = its_malloc(size);
        content_fill(block, size, 3);
        good &= content_good(block, size, size, 3);
        its_free(block);
    }
    return (void *)(uintptr_t)good;
}

static int main_dlopen(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *result = NULL;
    pthread_t thread;
    if (library == NULL || opened_body(library) == NULL)
        return 1;
    if (pthread_create(&thread, NULL, opened_body, library) != 0 || pthread_join(thread, &result) != 0)
        return 1;
    return result == NULL;
}

int main(int count, char **arguments)
{
    tap_start(60);
    if (count == 3 && strcmp(arguments[1], "dlopen") == 0)
        return main_dlopen(arguments[2]);
    if (count == 2)
        return early == NULL || early_usable < 100000;
    tap_ok(early != NULL && early_usable >= 100000 && content_good(early, 1000, 999, 1) &&
               early_symbol != NULL,
           "malloc in a constructor, around dlsym");
    test_exits();
    test_dlopen();
    return tap_done();
}
