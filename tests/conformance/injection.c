/* Out of memory in mid-run: the k-th request to the operating system is refused, for every k there is.
 *
 * The program puts its own syscall, mmap, mremap and madvise in front of the C library's, so that requests of the
 * allocator for memory, and to give some back, can be counted and refused. A fixed load runs in a fresh child for each k,
 * in two forms: only the k-th request fails, or all from the k-th on until the load is over. A call that fails has to
 * return NULL with ENOMEM; no content may change; afterwards every call works again; and when all is freed and trimmed, the
 * allocator's books are what they were.
 *
 * glibc's malloc does not go through these names: under it the load runs once, undisturbed, to check the test.
 */
#include "tap.h"

#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* ---- requests to the operating system ---- */

/* Shared with the children. Requests first..last are refused; counted from 1 while `armed`. */
static struct injection {
    atomic_bool armed;
    atomic_ulong requests, refused, nulls;
    unsigned long first, last;
} * injection;

static bool refuse(void)
{
    if (injection == NULL || !injection->armed)
        return false;
    unsigned long number = ++injection->requests;
    if (number < injection->first || number > injection->last)
        return false;
    injection->refused++;
    errno = ENOMEM;
    return true;
}

static void *next_symbol(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        _exit(99);
    return found;
}

long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long values[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        values[i] = va_arg(list, long);
    va_end(list);
#ifdef SYS_mmap2
    bool maps = number == SYS_mmap2;
#else
    bool maps = number == SYS_mmap;
#endif
    if ((maps || number == SYS_mremap || number == SYS_madvise) && refuse())
        return -1;
    if (next == NULL)
        next = (long (*)(long, ...))next_symbol("syscall");
    return next(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

void *mmap(void *start, size_t bytes, int protection, int flags, int file, off_t offset)
{
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if ((flags & MAP_ANONYMOUS) != 0 && refuse())
        return MAP_FAILED;
    if (next == NULL)
        next = (void *(*)(void *, size_t, int, int, int, off_t))next_symbol("mmap");
    return next(start, bytes, protection, flags, file, offset);
}

void *mremap(void *start, size_t old, size_t bytes, int flags, ...)
{
    static void *(*next)(void *, size_t, size_t, int, ...);
    va_list list;
    va_start(list, flags);
    void *wanted = va_arg(list, void *);
    va_end(list);
    if (refuse())
        return MAP_FAILED;
    if (next == NULL)
        next = (void *(*)(void *, size_t, size_t, int, ...))next_symbol("mremap");
    return next(start, old, bytes, flags, wanted);
}

int madvise(void *start, size_t bytes, int advice)
{
    static int (*next)(void *, size_t, int);
    if (refuse())
        return -1;
    if (next == NULL)
        next = (int (*)(void *, size_t, int))next_symbol("madvise");
    return next(start, bytes, advice);
}

/* ---- the load ---- */

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

enum { SLOTS = 48, THREADS = 3 };

struct slot {
    char *block;
    size_t size;
    unsigned tag;
};

enum call { MALLOC, CALLOC, REALLOC, ALIGNED, POSIX, CALLS };

static const size_t tops[] = {16, 100, KIB, 10 * KIB, 60 * KIB, 200 * KIB, 2 * MIB, 7 * MIB};
#define TOPS (sizeof tops / sizeof *tops)

/* The contents of a block: some words, evenly spread and at both ends, so that large blocks cost few page faults. */
enum { MARKS = 16 };

static size_t mark_at(size_t size, unsigned i)
{
    return i == MARKS ? size - 1 : size / MARKS * i;
}

static void marks_set(char *block, size_t size, unsigned tag)
{
    for (unsigned i = 0; i <= MARKS; i++)
        block[mark_at(size, i)] = (char)(tag + mark_at(size, i) * 7);
}

/* Checks those within the first `keep` bytes. */
static bool marks_good(const char *block, size_t size, size_t keep, unsigned tag)
{
    for (unsigned i = 0; i <= MARKS; i++)
        if (mark_at(size, i) < keep && block[mark_at(size, i)] != (char)(tag + mark_at(size, i) * 7))
            return false;
    return true;
}

static bool marks_zero(const char *block, size_t size)
{
    for (unsigned i = 0; i <= MARKS; i++)
        if (block[mark_at(size, i)] != 0)
            return false;
    return true;
}

static size_t load_size(uint64_t *seed)
{
    size_t top = tops[random_next(seed) % TOPS];
    return top - random_next(seed) % (top / 4);
}

/* One call. False when what comes back is wrong; NULL with ENOMEM is right, and leaves the slot as it was. */
static bool load_call(struct slot *slot, enum call call, size_t size, unsigned tag)
{
    size_t align = call == ALIGNED ? (size_t)1 << (5 + tag % 17) : 256 * KIB;
    void *block = NULL;
    bool good = true;
    errno = 0;
    switch (call) {
    case MALLOC:
        block = malloc(size);
        break;
    case CALLOC:
        block = calloc(1, size);
        break;
    case REALLOC:
        block = realloc(slot->block, size);
        break;
    case ALIGNED:
        block = aligned_alloc(align, size);
        break;
    default:
        errno = posix_memalign(&block, align, size);
    }
    if (block == NULL) {
        injection->nulls++;
        return errno == ENOMEM;
    }
    if (call == CALLOC)
        good = marks_zero(block, size);
    if (call == REALLOC && slot->block != NULL)
        good = marks_good(block, slot->size, slot->size < size ? slot->size : size, slot->tag);
    if (call == ALIGNED || call == POSIX)
        good = aligned_to(block, align);
    *slot = (struct slot){block, size, tag};
    marks_set(block, size, tag);
    return good;
}

static bool slot_good(const struct slot *slot)
{
    return slot->block == NULL || marks_good(slot->block, slot->size, slot->size, slot->tag);
}

static bool slot_free(struct slot *slot)
{
    bool good = slot_good(slot);
    free(slot->block);
    slot->block = NULL;
    return good;
}

static struct slot *_Atomic crossing[SLOTS]; /* blocks on their way to another thread, with their slot */

/* A third of the calls resize, a third start over, the rest frees, hands over or trims. */
static bool load_run(struct slot *slots, unsigned rounds, uint64_t seed, bool hand_over)
{
    bool good = true;
    for (unsigned round = 1; round <= rounds && good; round++) {
        struct slot *slot = &slots[random_next(&seed) % SLOTS];
        uint64_t dice = random_next(&seed) % 12;
        if (round % 64 == 0) {
            malloc_trim(0);
        } else if (dice < 4) {
            good = load_call(slot, REALLOC, load_size(&seed), round);
        } else if (dice < 9) {
            good = slot_free(slot) && load_call(slot, dice % 5, load_size(&seed), round);
        } else if (hand_over) {
            struct slot *parcel = malloc(sizeof *parcel);
            if (parcel != NULL) {
                *parcel = *slot;
                slot->block = NULL;
                parcel = atomic_exchange(&crossing[round % SLOTS], parcel);
            }
            if (parcel != NULL)
                good = slot_free(parcel);
            free(parcel);
        } else {
            good = slot_free(slot);
        }
    }
    return good;
}

static bool load_alone(unsigned rounds)
{
    static struct slot slots[SLOTS];
    bool good = load_run(slots, rounds, 12345, false);
    injection->armed = false;
    for (int i = 0; i < SLOTS; i++)
        good &= slot_free(&slots[i]);
    return good;
}

static struct slot thread_slots[THREADS][SLOTS];
static unsigned thread_rounds;

static void *thread_body(void *argument)
{
    uintptr_t number = (uintptr_t)argument;
    return load_run(thread_slots[number], thread_rounds, number * 977 + 5, true) ? argument : (void *)-1;
}

/* Where a thread is refused, for want of memory, its part is run here. What threads leave, the main thread frees. */
static bool load_threads(unsigned rounds)
{
    pthread_t threads[THREADS];
    bool good = true, runs[THREADS];
    thread_rounds = rounds;
    for (uintptr_t i = 0; i < THREADS; i++)
        runs[i] = pthread_create(&threads[i], NULL, thread_body, (void *)i) == 0;
    for (uintptr_t i = 0; i < THREADS; i++) {
        void *result = runs[i] ? NULL : thread_body((void *)i);
        if (runs[i])
            pthread_join(threads[i], &result);
        good &= result == (void *)i;
    }
    injection->armed = false;
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < SLOTS; k++)
            good &= slot_free(&thread_slots[i][k]);
    for (int i = 0; i < SLOTS; i++) {
        if (crossing[i] != NULL)
            good &= slot_free(crossing[i]);
        free(crossing[i]);
    }
    return good;
}

static void *wait_body(void *barrier)
{
    pthread_barrier_wait(barrier);
    return NULL;
}

/* Lets glibc make what it keeps of ended threads for the next ones: stacks, and blocks that belong to them. */
static void threads_warm(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, wait_body, &barrier) != 0)
            _exit(98);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- one child ---- */

