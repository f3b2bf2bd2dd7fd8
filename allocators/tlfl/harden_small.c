/* harden_small.c - see harden_small.h. */
#include "harden_small.h"

#ifdef TLFL_HARDENED

#include "api.h"
#include "fail.h"
#include "harden.h"
#include "harden_secret.h"
#include "map.h"

/* ---- heads ---- */

TLFL_INLINE char *head_start(struct head *head)
{
    return (char *)(head + 1) - (size_t)head->offset * BLOCK_ALIGN;
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

/* The end of a block of the family below, which may have lent one of a larger class than was asked for. */
TLFL_INLINE char *start_end(char *start)
{
    return start + map_find(start)->size;
}

/* Looks before the head first: the granule below may not be there. */
struct head *tlfl__small_check(const struct span *span, void *pointer, const char *call)
{
    struct head *head = (struct head *)pointer - 1;
    if (TLFL_UNLIKELY((uintptr_t)pointer % BLOCK_ALIGN != 0))
        tlfl__fail(call, pointer, WHY_INSIDE);
    if (TLFL_UNLIKELY((char *)head < span->base))
        tlfl__fail(call, pointer, WHY_HEAD);
    uint64_t live = head_seal(head), seal = atomic_load_explicit(&head->seal, memory_order_relaxed);
    if (TLFL_UNLIKELY(seal != live))
        tlfl__fail(call, pointer, seal == seal_other(live) ? WHY_FREE : WHY_HEAD);
    const char *start = head_start(head);
    if (TLFL_UNLIKELY(!tlfl__pattern_stands(start, (char *)head)))
        tlfl__fail(call, pointer, WHY_BEFORE);
    if (TLFL_UNLIKELY(!tlfl__pattern_stands((char *)pointer + head->size, start + span->size)))
        tlfl__fail(call, pointer, WHY_BEHIND);
    return head;
}

/* ---- arrays of blocks ---- */

typedef char *_Atomic slot;

TLFL_INLINE char *slot_swap(slot *at, char *block)
{
    return atomic_exchange_explicit(at, block, memory_order_acq_rel);
}

static bool slots_clear(slot *slots, uint32_t count, void (*leave)(char *))
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        char *block = slot_swap(&slots[i], NULL);
        if (block != NULL)
            leave(block);
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

/* Lets a block go to the family below. */
static void held_leave(char *pointer)
{
    struct head *head = (struct head *)pointer - 1;
    uint64_t freed = seal_other(head_seal(head));
    if (TLFL_UNLIKELY(atomic_load_explicit(&head->seal, memory_order_relaxed) != freed))
        tlfl__fail("quarantine", pointer, WHY_STALE);
    char *start = head_start(head);
    const char *end = start_end(start);
    if (TLFL_UNLIKELY(!tlfl__pattern_stands(start, (char *)head) || !tlfl__pattern_stands(pointer, end)))
        tlfl__fail("quarantine", pointer, WHY_STALE);
    API(free)(start);
}

static void held_put(unsigned class, char *pointer)
{
    struct held *held = &quarantine[class];
    uint32_t count = class_share(&held->share, class, SMALL_HELD_BYTES, SMALL_HELD_MIN, SMALL_HELD);
    char *out = slot_swap(&held->mixed[chance(count)], pointer);
    if (out == NULL)
        return;
    uint32_t next = atomic_fetch_add_explicit(&held->next, 1, memory_order_relaxed);
    out = slot_swap(&held->queue[next & (count - 1)], out);
    if (out != NULL)
        held_leave(out);
}

/* ---- stock ---- */

/* Starts of blocks of the family below. */
static slot stocks[SMALL_STOCKS][CLASS_COUNT][SMALL_STOCK];
static _Atomic uint32_t stock_shares[CLASS_COUNT]; /* slots that are used */

TLFL_INLINE bool stock_patterned(unsigned class)
{
    return class_size(class) <= SMALL_STOCK_PATTERNED;
}

/* Fills empty slots as it meets them. */
static char *stock_take(unsigned class)
{
    slot *stock = stocks[tlfl__thread_number % SMALL_STOCKS][class];
    uint32_t count =
        class_share(&stock_shares[class], class, SMALL_STOCK_BYTES, SMALL_STOCK_MIN, SMALL_STOCK);
    char *start;
    do {
        start = API(malloc)(class_size(class));
        if (TLFL_UNLIKELY(start == NULL))
            return NULL;
        if (stock_patterned(class))
            tlfl__pattern_fill(start, start_end(start));
        start = slot_swap(&stock[chance(count)], start);
    } while (TLFL_UNLIKELY(start == NULL));
    if (stock_patterned(class) && TLFL_UNLIKELY(!tlfl__pattern_stands(start, start_end(start))))
        tlfl__fail("malloc", start, WHY_UNUSED);
    return start;
}

static void stock_leave(char *start)
{
    API(free)(start);
}

/* ---- life of a block ---- */

void *tlfl__small_new(size_t size, size_t align)
{
    unsigned class = class_of(sizeof(struct head) + (align - BLOCK_ALIGN) + size + SMALL_CANARY);
    char *start = stock_take(class);
    if (TLFL_UNLIKELY(start == NULL))
        return NULL;
    const char *end = start_end(start);
    char *pointer = (char *)size_round((uintptr_t)start + sizeof(struct head), align);
    size_t room = (size_t)(end - pointer) - size - SMALL_CANARY;
    if (room >= align)
        pointer += chance((uint32_t)(room / align) + 1) * align;
    struct head *head = (struct head *)pointer - 1;
    memset(pointer, 0, size);
    if (!stock_patterned(class)) {
        tlfl__pattern_fill(start, (char *)head);
        tlfl__pattern_fill(pointer + size, end);
    }
    head->size = (uint32_t)size;
    head->offset = (uint16_t)((size_t)(pointer - start) / BLOCK_ALIGN);
    head->align = (uint16_t)size_log2(align);
    head_set_live(head);
    return pointer;
}

void tlfl__small_free(const struct span *span, struct head *head, const char *call)
{
    char *pointer = (char *)(head + 1);
    uint64_t live = head_seal(head);
    if (TLFL_UNLIKELY(!atomic_compare_exchange_strong(&head->seal, &live, seal_other(live))))
        tlfl__fail(call, pointer, WHY_FREE);
    tlfl__pattern_fill(pointer, pointer + head->size);
    held_put(span->class, pointer);
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
        tlfl__pattern_fill(pointer + size, pointer + old);
    head->size = (uint32_t)size;
    head_set_live(head);
    return true;
}

bool tlfl__small_clear(void)
{
    bool any = false;
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        any |= slots_clear(quarantine[class].mixed, SMALL_HELD, held_leave);
        any |= slots_clear(quarantine[class].queue, SMALL_HELD, held_leave);
        for (int i = 0; i < SMALL_STOCKS; i++)
            any |= slots_clear(stocks[i][class], SMALL_STOCK, stock_leave);
    }
    return any;
}

#else

_Static_assert(SMALL_HELD != 0, "a translation unit is not empty in ISO C");

#endif
