/*
 * loops - malloc and free in three plain loops, to be watched from outside: callgrind counts instructions, strace
 * system calls, and the program itself page faults.
 *
 *   loops OPS [--touch] LOOP:SIZE:LIVE...
 *
 * LOOP is pair (free each block at once), lifo or fifo (allocate BATCH blocks, free them newest or oldest first); LIVE
 * is how many other blocks of the size stay live. --touch stores to the first byte of each block.
 *
 * Every cell runs in a child of its own, so in the heap of a young process: a warm-up, OPS ops and 2 * OPS ops, with a
 * mark before, between and after. What a watcher counts between marks is a loop and a constant; the difference of the
 * two loops, over OPS, has no constant left. A mark is a dump of callgrind's counts, and a write to no file, which
 * strace sees: its text is `mark LOOP:SIZE:LIVE N`, N is 0, 1 and 2 (-1 before the warm-up).
 *
 * Prints `malloc PATH` (the object that serves malloc), then for each cell `LOOP:SIZE:LIVE FAULTS FAULTS2`: minor page
 * faults of the two loops. Exit 1 if a block could not be had, 2 on wrong usage.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_DUMP_STATS_AT(text) ((void)(text)) /* nothing to be counted by callgrind */
#endif

#define BATCH    256
#define LIVE_MAX 4096

enum order { ORDER_PAIR, ORDER_LIFO, ORDER_FIFO };

struct cell {
    const char *name; /* LOOP:SIZE:LIVE, as given */
    enum order order;
    size_t size, live;
};

static void *batch[BATCH], *others[LIVE_MAX];

static _Noreturn void no_memory(void)
{
    fputs("loops: malloc returned NULL\n", stderr);
    _exit(1);
}

/* Inlined once for each kind of loop, so that no test of a parameter is left in one. */
static inline __attribute__((always_inline)) void loop_run(uint64_t ops, size_t size, enum order order,
                                                           bool touch)
{
    volatile char *block = NULL;
    if (order == ORDER_PAIR)
        for (uint64_t i = 0; i < ops; i++) {
            block = malloc(size);
            if (touch)
                *block = 1;
            free((void *)block);
        }
    else
        for (; ops > 0; ops -= BATCH) {
            for (unsigned i = 0; i < BATCH; i++) {
                block = batch[i] = malloc(size);
                if (touch)
                    *block = 1;
            }
            for (unsigned i = 0; i < BATCH; i++)
                free(batch[order == ORDER_LIFO ? BATCH - 1 - i : i]);
        }
    if (block == NULL)
        no_memory(); /* of the last one only: a test of each would be counted */
}

static void loop_any(uint64_t ops, const struct cell *cell, bool touch)
{
    switch (cell->order) {
    case ORDER_PAIR:
        touch ? loop_run(ops, cell->size, ORDER_PAIR, true) : loop_run(ops, cell->size, ORDER_PAIR, false);
        break;
    case ORDER_LIFO:
        touch ? loop_run(ops, cell->size, ORDER_LIFO, true) : loop_run(ops, cell->size, ORDER_LIFO, false);
        break;
    case ORDER_FIFO:
        touch ? loop_run(ops, cell->size, ORDER_FIFO, true) : loop_run(ops, cell->size, ORDER_FIFO, false);
        break;
    }
}

/* Minor faults of the process so far; marks for the two watchers. */
static long mark(const struct cell *cell, int number)
{
    char text[96];
    int length = snprintf(text, sizeof text, "mark %s %d", cell->name, number);
    CALLGRIND_DUMP_STATS_AT(text);
    ssize_t written = write(-1, text, (size_t)length);
    (void)written; /* it cannot be */
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void cell_run(const struct cell *cell, uint64_t ops, bool touch, int report)
{
    for (size_t i = 0; i < cell->live; i++) {
        char *block = others[i] = malloc(cell->size);
        if (block == NULL)
            no_memory();
        *block = 1;
    }
    mark(cell, -1); /* binds what a mark calls, which would otherwise be counted with the first loop */
    loop_any(ops, cell, touch);
    long before = mark(cell, 0);
    loop_any(ops, cell, touch);
    long between = mark(cell, 1);
    loop_any(2 * ops, cell, touch);
    long after = mark(cell, 2);
    dprintf(report, "%s %ld %ld\n", cell->name, between - before, after - between);
}

static bool cell_parse(const char *text, struct cell *cell)
{
    static const char *const words[] = {"pair:", "lifo:", "fifo:"};
    char *end = NULL;
    cell->name = text;
    for (int i = 0; i < 3; i++)
        if (strncmp(text, words[i], strlen(words[i])) == 0) {
            cell->order = (enum order)i;
            cell->size = strtoull(text + strlen(words[i]), &end, 10);
        }
    if (end == NULL || *end != ':')
        return false;
    cell->live = strtoull(end + 1, &end, 10);
    return *end == '\0' && cell->size > 0 && cell->live <= LIVE_MAX && strlen(text) < 64;
}

/* The object that malloc resolves to, as the loops' calls do. */
static const char *server(void)
{
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, "malloc");
    return address != NULL && dladdr(address, &info) && info.dli_fname ? info.dli_fname : "(nothing)";
}

int main(int argc, char **argv)
{
    uint64_t ops = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    bool touch = argc > 2 && strcmp(argv[2], "--touch") == 0;
    if (ops == 0 || ops % BATCH != 0 || argc < 3 + touch) {
        fprintf(stderr, "usage: loops OPS [--touch] LOOP:SIZE:LIVE...   (OPS a multiple of %d)\n", BATCH);
        return 2;
    }
    dprintf(STDOUT_FILENO, "malloc %s\n", server());
    for (int i = 2 + touch; i < argc; i++) {
        struct cell cell;
        int status = 0;
        if (!cell_parse(argv[i], &cell)) {
            fprintf(stderr,
                    "loops: '%s', expected LOOP:SIZE:LIVE of pair, lifo or fifo, such as pair:64:300\n",
                    argv[i]);
            return 2;
        }
        pid_t child = fork();
        if (child == 0) {
            cell_run(&cell, ops, touch, STDOUT_FILENO);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "loops: %s did not end well\n", argv[i]);
            return 1;
        }
    }
    return 0;
}
