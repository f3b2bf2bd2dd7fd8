/* harden.c - the family of the variant `hardened`; see harden.h. */
#include "harden.h"

#ifdef TLFL_HARDENED

#include <errno.h>

#include "api.h"
#include "fail.h"
#include "harden_large.h"
#include "harden_secret.h"
#include "harden_small.h"
#include "map.h"
#include "os.h"

/* A realloc keeps a small block while at least this part of it stays in use. */
#define HARDEN_KEEP_SHIFT 1

/* ---- blocks of any size ---- */

/* Lets go of all that waits or is in quarantine; true when there was anything. */
static bool held_clear(void)
{
    bool any = tlfl__guarded_clear();
    return tlfl__small_clear() || any;
}

static void *block_try(size_t size, size_t align, size_t spare)
{
    return TLFL_LIKELY(small_fits(size, align)) ? tlfl__small_new(size, align)
                                                : tlfl__guarded_new(size, align, spare);
}

/* `align` is a power of two; `spare` counts where the block is large; errno is `before` where there is a block. Zeroed; NULL
 * and ENOMEM when refused. */
static TLFL_NOINLINE void *block_new_any(size_t size, size_t align, size_t spare, int before)
{
    if (size > GUARDED_SIZE_MAX || align > GUARDED_SIZE_MAX) {
        errno = ENOMEM;
        return NULL;
    }
    size = size == 0 ? 1 : size;
    void *block = block_try(size, align, spare);
    if (block == NULL && held_clear())
        block = block_try(size, align, 0);
    errno = block == NULL ? ENOMEM : before;
    return block;
}

/* The same without spare: small blocks that are there at once. */
TLFL_INLINE void *block_new(size_t size, size_t align)
{
    int before = errno;
    void *block = NULL;
    secret_enter();
    align = align < BLOCK_ALIGN ? BLOCK_ALIGN : align;
    if (TLFL_LIKELY(size != 0 && small_fits(size, align)))
        block = tlfl__small_new(size, align);
    return TLFL_LIKELY(block != NULL) ? block : block_new_any(size, align, 0, before);
}

/* A live block: with a head if it is small, a record if it is large. */
struct found {
    const struct span *span;
    struct head *head;
    struct guarded *guarded;
    size_t size, align;
};

static struct found block_find(void *pointer, const char *call)
{
    struct found found = {.span = map_find(pointer)};
    secret_enter();
    if (TLFL_UNLIKELY(found.span == NULL))
        tlfl__fail(call, pointer, WHY_FOREIGN);
    if (TLFL_LIKELY(found.span->kind == SPAN_SMALL)) {
        found.head = tlfl__small_check(found.span, pointer, call);
        found.size = found.head->size;
        found.align = (size_t)1 << found.head->align;
    } else {
        found.guarded = tlfl__guarded_check(found.span, pointer, call);
        found.size = found.guarded->size;
        found.align = found.guarded->align;
    }
    return found;
}

/* Looks at the block as block_find does. */
TLFL_INLINE void block_free(void *pointer, const char *call)
{
    secret_enter();
    const struct span *span = map_find(pointer);
    if (TLFL_UNLIKELY(span == NULL))
        tlfl__fail(call, pointer, WHY_FOREIGN);
    if (TLFL_LIKELY(span->kind == SPAN_SMALL))
        tlfl__small_free(span, pointer, call);
    else
        tlfl__guarded_free(span, pointer, call);
}

/* Whether the block could be given another size where it is. */
static bool block_resize_in_place(struct found found, size_t size)
{
    if (found.head == NULL)
        return tlfl__guarded_resize(found.guarded, size);
    return size >= found.size >> HARDEN_KEEP_SHIFT && tlfl__small_resize(found.span, found.head, size);
}

/* A block that has nowhere to move; NULL where it is to grow. */
static void *block_shrink(void *pointer, struct found found, size_t size)
{
    if (size > found.size)
        return NULL;
    if (found.head != NULL)
        tlfl__small_resize(found.span, found.head, size);
    else
        tlfl__guarded_shrink(found.guarded, size);
    return pointer;
}

