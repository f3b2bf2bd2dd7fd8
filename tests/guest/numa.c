/* numa.c - on which node a thread's memory lies, asked of the kernel by move_pages. For a machine of several nodes.
 *
 * Runs under whatever allocator is preloaded. A thread pinned to a CPU of a node allocates blocks, writes them whole, and
 * counts their pages by node. What is asked, for small, middle and large blocks:
 *
 *   first touch   fresh memory is local
 *   remote frees  blocks freed by a thread of another node go home: the freer gets local memory, the owner gets its own back
 *   migration     a thread that moves to another node, with much free memory of the old node at hand, gets local memory
 *                 after a bounded number of bytes
 *   thread exit   what an exited thread of one node left, free or half used, does not serve a thread of another
 *
 * The variant tlfl-remote plants the opposite of the first; there that alone is tested.
 */
#include "tap.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#define NODES_MAX  8
#define PAGE       4096
#define BATCH      1024 /* pages of one question to the kernel */
#define SIZE_MIN   256
#define SET_BYTES  ((size_t)8 << 20)
#define SHARE      95 /* of 100 pages that have to be right; the rest is for what threads share at the edges */
#define BLOCKS_MAX (2 * SET_BYTES / 256)
/* A thread that moved may hand out memory of its old node, of which it has more than it asks for, for so many blocks, at
 * least SETTLE_MIN bytes of them. */
#define SETTLE_BLOCKS 2048
#define SETTLE_MIN    ((size_t)4 << 20)
#define SETTLE_MAX    ((size_t)64 << 20)

/* Blocks of one size. The tables are static: what the test keeps must not come from the allocator. */
struct set {
    size_t size, count;
    char *block[BLOCKS_MAX];
};

static struct set first_set, second_set;

static const size_t sizes[] = {SIZE_MIN, 4096, 32768, 1 << 20, 16 << 20};
#define SIZES (sizeof sizes / sizeof *sizes)

static int node_cpu[NODES_MAX]; /* the first CPU of each node */
static int nodes;

/* ---- the machine ---- */

static bool file_number(const char *path, int *number)
{
    char text[64];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    if (got <= 0)
        return false;
    text[got] = '\0';
    *number = atoi(text);
    return true;
}

static void find_nodes(void)
{
    char path[64];
    for (nodes = 0; nodes < NODES_MAX; nodes++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", nodes);
        if (!file_number(path, &node_cpu[nodes]))
            break;
    }
}

static void go_to(int node)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(node_cpu[node], &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) {
        tap_ok(false, "a thread moves to node %d", node);
        exit(tap_done());
    }
}

/* ---- pages ---- */

struct tally {
    size_t on[NODES_MAX], elsewhere; /* not resident, or the kernel gave no answer */
};

static void tally_ask(struct tally *tally, void **pages, unsigned long count)
{
    static int status[BATCH];
    if (syscall(SYS_move_pages, 0, count, pages, NULL, status, 0) != 0) {
        tally->elsewhere += count;
        return;
    }
    for (unsigned long i = 0; i < count; i++)
        if (status[i] >= 0 && status[i] < nodes)
            tally->on[status[i]]++;
        else
            tally->elsewhere++;
}

/* Pages of the blocks [from, set->count). */
static struct tally tally_of(const struct set *set, size_t from)
{
    static void *pages[BATCH];
    struct tally tally = {{0}, 0};
    unsigned long count = 0;
    for (size_t i = from; i < set->count; i++) {
        char *page = (char *)((uintptr_t)set->block[i] & ~(uintptr_t)(PAGE - 1));
        for (; page < set->block[i] + set->size; page += PAGE) {
            pages[count++] = page;
            if (count == BATCH) {
                tally_ask(&tally, pages, count);
                count = 0;
            }
        }
    }
    tally_ask(&tally, pages, count);
    return tally;
}

static size_t tally_sum(const struct tally *tally)
{
    size_t sum = tally->elsewhere;
    for (int node = 0; node < nodes; node++)
        sum += tally->on[node];
    return sum;
}

/* One line: at least SHARE of 100 pages of the set from block `from` on are on `node`. */
static void expect_on(const struct set *set, size_t from, int node, const char *what)
{
    struct tally tally = tally_of(set, from);
    size_t sum = tally_sum(&tally);
    tap_ok(sum > 0 && tally.on[node] * 100 >= sum * SHARE, "%s, %zu bytes each: %zu of %zu pages on node %d",
           what, set->size, tally.on[node], sum, node);
}

/* ---- blocks ---- */

static void set_fill(struct set *set, size_t size, size_t bytes)
{
    set->size = size;
    for (set->count = 0; set->count < bytes / size; set->count++) {
        char *block = malloc(size);
        if (block == NULL) {
            tap_ok(false, "out of memory after %zu blocks of %zu", set->count, size);
            exit(tap_done());
        }
        memset(block, 1, size);
        set->block[set->count] = block;
    }
}

/* SET_BYTES of them, or two. */
static void set_fill_usual(struct set *set, size_t size)
{
    set_fill(set, size, SET_BYTES < 2 * size ? 2 * size : SET_BYTES);
}

