/* span.c - see span.h. */
#include "span.h"

#include <string.h>

#include "fail.h"
#include "meta.h"
#include "packed.h"

/* Carved at a time: a page of blocks, since the first touch costs a fault a page. */
#define SPAN_CARVE_BYTES 4096

/* A FULL span rejoins its bin when an eighth of it is free, or so many blocks: one block would send
 * it back to refill after one malloc, and a walk through a nearly full heap would become slow. */
#define SPAN_WAKE_SHIFT 3
#define SPAN_WAKE_MAX   64

struct block tlfl__block_end;
const struct span tlfl__span_none = {.free = BLOCK_END};

static struct span *span_spare; /* structures not in use, through next */
static size_t span_used;

struct span *tlfl__span_take(void)
{
    struct span *span = span_spare;
    if (span != NULL) {
        poison_lift(span, sizeof *span);
        span_spare = span->next;
        memset(span, 0, sizeof *span);
    } else if ((span = tlfl__meta_take(sizeof *span)) == NULL) {
        return NULL;
    }
    span_used++;
    return span;
}

void tlfl__span_give(struct span *span)
{
    span_close(span);
    atomic_store_explicit(&span->owner, NULL, memory_order_relaxed);
    span->next = span_spare;
    span_spare = span;
    span_used--;
    poison_set(span, sizeof *span);
}

size_t tlfl__span_count(void)
{
    return span_used;
}

void tlfl__span_cut(struct span *span, unsigned class)
{
    size_t size = class_size(class);
    uint32_t capacity = (uint32_t)(span->run.granules * GRANULE_SIZE / size);
    uint32_t wake = capacity >> SPAN_WAKE_SHIFT;
    span->base = run_start(&span->run);
    span->size = (uint32_t)size;
    span->class = (uint8_t) class;
    /* UINT64_MAX / size is floor(2^64 / size), but one less for a power of two. */
    span->magic = UINT64_MAX / size + ((size & (size - 1)) == 0 ? 2 : 1);
    span->limit = 0;
    span->capacity = capacity;
    span->wake = wake == 0 ? 1 : wake > SPAN_WAKE_MAX ? SPAN_WAKE_MAX : wake;
    span->carved = 0;
    span->free = BLOCK_END;
    poison_set(span->base, span->run.granules * GRANULE_SIZE);
}

bool tlfl__span_carve(struct span *span)
{
    uint32_t left = span->capacity - span->carved;
    uint32_t count = SPAN_CARVE_BYTES / span->size;
    count = count == 0 ? 1 : count;
    count = count > left ? left : count;
    if (count == 0)
        return false;
    char *first = span->base + (size_t)span->carved * span->size;
    struct block *list = span->free;
    poison_lift(first, (size_t)count * span->size);
    for (uint32_t i = count; i-- > 0;) { /* downwards: the list then runs upwards */
        struct block *block = (struct block *)(first + (size_t)i * span->size);
        block->next = list;
        block_set_mark(block, block_key(span, block));
        list = block;
    }
    span->free = list;
    span->carved += count;
    span_open(span);
    packed_carved(span, first, count);
    return true;
}

TLFL_COLD _Noreturn void tlfl__span_overwritten(const struct span *span)
{
    tlfl__fail("malloc", span->free, "free block was written to");
}

uint32_t tlfl__span_free_count(const struct span *span)
{
    uint32_t count = 0;
    for (const struct block *b = span->free; b != BLOCK_END; b = b->next)
        count++;
    return count;
}