enum verdict { FINE, WRONG_CALL, WRONG_LATER, WRONG_BOOKS };
static const char *const verdicts[] = {"fine", "a call or a content was wrong", "a later call failed",
                                       "the books are not what they were"};

struct load {
    const char *name;
    bool (*run)(unsigned rounds);
    unsigned rounds;
};

/* Every call works once nothing is refused. */
static bool works_again(void)
{
    bool good = true;
    for (unsigned i = 0; i < TOPS * CALLS; i++) {
        struct slot slot = {NULL, 0, 0};
        good &= load_call(&slot, (enum call)(i % CALLS), tops[i / CALLS], i) && slot.block != NULL;
        good &= slot_free(&slot);
    }
    return good;
}

struct books {
    size_t used, mapped, huge, spans;
};

static struct books books_now(void)
{
    malloc_trim(0);
    size_t mapped = tlfl_books("mapped"), huge = tlfl_books("huge");
    return (struct books){mapped - huge - tlfl_books("free"), mapped, huge, tlfl_books("spans")};
}

/* tlfl-packed leaves some free blocks where all threads find them, which keeps their spans: that is what it plants. */
enum { PACKED_SPANS = 32 };

static bool books_good(struct books start, struct books end)
{
    const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "tlfl_version");
    if (version == NULL)
        return true;
    if (strstr(version(), "-packed") != NULL)
        return end.huge == start.huge && end.spans <= start.spans + PACKED_SPANS;
    return end.used <= start.used && end.mapped <= start.mapped && end.huge == start.huge &&
           end.spans <= start.spans;
}

