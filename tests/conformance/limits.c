/* Limits: address space that runs out, huge blocks, the number of mappings. */
#include "tap.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

/* Bytes of private writable memory, which RLIMIT_DATA counts: what a system without overcommit counts, too. */
static size_t data_now(void)
{
    char text[4096];
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[got < 0 ? 0 : got] = '\0';
    const char *line = strstr(text, "VmData:");
    return line == NULL ? 0 : strtoul(line + strlen("VmData:"), NULL, 10) << 10;
}

/* Runs a body in a child that may only map `room` bytes more. */
static bool with_limit(int resource, size_t room, bool (*body)(size_t), size_t argument)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        size_t now = resource == RLIMIT_AS ? memory_now(0) : data_now();
        struct rlimit limit = {now + room, now + room};
        _exit(now == 0 || setrlimit(resource, &limit) != 0 || !body(argument));
    }
    return child > 0 && child_good(child);
}

static bool with_room(size_t room, bool (*body)(size_t), size_t argument)
{
    return with_limit(RLIMIT_AS, room, body, argument);
}

enum { ROOM = 96 << 20, MOST = 1 << 20 };

static void *held[MOST];

/* Allocates until refused; the number of blocks, 0 if the refusal was not ENOMEM. */
static size_t exhaust(size_t size)
{
    size_t count = 0;
    errno = 0;
    while (count < MOST && (held[count] = malloc(size)) != NULL)
        *(size_t *)held[count] = count, count++;
    return count < MOST && errno == ENOMEM ? count : 0;
}

static bool release(size_t count)
{
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        good &= *(size_t *)held[i] == i;
        free(held[i]);
    }
    return good;
}

static bool exhaust_and_recover(size_t size)
{
    size_t first = exhaust(size);
    errno = 0;
    void *more = calloc(1, (size_t)ROOM);
    bool good = more == NULL && errno == ENOMEM;
    good &= first * size > ROOM / 2 && release(first);
    size_t second = exhaust(size);
    good &= second > first * 3 / 4;
    return good && release(second);
}

static bool exhaust_small_then_large(size_t size)
{
    size_t small = exhaust(size);
    bool good = release(small);
    size_t large = exhaust((size_t)8 << 20);
    return good && large * ((size_t)8 << 20) > ROOM / 2 && release(large);
}

static bool refused_realloc(size_t size)
{
    char *block = malloc(size);
    content_fill(block, size, 7);
    errno = 0;
    char *moved = realloc(block, (size_t)ROOM * 2);
    bool good = moved == NULL && errno == ENOMEM && content_good(block, size, size, 7);
    block = realloc(block, size + 5000);
    good &= block != NULL && content_good(block, size, size - 1, 7);
    free(block);
    return good;
}

/* Takes all that malloc still has of a size. */
static void *take_all(size_t size)
{
    void *last = NULL;
    for (void **more; (more = malloc(size)) != NULL; last = more)
        *more = last;
    return last;
}

/* A block that has nowhere to move shrinks where it is, and is of the size told from there on. */
static bool refused_shrink(size_t size)
{
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    size_t less = size / 5, count;
    char *block = malloc(size);
    if (block == NULL)
        return false;
    content_fill(block, size, 7);
    count = exhaust(1000);
    void *taken = take_all(less);
    char *shrunk = realloc(block, less);
    bool good = shrunk == block && content_good(shrunk, size, less, 7) && malloc_usable_size(shrunk) >= less;
    content_fill(shrunk, less, 8);
    for (void *next; taken != NULL; taken = next) {
        next = *(void **)taken;
        free(taken);
    }
    good &= release(count) && content_good(shrunk, less, less, 8);
    if (allocator_has("free_sized"))
        sized(shrunk, less);
    else
        free(shrunk);
    return good && release(exhaust(1000)); /* what was shrunk serves again */
}

static bool refused_aligned(size_t size)
{
    void *block = &size;
    errno = 0;
    bool good = posix_memalign(&block, (size_t)1 << 27, size) == ENOMEM && block == &size;
    good &= aligned_alloc((size_t)1 << 28, size) == NULL && errno == ENOMEM;
    void *fine = aligned_alloc(1 << 20, size);
    good &= aligned_to(fine, 1 << 20) && fine != NULL;
    free(fine);
    return good;
}

