/* tunables.c - see tunables.h. */
#include "tunables.h"

#include <errno.h>
#include <limits.h>

#include "os.h"
#include "tlfl.h"

#ifdef __GLIBC__ /* no other C library has these calls */

/* All that is told, as one set. */
struct tunables_books {
    struct mallinfo2 info;
    size_t metadata, spans, heaps;
};

/* The figures come one by one, so each is cut to what the ones before it leave room for. */
static struct tunables_books tunables_read(void)
{
    size_t mapped = tlfl_stat("mapped"), huge = tlfl_stat("huge"), rest = tlfl_stat("free"),
           dirty = tlfl_stat("dirty");
    huge = huge < mapped ? huge : mapped;
    size_t arena = mapped - huge;
    rest = rest < arena ? rest : arena;
    dirty = dirty < rest ? dirty : rest;
    return (struct tunables_books){
        .info =
            {.arena = arena, .hblkhd = huge, .uordblks = arena - rest, .fordblks = rest, .keepcost = dirty},
        .metadata = tlfl_stat("metadata"),
        .spans = tlfl_stat("spans"),
        .heaps = tlfl_stat("heaps"),
    };
}

static int tunables_int(size_t value)
{
    return value < INT_MAX ? (int)value : INT_MAX;
}

/* mallopt(3). 0: the parameter has no effect here. */
TLFL_API int API(mallopt)(int parameter, int value)
{
    (void)parameter, (void)value;
    return 0;
}

/* mallinfo2(3): see tunables.h for the fields. */
TLFL_API struct mallinfo2 API(mallinfo2)(void)
{
    return tunables_read().info;
}

/* As mallinfo2, what exceeds an int as INT_MAX. */
TLFL_API struct mallinfo API(mallinfo)(void)
{
    struct mallinfo2 info = tunables_read().info;
    return (struct mallinfo){
        .arena = tunables_int(info.arena),
        .hblkhd = tunables_int(info.hblkhd),
        .uordblks = tunables_int(info.uordblks),
        .fordblks = tunables_int(info.fordblks),
        .keepcost = tunables_int(info.keepcost),
    };
}

/* Room for the lines of malloc_stats, every number at its longest. */
#define TUNABLES_TEXT 512

/* malloc_stats(3): a few lines on standard error. Allocates nothing, and writes past stdio. */
TLFL_API void API(malloc_stats)(void)
{
    struct tunables_books books = tunables_read();
    char text[TUNABLES_TEXT];
    int length =
        snprintf(text, sizeof text,
                 "tlfl %s\n"
                 "system bytes     = %10zu\n"
                 "in use bytes     = %10zu in %zu spans\n"
                 "free bytes       = %10zu, %zu of them not purged yet\n"
                 "huge block bytes = %10zu\n"
                 "metadata bytes   = %10zu\n"
                 "heaps            = %10zu\n",
                 tlfl_version(), books.info.arena + books.info.hblkhd, books.info.uordblks, books.spans,
                 books.info.fordblks, books.info.keepcost, books.info.hblkhd, books.metadata, books.heaps);
    tlfl__os_say(text, (size_t)length);
}

/* malloc_info(3): the books as XML, with glibc's element names where they mean the same. 0, or -1 and errno: EINVAL for
 * options other than 0, else what the stream says. */
TLFL_API int API(malloc_info)(int options, FILE *stream)
{
    if (options != 0) {
        errno = EINVAL;
        return -1;
    }
    struct tunables_books books = tunables_read();
    int written =
        fprintf(stream,
                "<malloc version=\"1\">\n"
                "<allocator name=\"tlfl\" version=\"%s\"/>\n"
                "<total type=\"rest\" size=\"%zu\"/>\n"
                "<total type=\"mmap\" size=\"%zu\"/>\n"
                "<total type=\"used\" count=\"%zu\" size=\"%zu\"/>\n"
                "<total type=\"metadata\" size=\"%zu\"/>\n"
                "<total type=\"heaps\" count=\"%zu\"/>\n"
                "<system type=\"current\" size=\"%zu\"/>\n"
                "<aspace type=\"total\" size=\"%zu\"/>\n"
                "</malloc>\n",
                tlfl_version(), books.info.fordblks, books.info.hblkhd, books.spans, books.info.uordblks,
                books.metadata, books.heaps, books.info.arena, books.info.arena + books.info.hblkhd);
    return written < 0 ? -1 : 0;
}

#else

_Static_assert(sizeof(int) != 0, "a translation unit is not empty in ISO C");

#endif