static enum verdict child_run(const struct load *load)
{
    alarm(30);
    threads_warm();
    struct books start = books_now();
    injection->armed = true;
    bool good = load->run(load->rounds);
    if (!good)
        return WRONG_CALL;
    if (!works_again())
        return WRONG_LATER;
    return books_good(start, books_now()) ? FINE : WRONG_BOOKS;
}

/* Runs the load with requests first..last refused; what ended the child where it was not fine. */
static const char *load_child(const struct load *load, unsigned long first, unsigned long last)
{
    *injection = (struct injection){.first = first, .last = last};
    pid_t child = fork();
    if (child == 0)
        _exit((int)child_run(load));
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return "no child";
    if (!WIFEXITED(status))
        return "it was killed by a signal";
    return WEXITSTATUS(status) == FINE ? NULL : verdicts[WEXITSTATUS(status)];
}

static void test_load(const struct load *load)
{
    const char *wrong = load_child(load, ULONG_MAX, 0);
    tap_ok(wrong == NULL, "%s: undisturbed: %s, %lu requests to the system", load->name,
           wrong == NULL ? "fine" : wrong, injection->requests);
    if (injection->requests == 0) {
        tap_skip(load->name,
                 "its requests to the system cannot be refused here, so this is a promise of tlfl");
        return;
    }
    for (int onwards = 0; onwards < 2; onwards++) {
        unsigned long k = 0, nulls = 0, failed = 0, failed_at = 0;
        const char *why = "fine";
        do {
            k++;
            wrong = load_child(load, k, onwards ? ULONG_MAX : k);
            nulls += injection->nulls;
            if (wrong != NULL && failed++ == 0) {
                why = wrong;
                failed_at = k;
            }
        } while (injection->refused != 0);
        if (failed != 0)
            tap_note("%lu of %lu children failed, the first at request %lu: %s", failed, k, failed_at, why);
        tap_promise(failed == 0, "%s: %s of 1 to %lu fails, %lu calls return NULL: nothing is lost",
                    load->name, onwards ? "every request from each" : "one request", k - 1, nulls);
        if (onwards)
            tap_promise(nulls != 0, "%s: calls do return NULL when the system gives nothing", load->name);
    }
}

int main(void)
{
    unsigned times = tap_long() ? 5 : 1;
    const struct load loads[] = {{"one thread", load_alone, 160 * times},
                                 {"three threads", load_threads, 60 * times}};
    tap_start(100);
    injection = mmap(NULL, sizeof *injection, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (injection == MAP_FAILED)
        return 1;
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        test_load(&loads[i]);
    return tap_done();
}
