/* harden.c - see harden.h. */
#include "harden.h"

#ifdef TLFL_HARDENED

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "api.h"
#include "fail.h"
#include "lock.h"
#include "map.h"
#include "os.h"
#include "span.h"

/* ---- secrets and chance ---- */

/* Written once, under the central lock, before `ready`. */
static struct {
    _Atomic bool ready;
    uint64_t pattern;     /* of all bytes that are nobody's */
    uint64_t seal, state; /* keys of a seal; `state` tells a freed block's from a live one's */
    uint64_t chance;      /* key of the random numbers */
} secret;

#define PATTERN_BITS UINT64_C(0x8080808080808080) /* no zero, no ASCII; as an address it is none */

static TLFL_COLD void secret_make(void)
{
    tlfl__central_enter();
    if (!atomic_load_explicit(&secret.ready, memory_order_relaxed)) {
        uint64_t words[4];
        tlfl__os_random(words, sizeof words);
        secret.pattern = words[0] | PATTERN_BITS;
        secret.seal = words[1];
        secret.state = words[2] | 1;
        secret.chance = words[3];
        atomic_store_explicit(&secret.ready, true, memory_order_release);
    }
    tlfl__central_leave();
}

TLFL_INLINE uint64_t word_mix(uint64_t word)
{
    word = (word ^ word >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (word ^ word >> 32) * UINT64_C(0xd6e8feb86659fd93);
}

/* Number of this thread, from 1 on, and how many random numbers it has drawn. */
static TLFL_TLS uint64_t thread_number, thread_draws;

static TLFL_COLD void thread_number_take(void)
{
    static _Atomic uint32_t last;
    if (!atomic_load_explicit(&secret.ready, memory_order_acquire))
        secret_make();
    thread_number = 1 + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
}

/* 0 to below - 1. The sequence is a hash of key, thread and count: what is drawn does not tell what comes next. */
TLFL_INLINE uint32_t chance(uint32_t below)
{
    uint64_t word = word_mix(thread_draws++ + (thread_number << 40));
    return (uint32_t)((word_mix(word ^ secret.chance) >> 32) * below >> 32);
}

/* ---- the pattern ---- */

TLFL_INLINE char pattern_byte(const char *at)
{
    return (char)(secret.pattern >> ((uintptr_t)at % sizeof secret.pattern * 8));
}

static void pattern_fill(char *at, const char *end)
{
    for (; at < end && (uintptr_t)at % sizeof secret.pattern != 0; at++)
        *at = pattern_byte(at);
    for (; end - at >= (ptrdiff_t)sizeof secret.pattern; at += sizeof secret.pattern)
        memcpy(at, &secret.pattern, sizeof secret.pattern);
    for (; at < end; at++)
        *at = pattern_byte(at);
}

static bool pattern_stands(const char *at, const char *end)
{
    uint64_t word, wrong = 0;
    for (; at < end && (uintptr_t)at % sizeof word != 0; at++)
        wrong |= *at != pattern_byte(at);
    for (; end - at >= (ptrdiff_t)sizeof word; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        wrong |= word ^ secret.pattern;
    }
    for (; at < end; at++)
        wrong |= *at != pattern_byte(at);
    return wrong == 0;
}

/* ---- heads and seals ---- */

struct head {
    uint32_t size;         /* asked for, at least 1 */
    uint16_t offset;       /* from the start of the block below to the user's bytes, in BLOCK_ALIGNs */
    uint16_t align;        /* log2 */
    _Atomic uint64_t seal; /* see seal_of */
};

_Static_assert(sizeof(struct head) == BLOCK_ALIGN, "the user's bytes are aligned as the head is");
_Static_assert(CLASS_MAX / BLOCK_ALIGN <= UINT16_MAX, "an offset fits");

#define SMALL_EXTRA (sizeof(struct head) + HARDEN_CANARY)

TLFL_INLINE struct head *head_of(void *pointer)
{
    return (struct head *)pointer - 1;
}

TLFL_INLINE char *head_start(struct head *head)
{
    return (char *)(head + 1) - (size_t)head->offset * BLOCK_ALIGN;
}

TLFL_INLINE uint64_t seal_of(uintptr_t address, uint64_t first, uint64_t second)
{
    return word_mix((word_mix(address ^ secret.seal) + first) ^ second);
}

TLFL_INLINE uint64_t head_seal(const struct head *head, bool live)
{
    uint64_t word;
    memcpy(&word, head, sizeof word);
    return seal_of((uintptr_t)head, word, live ? 0 : secret.state);
}

TLFL_INLINE bool head_is(const struct head *head, bool live)
{
    return atomic_load_explicit(&head->seal, memory_order_relaxed) == head_seal(head, live);
}

static void head_set(struct head *head)
{
    atomic_store_explicit(&head->seal, head_seal(head, true), memory_order_relaxed);
}

#define WHY_FREE    "block is free already"
#define WHY_FOREIGN "not a block of this allocator, or free already"
#define WHY_INSIDE  "points into a block, not to its start"
#define WHY_HEAD    "no live block starts here, or what stands before it was overwritten"
#define WHY_BEFORE  "was written to before its start"
#define WHY_BEHIND  "was written to past its end"
#define WHY_STALE   "was written to after it was freed"
#define WHY_SIZE    "is not of the size told"
#define WHY_ALIGN   "is not of the alignment told"

/* The head of a live small block that is as it should be; `span` is what map_find found. */
static struct head *small_check(const struct span *span, char *pointer, const char *call)
{
    struct head *head = head_of(pointer);
    if (TLFL_UNLIKELY((uintptr_t)pointer % BLOCK_ALIGN != 0))
        tlfl__fail(call, pointer, WHY_INSIDE);
    if (TLFL_UNLIKELY((char *)head < span->base))
        tlfl__fail(call, pointer, WHY_HEAD);
    if (TLFL_UNLIKELY(!head_is(head, true)))
        tlfl__fail(call, pointer, head_is(head, false) ? WHY_FREE : WHY_HEAD);
    char *start = head_start(head);
    if (TLFL_UNLIKELY(!pattern_stands(start, (char *)head)))
        tlfl__fail(call, pointer, WHY_BEFORE);
    if (TLFL_UNLIKELY(!pattern_stands(pointer + head->size, start + span->size)))
        tlfl__fail(call, pointer, WHY_BEHIND);
    return head;
}

/* ---- arrays of blocks ---- */

typedef char *_Atomic slot;

TLFL_INLINE char *slot_swap(slot *at, char *block)
{
    return atomic_exchange_explicit(at, block, memory_order_acq_rel);
}

/* How many blocks of a class are worth `bytes`. */
TLFL_INLINE uint32_t class_share(unsigned class, size_t bytes, uint32_t least, uint32_t most)
{
    size_t count = bytes / class_size(class);
    return count < least ? least : count > most ? most : (uint32_t)count;
}

/* ---- the quarantine of small blocks ---- */

static struct held {
    slot mixed[HARDEN_HELD]; /* users' pointers */
    slot queue[HARDEN_HELD];
    _Atomic uint32_t next; /* place in the queue */
} quarantine[CLASS_COUNT];

/* Lets a block go to the family below. */
static void held_leave(char *pointer)
{
    struct head *head = head_of(pointer);
    if (TLFL_UNLIKELY(!head_is(head, false)))
        tlfl__fail("quarantine", pointer, WHY_STALE);
    char *start = head_start(head);
    const struct span *span = map_find(start);
    if (TLFL_UNLIKELY(!pattern_stands(start, (char *)head) || !pattern_stands(pointer, start + span->size)))
        tlfl__fail("quarantine", pointer, WHY_STALE);
    API(free)(start);
}

static void held_put(struct held *held, unsigned class, char *pointer)
{
    uint32_t count = class_share(class, HARDEN_HELD_BYTES, HARDEN_HELD_MIN, HARDEN_HELD);
    char *out = slot_swap(&held->mixed[chance(count)], pointer);
    if (out == NULL)
        return;
    uint32_t next = atomic_fetch_add_explicit(&held->next, 1, memory_order_relaxed);
    out = slot_swap(&held->queue[next % count], out);
    if (out != NULL)
        held_leave(out);
}

/* ---- the stock of small blocks ---- */

static slot stocks[HARDEN_STOCKS][CLASS_COUNT][HARDEN_STOCK];

/* Fills empty slots as it meets them. */
static char *stock_take(unsigned class)
{
    slot *stock = stocks[thread_number % HARDEN_STOCKS][class];
    uint32_t count = class_share(class, HARDEN_STOCK_BYTES, HARDEN_STOCK_MIN, HARDEN_STOCK);
    char *start;
    do {
        start = API(malloc)(class_size(class));
        if (TLFL_UNLIKELY(start == NULL))
            return NULL;
        start = slot_swap(&stock[chance(count)], start);
    } while (TLFL_UNLIKELY(start == NULL));
    return start;
}

/* ---- large blocks ---- */

/* In the last page of the block below, behind a guard. */
struct large {
    char *base;    /* of the block below */
    char *pointer; /* the user's */
    char *first;   /* the pages between the guards: [first, end) */
    char *end;
    size_t size; /* asked for, at least 1 */
    size_t align;
    bool guarded;
    _Atomic uint64_t seal;
};

/* Freed ones, their records. */
static struct {
    _Atomic(struct large *) queue[HARDEN_FAR_KEEP];
    _Atomic uint32_t next;
    _Atomic size_t bytes;
} far;

static _Atomic uint32_t far_guarded; /* blocks with guards */

static uint64_t large_seal(const struct large *large, bool live)
{
    return seal_of((uintptr_t)large, (uintptr_t)large->pointer * 3 + large->size, live ? 0 : secret.state);
}

static bool large_is(const struct large *large, bool live)
{
    return atomic_load_explicit(&large->seal, memory_order_relaxed) == large_seal(large, live);
}

static struct large *large_record(const struct span *span)
{
    size_t page = tlfl__os_page();
    return (struct large *)(span->base + (span->bytes & -page) - page);
}

/* Puts up the guards of a block; false, and none stands, where that is too many or the system refuses. */
static bool large_guard(const struct large *large)
{
    if (atomic_fetch_add_explicit(&far_guarded, 1, memory_order_relaxed) < HARDEN_GUARDED_MAX &&
        tlfl__os_protect(large->base, (size_t)(large->first - large->base), false)) {
        if (tlfl__os_protect(large->end, (size_t)((char *)large - large->end), false))
            return true;
        tlfl__os_protect(large->base, (size_t)(large->first - large->base), true);
    }
    atomic_fetch_sub_explicit(&far_guarded, 1, memory_order_relaxed);
    return false;
}

static void *large_new(size_t size, size_t align)
{
    size_t page = tlfl__os_page(), front = 0, used = size_round(size, align < page ? align : page);
    size_t pages = GRANULE_SIZE / page; /* the user's bytes have to start in the first granule */
    if (align > page)
        front = align <= HARDEN_ALIGN_MAX ? align : 0;
    else if (pages > 2)
        front =
            page * (1 + chance(pages > 2 + HARDEN_FRONT_PAGES ? HARDEN_FRONT_PAGES : (uint32_t)pages - 2));
    size_t body = size_round(used, page), total = front + body + 3 * page;
    if (total <= CLASS_MAX)
        total = CLASS_MAX + 1;
    char *base = API(memalign)(align > GRANULE_SIZE ? align : GRANULE_SIZE, total);
    if (base == NULL)
        return NULL;
    struct large *large = large_record(map_find(base));
    *large = (struct large){.base = base, .first = base + front, .size = size, .align = align};
    large->end = large->first + body;
    large->pointer = large->end - used;
    if (!tlfl__os_purge(large->first, body)) /* else it reads as zero */
        memset(large->first, 0, body);
    pattern_fill(large->first, large->pointer);
    pattern_fill(large->pointer + size, large->end);
    large->guarded = large_guard(large);
    atomic_store_explicit(&large->seal, large_seal(large, true), memory_order_relaxed);
    return large->pointer;
}

static struct large *large_check(const struct span *span, char *pointer, const char *call)
{
    if (TLFL_UNLIKELY(span_state(span) != SPAN_FULL))
        tlfl__fail(call, pointer, WHY_FREE);
    struct large *large = large_record(span);
    bool live = large_is(large, true);
    if (TLFL_UNLIKELY(!live && !large_is(large, false)))
        tlfl__fail(call, pointer, WHY_HEAD);
    if (TLFL_UNLIKELY(pointer != large->pointer))
        tlfl__fail(call, pointer, WHY_INSIDE);
    if (TLFL_UNLIKELY(!live))
        tlfl__fail(call, pointer, WHY_FREE);
    if (TLFL_UNLIKELY(!pattern_stands(large->first, pointer)))
        tlfl__fail(call, pointer, WHY_BEFORE);
    if (TLFL_UNLIKELY(!pattern_stands(pointer + large->size, large->end)))
        tlfl__fail(call, pointer, WHY_BEHIND);
    return large;
}

/* Lets a block go to the family below. When the system does not let its pages be used again they are lost, as address
 * space only: they hold no memory. */
static void far_leave(struct large *large)
{
    char *base = large->base;
    atomic_fetch_sub_explicit(&far.bytes, large->size, memory_order_relaxed);
    if (large->guarded) {
        if (!tlfl__os_protect(base, (size_t)((char *)large - base), true))
            return;
        atomic_fetch_sub_explicit(&far_guarded, 1, memory_order_relaxed);
    }
    API(free)(base);
}

/* Puts a record, or none, into the queue and lets the one go that was in its place. */
static bool far_turn(struct large *large)
{
    uint32_t next = atomic_fetch_add_explicit(&far.next, 1, memory_order_relaxed);
    struct large *out =
        atomic_exchange_explicit(&far.queue[next % HARDEN_FAR_KEEP], large, memory_order_acq_rel);
    if (out != NULL)
        far_leave(out);
    return out != NULL;
}

static void large_free(struct large *large, const char *call)
{
    uint64_t live = large_seal(large, true);
    if (TLFL_UNLIKELY(!atomic_compare_exchange_strong(&large->seal, &live, large_seal(large, false))))
        tlfl__fail(call, large->pointer, WHY_FREE);
    size_t body = (size_t)(large->end - large->first);
    if (!tlfl__os_purge(large->first, body))
        memset(large->first, 0, body);
    if (large->guarded)
        tlfl__os_protect(large->first, body, false);
    atomic_fetch_add_explicit(&far.bytes, large->size, memory_order_relaxed);
    far_turn(large);
    for (int i = 0; i < HARDEN_FAR_KEEP && far.bytes > HARDEN_FAR_BYTES; i++)
        far_turn(NULL);
}

/* ---- giving back ---- */

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

static void stock_leave(char *start)
{
    API(free)(start);
}

/* Empties stocks and quarantines; true when there was something in them. */
static TLFL_COLD bool harden_clear(void)
{
    bool any = false;
    for (int i = 0; i < HARDEN_FAR_KEEP; i++)
        any |= far_turn(NULL);
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        any |= slots_clear(quarantine[class].mixed, HARDEN_HELD, held_leave);
        any |= slots_clear(quarantine[class].queue, HARDEN_HELD, held_leave);
        for (int i = 0; i < HARDEN_STOCKS; i++)
            any |= slots_clear(stocks[i][class], HARDEN_STOCK, stock_leave);
    }
    return any;
}

