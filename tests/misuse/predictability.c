/* predictability.c - what makes another bug easy to exploit: placement that can be told beforehand, addresses that can
 * be read, links that can be forged. Missed where it is so; prevented where it was tried and is not. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>

#include "driver/misuse.h"

static enum end end_if(bool hazard)
{
    return hazard ? END_MISSED : END_PREVENTED;
}

/* ---- placement ---- */

#define ROUNDS 16

static enum end reuse(const struct misuse *m)
{
    int same = 0;
    for (int i = 0; i < ROUNDS; i++) {
        void *block = do_malloc(m->size);
        do_free(block);
        same += do_malloc(m->size) == block;
    }
    return end_if(same > ROUNDS / 2);
}

/* Eight are freed: are the next eight the same ones, in an order that is the same every time? */
static enum end order(const struct misuse *m)
{
    enum { COUNT = 8, TRIALS = 5, SETTLED = 2 };
    int first[COUNT], same = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        void *blocks[COUNT];
        for (int i = 0; i < COUNT; i++)
            blocks[i] = do_malloc(m->size);
        for (int i = 0; i < COUNT; i++)
            do_free(blocks[i]);
        for (int i = 0; i < COUNT; i++) {
            void *block = do_malloc(m->size);
            int from = 0;
            while (from < COUNT && blocks[from] != block)
                from++;
            if (trial < SETTLED)
                first[i] = from;
            else
                same += from < COUNT && from == first[i];
        }
    }
    return end_if(same > (TRIALS - SETTLED) * COUNT / 2);
}

/* Most blocks lie at one distance from the one before. */
static enum end adjacent(const struct misuse *m)
{
    enum { COUNT = 64 };
    uintptr_t steps[COUNT], last = (uintptr_t)do_malloc(m->size);
    for (int i = 0; i < COUNT; i++) {
        uintptr_t block = (uintptr_t)do_malloc(m->size);
        steps[i] = block - last;
        last = block;
    }
    int most = 0;
    for (int i = 0; i < COUNT; i++) {
        int equal = 0;
        for (int j = 0; j < COUNT; j++)
            equal += steps[i] == steps[j];
        most = equal > most ? equal : most;
    }
    return end_if(most > COUNT / 2);
}

/* Every other block of many is freed: do new ones land in the holes, each beside a block that is known? */
static enum end groom(const struct misuse *m)
{
    enum { COUNT = 1000, TRIES = 10 };
    static void *blocks[COUNT];
    int hits = 0;
    for (int i = 0; i < COUNT; i++)
        blocks[i] = do_malloc(m->size);
    for (int i = 0; i < COUNT; i += 2)
        do_free(blocks[i]);
    for (int i = 0; i < TRIES; i++) {
        void *block = do_malloc(m->size);
        for (int j = 0; j < COUNT; j += 2)
            hits += block == blocks[j];
    }
    return end_if(hits > TRIES / 2);
}

/* ---- from run to run ---- */

#define RUN_ENV "MISUSE_RUN" /* set in a run that only says its value */
#define RUNS    4

/* Whether `value` is the same in several runs of this case. In each of them this does not return. */
static enum end same_in_runs(const struct misuse *m, uintptr_t value)
{
    if (getenv(RUN_ENV) != NULL)
        _exit(write(STDOUT_FILENO, &value, sizeof value) == sizeof value ? 0 : END_BROKEN);
    for (int i = 0; i < RUNS; i++) {
        int tube[2];
        uintptr_t said = 0;
        if (pipe(tube) != 0)
            return END_BROKEN;
        pid_t child = fork();
        if (child == 0) {
            dup2(tube[1], STDOUT_FILENO);
            setenv(RUN_ENV, "1", 1);
            execl("/proc/self/exe", "misuse", m->name, (char *)NULL);
            _exit(END_BROKEN);
        }
        close(tube[1]);
        ssize_t got = read(tube[0], &said, sizeof said);
        close(tube[0]);
        waitpid(child, NULL, 0);
        if (got != sizeof said)
            return END_BROKEN;
        if (said != value)
            return END_PREVENTED;
    }
    return END_MISSED;
}

