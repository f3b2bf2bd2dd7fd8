/* huge.c - see huge.h. */
#include "huge.h"

#include "lock.h"
#include "map.h"
#include "os.h"
#include "thread.h"

/* A kept mapping serves requests down to this part of it less: a quarter, as between two classes. */
#define HUGE_SLACK_SHIFT 2

/* Under the central lock. */
static struct {
    struct span *kept[HUGE_KEEP]; /* the first `count`, the one freed last at the end */
    unsigned count;
    size_t kept_bytes;
    size_t bytes;             /* of all mappings */
    size_t peak, peak_before; /* of bytes that are not kept, since the last tick and before it */
    uint64_t ticked_ms;
} huge;

/* Called where bytes grows or kept_bytes shrinks. */
static void huge_raise(void)
{
    if (huge.bytes - huge.kept_bytes > huge.peak)
        huge.peak = huge.bytes - huge.kept_bytes;
}

/* ---- kept mappings ---- */

static struct span *huge_unkeep(unsigned i)
{
    struct span *span = huge.kept[i];
    huge.kept_bytes -= span->bytes;
    huge.count--;
    poison_lift(span->base, span->bytes);
    for (; i < huge.count; i++)
        huge.kept[i] = huge.kept[i + 1];
    return span;
}

/* The smallest of the node that holds `size` without much to spare. */
static struct span *huge_find(size_t size, size_t align, unsigned node)
{
    unsigned best = HUGE_KEEP;
    for (unsigned i = 0; i < huge.count; i++) {
        const struct span *span = huge.kept[i];
        if (span->run.first == node && span->bytes >= size && span->bytes - size <= span->bytes >> HUGE_SLACK_SHIFT &&
            ((uintptr_t)span->base & (align - 1)) == 0 &&
            (best == HUGE_KEEP || span->bytes < huge.kept[best]->bytes))
            best = i;
    }
    return best == HUGE_KEEP ? NULL : huge_unkeep(best);
}

/* Unmaps one that is in nobody's hands. The entry goes before the mapping, whose address may serve
 * another thread the moment it is free. No lock is held meanwhile: unmapping takes long. */
static void huge_drop(struct span *span)
{
    char *base = span->base;
    size_t bytes = span->bytes;
    tlfl__central_enter();
    huge.bytes -= bytes;
    tlfl__map_set(base, 1, NULL);
    tlfl__span_give(span);
    tlfl__central_leave();
    tlfl__os_unmap(base, bytes);
}

/* ---- take and give ---- */

static struct span *huge_enter(char *base, size_t size, unsigned node)
{
    struct span *span = tlfl__span_take();
    if (span == NULL)
        return NULL;
    if (!tlfl__map_reserve(base, 1)) {
        tlfl__span_give(span);
        return NULL;
    }
    span->kind = SPAN_HUGE;
    span->base = base;
    span->bytes = size;
    span->capacity = span->carved = 1;
    span->run.granules = HUGE_GRANULES;
    span->run.first = node;
    span_set_state(span, SPAN_EMPTY);
    tlfl__map_set(base, 1, span);
    huge.bytes += size;
    huge_raise();
    return span;
}

static char *huge_map(size_t size, size_t align)
{
    return align <= tlfl__os_page() ? tlfl__os_map(size) : tlfl__os_map_aligned(size, align);
}

void tlfl__huge_give(struct span *span)
{
    uint64_t now = tlfl__os_ms();
    struct span *drop[HUGE_KEEP];
    unsigned drops = 0;
    tlfl__huge_tick(now);
    tlfl__central_enter();
    size_t limit = huge.peak > huge.peak_before ? huge.peak : huge.peak_before;
    while (huge.count > 0 && (huge.count == HUGE_KEEP || huge.bytes > limit)) {
        drop[drops] = huge_unkeep(0);
        limit += drop[drops++]->bytes; /* it still counts in bytes */
    }
    span->idle_since = now;
    huge.kept_bytes += span->bytes;
    poison_set(span->base, span->bytes);
    huge.kept[huge.count++] = span;
    tlfl__central_leave();
    while (drops > 0)
        huge_drop(drop[--drops]);
}