/* ---- blocks of any size ---- */

static void *small_new(size_t size, size_t align)
{
    size_t slack = align - BLOCK_ALIGN;
    unsigned class = class_of(SMALL_EXTRA + slack + size);
    char *start = stock_take(class);
    if (TLFL_UNLIKELY(start == NULL))
        return NULL;
    const char *end = start + class_size(class);
    char *pointer = (char *)size_round((uintptr_t)start + sizeof(struct head), align);
    size_t room = (size_t)(end - pointer) - size - HARDEN_CANARY;
    if (room >= align)
        pointer += chance((uint32_t)(room / align) + 1) * align;
    struct head *head = head_of(pointer);
    pattern_fill(start, (char *)head);
    memset(pointer, 0, size);
    pattern_fill(pointer + size, end);
    head->size = (uint32_t)size;
    head->offset = (uint16_t)((size_t)(pointer - start) / BLOCK_ALIGN);
    head->align = (uint16_t)size_log2(align);
    head_set(head);
    return pointer;
}

static void *block_try(size_t size, size_t align)
{
    if (TLFL_LIKELY(size <= HARDEN_SMALL_MAX) && TLFL_LIKELY(SMALL_EXTRA + align + size <= CLASS_MAX))
        return small_new(size, align);
    return large_new(size, align);
}