static enum end page_offset(const struct misuse *m)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return same_in_runs(m, (uintptr_t)do_malloc(m->size) % page);
}

static enum end distance_sizes(const struct misuse *m)
{
    uintptr_t one = (uintptr_t)do_malloc(m->size), other = (uintptr_t)do_malloc(m->length);
    return same_in_runs(m, one - other);
}

static enum end distance_library(const struct misuse *m)
{
    return same_in_runs(m, (uintptr_t)do_malloc(m->size) - (uintptr_t)dlsym(RTLD_DEFAULT, "getenv"));
}

/* ---- what can be read ---- */

/* A word of a freed block is the address of a block. */
static enum end address_readable(const struct misuse *m)
{
    static char *blocks[ROW_MAX];
    uintptr_t low = UINTPTR_MAX, high = 0, word;
    row_make(m->size);
    for (int i = 0; i < row_count; i++) {
        blocks[i] = row[i];
        low = (uintptr_t)row[i] < low ? (uintptr_t)row[i] : low;
        high = (uintptr_t)row[i] > high ? (uintptr_t)row[i] : high;
    }
    for (int i = 0; i < row_count; i += 2)
        do_free(row[i]);
    for (int i = 0; i < row_count; i += 2)
        for (size_t at = 0; at + sizeof word <= m->size; at += sizeof word) {
            word = bad_read(blocks[i] + at);
            if (word >= low - 16 && word <= high)
                return END_MISSED;
        }
    return END_PREVENTED;
}

/* A word of a freed block points into a library or the program. */
static enum end library_readable(const struct misuse *m)
{
    Dl_info in;
    row_make(m->size);
    for (int i = 0; i < row_count; i += 2)
        do_free(row[i]);
    for (int i = 0; i < row_count; i += 2)
        for (size_t at = 0; at + sizeof(uintptr_t) <= m->size; at += sizeof(uintptr_t))
            if (dladdr((void *)bad_read(row[i] + at), &in) != 0)
                return END_MISSED;
    return END_PREVENTED;
}

/* ---- what can be forged ---- */

static char target_area[4096] __attribute__((aligned(64)));
#define TARGET (target_area + sizeof target_area / 2)

/* Whether malloc hands out the target; what it hands out is written to, as a program would. */
static enum end target_given(size_t size)
{
    for (int i = 0; i < ROW_MAX; i++) {
        volatile char *block = do_malloc(size);
        if (block == TARGET)
            return END_MISSED;
        if (block != NULL)
            block[0] = 1;
    }
    return END_PREVENTED;
}

/* Frees a few of a row, so that the last one's link leads to another; returns the last. */
static char *chain_freed(size_t size)
{
    char *last = NULL;
    row_make(size);
    for (int i = row_count / 2; i < row_count / 2 + 3; i++) {
        last = row[i];
        do_free(row[i]);
        row[i] = NULL;
    }
    return last;
}

static enum end forge_word(const struct misuse *m)
{
    bad_write(chain_freed(m->size) + m->at, (uintptr_t)TARGET);
    return target_given(m->size);
}

/* Only the low byte of the word changes, so that no address need be known: to that of a live block. */
static enum end forge_byte(const struct misuse *m)
{
    int live = -1, freed = -1, last = 0;
    row_make(m->size);
    for (int i = 0; i < row_count; i++)
        for (int j = 0; j < row_count; j++)
            if (i != j && (uintptr_t)row[i] >> 8 == (uintptr_t)row[j] >> 8)
                live = i, freed = j;
    if (live < 0)
        return END_PREVENTED;
    while (last == live || last == freed)
        last++;
    char *link = row[last];
    do_free(row[freed]);
    do_free(row[last]);
    row[freed] = row[last] = NULL;
    bad_fill(link + m->at, (int)((uintptr_t)row[live] & 0xff), 1);
    for (int i = 0; i < ROW_MAX; i++) {
        volatile char *block = do_malloc(m->size);
        if (block == NULL)
            continue;
        if (block == row[live])
            return END_MISSED;
        block[0] = 1;
    }
    return END_PREVENTED;
}

