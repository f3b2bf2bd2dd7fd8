/* leaks.c - contents of a freed block that come to light later. Missed where they are found; prevented where they are
 * looked for and gone. */
#include <malloc.h>

#include "driver/misuse.h"

/* How many blocks of a size are looked at. */
static int looks(size_t size)
{
    return size <= 4096 ? 1024 : size <= 65536 ? 64 : 4;
}

/* Allocates blocks of a size; whether what they hold includes the secret, where nothing was written yet. */
static enum end seen_by(size_t size)
{
    for (int i = looks(size); i > 0; i--) {
        char *block = do_malloc(size);
        if (block == NULL)
            return END_BROKEN;
        if (secret_in(block, size))
            return END_MISSED;
    }
    return END_PREVENTED;
}

/* A row full of secrets is freed, its last block excepted. */
static void secrets_freed(size_t size)
{
    row_make(size);
    for (int i = 0; i < row_count; i++)
        secret_fill(row[i], size);
    for (int i = 0; i < row_count - 1; i++)
        do_free(row[i]);
    do_memset(row[row_count - 1], 0, size);
}

/* Blocks of size `length` after some of `size`, the same or others. */
static enum end reused(const struct misuse *m)
{
    secrets_freed(m->size);
    return seen_by(m->length);
}

static enum end aligned(const struct misuse *m)
{
    secrets_freed(m->size);
    for (int i = looks(m->size); i > 0; i--)
        if (secret_in(do_aligned(m->length, m->size), m->size))
            return END_MISSED;
    return END_PREVENTED;
}

/* Freed by the thread that had them, which has ended. */
static void *secret_body(void *argument)
{
    size_t size = (size_t)argument;
    void *blocks[32];
    for (int i = 0; i < 32; i++)
        secret_fill(blocks[i] = do_malloc(size), size);
    for (int i = 0; i < 32; i++)
        do_free(blocks[i]);
    return NULL;
}

static void *seen_body(void *argument)
{
    const struct misuse **m = argument;
    enum end end = seen_by((*m)->size);
    if (end != END_PREVENTED)
        _exit(end);
    return NULL;
}

/* Looked for by a new thread, then by this one. */
static enum end thread_gone(const struct misuse *m)
{
    in_thread(secret_body, (void *)m->size);
    in_thread(seen_body, &m);
    return seen_by(m->size);
}

static enum end other_thread(const struct misuse *m)
{
    secrets_freed(m->size);
    in_thread(seen_body, &m);
    return END_PREVENTED;
}

/* A short block that grows: its tail is what was there. */
static enum end grown(const struct misuse *m)
{
    secrets_freed(m->size);
    for (int i = looks(m->size); i > 0; i--) {
        char *block = do_malloc(m->length);
        do_memset(block, 0, m->length);
        block = do_realloc(block, m->size);
        if (secret_in(block + m->length, m->size - m->length))
            return END_MISSED;
    }
    return END_PREVENTED;
}

/* realloc to `length` leaves a copy behind, or what it cuts off; blocks of `at` bytes are looked at. */
static enum end resized(const struct misuse *m)
{
    row_make(m->size);
    for (int i = 0; i < row_count; i++)
        secret_fill(row[i], m->size);
    for (int i = 0; i < row_count; i++) {
        row[i] = do_realloc(row[i], m->length);
        do_memset(row[i], 0, m->length);
    }
    return seen_by((size_t)m->at);
}

/* The bytes between what was asked for and what may be used. */
static enum end tail(const struct misuse *m)
{
    secrets_freed(m->size);
    for (int i = looks(m->size); i > 0; i--) {
        char *block = do_malloc(m->length);
        if (secret_in(block + m->length, do_usable(block) - m->length))
            return END_MISSED;
    }
    return END_PREVENTED;
}

/* Nobody allocates again: what a dump of the process would show. */
static enum end anywhere(const struct misuse *m)
{
    secrets_freed(m->size);
    return secret_anywhere() ? END_MISSED : END_PREVENTED;
}

static enum end trimmed(const struct misuse *m)
{
    secrets_freed(m->size);
    malloc_trim(0);
    return secret_anywhere() ? END_MISSED : END_PREVENTED;
}

#define WIPE  "wiping on free or on malloc"
#define GONE  "wiping on free"
#define UNMAP "large blocks are unmapped"

const struct misuse misuses[] = {
    {"same_64", reused, 64, 0, 64, WIPE, "64 bytes after 64"},
    {"same_1000", reused, 1000, 0, 1000, WIPE, "1,000 bytes after 1,000"},
    {"same_5000", reused, 5000, 0, 5000, WIPE, "5,000 bytes after 5,000"},
    {"same_40000", reused, 40000, 0, 40000, WIPE, "40,000 bytes after 40,000"},
    {"same_400000", reused, 400000, 0, 400000, UNMAP, "400,000 bytes after 400,000"},
    {"same_huge", reused, 8 << 20, 0, 8 << 20, UNMAP, "8 MiB after 8 MiB"},
    {"aligned", aligned, 1024, 0, 1024, WIPE, "1,024 aligned bytes after 1,024"},
    {"smaller", reused, 1000, 0, 64, WIPE, "64 bytes after 1,000"},
    {"larger", reused, 100, 0, 4000, WIPE, "4,000 bytes after neighbours of 100"},
    {"small_after_large", reused, 400000, 0, 1000, UNMAP, "1,000 bytes after 400,000"},
    {"other_thread", other_thread, 200, 0, 0, WIPE, "200 bytes of another thread after 200"},
    {"thread_gone", thread_gone, 200, 0, 0, WIPE, "200 bytes after 200 of a thread that has ended"},
    {"grown", grown, 200, 0, 40, WIPE, "40 bytes that realloc makes 200, after 200"},
    {"moved", resized, 64, 64, 5000, WIPE, "64 bytes after realloc has moved 64 away"},
    {"moved_large", resized, 200000, 200000, 2000000, UNMAP,
     "200,000 bytes after realloc has moved 200,000 away"},
    {"shrunk", resized, 2000, 1000, 100, WIPE, "1,000 bytes after realloc has made 2,000 100"},
    {"tail", tail, 1000, 0, 900, WIPE, "past the 900 bytes asked for, after 1,000"},
    {"dump_small", anywhere, 64, 0, 0, GONE, "64 bytes in a dump after they were freed"},
    {"dump_medium", anywhere, 40000, 0, 0, GONE, "40,000 bytes in a dump after they were freed"},
    {"dump_trimmed", trimmed, 1000, 0, 0, GONE, "1,000 bytes in a dump after malloc_trim"},
    {0}};
