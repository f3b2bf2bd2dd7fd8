/*
 * calls.c - malloc's family as the recorded program sees it.
 *
 * Every block is asked for with a label more, which lies in the last bytes that malloc_usable_size knows: the name of the
 * object, and a check made of name and address. So a free knows its object without any table or lock, whichever thread it
 * is on, and the program's own pointers, alignments and contents are as without the recorder; malloc_usable_size leaves
 * the label out. A block without a valid label was there before, is inherited from the parent of a fork (its name is of
 * another era), or comes from a call that is not in this family: it is recorded as INHERIT when it is first met.
 *
 * An event that makes an object is written after the call that served it, one that takes it before: in between nobody else
 * can have the block.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "journal.h"

#define LABEL_BYTES     sizeof(struct label)
#define NUMBER_BITS     40
#define ERA_SHIFT       56
#define SECRET          0x9d3f5b7264c1e8a5u
#define BOOTSTRAP_BYTES 65536
#define ALIGN_DEFAULT   16

#define EXPORTED __attribute__((visibility("default")))

struct label { uint64_t name, check; };

static struct {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    size_t (*usable)(void *);
} next;

/* What dlsym itself asks for while the functions are looked up; never given back. */
static _Alignas(ALIGN_DEFAULT) char bootstrap[BOOTSTRAP_BYTES];
static size_t bootstrap_used;

static void *bootstrap_take(size_t size)
{
    size_t whole = (size + ALIGN_DEFAULT - 1) / ALIGN_DEFAULT * ALIGN_DEFAULT;
    size_t at = __atomic_fetch_add(&bootstrap_used, whole, __ATOMIC_RELAXED);
    return at + size <= sizeof bootstrap ? bootstrap + at : NULL;
}

static bool is_bootstrap(const void *block)
{
    return (const char *)block >= bootstrap && (const char *)block < bootstrap + sizeof bootstrap;
}

void calls_find(void)
{
    static __thread bool finding __attribute__((tls_model("initial-exec")));
    if (next.usable != NULL || finding)
        return;
    finding = true;
    next.malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    next.free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    next.calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    next.realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    next.posix_memalign = (int (*)(void **, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
    next.usable = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    finding = false;
}

const void *calls_served(void)
{
    return (const void *)(uintptr_t)next.malloc;
}

/* True once the next object serves; asked where nothing is recorded yet. */
static bool ready(void)
{
    if (__builtin_expect(next.usable == NULL, 0))
        calls_find();
    return __builtin_expect(next.usable != NULL, 1);
}

void *calls_own(size_t size)
{
    return ready() ? next.malloc(size) : NULL;
}

void calls_own_free(void *block)
{
    next.free(block);
}

/* ---- labels ---- */

static inline uint64_t label_check(uint64_t name, const void *block)
{
    uint64_t mixed = (name ^ SECRET) * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)block;
    return mixed ^ mixed >> 29;
}

static inline void label_put(void *block, size_t usable, uint64_t name)
{
    struct label l = { name, label_check(name, block) };
    __builtin_memcpy((char *)block + usable - LABEL_BYTES, &l, sizeof l);
}

static inline bool label_get(const void *block, size_t usable, uint64_t *name)
{
    struct label l;
    if (usable < LABEL_BYTES)
        return false;
    __builtin_memcpy(&l, (const char *)block + usable - LABEL_BYTES, sizeof l);
    *name = l.name;
    return l.check == label_check(l.name, block);
}

static inline uint64_t name_make(const struct journal *j)
{
    return (uint64_t)(j->era & 0xff) << ERA_SHIFT | (uint64_t)j->thread << NUMBER_BITS | j->made;
}

/* ---- events ---- */

/* After a block came. */
static inline __attribute__((always_inline)) void *made(struct journal *j, void *block, enum event_kind kind,
                                                        size_t size, unsigned align_log2)
{
    if (__builtin_expect(block == NULL, 0))
        return NULL;
    struct event e = { .kind = kind, .size = size, .align_log2 = align_log2 };
    label_put(block, next.usable(block), name_make(j));
    journal_add(j, &e);
    return block;
}

/* A block that was there before gets a name. */
static __attribute__((noinline)) uint64_t inherit(struct journal *j, size_t size)
{
    struct event e = { .kind = EVENT_INHERIT, .size = size };
    uint64_t name = name_make(j);
    journal_add(j, &e);
    return name;
}

/* The name of a block, for an event that takes it. */
static inline void name_get(struct journal *j, void *block, struct event *e)
{
    size_t usable = next.usable(block);
    uint64_t name;
    bool labelled = label_get(block, usable, &name);
    if (__builtin_expect(!labelled || name >> ERA_SHIFT != (j->era & 0xff), 0))
        name = inherit(j, labelled ? usable - LABEL_BYTES : usable);
    e->thread = (uint32_t)(name >> NUMBER_BITS & 0xffff);
    e->number = name & ((1ull << NUMBER_BITS) - 1);
}

static inline bool fits(size_t size)
{
    return size <= PTRDIFF_MAX - LABEL_BYTES;
}

/* ---- the family ---- */

EXPORTED void *malloc(size_t size)
{
    struct journal *j = fits(size) ? journal_enter() : NULL;
    if (__builtin_expect(j == NULL, 0))
        return ready() ? next.malloc(size) : bootstrap_take(size);
    void *block = made(j, next.malloc(size + LABEL_BYTES), EVENT_MALLOC, size, 0);
    journal_leave(j);
    return block;
}

EXPORTED void free(void *block)
{
    if (block == NULL || is_bootstrap(block))
        return;
    struct journal *j = journal_enter();
    if (__builtin_expect(j == NULL, 0)) {
        if (ready())
            next.free(block);
        return;
    }
    struct event e = { .kind = EVENT_FREE };
    name_get(j, block, &e);
    journal_add(j, &e);
    next.free(block);
    journal_leave(j);
}

EXPORTED void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    if (!ready())
        return bootstrap_take(bytes);
    struct journal *j = fits(bytes) ? journal_enter() : NULL;
    if (__builtin_expect(j == NULL, 0))
        return next.calloc(1, bytes);
    void *block = made(j, next.calloc(1, bytes + LABEL_BYTES), EVENT_CALLOC, bytes, 0);
    journal_leave(j);
    return block;
}

