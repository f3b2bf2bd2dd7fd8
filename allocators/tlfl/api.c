/* api.c - the malloc family: the two fast paths, and what the manual pages say about the rest. */
#include "api.h"

#include <errno.h>
#include <string.h>

#include "fail.h"
#include "guard.h"
#include "heap.h"
#include "huge.h"
#include "large.h"
#include "lock.h"
#include "map.h"
#include "meta.h"
#include "os.h"
#include "packed.h"
#include "pool.h"
#include "remote.h"
#include "thread.h"
#include "tlfl.h"

/* A realloc keeps the block while at least this part of it stays in use. */
#define API_KEEP_SHIFT 1

#define API_GROW 4096

/* ---- malloc ---- */

/* Every state of the heap. */
static TLFL_NOINLINE void *malloc_slow(size_t size)
{
    unsigned class = class_of(size);
    struct heap *heap = tlfl__heap;
    if (TLFL_UNLIKELY(heap_state(heap) != HEAP_LIVE))
        return tlfl__thread_malloc(class);
    return tlfl__heap_refill(heap, class);
}

TLFL_INLINE void *malloc_fast(size_t size)
{
    struct span *span;
    if (TLFL_LIKELY(size <= CLASS_DIRECT_MAX))
        span = tlfl__heap->direct[(size + BLOCK_ALIGN - 1) / BLOCK_ALIGN];
    else if (TLFL_LIKELY(size <= CLASS_MAX))
        span = tlfl__heap->current[class_of_wide(size)];
    else
        return tlfl__large_malloc(size);
    void *block = span_pop(span);
    return TLFL_LIKELY(block != NULL) ? block : malloc_slow(size);
}

/* ---- free ---- */

/* A pointer that is no live block of the span: says why not. */
static TLFL_COLD _Noreturn void block_wrong(const struct span *span, const void *pointer, const char *call)
{
    size_t offset = (size_t)((const char *)pointer - span->base);
    if (offset % span->size != 0)
        tlfl__fail(call, pointer, "points into a block, not to its start");
    if (span_state(span) != SPAN_EMPTY && offset / span->size >= span->capacity)
        tlfl__fail(call, pointer, "lies behind the last block of its span");
    tlfl__fail(call, pointer, "block is free already, or was never allocated");
}

/* Whether `pointer`, of a SMALL span of any owner, can be a live block. For the owner alone the
 * limit is exact; what others look at does not change while the block is live. */
static bool block_is_live(const struct span *span, const void *pointer, bool ours)
{
    if (ours ? !span_holds(span, pointer) : !span_cuts(span, pointer))
        return false;
    return !block_is_marked(span, pointer) && !packed_holds(span, pointer);
}

static TLFL_COLD void free_nothing(const void *pointer)
{
    if (pointer != NULL)
        tlfl__fail("free", pointer, "not a block of this allocator, or free already");
}

/* A small block of another heap, misuse, or of a span of ours that own[] has no room for. */
static TLFL_NOINLINE void free_small_other(struct span *span, struct block *block)
{
    struct heap *heap = tlfl__heap;
    bool ours = span_owner(span) == heap;
    if (TLFL_UNLIKELY(!block_is_live(span, block, ours)))
        block_wrong(span, block, "free");
    if (ours) {
        tlfl__heap_own(heap, span);
        if (span_push(span, block, block_key(span, block)))
            tlfl__heap_event(heap, span);
        return;
    }
    struct heap *from = tlfl__thread_heap(); /* it may be the owner itself, taken over just now */
    from = from != NULL ? from : heap;
    if (!packed_free(from, span, block))
        tlfl__remote_free(from, span, block);
}

/* A pointer that own[] has no span for: NULL, large, foreign, of another heap, misuse, or of a span
 * of ours that own[] has no room for. */
static TLFL_NOINLINE void free_other(void *pointer)
{
    struct span *span = map_find(pointer);
    if (TLFL_UNLIKELY(span == NULL))
        free_nothing(pointer);
    else if (span->kind != SPAN_SMALL)
        tlfl__large_free(span, pointer);
    else
        free_small_other(span, pointer);
}