/* The old address may serve another thread's mmap the moment the block has moved, so its entry goes
 * first; the leaf of the new address must not be refused afterwards. */
void *tlfl__huge_resize(struct span *span, size_t size)
{
    size_t page = tlfl__os_page(), old = span->bytes;
    char *base = span->base, *moved = NULL;
    if (size > (size_t)PTRDIFF_MAX - page)
        return NULL;
    size = size_round(size, page);
    if (size == old)
        return base;
    tlfl__central_enter();
    if (tlfl__map_spare()) {
        tlfl__map_set(base, 1, NULL);
        moved = tlfl__os_remap(base, old, size);
        if (moved != NULL) {
            tlfl__map_reserve(moved, 1);
            span->base = moved;
            span->bytes = size;
            huge.bytes += size - old;
            huge_raise();
        }
        tlfl__map_set(span->base, 1, span);
    }
    tlfl__central_leave();
    return moved;
}

/* The mapping freed last, of the node, made as long as is asked for: its pages need no faults, and next
 * to it the new block would be one too many. NULL where there is none, or the OS refuses. */
static struct span *huge_make_fit(size_t size, unsigned node)
{
    struct span *span = NULL;
    tlfl__central_enter();
    for (unsigned i = huge.count; span == NULL && i-- > 0;)
        if (huge.kept[i]->run.first == node && huge.kept[i]->bytes / 2 <= size) /* rather than halve one */
            span = huge_unkeep(i);
    tlfl__central_leave();
    if (span == NULL || tlfl__huge_resize(span, size) != NULL)
        return span;
    huge_drop(span);
    return NULL;
}

struct span *tlfl__huge_take(size_t size, size_t align)
{
    /* An aligned one starts with a granule, and must not leave the rest of it to another mapping. */
    size = size_round(size == 0 ? 1 : size, align > tlfl__os_page() ? GRANULE_SIZE : tlfl__os_page());
    unsigned node = tlfl__os_node();
    tlfl__central_enter();
    struct span *span = huge_find(size, align, node);
    huge_raise();
    tlfl__central_leave();
    if (span == NULL && align <= tlfl__os_page())
        span = huge_make_fit(size, node);
    if (span != NULL) {
        span->zero = false;
        return span;
    }
    char *base = huge_map(size, align);
    if (base == NULL && tlfl__thread_trim())
        base = huge_map(size, align);
    if (base == NULL)
        return NULL;
    tlfl__os_home(base, size, node);
    tlfl__central_enter();
    span = huge_enter(base, size, node);
    tlfl__central_leave();
    if (span == NULL)
        tlfl__os_unmap(base, size);
    else
        span->zero = true;
    return span;
}

/* ---- giving back ---- */

/* The mapping kept for longest, if that is since before `before`. */
static struct span *huge_oldest(uint64_t before)
{
    tlfl__central_enter();
    struct span *span = huge.count > 0 && huge.kept[0]->idle_since <= before ? huge_unkeep(0) : NULL;
    tlfl__central_leave();
    return span;
}

void tlfl__huge_tick(uint64_t now)
{
    tlfl__central_enter();
    bool due = now - huge.ticked_ms >= POOL_TICK_MS;
    if (due) {
        huge.ticked_ms = now;
        huge.peak_before = huge.peak;
        huge.peak = huge.bytes - huge.kept_bytes;
    }
    tlfl__central_leave();
    for (struct span *span; due && (span = huge_oldest(now - HUGE_IDLE_MS)) != NULL;)
        huge_drop(span);
}

bool tlfl__huge_clear(void)
{
    bool any = false;
    for (struct span *span; (span = huge_oldest(UINT64_MAX)) != NULL; any = true)
        huge_drop(span);
    return any;
}

size_t tlfl__huge_bytes(void)
{
    return huge.bytes;
}
