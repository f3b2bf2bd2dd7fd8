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

static _Atomic uint32_t guards; /* blocks with guards, freed ones too */

static uint64_t guarded_seal(const struct guarded *guarded, bool live)
{
    return seal_make(guarded, word_mix((uintptr_t)guarded->pointer) + guarded->size, live);
}

static bool guarded_is(const struct guarded *guarded, bool live)
{
    return atomic_load_explicit(&guarded->seal, memory_order_relaxed) == guarded_seal(guarded, live);
}

static void guarded_set_live(struct guarded *guarded)
{
    atomic_store_explicit(&guarded->seal, guarded_seal(guarded, true), memory_order_relaxed);
}

static struct guarded *guarded_record(const struct span *span)
{
    size_t page = tlfl__os_page();
    return (struct guarded *)(span->base + (span->bytes & -page) - page);
}

static bool guard_set(char *start, char *end, bool open)
{
    return start == end || tlfl__os_protect(start, (size_t)(end - start), open);
}

/* Puts up both guards; false, and none stands, where there are too many or the system refuses. */
static bool guarded_close(struct guarded *guarded)
{
    if (atomic_fetch_add_explicit(&guards, 1, memory_order_relaxed) < GUARDED_MAX &&
        guard_set(guarded->base, guarded->first, false)) {
        if (guard_set(guarded->end, (char *)guarded, false))
            return true;
        guard_set(guarded->base, guarded->first, true);
    }
    atomic_fetch_sub_explicit(&guards, 1, memory_order_relaxed);
    return false;
}

/* Clears the pages: it is cheaper for the system to give zeroed ones when they are touched again. */
static void guarded_wipe(struct guarded *guarded)
{
    size_t bytes = (size_t)(guarded->end - guarded->first);
    if (!tlfl__os_purge(guarded->first, bytes))
        memset(guarded->first, 0, bytes);
}

/* The map knows a span of one block by its first granule, so the user's bytes start there. */
static size_t guarded_front(size_t align, size_t page)
{
    size_t pages = GRANULE_SIZE / page;
    if (align > page)
        return align <= GUARDED_ALIGN_MAX ? align : 0;
    if (pages <= 2)
        return 0;
    return page * (1 + chance(pages - 2 < GUARDED_FRONT_PAGES ? (uint32_t)pages - 2 : GUARDED_FRONT_PAGES));
}

void *tlfl__guarded_new(size_t size, size_t align, size_t spare)
{
    size_t page = tlfl__os_page(), front = guarded_front(align, page);
    size_t used = size_round(size + spare, align < page ? align : page), body = size_round(used, page);
    size_t total = front + body + 3 * page; /* a guard, the record, and what is no whole page at the end */
    char *base =
        API(memalign)(align > GRANULE_SIZE ? align : GRANULE_SIZE, total > CLASS_MAX ? total : CLASS_MAX + 1);
    if (base == NULL)
        return NULL;
    struct guarded *guarded = guarded_record(map_find(base));
    char *first = base + front, *end = first + body;
    *guarded = (struct guarded){
        .base = base, .first = first, .end = end, .pointer = end - used, .size = size, .align = align};
    guarded_wipe(guarded);
    tlfl__pattern_fill(first, guarded->pointer);
    tlfl__pattern_fill(guarded->pointer + size, end);
    guarded->guards = guarded_close(guarded);
    guarded_set_live(guarded);
    return guarded->pointer;
}

struct guarded *tlfl__guarded_check(const struct span *span, void *pointer, const char *call)
{
    if (TLFL_UNLIKELY(span_state(span) != SPAN_FULL))
        tlfl__fail(call, pointer, WHY_FREE);
    struct guarded *guarded = guarded_record(span);
    bool live = guarded_is(guarded, true);
    if (TLFL_UNLIKELY(!live && !guarded_is(guarded, false)))
        tlfl__fail(call, pointer, WHY_HEAD);
    if (TLFL_UNLIKELY(pointer != guarded->pointer))
        tlfl__fail(call, pointer, WHY_INSIDE);
    if (TLFL_UNLIKELY(!live))
        tlfl__fail(call, pointer, WHY_FREE);
    if (TLFL_UNLIKELY(!tlfl__pattern_stands(guarded->first, pointer)))
        tlfl__fail(call, pointer, WHY_BEFORE);
    if (TLFL_UNLIKELY(!tlfl__pattern_stands((char *)pointer + guarded->size, guarded->end)))
        tlfl__fail(call, pointer, WHY_BEHIND);
    return guarded;
}

/* Lets a block go to the family below. When the system does not let its pages be used again they are lost, as address
 * space only: they hold no memory. */
static void held_leave(struct guarded *guarded)
{
    atomic_fetch_sub_explicit(&held.bytes, guarded->size, memory_order_relaxed);
    if (guarded->guards) {
        if (!guard_set(guarded->base, (char *)guarded, true))
            return;
        atomic_fetch_sub_explicit(&guards, 1, memory_order_relaxed);
    }
    API(free)(guarded->base);
}

/* Puts a block, or NULL, into the queue, and lets the one go that was in its place. */
static bool held_put(struct guarded *guarded)
{
    uint32_t next = atomic_fetch_add_explicit(&held.next, 1, memory_order_relaxed);
    guarded = atomic_exchange_explicit(&held.queue[next % GUARDED_HELD], guarded, memory_order_acq_rel);
    if (guarded != NULL)
        held_leave(guarded);
    return guarded != NULL;
}

void tlfl__guarded_free(struct guarded *guarded, const char *call)
{
    uint64_t live = guarded_seal(guarded, true);
    if (TLFL_UNLIKELY(!atomic_compare_exchange_strong(&guarded->seal, &live, guarded_seal(guarded, false))))
        tlfl__fail(call, guarded->pointer, WHY_FREE);
    guarded_wipe(guarded);
    if (guarded->guards)
        guard_set(guarded->first, guarded->end, false);
    size_t bytes =
        atomic_fetch_add_explicit(&held.bytes, guarded->size, memory_order_relaxed) + guarded->size;
    held_put(guarded);
    for (int i = 0; i < GUARDED_HELD && bytes > GUARDED_HELD_BYTES; i++) {
        held_put(NULL);
        bytes = atomic_load_explicit(&held.bytes, memory_order_relaxed);
    }
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
        tlfl__pattern_fill(pointer + size, pointer + old);
    guarded->size = size;
    guarded_set_live(guarded);
    return true;
}

bool tlfl__guarded_clear(void)
{
    bool any = false;
    for (int i = 0; i < GUARDED_HELD; i++)
        any |= held_put(NULL);
    return any;
}

#else

_Static_assert(GUARDED_HELD != 0, "a translation unit is not empty in ISO C");

#endif
