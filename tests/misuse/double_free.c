/* double_free.c - the same block freed twice. Missed where a later malloc hands out memory that is in use. */
#include <pthread.h>

#include "driver/misuse.h"

static enum end end_of(size_t size)
{
    return aftermath(size) ? END_MISSED : END_HARMLESS;
}

static enum end immediate(const struct misuse *m)
{
    void *block = do_malloc(m->size);
    do_free(block);
    do_free(block);
    return end_of(m->size);
}

static enum end aligned(const struct misuse *m)
{
    void *block = do_aligned(m->length, m->size);
    do_free(block);
    do_free(block);
    return end_of(m->size);
}

/* Frees `length` blocks in order, then again the one at `at`. */
static enum end among_others(const struct misuse *m)
{
    static void *blocks[1000];
    for (size_t i = 0; i < m->length; i++)
        blocks[i] = do_malloc(m->size);
    for (size_t i = 0; i < m->length; i++)
        do_free(blocks[i]);
    do_free(blocks[m->at]);
    return end_of(m->size);
}

static enum end all_again(const struct misuse *m)
{
    row_make(m->size);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < row_count; i++)
            do_free(row[i]);
    row_count = 0;
    return end_of(m->size);
}

static enum end neighbours_gone(const struct misuse *m)
{
    int lower, upper;
    row_make(m->size);
    row_closest(&lower, &upper);
    do_free(row[lower]);
    do_free(row[upper]);
    do_free(row[upper]);
    row[lower] = row[upper] = NULL;
    return end_of(m->size);
}

static enum end later(const struct misuse *m)
{
    static void *others[100];
    void *block = do_malloc(m->size);
    do_free(block);
    for (int i = 0; i < 10000; i++) {
        void **other = &others[i % 100];
        do_free(*other);
        *other = do_malloc(m->size * 4 + (size_t)(i % 7) * m->size);
    }
    do_free(block);
    return end_of(m->size);
}

static enum end other_first(const struct misuse *m)
{
    void *block = do_malloc(m->size);
    free_in_thread(block);
    do_free(block);
    return end_of(m->size);
}

static enum end other_second(const struct misuse *m)
{
    void *block = do_malloc(m->size);
    do_free(block);
    free_in_thread(block);
    return end_of(m->size);
}

static enum end both_others(const struct misuse *m)
{
    void *block = do_malloc(m->size);
    free_in_thread(block);
    free_in_thread(block);
    return end_of(m->size);
}

static enum end owner_gone(const struct misuse *m)
{
    void *block = malloc_in_thread(m->size);
    do_free(block);
    do_free(block);
    return end_of(m->size);
}

static enum end reallocated(const struct misuse *m)
{
    void *block = do_malloc(m->size), *barrier = do_malloc(m->size);
    void *moved = do_realloc(block, m->size * 100);
    keep(moved, m->size * 100);
    keep(barrier, m->size);
    if (moved == block)
        return END_BROKEN;
    do_free(block);
    return end_of(m->size);
}

/* A program that still uses the block wipes `length` bytes at `at` before it frees it again. */
static enum end wiped(const struct misuse *m)
{
    char *block = do_malloc(m->size);
    do_free(block);
    bad_fill(block + m->at, 0, m->length);
    do_free(block);
    return end_of(m->size);
}

/* The block has a new owner when it is freed again. */
static enum end after_reuse(const struct misuse *m)
{
    void *block = do_malloc(m->size);
    do_free(block);
    keep(do_malloc(m->size), m->size);
    do_free(block);
    return end_of(m->size);
}

#define WORD sizeof(void *)
#define MARK "free blocks are marked"

const struct misuse misuses[] = {
    {"immediate", immediate, 64, 0, 0, MARK, "64 bytes, twice in a row"},
    {"smallest", immediate, 1, 0, 0, MARK, "1 byte, twice in a row"},
    {"page", immediate, 4096, 0, 0, MARK, "4,096 bytes, twice in a row"},
    {"medium", immediate, 40000, 0, 0, MARK, "40,000 bytes, twice in a row"},
    {"large", immediate, 400000, 0, 0, "known starts of blocks", "400,000 bytes, twice in a row"},
    {"huge", immediate, 32 << 20, 0, 0, "known starts of blocks", "32 MiB, twice in a row"},
    {"aligned", aligned, 192, 0, 64, MARK, "192 bytes aligned to 64, twice in a row"},
    {"after_another", among_others, 64, 0, 2, MARK, "a, b, a again"},
    {"past_the_cache", among_others, 48, 8, 10, MARK, "ten freed, then the ninth again"},
    {"among_many", among_others, 64, 500, 1000, MARK, "a thousand freed, then the 501st again"},
    {"all_again", all_again, 2000, 0, 0, MARK, "a clean-up of 64 blocks runs twice"},
    {"neighbours_gone", neighbours_gone, 2000, 0, 0, MARK, "the block below it was freed too"},
    {"later", later, 128, 0, 0, MARK, "10,000 calls of other sizes in between"},
    {"other_thread_first", other_first, 100, 0, 0, MARK, "freed by another thread, then by its own"},
    {"other_thread_second", other_second, 100, 0, 0, MARK, "freed by its own thread, then by another"},
    {"both_other_threads", both_others, 100, 0, 0, MARK, "freed by two other threads, one after the other"},
    {"owner_gone", owner_gone, 100, 0, 0, MARK, "of a thread that has ended, freed twice"},
    {"reallocated", reallocated, 64, 0, 0, MARK, "freed although realloc has moved it"},
    {"wiped_word0", wiped, 64, 0, WORD, "a bitmap, or quarantine", "the first word written in between"},
    {"wiped_word1", wiped, 64, WORD, WORD, "a bitmap, or quarantine", "the second word written in between"},
    {"wiped_whole", wiped, 64, 0, 64, "a bitmap, or quarantine", "the whole block written in between"},
    {"after_reuse", after_reuse, 64, 0, 0, "quarantine", "64 bytes, which have a new owner by then"},
    {"after_reuse_large", after_reuse, 400000, 0, 0, "quarantine",
     "400,000 bytes, which have a new owner by then"},
    {0}};
