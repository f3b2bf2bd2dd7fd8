/* harden_small.c - see harden_small.h. */
#include "harden_small.h"

#ifdef TLFL_HARDENED

#include "api.h"
#include "fail.h"
#include "harden.h"
#include "harden_secret.h"
#include "heap.h"
#include "map.h"

_Static_assert(HEAP_DEBUT == 0, "a class of up to SMALL_STOCK_PATTERNED gets blocks of its own size");

/* ---- heads ---- */

TLFL_INLINE char *head_start(struct head *head)
{
    return (char *)(head + 1) - (size_t)head->offset * BLOCK_ALIGN;
}

/* What lies before the head, if anything. */
TLFL_INLINE bool gap_holds(struct head *head)
{
    const char *start = head_start(head);
    return TLFL_LIKELY(start == (char *)head) || pattern_holds(start, (char *)head);
}

/* As long as the block is live. */
TLFL_INLINE uint64_t head_seal(const struct head *head)
{
    uint64_t word;
    memcpy(&word, head, sizeof word);
    return seal_make(head, word);
}

TLFL_INLINE void head_set_live(struct head *head)
{
    atomic_store_explicit(&head->seal, head_seal(head), memory_order_relaxed);
}

/* Looks before the head first: the granule below may not be there. */
TLFL_INLINE struct head *head_check(const struct span *span, void *pointer, const char *call, uint64_t *live)
{
    struct head *head = (struct head *)pointer - 1;
    if (TLFL_UNLIKELY((uintptr_t)pointer % BLOCK_ALIGN != 0))
        tlfl__fail(call, pointer, WHY_INSIDE);
    if (TLFL_UNLIKELY((char *)head < span->base))
        tlfl__fail(call, pointer, WHY_HEAD);
    *live = head_seal(head);
    uint64_t seal = atomic_load_explicit(&head->seal, memory_order_relaxed);
    if (TLFL_UNLIKELY(seal != *live))
        tlfl__fail(call, pointer, seal == seal_other(*live) ? WHY_FREE : WHY_HEAD);
    if (TLFL_UNLIKELY(!gap_holds(head)))
        tlfl__fail(call, pointer, WHY_BEFORE);
    if (TLFL_UNLIKELY(!pattern_stands((char *)pointer + head->size, head_start(head) + span->size)))
        tlfl__fail(call, pointer, WHY_BEHIND);
    return head;
}

struct head *tlfl__small_check(const struct span *span, void *pointer, const char *call)
{
    uint64_t live;
    return head_check(span, pointer, call, &live);
}

/* ---- arrays of blocks ---- */

typedef char *_Atomic slot;

TLFL_INLINE char *slot_swap(slot *at, char *block)
{
    return atomic_exchange_explicit(at, block, memory_order_acq_rel);
}

/* `bytes` is the size of their class. */
static bool slots_clear(slot *slots, uint32_t count, size_t bytes, void (*leave)(char *, size_t))
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        char *block = slot_swap(&slots[i], NULL);
        if (block != NULL)
            leave(block, bytes);
        any |= block != NULL;
    }
    return any;
}

/* How many blocks of a class are worth `bytes`: a power of two, kept in `known` since it costs a division. */
TLFL_INLINE uint32_t class_share(_Atomic uint32_t *known, unsigned class, size_t bytes, uint32_t least,
                                 uint32_t most)
{
    uint32_t share = atomic_load_explicit(known, memory_order_relaxed);
    if (TLFL_UNLIKELY(share == 0)) {
        size_t count = bytes / class_size(class);
        share = count < least ? least : count > most ? most : 1u << size_log2(count);
        atomic_store_explicit(known, share, memory_order_relaxed);
    }
    return share;
}

/* ---- quarantine ---- */

static struct held {
    slot mixed[SMALL_HELD]; /* users' pointers */
    slot queue[SMALL_HELD];
    _Atomic uint32_t next;  /* place in the queue */
    _Atomic uint32_t share; /* slots that are used of either */
} quarantine[CLASS_COUNT];

/* Lets a block of `bytes` go to the family below. */
static void held_leave(char *pointer, size_t bytes)
{
    struct head *head = (struct head *)pointer - 1;
    uint64_t freed = seal_other(head_seal(head));
    if (TLFL_UNLIKELY(atomic_load_explicit(&head->seal, memory_order_relaxed) != freed))
        tlfl__fail("quarantine", pointer, WHY_STALE);
    char *start = head_start(head);
    if (TLFL_UNLIKELY(!gap_holds(head) || !pattern_holds(pointer, start + bytes)))
        tlfl__fail("quarantine", pointer, WHY_STALE);
    API(free)(start);
}