static void *realloc_bootstrap(void *block, size_t size)
{
    void *fresh = malloc(size);
    size_t left = (size_t)(bootstrap + sizeof bootstrap - (char *)block);
    if (fresh != NULL)
        memcpy(fresh, block, size < left ? size : left);
    return fresh;
}

/* The old block's name is read before the call and its event written after it: until then the block is this thread's,
 * and a call that fails takes nothing. */
EXPORTED void *realloc(void *block, size_t size)
{
    if (block == NULL)
        return malloc(size);
    if (is_bootstrap(block))
        return realloc_bootstrap(block, size);
    if (!ready())
        return NULL;
    struct journal *j = fits(size) ? journal_enter() : NULL;
    if (__builtin_expect(j == NULL, 0))
        return next.realloc(block, size);
    if (size == 0) { /* as the C library has it; with a label it would be no size of 0 */
        journal_leave(j);
        free(block);
        return NULL;
    }
    struct event e = { .kind = EVENT_REALLOC, .size = size };
    name_get(j, block, &e);
    void *grown = next.realloc(block, size + LABEL_BYTES);
    if (grown != NULL) {
        label_put(grown, next.usable(grown), name_make(j));
        journal_add(j, &e);
    }
    journal_leave(j);
    return grown;
}

EXPORTED void *reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, bytes);
}

/* `align` is a power of two. 0 or an errno. */
static int aligned(void **block, size_t align, size_t size)
{
    if (align < sizeof(void *))
        align = sizeof(void *);
    if (!ready())
        return ENOMEM;
    struct journal *j = fits(size) ? journal_enter() : NULL;
    if (__builtin_expect(j == NULL, 0))
        return next.posix_memalign(block, align, size);
    int error = next.posix_memalign(block, align, size + LABEL_BYTES);
    if (error == 0)
        made(j, *block, EVENT_ALIGNED, size, (unsigned)__builtin_ctzll(align));
    journal_leave(j);
    return error;
}

EXPORTED int posix_memalign(void **block, size_t align, size_t size)
{
    if (align % sizeof(void *) != 0 || align == 0 || (align & (align - 1)) != 0)
        return EINVAL;
    return aligned(block, align, size);
}

/* The C library rounds an alignment up to a power of two. */
EXPORTED void *memalign(size_t align, size_t size)
{
    void *block = NULL;
    size_t power = 1;
    while (power < align && power != 0)
        power <<= 1;
    int error = power == 0 ? EINVAL : aligned(&block, power, size);
    if (error == 0)
        return block;
    errno = error;
    return NULL;
}

EXPORTED void *aligned_alloc(size_t align, size_t size)
{
    return memalign(align, size);
}

EXPORTED void *valloc(size_t size)
{
    return memalign((size_t)getpagesize(), size);
}

EXPORTED void *pvalloc(size_t size)
{
    size_t page = (size_t)getpagesize();
    if (!fits(size) || size > PTRDIFF_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    return memalign(page, (size + page - 1) / page * page);
}

EXPORTED size_t malloc_usable_size(void *block)
{
    uint64_t name;
    if (block == NULL || is_bootstrap(block) || !ready())
        return 0;
    size_t usable = next.usable(block);
    return journal_recording && label_get(block, usable, &name) ? usable - LABEL_BYTES : usable;
}
