/* Programs that put functions of their own before the C library's, and allocate inside: mmap and its like, and a look-up by
 * dlsym, which allocates too when it fails, on the first call. An allocator that calls these by name while it holds a
 * lock does not come back.
 */
#include "tap.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

static atomic_ulong wrapped;

/* The wrappers act in children only, which have this in the environment from their first instruction. */
#define ACT "INTERPOSED_ACT"

/* What the wrapper of such a program does: notes the call in memory it asks for. */
static void *wrap(void **next, const char *name)
{
    bool acts = getenv(ACT) != NULL;
    if (*next == NULL) {
        if (acts && (dlsym(RTLD_DEFAULT, "no_such_function") != NULL || dlerror() == NULL))
            _exit(97);
        *next = dlsym(RTLD_NEXT, name);
    }
    if (acts) {
        char *note = malloc(200);
        if (note != NULL)
            memset(note, 1, 200);
        free(note);
        free(calloc(3, 1000));
        wrapped++;
    }
    return *next;
}

void *mmap(void *start, size_t bytes, int protection, int flags, int file, off_t offset)
{
    static void *next;
    return ((void *(*)(void *, size_t, int, int, int, off_t))wrap(&next, "mmap"))(start, bytes, protection,
                                                                                  flags, file, offset);
}

int munmap(void *start, size_t bytes)
{
    static void *next;
    return ((int (*)(void *, size_t))wrap(&next, "munmap"))(start, bytes);
}

int madvise(void *start, size_t bytes, int advice)
{
    static void *next;
    return ((int (*)(void *, size_t, int))wrap(&next, "madvise"))(start, bytes, advice);
}

/* Before main, and before what libraries start by themselves in main's favour. */
static bool early_good;

__attribute__((constructor(101))) static void early(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *block = calloc(1, 100000);
    early_good = page != MAP_FAILED && block != NULL && all_zero(block, 100000);
    free(block);
    if (page != MAP_FAILED)
        munmap(page, 4096);
}

static void *load_body(void *argument)
{
    enum { SLOTS = 100, ROUNDS = 4000 };
    struct {
        char *block;
        size_t size;
    } slots[SLOTS] = {{NULL, 0}};
    uint64_t seed = (uint64_t)(uintptr_t)argument + 1;
    bool good = true;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned i = (unsigned)(random_next(&seed) % SLOTS);
        good &= slots[i].block == NULL ||
                (slots[i].block[0] == (char)i && slots[i].block[slots[i].size - 1] == (char)i);
        slots[i].size = random_size(&seed, round % 50 == 0 ? 23 : 15);
        if (round % 3 == 0) {
            slots[i].block = realloc(slots[i].block, slots[i].size);
        } else {
            free(slots[i].block);
            slots[i].block = malloc(slots[i].size);
        }
        if (slots[i].block == NULL)
            return NULL;
        slots[i].block[0] = slots[i].block[slots[i].size - 1] = (char)i;
    }
    for (int i = 0; i < SLOTS; i++)
        free(slots[i].block);
    return (void *)(uintptr_t)good;
}

/* Three threads of the load above. */
static bool load_good(void)
{
    pthread_t threads[3];
    bool good = true;
    for (uintptr_t i = 0; i < 3; i++)
        good &= pthread_create(&threads[i], NULL, load_body, (void *)i) == 0;
    for (int i = 0; i < 3; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        good &= result != NULL;
    }
    if (allocator_has("malloc_trim"))
        malloc_trim(0);
    return good;
}

/* This program again, with its wrappers in force and an alarm of its own, which exec keeps: a deadlock is a result. */
static bool child_run(const char *what)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        setenv(ACT, "1", 1);
        execl("/proc/self/exe", "interposed", what, (char *)NULL);
        _exit(1);
    }
    return child > 0 && child_good(child);
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "early") == 0)
        return !(early_good && wrapped >= 2);
    if (count == 2)
        return !load_good();
    tap_start(60);
    tap_ok(child_run("early"), "a constructor calls an mmap that allocates");
    tap_ok(child_run("load"), "three threads under mmap, munmap and madvise that allocate");
    return tap_done();
}
