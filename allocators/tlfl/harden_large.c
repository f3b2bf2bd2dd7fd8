/* harden_large.c - see harden_large.h. */
#include "harden_large.h"

#ifdef TLFL_HARDENED

#include "api.h"
#include "fail.h"
#include "harden.h"
#include "harden_secret.h"
#include "map.h"
#include "os.h"

/* Freed blocks. */
static struct {
    struct guarded *_Atomic queue[GUARDED_HELD];
    _Atomic uint32_t next; /* place in the queue */
    _Atomic size_t bytes;  /* that users had of them */
} held;

/* Blocks that left the queue, by class of the family below: guards throughout, without memory but for the record. */
static struct guarded *_Atomic idle[CLASS_LARGE_COUNT][GUARDED_IDLE];

static _Atomic uint32_t guards; /* blocks with guards, whether live, held or idle */

/* ---- records ---- */

/* As long as the block is live. */
static uint64_t guarded_seal(const struct guarded *guarded)
{
    return seal_make(guarded, word_mix((uintptr_t)guarded->pointer) + guarded->size);
}

static void guarded_set_live(struct guarded *guarded)
{
    atomic_store_explicit(&guarded->seal, guarded_seal(guarded), memory_order_relaxed);
}

static struct guarded *guarded_record(const struct span *span)
{
    size_t page = tlfl__os_page();
    return (struct guarded *)(span->base + (span->bytes & -page) - page);
}

struct guarded *tlfl__guarded_check(const struct span *span, void *pointer, const char *call)
{
    if (TLFL_UNLIKELY(span_state(span) != SPAN_FULL))
        tlfl__fail(call, pointer, WHY_FREE);
    struct guarded *guarded = guarded_record(span);
    uint64_t live = guarded_seal(guarded), seal = atomic_load_explicit(&guarded->seal, memory_order_relaxed);
    if (TLFL_UNLIKELY(seal != live && seal != seal_other(live)))
        tlfl__fail(call, pointer, WHY_HEAD);
    if (TLFL_UNLIKELY(pointer != guarded->pointer))
        tlfl__fail(call, pointer, WHY_INSIDE);
    if (TLFL_UNLIKELY(seal != live))
        tlfl__fail(call, pointer, WHY_FREE);
    if (TLFL_UNLIKELY(!pattern_stands(guarded->first, pointer)))
        tlfl__fail(call, pointer, WHY_BEFORE);
    if (TLFL_UNLIKELY(!pattern_stands((char *)pointer + guarded->size, guarded->end)))
        tlfl__fail(call, pointer, WHY_BEHIND);
    return guarded;
}

/* ---- pages ---- */

static bool pages_set(char *start, char *end, bool open)
{
    return start == end || tlfl__os_protect(start, (size_t)(end - start), open);
}

/* Puts up guards around pages that are open; false, and none stands, where there are too many or the system refuses. */
static bool pages_guard(struct guarded *guarded)
{
    if (atomic_fetch_add_explicit(&guards, 1, memory_order_relaxed) < GUARDED_MAX &&
        pages_set(guarded->base, guarded->first, false)) {
        if (pages_set(guarded->end, (char *)guarded, false))
            return true;
        pages_set(guarded->base, guarded->first, true);
    }
    atomic_fetch_sub_explicit(&guards, 1, memory_order_relaxed);
    return false;
}

/* Clears pages: the system gives zeroed ones when they are touched again. */
static void pages_wipe(char *start, char *end)
{
    if (!tlfl__os_purge(start, (size_t)(end - start)))
        memset(start, 0, (size_t)(end - start));
}

/* ---- idle blocks ---- */

/* Gives a block to the family below. When the system does not let its pages be used again they are lost, as address space
 * only: they hold no memory. */
static void idle_leave(struct guarded *guarded)
{
    if (guarded->guards) {
        if (!pages_set(guarded->base, (char *)guarded, true))
            return;
        atomic_fetch_sub_explicit(&guards, 1, memory_order_relaxed);
    }
    API(free)(guarded->base);
}

static void idle_put(struct guarded *guarded)
{
    const struct span *span = map_find(guarded->base);
    if (guarded->guards && span->kind == SPAN_LARGE)
        guarded = atomic_exchange_explicit(&idle[span->class - CLASS_COUNT][chance(GUARDED_IDLE)], guarded,
                                           memory_order_acq_rel);
    if (guarded != NULL)
        idle_leave(guarded);
}

/* NULL when there is none of the class. */
static struct guarded *idle_take(unsigned class)
{
    struct guarded *guarded = NULL;
    for (int i = 0; i < GUARDED_IDLE && guarded == NULL; i++)
        if (atomic_load_explicit(&idle[class][i], memory_order_relaxed) != NULL)
            guarded = atomic_exchange_explicit(&idle[class][i], NULL, memory_order_acq_rel);
    return guarded;
}

/* ---- freed blocks ---- */

/* Puts a block, or NULL, into the queue, and lets the one go that was in its place; whether there was one. */
static bool held_put(struct guarded *guarded)
{
    uint32_t next = atomic_fetch_add_explicit(&held.next, 1, memory_order_relaxed);
    guarded = atomic_exchange_explicit(&held.queue[next % GUARDED_HELD], guarded, memory_order_acq_rel);
    if (guarded == NULL)
        return false;
    atomic_fetch_sub_explicit(&held.bytes, guarded->size, memory_order_relaxed);
    idle_put(guarded);
    return true;
}

/* ---- where the parts of a block lie ---- */