/* A pointer to a block of ours that shows half its mark, or has just been put into its list and
 * thereby has run out the countdown of its span: the only moment at which `out` is 0 outside EMPTY,
 * so that it tells the two apart. Handing over the span would cost every free a move. */
static TLFL_NOINLINE void free_event(void *pointer)
{
    struct heap *heap = tlfl__heap;
    struct span *span = heap_own(heap, pointer);
    if (TLFL_UNLIKELY(span->out != 0)) {
        if (block_is_marked(span, pointer))
            block_wrong(span, pointer, "free");
        if (!span_push(span, pointer, block_key(span, pointer)))
            return;
    }
    tlfl__heap_event(heap, span);
}

TLFL_INLINE void free_fast(void *pointer)
{
    struct span *span = heap_own(tlfl__heap, pointer);
    struct block *block = pointer;
    uintptr_t key = block_key(span, block);
    if (TLFL_UNLIKELY(!span_holds(span, block)))
        free_other(block);
    else if (TLFL_UNLIKELY(block_shows_key(block, key)) || TLFL_UNLIKELY(span_push(span, block, key)))
        free_event(block);
}

/* ---- all else ---- */

/* The span of a live block, for the calls that do more than free it. */
static struct span *block_span(void *pointer, const char *call)
{
    struct span *span = heap_own(tlfl__heap, pointer);
    if (TLFL_LIKELY(span_holds(span, pointer)) && TLFL_LIKELY(!block_is_marked(span, pointer)))
        return span;
    span = map_find(pointer);
    if (TLFL_UNLIKELY(span == NULL))
        tlfl__fail(call, pointer, "not a block of this allocator, or free already");
    if (span->kind != SPAN_SMALL) {
        if (TLFL_UNLIKELY(pointer != span->base))
            tlfl__fail(call, pointer, "points into a block, not to its start");
        if (TLFL_UNLIKELY(span_state(span) != SPAN_FULL))
            tlfl__fail(call, pointer, "block is free already");
    } else if (TLFL_UNLIKELY(!block_is_live(span, pointer, span_owner(span) == tlfl__heap))) {
        block_wrong(span, pointer, call);
    }
    return span;
}

static void *malloc_zeroed(size_t count, size_t size)
{
    size_t total;
    if (TLFL_UNLIKELY(__builtin_mul_overflow(count, size, &total))) {
        errno = ENOMEM;
        return NULL;
    }
    if (TLFL_UNLIKELY(total > CLASS_MAX))
        return tlfl__large_alloc(total, BLOCK_ALIGN, true);
    void *block = malloc_fast(total);
    if (TLFL_LIKELY(block != NULL))
        memset(block, 0, total);
    return block;
}

/* `align` is a power of two. Within the classes no block is larger than its class for the sake of
 * alignment: a span starts at a granule, so the blocks of a class whose size is a multiple of
 * `align` are aligned, and one such class is found at the latest at the next power of two. */
static void *malloc_aligned(size_t align, size_t size)
{
    if (align <= BLOCK_ALIGN)
        return malloc_fast(size);
    if (size > CLASS_MAX || align > CLASS_MAX)
        return tlfl__large_alloc(size, align, false);
    unsigned class = class_of(size);
    while ((class_size(class) & (align - 1)) != 0)
        class ++;
    return malloc_fast(class_size(class));
}

/* A block that grew will grow again: from API_GROW bytes on it moves to twice its size, since pages
 * behind what is used cost nothing until they are touched, and each move copies all of it. */
static void *block_move(void *pointer, size_t old, size_t size)
{
    void *moved = NULL;
    if (old >= API_GROW && size > old && size < 2 * old && 2 * old <= LARGE_MAX)
        moved = malloc_fast(2 * old);
    if (moved == NULL)
        moved = malloc_fast(size);
    if (moved != NULL) {
        memcpy(moved, pointer, old < size ? old : size);
        free_fast(pointer);
    }
    return moved;
}

/* No memory to shrink a block: it stayed as it was. */
static _Atomic bool shrink_refused;