static void test_address_space(void)
{
    const size_t sizes[] = {200, 3000, 30000, 200000, 1000000, 6000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        tap_ok(with_room(ROOM, exhaust_and_recover, sizes[i]),
               "RLIMIT_AS: blocks of %zu bytes, NULL and ENOMEM, then all over again", sizes[i]);
    tap_ok(with_room(ROOM, exhaust_small_then_large, 500),
           "RLIMIT_AS: what small blocks used serves huge ones");
    tap_ok(with_room(ROOM, refused_realloc, 100) && with_room(ROOM, refused_realloc, 1000000) &&
               with_room(ROOM, refused_realloc, 9000000),
           "RLIMIT_AS: a refused realloc leaves the block");
    const size_t shrunk[] = {3000, 30000, 200000, 1000000, 9000000};
    for (size_t i = 0; i < sizeof shrunk / sizeof *shrunk; i++)
        tap_ok(with_room(ROOM, refused_shrink, shrunk[i]),
               "RLIMIT_AS: a block of %zu bytes that cannot move shrinks where it is", shrunk[i]);
    tap_ok(with_room(ROOM, refused_aligned, 1000), "RLIMIT_AS: alignments that do not fit are refused");
    tap_ok(with_room((size_t)6 << 20, exhaust_small_then_large, 1000) == false,
           "RLIMIT_AS: the limit of these tests is in force");
}

static void test_data(void)
{
    const size_t sizes[] = {200, 30000, 1000000, 6000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        tap_ok(
            with_limit(RLIMIT_DATA, ROOM, exhaust_and_recover, sizes[i]),
            "RLIMIT_DATA, as without overcommit: blocks of %zu bytes, NULL and ENOMEM, then all over again",
            sizes[i]);
    tap_ok(with_limit(RLIMIT_DATA, ROOM, refused_realloc, 1000000),
           "RLIMIT_DATA: a refused realloc leaves the block");
}

/* ---- a memory cgroup ---- */

#define CGROUP_ROOM ((size_t)160 << 20)

static bool text_write(const char *folder, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    bool good = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0)
        close(file);
    return good;
}

/* Makes a group of CGROUP_ROOM bytes, of either version of the interface; false where that is not allowed. */
static bool cgroup_make(char *folder, size_t room)
{
    static const struct {
        const char *root, *limit;
    } kinds[] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}};
    char limit[32];
    snprintf(limit, sizeof limit, "%zu", CGROUP_ROOM);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        snprintf(folder, room, "%s/alloc-kernels-%d", kinds[i].root, (int)getpid());
        if (mkdir(folder, 0700) != 0)
            continue;
        if (text_write(folder, kinds[i].limit, limit)) {
            text_write(folder, "memory.swap.max", "0");
            return true;
        }
        rmdir(folder);
    }
    return false;
}

/* 48 MiB live at most, 600 MiB in total, of sizes that change. What is kept beyond that has to fit as well, else the system
 * ends the process. */
static bool cgroup_load(void)
{
    enum { LIVE = 48 << 20, PASSES = 12 };
    const size_t sizes[] = {100, 5000, 700, 40000, 300000, 64, 2000000, 1500};
    for (int pass = 0; pass < PASSES; pass++) {
        size_t size = sizes[pass % 8], count = LIVE / size;
        for (size_t i = 0; i < count; i++)
            if ((held[i] = malloc(size)) != NULL)
                memset(held[i], 1, size);
        for (size_t i = 0; i < count; i++)
            free(held[i]);
    }
    return true;
}

static void test_cgroup(void)
{
    char folder[200], number[16];
    if (!cgroup_make(folder, sizeof folder)) {
        tap_skip("memory cgroup", "making one is not permitted here");
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        snprintf(number, sizeof number, "%d", (int)getpid());
        _exit(!text_write(folder, "cgroup.procs", number) || !cgroup_load());
    }
    bool good = child > 0 && child_good(child);
    for (int tries = 0; rmdir(folder) != 0 && tries < 100; tries++)
        nanosleep(&(struct timespec){0, 10000000}, NULL); /* the ended child is still accounted */
    tap_ok(good, "48 MiB live of changing sizes in a memory cgroup of 160 MiB");
}

/* ---- huge blocks ---- */

