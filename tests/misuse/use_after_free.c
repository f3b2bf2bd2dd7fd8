/* use_after_free.c - a pointer that is used although its block was freed. A write is missed where it took effect: the
 * block's next owner finds it, or malloc goes wrong. A read is missed where it shows what was there. */
#include "driver/misuse.h"

#define STALE 0x77
#define WORD  sizeof(void *)

static char *freed(size_t size)
{
    row_make(size);
    char *block = row[row_count / 2];
    row[row_count / 2] = NULL;
    do_free(block);
    return block;
}

/* Goes on as a program would after a write of `length` bytes at `place`. */
static enum end write_end(size_t size, const char *place, size_t length)
{
    watch(place, length);
    churn(size);
    return aftermath(size) || row_changed(-1) ? END_MISSED : END_HARMLESS;
}

static enum end fill(const struct misuse *m)
{
    char *block = freed(m->size);
    bad_fill(block + m->at, BAD_BYTE, m->length);
    return write_end(m->size, block + m->at, m->length);
}

static enum end zero(const struct misuse *m)
{
    char *block = freed(m->size);
    char before[WORD];
    bad_copy(before, block + m->at, sizeof before);
    bad_fill(block + m->at, 0, m->length);
    if (memcmp(before, block + m->at, sizeof before) == 0)
        return END_HARMLESS;
    return write_end(m->size, block + m->at, m->length);
}

/* A counter of references that goes down once too often. */
static enum end decrement(const struct misuse *m)
{
    char *block = freed(m->size);
    uintptr_t count = bad_read(block + m->at) - 1;
    bad_write(block + m->at, count);
    return write_end(m->size, block + m->at, sizeof count);
}

/* The block's new owner is overwritten. */
static enum end after_reuse(const struct misuse *m)
{
    char *block = do_malloc(m->size);
    do_free(block);
    row_make(m->size);
    bad_fill(block + m->at, BAD_BYTE, m->length);
    return row_changed(-1) ? END_MISSED : write_end(m->size, block + m->at, m->length);
}

/* What realloc has cut off is written to. */
static enum end shrunk(const struct misuse *m)
{
    char *block = do_realloc(do_malloc(m->size), m->size / 16);
    keep(block, m->size / 16);
    row_make(m->size / 3);
    bad_fill(block + m->at, BAD_BYTE, m->length);
    return row_changed(-1) || aftermath(m->size) ? END_MISSED : END_HARMLESS;
}

/* What realloc has moved away from is written to. */
static enum end moved(const struct misuse *m)
{
    row_make(m->size);
    char *block = row[row_count / 2];
    row[row_count / 2] = NULL;
    keep(do_realloc(block, m->size * 100), m->size * 100);
    bad_fill(block + m->at, BAD_BYTE, m->length);
    return write_end(m->size, block + m->at, m->length);
}

static enum end other_thread(const struct misuse *m)
{
    row_make(m->size);
    char *block = row[row_count / 2];
    row[row_count / 2] = NULL;
    free_in_thread(block);
    bad_fill(block + m->at, BAD_BYTE, m->length);
    return write_end(m->size, block + m->at, m->length);
}

/* Of many free blocks, one that was not the last. */
static enum end deep(const struct misuse *m)
{
    row_make(m->size);
    char *block = row[row_count / 2];
    row_free();
    row_count = 0;
    bad_fill(block + m->at, BAD_BYTE, m->length);
    return write_end(m->size, block + m->at, m->length);
}

/* Two neighbours are free, and the lower is written over. */
static enum end neighbours(const struct misuse *m)
{
    int lower, upper;
    row_make(m->size);
    row_closest(&lower, &upper);
    char *block = row[lower];
    do_free(row[lower]);
    do_free(row[upper]);
    row[lower] = row[upper] = NULL;
    bad_fill(block + m->at, BAD_BYTE, m->length);
    return write_end(m->size, block + m->at, m->length);
}

static enum end read_old(const struct misuse *m)
{
    row_make(m->size);
    char *block = row[row_count / 2];
    row[row_count / 2] = NULL;
    do_memset(block, STALE, m->size);
    do_free(block);
    uintptr_t word, old;
    memset(&old, STALE, sizeof old);
    word = bad_read(block + m->at);
    return word == old ? END_MISSED : END_PREVENTED;
}

/* What the block's new owner wrote is read. */
static enum end read_new(const struct misuse *m)
{
    char *block = do_malloc(m->size);
    do_free(block);
    row_make(m->size);
    for (int i = 0; i < row_count; i++)
        secret_fill(row[i], m->size);
    access_begin(block, m->size);
    bool seen = secret_in(block, m->size);
    access_end();
    return seen ? END_MISSED : END_PREVENTED;
}

#define CHECKED    "free blocks are checked when handed out"
#define QUARANTINE "quarantine"
#define UNMAP      "large blocks are unmapped"

const struct misuse misuses[] = {
    {"write_word0", fill, 64, 0, WORD, CHECKED, "the first word of 64 bytes written"},
    {"write_word1", fill, 64, WORD, WORD, CHECKED, "the second word of 64 bytes written"},
    {"write_middle", fill, 64, 32, 8, "a pattern in free blocks", "8 bytes in the middle of 64 written"},
    {"write_whole", fill, 64, 0, 64, CHECKED, "all of 64 bytes written"},
    {"write_zeros", zero, 64, 0, 64, CHECKED, "all of 64 bytes cleared"},
    {"write_byte", fill, 64, 0, 1, CHECKED, "the first byte of 64 written"},
    {"decrement_word0", decrement, 64, 0, 0, CHECKED, "a counter in the first word goes down"},
    {"decrement_word1", decrement, 64, WORD, 0, CHECKED, "a counter in the second word goes down"},
    {"write_page", fill, 4000, 0, 4000, CHECKED, "all of 4,000 bytes written"},
    {"write_medium", fill, 40000, 20000, 8, "a pattern in free blocks",
     "8 bytes in the middle of 40,000 written"},
    {"write_large", fill, 400000, 200000, 8, UNMAP, "8 bytes in the middle of 400,000 written"},
    {"write_huge", fill, 8 << 20, 0, 4096, UNMAP, "the first page of 8 MiB written"},
    {"write_after_reuse", after_reuse, 64, 0, 64, QUARANTINE, "64 bytes written that have a new owner"},
    {"write_shrunk", shrunk, 3200, 2000, 64, "a canary behind what is left",
     "what realloc has cut off written"},
    {"write_moved", moved, 64, 0, 64, CHECKED, "written where realloc has moved away from"},
    {"write_other_thread", other_thread, 64, 0, 64, CHECKED, "freed by another thread, written by this one"},
    {"write_deep", deep, 64, 0, 64, CHECKED, "a free block with 30 freed after it written"},
    {"write_neighbours", neighbours, 2000, 0, 64, CHECKED, "the lower one of two free neighbours written"},
    {"read_word", read_old, 64, 24, 0, "wiping on free", "the fourth word of 64 bytes read"},
    {"read_medium", read_old, 5000, 2504, 0, "wiping on free", "a word in the middle of 5,000 bytes read"},
    {"read_large", read_old, 400000, 200000, 0, UNMAP, "a word in the middle of 400,000 bytes read"},
    {"read_after_reuse", read_new, 64, 0, 0, QUARANTINE, "what the block's new owner wrote is read"},
    {0}};