static void *block_resize(void *pointer, size_t size)
{
    if (pointer == NULL)
        return malloc_fast(size);
    struct span *span = block_span(pointer, "realloc");
    size_t old = span_usable(span);
    if (TLFL_LIKELY(size <= old && size >= old >> API_KEEP_SHIFT && size != 0) && span->kind != SPAN_HUGE)
        return pointer;
    if (size == 0) {
        free_fast(pointer);
        return NULL;
    }
    void *moved = NULL;
    if (span->kind != SPAN_SMALL && size > CLASS_MAX)
        moved = tlfl__large_resize(span, size);
    if (moved == NULL)
        moved = block_move(pointer, old, size);
    if (moved == NULL && size <= old) {
        atomic_store_explicit(&shrink_refused, true, memory_order_relaxed);
        return pointer;
    }
    return moved;
}

static bool is_power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static void *malloc_aligned_checked(size_t align, size_t size)
{
    if (TLFL_UNLIKELY(!is_power_of_two(align))) {
        errno = EINVAL;
        return NULL;
    }
    return malloc_aligned(align, size);
}

/* ---- exported: malloc(3), posix_memalign(3), malloc_usable_size(3), malloc_trim(3) ---- */

/* `size` bytes aligned to 16; size 0 gives a unique pointer. NULL and ENOMEM when refused or when
 * size exceeds PTRDIFF_MAX. */
TLFL_API void *API(malloc)(size_t size)
{
    guard_enter();
    void *block = malloc_fast(size);
    guard_leave();
    return block;
}

/* Frees a block of any function here; NULL does nothing. errno is left alone. A pointer that is not
 * a live block aborts where that is noticed. */
TLFL_API void API(free)(void *pointer)
{
    guard_enter();
    free_fast(pointer);
    guard_leave();
}

/* As malloc(count * size), zeroed; NULL and ENOMEM when the product overflows. */
TLFL_API void *API(calloc)(size_t count, size_t size)
{
    guard_enter();
    void *block = malloc_zeroed(count, size);
    guard_leave();
    return block;
}

/* Resizes a block, keeping contents up to the lesser size. NULL is as malloc, size 0 frees and
 * returns NULL. NULL and ENOMEM when refused, the block then is as before. */
TLFL_API void *API(realloc)(void *pointer, size_t size)
{
    guard_enter();
    void *block = block_resize(pointer, size);
    guard_leave();
    return block;
}

/* As realloc(pointer, count * size); NULL and ENOMEM when the product overflows. */
TLFL_API void *API(reallocarray)(void *pointer, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    guard_enter();
    void *block = block_resize(pointer, total);
    guard_leave();
    return block;
}

/* `size` bytes (of any size) aligned to `align`; NULL and EINVAL when that is not a power of two,
 * NULL and ENOMEM when refused. */
TLFL_API void *API(aligned_alloc)(size_t align, size_t size)
{
    guard_enter();
    void *block = malloc_aligned_checked(align, size);
    guard_leave();
    return block;
}

/* As aligned_alloc. */
TLFL_API void *API(memalign)(size_t align, size_t size)
{
    guard_enter();
    void *block = malloc_aligned_checked(align, size);
    guard_leave();
    return block;
}

/* As aligned_alloc, but returns 0, EINVAL or ENOMEM, leaves errno alone, and wants an alignment
 * that is a multiple of sizeof(void *). *pointer is only written on success. */
TLFL_API int API(posix_memalign)(void **pointer, size_t align, size_t size)
{
    if (!is_power_of_two(align) || align < sizeof(void *))
        return EINVAL;
    int before = errno;
    guard_enter();
    void *block = malloc_aligned(align, size);
    guard_leave();
    errno = before;
    if (block == NULL)
        return ENOMEM;
    *pointer = block;
    return 0;
}

/* `size` bytes aligned to a page. */
TLFL_API void *API(valloc)(size_t size)
{
    guard_enter();
    void *block = malloc_aligned(tlfl__os_page(), size);
    guard_leave();
    return block;
}