static void set_free(struct set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->block[i]);
    set->count = 0;
}

/* ---- what threads do ---- */

/* The nodes of a case: two that are not next to each other, so that "any other" is not right by chance. */
#define HOME 1
#define AWAY 3

static void in_thread(void *(*body)(void *), size_t size)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, (void *)(uintptr_t)size) != 0 ||
        pthread_join(thread, NULL) != 0) {
        tap_ok(false, "a thread starts and ends");
        exit(tap_done());
    }
}

static void *touch(void *size)
{
    go_to(HOME);
    set_fill_usual(&first_set, (uintptr_t)size);
    expect_on(&first_set, 0, HOME, "first touch");
    set_free(&first_set);
    return NULL;
}

static void *free_from_away(void *size)
{
    go_to(AWAY);
    set_free(&first_set);
    set_fill_usual(&second_set, (uintptr_t)size);
    expect_on(&second_set, 0, AWAY, "remote frees: the freer's memory");
    set_free(&second_set);
    return NULL;
}

static void *allocate_for_away(void *size)
{
    go_to(HOME);
    set_fill_usual(&first_set, (uintptr_t)size);
    in_thread(free_from_away, (uintptr_t)size);
    set_fill_usual(&first_set, (uintptr_t)size);
    expect_on(&first_set, 0, HOME, "remote frees: the owner's memory");
    set_free(&first_set);
    return NULL;
}

static size_t settle_bytes(size_t size)
{
    size_t bytes = SETTLE_BLOCKS * size;
    return bytes < SETTLE_MIN ? SETTLE_MIN : bytes > SETTLE_MAX ? SETTLE_MAX : bytes;
}

static void *migrate(void *argument)
{
    char what[64];
    size_t size = (uintptr_t)argument, settle = settle_bytes(size),
           extra = size < SET_BYTES / 2 ? SET_BYTES : 2 * size;
    snprintf(what, sizeof what, "migration: after %zu MiB", settle >> 20);
    go_to(HOME);
    set_fill(&first_set, size, settle + extra);
    set_free(&first_set);
    go_to(AWAY);
    set_fill(&second_set, size, settle + extra / 2);
    expect_on(&second_set, settle / size, AWAY, what);
    set_free(&second_set);
    return NULL;
}

static void *leave_free(void *size)
{
    go_to(HOME);
    set_fill_usual(&first_set, (uintptr_t)size);
    set_free(&first_set);
    return NULL;
}

/* Leaves every second block live in first_set. */
static void *leave_half(void *size)
{
    go_to(HOME);
    set_fill_usual(&first_set, (uintptr_t)size);
    for (size_t i = 0; i < first_set.count; i += 2) {
        free(first_set.block[i]);
        first_set.block[i] = NULL;
    }
    return NULL;
}

static void *come_after(void *size)
{
    go_to(AWAY);
    set_fill_usual(&second_set, (uintptr_t)size);
    expect_on(&second_set, 0, AWAY, first_set.count == 0 ? "exit: all was free" : "exit: half was free");
    set_free(&second_set);
    return NULL;
}

/* tlfl-remote: at most the rest of SHARE of the pages may be local. */
static void *touch_planted(void *size)
{
    go_to(HOME);
    set_fill_usual(&first_set, (uintptr_t)size);
    struct tally tally = tally_of(&first_set, 0);
    size_t sum = tally_sum(&tally), away = sum - tally.on[HOME] - tally.elsewhere;
    tap_ok(sum > 0 && away * 100 >= sum * SHARE, "planted, %zu bytes each: %zu of %zu pages on another node",
           first_set.size, away, sum);
    set_free(&first_set);
    return NULL;
}

/* The loader only warns of a library that it cannot load. */
static bool library_serves(void)
{
    const char *library = getenv("LD_PRELOAD");
    Dl_info info;
    return library == NULL ||
           (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) != 0 && strcmp(info.dli_fname, library) == 0);
}

static bool memory_is_planted(void)
{
    const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "tlfl_version");
    return version != NULL && strstr(version(), "-remote") != NULL;
}

int main(void)
{
    void *(*const bodies[])(void *) = {touch, allocate_for_away, migrate};
    tap_start(300);
    find_nodes();
    if (!tap_ok(nodes > AWAY, "a machine of %d nodes", nodes) ||
        !tap_ok(library_serves(), "malloc is the library's"))
        return tap_done();
    if (memory_is_planted()) {
        for (size_t i = 0; i < SIZES; i++)
            in_thread(touch_planted, sizes[i]);
        return tap_done();
    }
    for (size_t body = 0; body < sizeof bodies / sizeof *bodies; body++)
        for (size_t i = 0; i < SIZES; i++)
            in_thread(bodies[body], sizes[i]);
    for (size_t i = 0; i < SIZES; i++) {
        in_thread(leave_free, sizes[i]);
        in_thread(come_after, sizes[i]);
        in_thread(leave_half, sizes[i]);
        in_thread(come_after, sizes[i]);
        set_free(&first_set);
    }
    return tap_done();
}
