/* Start and end of a process: constructors, dlsym, exit handlers, what a process costs that does nothing. */
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

/* Resident bytes of a process that does nothing, with and without the preloaded library; 0 when it did not say. */
static size_t idle_resident(bool preloaded)
{
    int ends[2];
    size_t resident = 0;
    if (pipe(ends) != 0)
        return 0;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        if (!preloaded)
            unsetenv("LD_PRELOAD");
        execl("/proc/self/exe", "startup", "idle", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    if (read(ends[0], &resident, sizeof resident) != sizeof resident)
        resident = 0;
    close(ends[0]);
    return child > 0 && child_good(child) ? resident : 0;
}

/* What a process pays for being there: a server forks or starts hundreds. */
static void test_cost(void)
{
    size_t with = idle_resident(true), without = idle_resident(false);
    tap_note("a process that does nothing: %zu KiB resident, %zu without the preloaded library", with >> 10,
             without >> 10);
    tap_promise(with != 0 && without != 0 && with < without + ((size_t)512 << 10),
                "a process that does nothing costs less than 512 KiB more");
}

int main(int count, char **arguments)
{
    tap_start(60);
    if (count == 2 && strcmp(arguments[1], "idle") == 0) {
        size_t resident = resident_now();
        return write(STDOUT_FILENO, &resident, sizeof resident) != sizeof resident;
    }
    if (count == 2)
        return early == NULL || early_usable < 100000;
    tap_ok(early != NULL && early_usable >= 100000 && content_good(early, 1000, 999, 1) &&
               early_symbol != NULL,
           "malloc in a constructor, around dlsym");
    test_exits();
    test_cost();
    return tap_done();
}