static void *block_resize(void *pointer, size_t size, const char *call)
{
    if (pointer == NULL)
        return block_new(size, BLOCK_ALIGN);
    struct found found = block_find(pointer, call);
    if (size == 0) {
        block_free(pointer, call);
        return NULL;
    }
    if (block_resize_in_place(found, size))
        return pointer;
    size_t spare = size > found.size ? size >> GUARDED_SPARE_SHIFT : 0;
    void *moved = block_new_any(size, BLOCK_ALIGN, spare, errno);
    if (moved == NULL)
        return block_shrink(pointer, found, size);
    memcpy(moved, pointer, size < found.size ? size : found.size);
    block_free(pointer, call);
    return moved;
}

static bool is_power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static void *block_aligned(size_t align, size_t size)
{
    if (TLFL_UNLIKELY(!is_power_of_two(align))) {
        errno = EINVAL;
        return NULL;
    }
    return block_new(size, align);
}

static bool product_overflows(size_t count, size_t size, size_t *total)
{
    if (TLFL_LIKELY(!__builtin_mul_overflow(count, size, total)))
        return false;
    errno = ENOMEM;
    return true;
}

size_t tlfl__harden_size(void *pointer, const char *call)
{
    return block_find(pointer, call).size;
}

void tlfl__harden_free(void *pointer, size_t align, size_t size, const char *call)
{
    if (pointer == NULL)
        return;
    struct found found = block_find(pointer, call);
    if (TLFL_UNLIKELY(found.size != (size == 0 ? 1 : size)))
        tlfl__fail(call, pointer, WHY_SIZE);
    if (TLFL_UNLIKELY(align != 0 && found.align != (align < BLOCK_ALIGN ? BLOCK_ALIGN : align)))
        tlfl__fail(call, pointer, WHY_ALIGN);
    block_free(pointer, call);
}

/* ---- exported: as api.c says, where nothing else is said ---- */

/* Zeroed. */
TLFL_API void *malloc(size_t size)
{
    return block_new(size, BLOCK_ALIGN);
}

TLFL_API void free(void *pointer)
{
    if (pointer != NULL)
        block_free(pointer, "free");
}

TLFL_API void *calloc(size_t count, size_t size)
{
    size_t total;
    return product_overflows(count, size, &total) ? NULL : block_new(total, BLOCK_ALIGN);
}

TLFL_API void *realloc(void *pointer, size_t size)
{
    return block_resize(pointer, size, "realloc");
}

TLFL_API void *reallocarray(void *pointer, size_t count, size_t size)
{
    size_t total;
    return product_overflows(count, size, &total) ? NULL : block_resize(pointer, total, "reallocarray");
}

TLFL_API void *aligned_alloc(size_t align, size_t size)
{
    return block_aligned(align, size);
}

TLFL_API void *memalign(size_t align, size_t size)
{
    return block_aligned(align, size);
}

TLFL_API int posix_memalign(void **pointer, size_t align, size_t size)
{
    if (!is_power_of_two(align) || align < sizeof(void *))
        return EINVAL;
    int before = errno;
    void *block = block_new(size, align);
    errno = before;
    if (block == NULL)
        return ENOMEM;
    *pointer = block;
    return 0;
}

TLFL_API void *valloc(size_t size)
{
    return block_new(size, tlfl__os_page());
}

TLFL_API void *pvalloc(size_t size)
{
    size_t page = tlfl__os_page();
    if (size > (size_t)PTRDIFF_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    return block_new(size_round(size == 0 ? 1 : size, page), page);
}

/* The size asked for, 1 for 0. */
TLFL_API size_t malloc_usable_size(void *pointer)
{
    return pointer == NULL ? 0 : tlfl__harden_size(pointer, "malloc_usable_size");
}

TLFL_API int malloc_trim(size_t pad)
{
    held_clear();
    return API(malloc_trim)(pad);
}

/* Aborts when the block is not of this size. */
TLFL_API void free_sized(void *pointer, size_t size)
{
    tlfl__harden_free(pointer, 0, size, "free_sized");
}

/* Aborts when the block is not of this size and alignment. */
TLFL_API void free_aligned_sized(void *pointer, size_t align, size_t size)
{
    tlfl__harden_free(pointer, align, size, "free_aligned_sized");
}

#else

_Static_assert(GRANULE_SIZE != 0, "a translation unit is not empty in ISO C");

#endif