static void held_put(unsigned class, size_t bytes, char *pointer)
{
    struct held *held = &quarantine[class];
    uint32_t count = class_share(&held->share, class, SMALL_HELD_BYTES, SMALL_HELD_MIN, SMALL_HELD);
    char *out = slot_swap(&held->mixed[chance(count)], pointer);
    if (out == NULL)
        return;
    uint32_t next = atomic_fetch_add_explicit(&held->next, 1, memory_order_relaxed);
    out = slot_swap(&held->queue[next & (count - 1)], out);
    if (out != NULL)
        held_leave(out, bytes);
}

/* ---- stock ---- */

/* Starts of blocks of the family below. */
static slot stocks[SMALL_STOCKS][CLASS_COUNT][SMALL_STOCK];
static _Atomic uint32_t stock_shares[CLASS_COUNT]; /* slots that are used */

/* A block of `class`, which is of `bytes`; fills empty slots as it meets them. */
static char *stock_take(unsigned class, size_t bytes)
{
    slot *stock = stocks[tlfl__thread_number % SMALL_STOCKS][class];
    uint32_t count =
        class_share(&stock_shares[class], class, SMALL_STOCK_BYTES, SMALL_STOCK_MIN, SMALL_STOCK);
    bool patterned = bytes <= SMALL_STOCK_PATTERNED;
    char *start;
    do {
        start = API(malloc)(bytes);
        if (TLFL_UNLIKELY(start == NULL))
            return NULL;
        if (patterned)
            pattern_set(start, start + bytes);
        start = slot_swap(&stock[chance(count)], start);
    } while (TLFL_UNLIKELY(start == NULL));
    if (patterned && TLFL_UNLIKELY(!pattern_holds(start, start + bytes)))
        tlfl__fail("malloc", start, WHY_UNUSED);
    return start;
}

static void stock_leave(char *start, size_t bytes)
{
    (void)bytes;
    API(free)(start);
}

/* ---- life of a block ---- */

void *tlfl__small_new(size_t size, size_t align)
{
    unsigned class = class_of(sizeof(struct head) + (align - BLOCK_ALIGN) + size + SMALL_CANARY);
    size_t bytes = class_size(class);
    char *start = stock_take(class, bytes);
    if (TLFL_UNLIKELY(start == NULL))
        return NULL;
    if (TLFL_UNLIKELY(bytes > SMALL_STOCK_PATTERNED))
        bytes = map_find(start)->size; /* a class of pages may get a larger block */
    const char *end = start + bytes;
    char *pointer = (char *)size_round((uintptr_t)start + sizeof(struct head), align);
    size_t room = (size_t)(end - pointer) - size - SMALL_CANARY;
    if (room >= align)
        pointer += chance((uint32_t)(room / align) + 1) * align;
    struct head *head = (struct head *)pointer - 1;
    memset(pointer, 0, size);
    if (TLFL_UNLIKELY(bytes > SMALL_STOCK_PATTERNED)) {
        pattern_set(start, (char *)head);
        tlfl__pattern_fill(pointer + size, end);
    }
    head->size = (uint32_t)size;
    head->offset = (uint16_t)((size_t)(pointer - start) / BLOCK_ALIGN);
    head->align = (uint16_t)size_log2(align);
    head_set_live(head);
    return pointer;
}

/* Of two frees that have both seen the seal of a live block, one finds it gone. What follows the user's bytes to the end of
 * a pair holds the pattern already. */
TLFL_INLINE void head_end(const struct span *span, struct head *head, uint64_t live, const char *call)
{
    char *pointer = (char *)(head + 1);
    if (TLFL_UNLIKELY(!atomic_compare_exchange_strong(&head->seal, &live, seal_other(live))))
        tlfl__fail(call, pointer, WHY_FREE);
    pattern_set(pointer, pointer + size_round(head->size, sizeof(pair)));
    held_put(span->class, span->size, pointer);
}

void tlfl__small_free(const struct span *span, void *pointer, const char *call)
{
    uint64_t live;
    struct head *head = head_check(span, pointer, call, &live);
    head_end(span, head, live, call);
}

bool tlfl__small_resize(const struct span *span, struct head *head, size_t size)
{
    char *pointer = (char *)(head + 1);
    size_t room = (size_t)(head_start(head) + span->size - pointer), old = head->size;
    if (size > room || room - size < SMALL_CANARY)
        return false;
    if (size > old)
        memset(pointer + old, 0, size - old);
    else
        tlfl__pattern_fill(pointer + size, pointer + size_round(old, sizeof(pair)));
    head->size = (uint32_t)size;
    head_set_live(head);
    return true;
}

bool tlfl__small_clear(void)
{
    bool any = false;
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        size_t bytes = class_size(class);
        any |= slots_clear(quarantine[class].mixed, SMALL_HELD, bytes, held_leave);
        any |= slots_clear(quarantine[class].queue, SMALL_HELD, bytes, held_leave);
        for (int i = 0; i < SMALL_STOCKS; i++)
            any |= slots_clear(stocks[i][class], SMALL_STOCK, bytes, stock_leave);
    }
    return any;
}

#else

_Static_assert(SMALL_HELD != 0, "a translation unit is not empty in ISO C");

#endif