static void test_huge(void)
{
    bool good = true;
    size_t before = memory_now(0), size = (size_t)1 << 20, peak = 0;
    char *block = malloc(size);
    for (size_t i = 0; i < size; i += 4096)
        block[i] = (char)(i >> 12);
    for (size_t old = size; good && size < (size_t)512 << 20; old = size) {
        size *= 2;
        block = realloc(block, size);
        good &= block != NULL;
        for (size_t i = 0; good && i < old; i += 65536)
            good &= block[i] == (char)(i >> 12);
        for (size_t i = old; good && i < size; i += 65536)
            block[i] = (char)(i >> 12);
        size_t now = memory_now(0) - before;
        peak = now > peak ? now : peak;
    }
    tap_ok(good, "doubling from 1 MiB to 512 MiB keeps the contents");
    /* tlfl-hardened does copy: guards do not move. Two blocks, each with an eighth of spare room, are its most. */
    size_t most = (size_t)(allocator_is_hardened() ? 1024 : 768) << 20;
    tap_ok(peak < most, "doubling leaves no copies behind: %zu MiB mapped at most", peak >> 20);
    free(block);
    size_t freed = memory_now(0);
    if (allocator_has("malloc_trim"))
        malloc_trim(0);
    size_t after = memory_now(0);
    tap_ok(after < before + ((size_t)64 << 20),
           "a huge block is unmapped when freed, or by malloc_trim (%zu MiB mapped before, %zu freed, %zu "
           "trimmed)",
           before >> 20, freed >> 20, after >> 20);
    good = true;
    block = malloc((size_t)64 << 20);
    content_fill(block, (size_t)64 << 20, 1);
    block = realloc(block, (size_t)20 << 20);
    good &= block != NULL && content_good(block, (size_t)64 << 20, (size_t)20 << 20, 1);
    block = realloc(block, (size_t)5 << 20);
    good &= block != NULL && content_good(block, (size_t)64 << 20, (size_t)5 << 20, 1);
    free(block);
    tap_ok(good, "shrinking a huge block keeps the contents");
    size_t much = sizeof(size_t) > 4 ? (size_t)1 << sizeof(size_t) * 4 : (size_t)1 << 30; /* 4 GiB, or 1 */
    void *untouched = malloc(much);
    size_t usable = malloc_usable_size(untouched);
    tap_ok(untouched == NULL || usable >= much, "%zu GiB untouched: refused or given", much >> 30);
    free(untouched);
}

/* ---- mappings ---- */

static void *mapping_body(void *argument)
{
    enum { SLOTS = 3000, ROUNDS = 20000 };
    static char *slots[4][SLOTS];
    char **mine = slots[(uintptr_t)argument];
    uint64_t seed = (uint64_t)(uintptr_t)argument + 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        char **slot = &mine[random_next(&seed) % SLOTS];
        size_t size = random_size(&seed, round % 500 == 0 ? 24 : round % 20 == 0 ? 18 : 12);
        if (round % 7 == 0) {
            *slot = realloc(*slot, size);
        } else {
            free(*slot);
            *slot = round % 11 == 0 ? aligned_alloc((size_t)64 << round % 12, size) : malloc(size);
        }
    }
    for (int i = 0; i < SLOTS; i++)
        free(mine[i]);
    return NULL;
}

static void test_mappings(void)
{
    enum { MANY = 20000, THREADS = 4 };
    uint64_t seed = 5;
    /* tlfl-hardened cuts four mappings out of each large block, for 4,096 of them at most. */
    size_t before = mapping_count(), most = before + (allocator_is_hardened() ? 4 * 4096 : 0) + 1000;
    for (int i = 0; i < MANY; i++)
        held[i] = malloc(random_size(&seed, 17));
    for (int i = 0; i < MANY; i += 2)
        free(held[i]);
    size_t now = mapping_count();
    for (int i = 1; i < MANY; i += 2)
        free(held[i]);
    tap_ok(before != 0 && now < most, "20,000 blocks of up to 128 KiB, half freed: %zu mappings, before %zu",
           now, before);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, mapping_body, (void *)i) != 0)
            _exit(1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    now = mapping_count();
    tap_ok(now < most, "four threads, sizes to 16 MiB, alignments to 128 KiB, realloc: %zu mappings", now);
}

int main(void)
{
    tap_start(100);
    test_address_space();
    test_data();
    test_cgroup();
    test_huge();
    test_mappings();
    return tap_done();
}
