/* bad_free.c - free of what malloc never returned. Missed where memory that is in use changes: by the free, or because
 * a later malloc hands it out. */
#include <sys/mman.h>

#include "driver/misuse.h"

extern char **environ;

#define AREA                                                                                                 \
    65536 /* of the program's own memory: wide enough that what is written past the pointer stays inside */
#define FILL 0x33

static char global_area[AREA] __attribute__((aligned(64)));

static bool area_changed(const char *area, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((const volatile char *)area)[i] != FILL)
            return true;
    return false;
}

/* Frees a pointer into an area that is full of one byte; the middle is where it points to. */
static enum end free_area(char *area, char *pointer)
{
    keep(area, AREA);
    do_free(pointer);
    return aftermath(48) || area_changed(area, AREA) ? END_MISSED : END_HARMLESS;
}

static enum end stack(const struct misuse *m)
{
    char area[AREA] __attribute__((aligned(64)));
    do_memset(area, FILL, AREA);
    return free_area(area, area + AREA / 2 + m->at);
}

static enum end global(const struct misuse *m)
{
    do_memset(global_area, FILL, AREA);
    return free_area(global_area, global_area + AREA / 2 + m->at);
}

static enum end mapped(const struct misuse *m)
{
    char *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return END_BROKEN;
    do_memset(area, FILL, AREA);
    return free_area(area, area + m->at);
}

static enum end anywhere(void *pointer)
{
    do_free(pointer);
    return aftermath(48) ? END_MISSED : END_HARMLESS;
}

static enum end literal(const struct misuse *m)
{
    static const char text[] =
        "a constant text that is longer than it would have to be, so that it fills a line";
    return anywhere((char *)(uintptr_t)text + m->at);
}

static enum end function(const struct misuse *m)
{
    (void)m;
    return anywhere((void *)(uintptr_t)&getenv);
}

static enum end environment(const struct misuse *m)
{
    (void)m;
    char copy[4096];
    char *text = environ[0];
    if (text == NULL)
        return END_BROKEN;
    size_t length = strlen(text) + 1;
    if (length > sizeof copy)
        length = sizeof copy;
    memcpy(copy, text, length);
    enum end end = anywhere(text);
    return memcmp(copy, text, length) != 0 ? END_MISSED : end;
}

static enum end address(const struct misuse *m)
{
    return anywhere((void *)(uintptr_t)m->at);
}

/* What surrounds a live block, copied: it looks like one to who trusts the bytes around a pointer. */
static enum end lookalike(const struct misuse *m)
{
    enum { AROUND = 64 };
    do_memset(global_area, FILL, AREA);
    row_make(m->size);
    char *block = row[row_count / 2], *copy = global_area + AREA / 2;
    memcpy(copy - AROUND, block - AROUND, AROUND + m->size + AROUND);
    do_free(copy);
    keep(global_area, AREA);
    return aftermath(m->size) || row_changed(-1) ? END_MISSED : END_HARMLESS;
}

/* The header that the C library's blocks have, and that of a next block. */
static enum end fake_header(const struct misuse *m)
{
    uintptr_t area[64] __attribute__((aligned(64))) = {0};
    area[9] = area[9 + (m->size + 16) / sizeof *area] = m->size + 16;
    keep(area, sizeof area);
    do_free(&area[10]);
    return aftermath(m->size) ? END_MISSED : END_HARMLESS;
}

/* A pointer `at` bytes into a live block, or before its start or past its end. */
static enum end inside(const struct misuse *m)
{
    row_make(m->size);
    do_free(row[row_count / 2] + m->at);
    if (aftermath(m->size) || row_changed(-1))
        return END_MISSED;
    row_free();
    return END_HARMLESS;
}

static enum end inside_freed(const struct misuse *m)
{
    char *block = do_malloc(m->size);
    do_free(block);
    do_free(block + m->at);
    return aftermath(m->size) ? END_MISSED : END_HARMLESS;
}

#define OWNS  "the owner of an address is looked up"
#define START "a block's start is told from its inside"

const struct misuse misuses[] = {
    {"stack", stack, 0, 0, 0, OWNS, "an array on the stack"},
    {"stack_odd", stack, 0, 12, 0, OWNS, "a misaligned pointer into the stack"},
    {"global", global, 0, 0, 0, OWNS, "a static array"},
    {"literal", literal, 0, 16, 0, OWNS, "a pointer into a constant text"},
    {"function", function, 0, 0, 0, OWNS, "a function"},
    {"environment", environment, 0, 0, 0, OWNS, "what getenv returned"},
    {"null_field", address, 0, 16, 0, OWNS, "the second field of a structure at NULL"},
    {"never_mapped", address, 0, 0x12345670, 0, OWNS, "an address where nothing is mapped"},
    {"uninitialised", address, 0, (ptrdiff_t)0x4141414141414141, 0, OWNS, "a pointer that was never set"},
    {"mapped", mapped, 0, 0, 0, OWNS, "the start of a mapping"},
    {"mapped_inside", mapped, 0, 16, 0, OWNS, "16 bytes into a mapping"},
    {"lookalike", lookalike, 64, 0, 0, OWNS, "a copy of a live block with all that surrounds it"},
    {"fake_header", fake_header, 48, 0, 0, OWNS, "stack memory with headers such as the C library's"},
    {"plus_1", inside, 256, 1, 0, START, "1 byte into a block of 256"},
    {"plus_8", inside, 256, 8, 0, START, "8 bytes into a block of 256"},
    {"plus_16", inside, 256, 16, 0, START, "16 bytes into a block of 256"},
    {"half", inside, 256, 128, 0, START, "half-way into a block of 256"},
    {"end", inside, 64, 64, 0, "gaps, or random placement", "the end of a block of 64"},
    {"before", inside, 64, -16, 0, START, "16 bytes before a block of 64"},
    {"large_inside", inside, 200000, 64, 0, START, "64 bytes into a block of 200,000"},
    {"large_page", inside, 200000, 4096, 0, START, "a page into a block of 200,000"},
    {"huge_inside", inside, 8 << 20, 1 << 20, 0, START, "1 MiB into a block of 8 MiB"},
    {"inside_freed", inside_freed, 256, 16, 0, START, "16 bytes into a block that is free"},
    {0}};
