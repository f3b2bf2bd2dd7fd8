/* What a program may set and ask: mallopt, mallinfo, malloc_stats, malloc_info. */
#include "tap.h"

#include <limits.h>
#include <malloc.h>

#define MIB ((size_t)1 << 20)

enum { MANY = 4000, BLOCK = 5000, HUGE = 48 };

static char *blocks[MANY];

static void fill(void)
{
    for (int i = 0; i < MANY; i++)
        memset(blocks[i] = malloc(BLOCK), 1, BLOCK);
}

static void drop(void)
{
    for (int i = 0; i < MANY; i++)
        free(blocks[i]);
}

static bool info_sums(struct mallinfo2 info)
{
    return info.arena == info.uordblks + info.fordblks && info.keepcost <= info.fordblks;
}

static void test_mallinfo2(void)
{
    if (!allocator_has("mallinfo2")) {
        tap_skip("mallinfo2", "the allocator has none");
        return;
    }
    malloc_trim(0);
    struct mallinfo2 start = mallinfo2();
    fill();
    struct mallinfo2 full = mallinfo2();
    char *huge = malloc(HUGE * MIB);
    struct mallinfo2 with_huge = mallinfo2();
    free(huge);
    drop();
    struct mallinfo2 freed = mallinfo2();
    malloc_trim(0);
    struct mallinfo2 end = mallinfo2();
    tap_ok(info_sums(start) && info_sums(full) && info_sums(with_huge) && info_sums(freed) && info_sums(end),
           "mallinfo2: arena is uordblks and fordblks, keepcost a part of fordblks");
    tap_ok(full.uordblks - start.uordblks >= MANY * BLOCK &&
               full.uordblks - start.uordblks < MANY * BLOCK * 3 / 2,
           "mallinfo2: %d blocks of %d bytes raise uordblks by %zu", MANY, BLOCK,
           full.uordblks - start.uordblks);
    tap_ok(with_huge.hblkhd - full.hblkhd >= HUGE * MIB && end.hblkhd == start.hblkhd,
           "mallinfo2: a block of %d MiB raises hblkhd by %zu", HUGE, with_huge.hblkhd - full.hblkhd);
    tap_ok(end.uordblks < start.uordblks + MIB && end.arena < start.arena + MIB,
           "mallinfo2: free and malloc_trim take uordblks back (to %zu, at first %zu), and arena (%zu, at "
           "first %zu)",
           end.uordblks, start.uordblks, end.arena, start.arena);
    if (tap_tlfl("mallinfo2 tells the books"))
        tap_ok(end.arena + end.hblkhd == tlfl_books("mapped") && end.fordblks == tlfl_books("free") &&
                   end.keepcost == tlfl_books("dirty"),
               "mallinfo2 tells the books");
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo is under test */

static bool saturated(int field, size_t value)
{
    return field == (value < INT_MAX ? (int)value : INT_MAX);
}

static void test_mallinfo(void)
{
    if (!tap_tlfl("mallinfo"))
        return;
    fill();
    void *huge = sizeof(void *) > 4 ? malloc((size_t)3 << 30) : NULL; /* never touched */
    struct mallinfo2 wide = mallinfo2();
    struct mallinfo narrow = mallinfo();
    if (huge == NULL)
        tap_skip("mallinfo: what exceeds an int is INT_MAX", "3 GiB of address space are not to be had");
    else
        tap_ok(narrow.hblkhd == INT_MAX, "mallinfo: what exceeds an int is INT_MAX");
    tap_ok(saturated(narrow.arena, wide.arena) && saturated(narrow.hblkhd, wide.hblkhd) &&
               saturated(narrow.uordblks, wide.uordblks) && saturated(narrow.fordblks, wide.fordblks) &&
               saturated(narrow.keepcost, wide.keepcost),
           "mallinfo tells what mallinfo2 does");
    free(huge);
    drop();
}

static void test_mallopt(void)
{
    const int parameters[] = {M_MMAP_THRESHOLD, M_MMAP_MAX, M_TRIM_THRESHOLD, M_TOP_PAD, M_ARENA_MAX,
                              M_ARENA_TEST,     M_PERTURB,  M_CHECK_ACTION,   M_MXFAST,  12345};
    if (!tap_tlfl("mallopt"))
        return;
    bool none = true;
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
        none &= mallopt(parameters[i], 1 << 16) == 0;
    tap_ok(none, "mallopt: no parameter has an effect, so none is accepted");
}

/* What a call writes to standard error, cut to the room; -1 when there is no pipe. */
static ssize_t said(void (*call)(void), char *text, size_t room)
{
    int ends[2], kept = dup(STDERR_FILENO);
    if (kept < 0 || pipe(ends) != 0)
        return -1;
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    call();
    dup2(kept, STDERR_FILENO);
    close(kept);
    ssize_t got = read(ends[0], text, room - 1);
    close(ends[0]);
    text[got < 0 ? 0 : got] = '\0';
    return got;
}

static void test_stats(void)
{
    char text[8192], line[80];
    if (!allocator_has("malloc_stats")) {
        tap_skip("malloc_stats", "the allocator has none");
        return;
    }
    fill();
    size_t before = tlfl_books("spans");
    ssize_t got = said(malloc_stats, text, sizeof text);
    tap_ok(got > 0 && text[got - 1] == '\n', "malloc_stats writes lines to standard error");
    if (tap_tlfl("malloc_stats tells the books")) {
        snprintf(line, sizeof line, "in use bytes     = %10zu in", mallinfo2().uordblks);
        tap_ok(strstr(text, line) != NULL && tlfl_books("spans") == before,
               "malloc_stats tells the books and allocates nothing");
    }
    drop();
}

/* Every element is closed by its own name or in itself. */
static bool xml_closed(const char *text)
{
    const char *open[16];
    int depth = 0;
    for (const char *at = text; (at = strchr(at, '<')) != NULL; at++) {
        const char *end = strchr(at, '>');
        if (end == NULL)
            return false;
        if (at[1] == '/') {
            size_t name = (size_t)(end - at) - 2;
            if (depth-- == 0 || strncmp(open[depth], at + 2, name) != 0)
                return false;
        } else if (end[-1] != '/') {
            if (depth == 16)
                return false;
            open[depth++] = at + 1;
        }
    }
    return depth == 0;
}

static void test_info(void)
{
    if (!allocator_has("malloc_info")) {
        tap_skip("malloc_info", "the allocator has none");
        return;
    }
    char text[1 << 16] = "";
    FILE *stream = fmemopen(text, sizeof text, "w");
    errno = 0;
    int refused = malloc_info(1, stream); /* glibc returns the error itself */
    tap_ok(refused == EINVAL || (refused == -1 && errno == EINVAL),
           "malloc_info refuses options with EINVAL");

    bool good = malloc_info(0, stream) == 0;
    fclose(stream);
    tap_ok(good && strncmp(text, "<malloc version=\"1\">", 20) == 0 && xml_closed(text),
           "malloc_info writes an XML element, closed throughout");
    if (tap_tlfl("malloc_info tells the books")) {
        char line[80];
        snprintf(line, sizeof line, "<system type=\"current\" size=\"%zu\"/>", mallinfo2().arena);
        tap_ok(strstr(text, line) != NULL, "malloc_info tells the books");
    }
}

int main(void)
{
    tap_start(60);
    test_mallinfo2();
    test_mallinfo();
    test_mallopt();
    test_stats();
    test_info();
    return tap_done();
}
