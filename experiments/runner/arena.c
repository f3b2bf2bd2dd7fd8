#include "arena.h"
#include "fault.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES 16384

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, room;
    _Alignas(max_align_t) unsigned char bytes[];
};

static _Noreturn void out_of_memory(void)
{
    fputs("ak: out of memory\n", stderr);
    exit(AK_ENVIRONMENT);
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    const size_t grain = _Alignof(max_align_t);
    if (bytes > SIZE_MAX / 2)
        out_of_memory();
    bytes = (bytes + grain - 1) / grain * grain;
    struct arena_chunk *c = a->chunks;
    if (!c || c->room - c->used < bytes) {
        size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        c = calloc(1, sizeof *c + room);
        if (!c)
            out_of_memory();
        c->room = room;
        c->next = a->chunks;
        a->chunks = c;
    }
    void *memory = c->bytes + c->used;
    c->used += bytes;
    return memory;
}

char *arena_strndup(struct arena *a, const char *text, size_t length)
{
    char *copy = arena_alloc(a, length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *arena_strdup(struct arena *a, const char *text)
{
    return arena_strndup(a, text, strlen(text));
}

char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        out_of_memory();
    char *text = arena_alloc(a, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void *arena_grow(struct arena *a, void *old, size_t count, size_t size)
{
    if (count & (count - 1))
        return old; /* between two powers of two there is room */
    if (count > SIZE_MAX / 4 / size)
        out_of_memory();
    void *grown = arena_alloc(a, (count ? 2 * count : 1) * size);
    if (count)
        memcpy(grown, old, count * size);
    return grown;
}

void arena_free(struct arena *a)
{
    while (a->chunks) {
        struct arena_chunk *next = a->chunks->next;
        free(a->chunks);
        a->chunks = next;
    }
}