/* As valloc, with the size rounded up to whole pages, at least one. */
TLFL_API void *API(pvalloc)(size_t size)
{
    size_t page = tlfl__os_page();
    if (size > (size_t)PTRDIFF_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    guard_enter();
    void *block = malloc_aligned(page, size_round(size == 0 ? 1 : size, page));
    guard_leave();
    return block;
}

/* Bytes that may be written at `pointer`, all of them; 0 for NULL. */
TLFL_API size_t API(malloc_usable_size)(void *pointer)
{
    if (pointer == NULL)
        return 0;
    guard_enter();
    size_t size = span_usable(block_span(pointer, "malloc_usable_size"));
    guard_leave();
    return size;
}

/* Gives back to the OS all that no other running thread holds; the pad is not used, since nothing
 * here is a heap top. 1 when anything was given back, else 0. */
TLFL_API int API(malloc_trim)(size_t pad)
{
    (void)pad;
    guard_enter();
    int any = tlfl__thread_trim();
    guard_leave();
    return any;
}

/* Whether a block of this span can have been asked for with this size: realloc keeps a block of which
 * at least half is wanted, and no other call gives one that is larger, but for the smallest, which may
 * be lent ones, and large ones (large.c). After a refused shrink any block may be too large. */
static bool size_fits(const struct span *span, size_t size)
{
    size_t usable = span_usable(span);
    unsigned shift = span->kind == SPAN_SMALL ? API_KEEP_SHIFT : API_KEEP_SHIFT + 1;
    return size <= usable && (size >= usable >> shift || usable <= 2 * BLOCK_ALIGN ||
                              atomic_load_explicit(&shrink_refused, memory_order_relaxed));
}

/* C23: as free, for a block of malloc, calloc or realloc of `size` bytes. Aborts if it cannot be that. */
TLFL_API void API(free_sized)(void *pointer, size_t size)
{
    guard_enter();
    if (pointer != NULL && TLFL_UNLIKELY(!size_fits(block_span(pointer, "free_sized"), size)))
        tlfl__fail("free_sized", pointer, "block has another size");
    free_fast(pointer);
    guard_leave();
}

/* C23: as free, for a block of aligned_alloc(align, size). Aborts if it cannot be that. */
TLFL_API void API(free_aligned_sized)(void *pointer, size_t align, size_t size)
{
    guard_enter();
    if (pointer != NULL && TLFL_UNLIKELY(span_usable(block_span(pointer, "free_aligned_sized")) < size))
        tlfl__fail("free_aligned_sized", pointer, "block has another size");
    if (TLFL_UNLIKELY(!is_power_of_two(align) || ((uintptr_t)pointer & (align - 1)) != 0))
        tlfl__fail("free_aligned_sized", pointer, "block has another alignment");
    free_fast(pointer);
    guard_leave();
}

/* ---- exported: tlfl.h ---- */

#if defined TLFL_LOCKED && defined TLFL_CLOCKED
#define API_VARIANT "-locked-clocked"
#elif defined TLFL_CLOCKED
#define API_VARIANT "-clocked"
#elif defined TLFL_LOCKED
#define API_VARIANT "-locked"
#elif defined TLFL_PACKED
#define API_VARIANT "-packed"
#elif defined TLFL_REMOTE
#define API_VARIANT "-remote"
#elif defined TLFL_UNCHECKED
#define API_VARIANT "-unchecked"
#elif defined TLFL_HARDENED
#define API_VARIANT "-hardened"
#else
#define API_VARIANT ""
#endif

TLFL_API const char *tlfl_version(void)
{
    return "0.1.0" API_VARIANT;
}

TLFL_API size_t tlfl_stat(const char *name)
{
    guard_enter();
    tlfl__central_enter();
    struct pool_books books = tlfl__pool_books();
    size_t huge = tlfl__huge_bytes();
    const struct {
        const char *name;
        size_t value;
    } stats[] = {
        {"mapped", books.mapped + huge}, {"huge", huge},        {"metadata", tlfl__meta_bytes()},
        {"dirty", books.dirty},          {"free", books.free}, {"spans", tlfl__span_count()},
        {"heaps", tlfl__thread_heaps()},
    };
    tlfl__central_leave();
    guard_leave();
    for (size_t i = 0; name != NULL && i < sizeof stats / sizeof *stats; i++)
        if (strcmp(name, stats[i].name) == 0)
            return stats[i].value;
    return (size_t)-1;
}