/* `align` is a power of two. Zeroed; NULL and ENOMEM when refused. */
static void *block_new(size_t size, size_t align)
{
    int before = errno;
    if (TLFL_UNLIKELY(thread_number == 0))
        thread_number_take();
    if (TLFL_UNLIKELY(size > PTRDIFF_MAX - (size_t)CLASS_LARGE_MAX || align > PTRDIFF_MAX)) {
        errno = ENOMEM;
        return NULL;
    }
    size += size == 0;
    align = align < BLOCK_ALIGN ? BLOCK_ALIGN : align;
    void *block = block_try(size, align);
    if (TLFL_UNLIKELY(block == NULL) && harden_clear() && (block = block_try(size, align)) != NULL)
        errno = before;
    return block;
}

/* A live block. */
struct found {
    const struct span *span;
    struct head *head;   /* small; else NULL */
    struct large *large; /* large; else NULL */
    size_t size, align;
};

static struct found block_find(void *pointer, const char *call)
{
    struct found found = {.span = map_find(pointer)};
    if (TLFL_UNLIKELY(thread_number == 0))
        thread_number_take();
    if (TLFL_UNLIKELY(found.span == NULL))
        tlfl__fail(call, pointer, WHY_FOREIGN);
    if (TLFL_LIKELY(found.span->kind == SPAN_SMALL)) {
        found.head = small_check(found.span, pointer, call);
        found.size = found.head->size;
        found.align = (size_t)1 << found.head->align;
    } else {
        found.large = large_check(found.span, pointer, call);
        found.size = found.large->size;
        found.align = found.large->align;
    }
    return found;
}