struct layout {
    size_t front, body; /* bytes of the guard in front, and of the pages of the user's bytes */
    size_t used;        /* from the user's first byte to the guard behind */
    size_t total;       /* with a guard behind, the record, and what is no whole page at the end */
    size_t align;       /* of the whole */
};

/* The map knows a span of one block by its first granule, so the user's bytes start there. */
static size_t layout_front(size_t align, size_t page)
{
    size_t pages = GRANULE_SIZE / page;
    if (align > page)
        return align <= GUARDED_ALIGN_MAX ? align : 0;
    if (pages <= 2)
        return 0;
    return page * (1 + chance(pages - 2 < GUARDED_FRONT_PAGES ? (uint32_t)pages - 2 : GUARDED_FRONT_PAGES));
}

static struct layout layout_of(size_t size, size_t align, size_t spare)
{
    size_t page = tlfl__os_page(), used = size_round(size + spare, align < page ? align : page);
    struct layout layout = {.front = layout_front(align, page), .body = size_round(used, page), .used = used};
    size_t total = layout.front + layout.body + 3 * page;
    layout.total = total > CLASS_MAX ? total : CLASS_MAX + 1;
    layout.align = align > GRANULE_SIZE ? align : GRANULE_SIZE;
    return layout;
}

static void guarded_place(struct guarded *guarded, const struct layout *layout)
{
    guarded->first = guarded->base + layout->front;
    guarded->end = guarded->first + layout->body;
    guarded->pointer = guarded->end - layout->used;
}

/* ---- life of a block ---- */

/* One that is idle: two system calls less. NULL when there is none. */
static struct guarded *guarded_again(const struct layout *layout)
{
    if (layout->total > CLASS_LARGE_MAX || layout->align > GRANULE_SIZE)
        return NULL;
    struct guarded *guarded = idle_take(class_of_large(layout->total));
    if (guarded == NULL)
        return NULL;
    guarded_place(guarded, layout);
    if (pages_set(guarded->first, guarded->end, true))
        return guarded;
    idle_put(guarded);
    return NULL;
}

static struct guarded *guarded_fresh(const struct layout *layout)
{
    char *base = API(memalign)(layout->align, layout->total);
    if (base == NULL)
        return NULL;
    struct guarded *guarded = guarded_record(map_find(base));
    guarded->base = base;
    guarded_place(guarded, layout);
    pages_wipe(base, (char *)guarded); /* all of it, for when it is used again */
    guarded->guards = pages_guard(guarded);
    return guarded;
}

void *tlfl__guarded_new(size_t size, size_t align, size_t spare)
{
    struct layout layout = layout_of(size, align, spare);
    struct guarded *guarded = guarded_again(&layout);
    if (guarded == NULL)
        guarded = guarded_fresh(&layout);
    if (guarded == NULL)
        return NULL;
    guarded->size = size;
    guarded->align = align;
    tlfl__pattern_fill(guarded->first, guarded->pointer);
    tlfl__pattern_fill(guarded->pointer + size, guarded->end);
    guarded_set_live(guarded);
    return guarded->pointer;
}

static void guarded_end(struct guarded *guarded, const char *call)
{
    uint64_t live = guarded_seal(guarded);
    if (TLFL_UNLIKELY(!atomic_compare_exchange_strong(&guarded->seal, &live, seal_other(live))))
        tlfl__fail(call, guarded->pointer, WHY_FREE);
    pages_wipe(guarded->first, guarded->end);
    if (guarded->guards)
        pages_set(guarded->first, guarded->end, false);
    atomic_fetch_add_explicit(&held.bytes, guarded->size, memory_order_relaxed);
    held_put(guarded);
    for (int i = 0; i < GUARDED_HELD; i++) {
        if (atomic_load_explicit(&held.bytes, memory_order_relaxed) <= GUARDED_HELD_BYTES)
            break;
        held_put(NULL);
    }
}

void tlfl__guarded_free(const struct span *span, void *pointer, const char *call)
{
    guarded_end(tlfl__guarded_check(span, pointer, call), call);
}

bool tlfl__guarded_resize(struct guarded *guarded, size_t size)
{
    char *pointer = guarded->pointer;
    size_t old = guarded->size;
    if (size > (size_t)(guarded->end - pointer) || size < old - (old >> GUARDED_SPARE_SHIFT))
        return false;
    if (size > old)
        memset(pointer + old, 0, size - old);
    else
        tlfl__pattern_fill(pointer + size, guarded->end);
    guarded->size = size;
    guarded_set_live(guarded);
    return true;
}

void tlfl__guarded_shrink(struct guarded *guarded, size_t size)
{
    char *behind = guarded->pointer + size;
    char *end = (char *)size_round((uintptr_t)behind, tlfl__os_page());
    pages_wipe(end, guarded->end);
    if (!guarded->guards || pages_set(end, guarded->end, false))
        guarded->end = end;
    tlfl__pattern_fill(behind, guarded->end);
    guarded->size = size;
    guarded_set_live(guarded);
}

bool tlfl__guarded_clear(void)
{
    bool any = false;
    for (int i = 0; i < GUARDED_HELD; i++)
        any |= held_put(NULL);
    for (unsigned class = 0; class < CLASS_LARGE_COUNT; class ++)
        for (struct guarded *guarded; (guarded = idle_take(class)) != NULL; any = true)
            idle_leave(guarded);
    return any;
}

#else

_Static_assert(GUARDED_HELD != 0, "a translation unit is not empty in ISO C");

#endif
