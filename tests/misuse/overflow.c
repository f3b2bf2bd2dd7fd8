/* overflow.c - writes and reads past the end of a block and before its start. Missed where another block's contents
 * have changed or were read, or where a later malloc hands out what is in use. */
#include "driver/misuse.h"

/* What happens to a row whose block `victim` was overrun: all are freed and as many allocated again. */
static enum end row_end(const struct misuse *m, int victim)
{
    bool changed = row_changed(victim);
    row_free();
    row_count = 0;
    return aftermath(m->size) || changed ? END_MISSED : END_HARMLESS;
}

/* The block with the closest neighbour on the side where it goes wrong. */
static int victim_of(const struct misuse *m)
{
    int lower, upper;
    row_make(m->size);
    row_closest(&lower, &upper);
    return m->at < 0 ? upper : lower;
}

/* `length` bytes from `at` on. */
static enum end fill(const struct misuse *m)
{
    int victim = victim_of(m);
    bad_fill(row[victim] + m->at, BAD_BYTE, m->length);
    return row_end(m, victim);
}

static enum end zero(const struct misuse *m)
{
    int victim = victim_of(m);
    bad_fill(row[victim] + m->at, 0, m->length);
    return row_end(m, victim);
}

/* A text of `length` bytes, its end not counted. */
static enum end copy_text(const struct misuse *m)
{
    static char text[256];
    memset(text, BAD_BYTE, m->length);
    int victim = victim_of(m);
    access_begin(row[victim], m->length + 1);
    do_strcpy(row[victim], text);
    access_end();
    return row_end(m, victim);
}

/* The neighbour above is free; `length` of its bytes are overwritten, and all in between. */
static enum end into_free(const struct misuse *m)
{
    enum { REACH = 4096 }; /* no loop runs farther by accident */
    int lower, upper;
    row_make(m->size);
    row_closest(&lower, &upper);
    do_free(row[upper]);
    size_t length = (size_t)(row[upper] + m->length - (row[lower] + m->size));
    row[upper] = NULL;
    bad_fill(row[lower] + m->size, BAD_BYTE, length < REACH ? length : REACH);
    bool overlap = aftermath(m->size), changed = row_changed(lower);
    row_free();
    return overlap || changed ? END_MISSED : END_HARMLESS;
}

/* A row of secrets; one block's reader reads `length` bytes from `at` on. */
static enum end over_read(const struct misuse *m)
{
    static char seen[1 << 16] __attribute__((aligned(64)));
    int victim = victim_of(m);
    for (int i = 0; i < row_count; i++)
        if (i != victim)
            secret_fill(row[i], m->size);
    bad_copy(seen, row[victim] + m->at, m->length);
    return secret_in(seen, m->length) ? END_MISSED : END_HARMLESS;
}

#define CANARY "canary behind the block"
#define GUARD  "guard page"

const struct misuse misuses[] = {
    {"byte_24", fill, 24, 24, 1, CANARY, "1 byte past 24"},
    {"byte_64", fill, 64, 64, 1, CANARY, "1 byte past 64"},
    {"nul_40", copy_text, 40, 0, 40, CANARY, "a text of 40 characters into 40 bytes: its end is past"},
    {"word_24", fill, 24, 24, 8, CANARY, "8 bytes past 24"},
    {"word_64", fill, 64, 64, 8, CANARY, "8 bytes past 64"},
    {"memset_double", zero, 100, 0, 200, CANARY, "memset of 200 bytes in 100"},
    {"text_long", copy_text, 32, 0, 100, CANARY, "a text of 100 characters into 32 bytes"},
    {"next_block", fill, 64, 64, 64, CANARY, "64 bytes past 64"},
    {"far_index", fill, 64, 256, 8, "random placement", "8 bytes at offset 256 of 64: over the next block"},
    {"thousand", fill, 64, 64, 1024, CANARY, "1,024 bytes past 64"},
    {"free_word", into_free, 64, 0, 8, "marked and checked free blocks",
     "up to the first word of a free neighbour"},
    {"free_block", into_free, 64, 0, 64, "marked and checked free blocks", "all over a free neighbour"},
    {"byte_page", fill, 4096, 4096, 1, CANARY, "1 byte past 4,096"},
    {"word_large", fill, 200000, 200000, 8, CANARY, "8 bytes past 200,000"},
    {"page_large", fill, 200000, 200000, 8192, GUARD, "8,192 bytes past 200,000"},
    {"much_large", fill, 1 << 20, 1 << 20, 1 << 16, GUARD, "64 KiB past 1 MiB"},
    {"under_byte", fill, 64, -1, 1, CANARY, "1 byte before 64"},
    {"under_word", fill, 64, -8, 8, CANARY, "8 bytes before 64"},
    {"under_two_words", fill, 48, -16, 16, CANARY, "16 bytes before 48"},
    {"under_word_large", fill, 200000, -8, 8, GUARD, "8 bytes before 200,000"},
    {"read_next", over_read, 64, 64, 64, "random placement with gaps", "64 bytes past 64 read"},
    {"read_much", over_read, 64, 64, 4096, GUARD, "4,096 bytes past 64 read"},
    {"read_large", over_read, 200000, 200000, 1 << 16, GUARD, "64 KiB past 200,000 read"},
    {"read_under", over_read, 64, -64, 64, "random placement with gaps", "64 bytes before 64 read"},
    {0}};