static void block_free(struct found found, const char *call)
{
    if (TLFL_UNLIKELY(found.large != NULL)) {
        large_free(found.large, call);
        return;
    }
    char *pointer = (char *)(found.head + 1);
    unsigned class = found.span->class;
    uint64_t live = head_seal(found.head, true);
    if (TLFL_UNLIKELY(
            !atomic_compare_exchange_strong(&found.head->seal, &live, head_seal(found.head, false))))
        tlfl__fail(call, pointer, WHY_FREE);
    pattern_fill(pointer, pointer + found.size);
    held_put(&quarantine[class], class, pointer);
}

/* Gives a small block another size where it is; false when that does not fit. */
static bool small_resize(struct found found, size_t size)
{
    char *pointer = (char *)(found.head + 1), *end = head_start(found.head) + found.span->size;
    if (size > (size_t)(end - pointer) || (size_t)(end - pointer) - size < HARDEN_CANARY)
        return false;
    if (size > found.size)
        memset(pointer + found.size, 0, size - found.size);
    else
        pattern_fill(pointer + size, pointer + found.size);
    found.head->size = (uint32_t)size;
    head_set(found.head);
    return true;
}

/* A large one: pages stay what they are, so it moves unless the size is nearly the same. */
static bool large_resize(struct found found, size_t size)
{
    struct large *large = found.large;
    if (size > (size_t)(large->end - large->pointer) || size < found.size - found.size / HARDEN_FRONT_PAGES)
        return false;
    if (size > found.size)
        memset(large->pointer + found.size, 0, size - found.size);
    else
        pattern_fill(large->pointer + size, large->pointer + found.size);
    large->size = size;
    atomic_store_explicit(&large->seal, large_seal(large, true), memory_order_relaxed);
    return true;
}