/* By an overflow out of a live block into the free one above it. */
static enum end forge_by_overflow(const struct misuse *m)
{
    int lower, upper;
    row_make(m->size);
    row_closest(&lower, &upper);
    for (int i = 0; i < 3; i++) {
        int other = (upper + 7 * (i + 1)) % row_count;
        if (other != lower) {
            do_free(row[other]);
            row[other] = NULL;
        }
    }
    char *start = row[lower] + m->size, *end = row[upper] + 2 * sizeof(uintptr_t);
    do_free(row[upper]);
    row[upper] = NULL;
    for (; start + sizeof(uintptr_t) <= end; start += sizeof(uintptr_t))
        bad_write(start, (uintptr_t)TARGET);
    return target_given(m->size);
}

/* What stands before a larger block is copied before a smaller one: once freed, is it handed out as a larger one? */
static enum end forge_header(const struct misuse *m)
{
    enum { HEADER = 16 };
    char header[HEADER];
    char *below = do_malloc(m->length), *large = do_malloc(m->length);
    do_memset(below, 0, m->length);
    do_memset(large, 0, m->length);
    row_make(m->size);
    char *small = row[row_count / 2];
    bad_copy(header, large - HEADER, HEADER);
    access_begin(small - HEADER, HEADER);
    memcpy(small - HEADER, header, HEADER);
    access_end();
    do_free(small);
    for (int i = 0; i < ROW_MAX; i++)
        if (do_malloc(m->length) == small)
            return END_MISSED;
    return END_PREVENTED;
}

#define WORD   sizeof(void *)
#define RANDOM "random placement"
#define HELD   "quarantine or random placement"
#define BASE   "heaps at random addresses"
#define HIDDEN "encoded links"
#define LINK   "links are encoded and checked"

const struct misuse misuses[] = {
    {"reuse_small", reuse, 64, 0, 0, HELD, "64 bytes just freed are handed out next"},
    {"reuse_medium", reuse, 5000, 0, 0, HELD, "5,000 bytes just freed are handed out next"},
    {"reuse_large", reuse, 400000, 0, 0, HELD, "400,000 bytes just freed are handed out next"},
    {"order", order, 64, 0, 0, HELD, "eight freed blocks come again in a known order"},
    {"adjacent_small", adjacent, 64, 0, 0, RANDOM, "blocks of 64 lie side by side"},
    {"adjacent_medium", adjacent, 1000, 0, 0, RANDOM, "blocks of 1,000 lie side by side"},
    {"adjacent_large", adjacent, 200000, 0, 0, RANDOM, "blocks of 200,000 lie side by side"},
    {"groom", groom, 64, 0, 0, HELD, "holes made on purpose are filled at once"},
    {"page_offset", page_offset, 64, 0, 0, RANDOM, "the first block's place in its page, the same every run"},
    {"distance_sizes", distance_sizes, 64, 0, 5000, RANDOM,
     "how far 64 and 5,000 bytes lie apart, the same every run"},
    {"distance_library", distance_library, 64, 0, 0, BASE,
     "how far 64 bytes lie from the C library, the same every run"},
    {"distance_large", distance_library, 400000, 0, 0, BASE, "the same of 400,000 bytes"},
    {"address_small", address_readable, 64, 0, 0, HIDDEN, "freed blocks of 64 hold the address of a block"},
    {"address_medium", address_readable, 2000, 0, 0, HIDDEN,
     "freed blocks of 2,000 hold the address of a block"},
    {"library_address", library_readable, 2000, 0, 0, "no library addresses in blocks",
     "freed blocks point into a library"},
    {"forge_word0", forge_word, 64, 0, 0, LINK,
     "an address in the first word of a freed block is handed out"},
    {"forge_word1", forge_word, 64, WORD, 0, LINK,
     "an address in the second word of a freed block is handed out"},
    {"forge_byte_word0", forge_byte, 64, 0, 0, LINK, "the same of one byte in the first word"},
    {"forge_byte_word1", forge_byte, 64, WORD, 0, LINK, "the same of one byte in the second word"},
    {"forge_by_overflow", forge_by_overflow, 64, 0, 0, LINK,
     "an address written into a free neighbour is handed out"},
    {"forge_header", forge_header, 64, 0, 1000, "metadata apart from blocks",
     "a small block turns large by what stands before it"},
    {0}};
