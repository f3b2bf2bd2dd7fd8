/* large.c - see large.h. */
#include "large.h"

#include <errno.h>
#include <string.h>

#include "fail.h"
#include "lock.h"
#include "map.h"
#include "os.h"
#include "thread.h"

_Static_assert(LARGE_MAX > GRANULE_SIZE, "two huge blocks never start in one granule");

/* The span is filled but for its kind. */
static void *large_enter(struct span *span, enum span_kind kind, char *base, size_t size)
{
    span->kind = (uint8_t)kind;
    span->base = base;
    span->size = size;
    span->capacity = span->carved = 1;
    tlfl__map_set(base, 1, span);
    return base;
}

static struct span *large_new(size_t size)
{
    size = class_round(size);
    size_t granules = size_round(size, GRANULE_SIZE) >> GRANULE_SHIFT;
    tlfl__central_enter();
    struct span *span = tlfl__span_take();
    if (span != NULL) {
        if (tlfl__pool_take((unsigned)granules, &span->run)) {
            span->zero = span->run.zero;
            large_enter(span, SPAN_LARGE, run_start(&span->run), size);
        } else {
            tlfl__span_give(span);
            span = NULL;
        }
    }
    tlfl__central_leave();
    return span;
}

static char *huge_map(size_t size, size_t align)
{
    return align <= tlfl__os_page() ? tlfl__os_map(size) : tlfl__os_map_aligned(size, align);
}

static struct span *huge_new(size_t size, size_t align)
{
    char *base = huge_map(size, align);
    if (base == NULL && tlfl__thread_trim())
        base = huge_map(size, align);
    if (base == NULL)
        return NULL;
    tlfl__central_enter();
    struct span *span = tlfl__span_take();
    if (span != NULL) {
        if (tlfl__map_reserve(base, 1)) {
            span->zero = true;
            large_enter(span, SPAN_HUGE, base, size);
            tlfl__pool_count_huge((ptrdiff_t)size);
        } else {
            tlfl__span_give(span);
            span = NULL;
        }
    }
    tlfl__central_leave();
    if (span == NULL)
        tlfl__os_unmap(base, size);
    return span;
}

void *tlfl__large_alloc(size_t size, size_t align, bool zero)
{
    size_t page = tlfl__os_page();
    struct span *span = NULL;
    if (size <= LARGE_MAX && align <= GRANULE_SIZE)
        span = large_new(size);
    else if (size <= (size_t)PTRDIFF_MAX - page)
        span = huge_new(size_round(size == 0 ? 1 : size, page), align);
    if (span == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    if (zero && !span->zero)
        memset(span->base, 0, size);
    return span->base;
}

void tlfl__large_free(struct span *span, void *block, const char *call)
{
    tlfl__central_enter();
    if (map_find(block) != span)
        tlfl__fail(call, block, "freed twice at the same time");
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the caller found it in the map */
    if (block != span->base)
        tlfl__fail(call, block, "points into a block, not to its start");
    size_t huge = span->kind == SPAN_HUGE ? span->size : 0;
    tlfl__map_set(block, 1, NULL);
    if (huge == 0)
        tlfl__pool_give(&span->run);
    else
        tlfl__pool_count_huge(-(ptrdiff_t)huge);
    tlfl__span_give(span);
    tlfl__central_leave();
    if (huge == 0)
        tlfl__pool_tick();
    else
        tlfl__os_unmap(block, huge);
}

void *tlfl__huge_resize(struct span *span, size_t size)
{
    size_t page = tlfl__os_page(), old = span->size;
    char *base = span->base, *moved = NULL;
    if (size > (size_t)PTRDIFF_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    size = size_round(size, page);
    if (size == old)
        return base;
    /* The old address may serve another thread's mmap the moment the block has moved, so its entry
     * goes first; the leaf of the new address must not be refused afterwards. */
    tlfl__central_enter();
    if (tlfl__map_spare()) {
        tlfl__map_set(base, 1, NULL);
        moved = tlfl__os_remap(base, old, size);
        if (moved != NULL) {
            tlfl__map_reserve(moved, 1);
            span->base = moved;
            span->size = size;
            tlfl__pool_count_huge((ptrdiff_t)size - (ptrdiff_t)old);
        }
        tlfl__map_set(span->base, 1, span);
    }
    tlfl__central_leave();
    if (moved == NULL)
        errno = ENOMEM;
    return moved;
}