/* A realloc keeps a small block while at least this part of it stays in use. */
#define KEEP_SHIFT 1

static void *block_resize(void *pointer, size_t size, const char *call)
{
    if (pointer == NULL)
        return block_new(size, BLOCK_ALIGN);
    struct found found = block_find(pointer, call);
    if (size == 0) {
        block_free(found, call);
        return NULL;
    }
    if (found.head == NULL ? large_resize(found, size)
                           : size >= found.size >> KEEP_SHIFT && small_resize(found, size))
        return pointer;
    void *moved = block_new(size, BLOCK_ALIGN);
    if (moved == NULL)
        return found.head != NULL && size <= found.size && small_resize(found, size) ? pointer : NULL;
    memcpy(moved, pointer, size < found.size ? size : found.size);
    block_free(found, call);
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

/* A free that tells what it frees; `align` is 0 where it does not say. */
static void free_told(void *pointer, size_t align, size_t size, const char *call)
{
    if (pointer == NULL)
        return;
    struct found found = block_find(pointer, call);
    if (found.size != size + (size == 0))
        tlfl__fail(call, pointer, WHY_SIZE);
    if (align != 0 && found.align != (align < BLOCK_ALIGN ? BLOCK_ALIGN : align))
        tlfl__fail(call, pointer, WHY_ALIGN);
    block_free(found, call);
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
        block_free(block_find(pointer, "free"), "free");
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
    return pointer == NULL ? 0 : block_find(pointer, "malloc_usable_size").size;
}

TLFL_API int malloc_trim(size_t pad)
{
    harden_clear();
    return API(malloc_trim)(pad);
}

/* Aborts when the block is not of this size. */
TLFL_API void free_sized(void *pointer, size_t size)
{
    free_told(pointer, 0, size, "free_sized");
}

/* Aborts when the block is not of this size and alignment. */
TLFL_API void free_aligned_sized(void *pointer, size_t align, size_t size)
{
    free_told(pointer, align, size, "free_aligned_sized");
}

#else

_Static_assert(HARDEN_HELD != 0, "a translation unit is not empty in ISO C");

#endif
