/*
 * replay - the allocation events of a recorded program, played back against any allocator.
 *
 * --trace names a file of ak record, or, without a slash, NAME.trace in build/traces. One worker plays each recorded
 * thread's events in their order. It waits only where the program had to: before it takes a block that another thread makes,
 * until that is there; at its start for the thread that started it; where it joins one, for that one's end. With
 * --pace recorded no event comes before its recorded time either.
 *
 * One op is one event: a call of malloc, calloc, realloc, free or aligned_alloc. --ops counts thousandths of the trace: 1000,
 * the default, is all of it, once. What the program left at its end stays until the trace begins again, which takes it away.
 *
 * Work per event beside the call: 16 bytes of the score, the block's slot, size and mark; with touch first the block's first
 * word written, and read when it is freed; with touch all every byte written, and the last word read too. What --no-alloc
 * shows is that and the waits. The trace is decoded and its memory mapped before anything is measured.
 *
 * The memory pass looks at resident and live bytes after equal shares of the events, by recorded time, while all workers
 * stand still; passes = memory alone has it on a fresh heap. Metrics of its looks as in the kernel fragment.
 */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fragmentation.h"
#include "kernel.h"
#include "options.h"
#include "replay/score.h"

#define NAP_ABOVE_NS 100000.0 /* a longer wait for a recorded time sleeps, */
#define NAP_SPARE_NS 60000.0  /* and wakes so much before it */
#define WORD         sizeof(uint64_t)

enum touch { TOUCH_NONE, TOUCH_FIRST, TOUCH_ALL };

/* What other parts wait for. */
struct voice {
    _Alignas(CACHE_SECTOR) atomic_bool open; /* it has been born */
    atomic_bool ended;
};

struct shared {
    _Alignas(CACHE_SECTOR) atomic_uint arrived; /* at meetings, in all */
    _Atomic double start_ns; /* of the round; 0: not begun */
};

struct play {
    struct part *part;
    struct voice *voice;
    struct shared *shared;
    enum touch touch;
    bool     paced;
    uint64_t at;       /* step */
    uint64_t piece;    /* PIECES: the round is over */
    uint64_t rounds;   /* that ended */
    uint64_t calls;    /* done, in all */
    uint64_t marks;    /* given */
    uint64_t waits;    /* events that another thread's made wait */
    unsigned meetings;
    double   late_ns;  /* the most that an event was late against its recorded time */
};

static const struct param params[] = {
    { "trace", PARAM_WORD, "", "", 0, 0, NULL, "a file of ak record, or the name of one in build/traces" },
    { "touch", PARAM_WORD, "first", "", 0, 0, "none|first|all", "stores to a block: none, its first word, every byte" },
    { "pace", PARAM_WORD, "full", "", 0, 0, "full|recorded", "as fast as it goes, or no event before its recorded time" },
    { 0 },
};

/* ---- the trace ---- */

static struct score score;
static int  score_rc = -1; /* -1: not read yet; else an exit code, with */
static char score_why[512];

/* A name is that of a file beside the kernels' folder. */
static void trace_path(const char *trace, char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (strchr(trace, '/') != NULL || length < 0) {
        snprintf(path, PATH_MAX, "%s", trace);
        return;
    }
    path[length] = '\0';
    for (int up = 0; up < 2; up++)
        *strrchr(path, '/') = '\0';
    size_t used = strlen(path);
    snprintf(path + used, PATH_MAX - used, "/traces/%s.trace", trace);
}

static int score_get(void)
{
    char path[PATH_MAX];
    if (score_rc >= 0)
        return score_rc;
    trace_path(param_word("trace"), path);
    score_rc = score_read(&score, path, score_why, sizeof score_why);
    return score_rc;
}

static const char *refuse(void)
{
    static char why[sizeof score_why + 32];
    if (param_word("trace")[0] == '\0')
        return "--trace: expected a file that ak record wrote, or the name of one in build/traces";
    int rc = score_get();
    if (rc == EXIT_USAGE)
        snprintf(why, sizeof why, "--trace: %s", score_why);
    else if (rc == 0 && option("threads")->given && param_int("threads") != score.parts)
        snprintf(why, sizeof why, "--threads: the trace has %u", score.parts);
    return why[0] != '\0' ? why : NULL;
}

static unsigned thread_count(void)
{
    if (score_get() == 0)
        return score.parts;
    ak_lacks("%s; experiments/traces.sh makes those that the suite's sweeps play", score_why);
    return 0;
}

/* ---- memory ---- */

static size_t shared_bytes(void)
{
    return sizeof(struct shared) + score.parts * sizeof(struct voice);
}

/* The live sets differ in size: each is the part's own. */
static uint64_t live_slots(void)
{
    return 0;
}

static struct voice *voice_of(struct ctx *c, uint32_t part)
{
    return (struct voice *)((char *)c->shared + sizeof(struct shared)) + part;
}

/* ---- marks ---- */

/* Bytes of a block that the kernel writes and reads: under --no-alloc not more than the stub has. */
static inline size_t writable(const struct ctx *c, size_t size)
{
    return size < c->reach ? size : c->reach;
}

static inline void word_write(char *at, uint64_t mark, size_t size)
{
    memcpy(at, &mark, size < WORD ? size : WORD);
}

static inline bool word_is(const char *at, uint64_t mark, size_t size)
{
    return memcmp(at, &mark, size < WORD ? size : WORD) == 0;
}

static inline void block_mark(const struct ctx *c, const struct play *p, char *block, size_t size, uint64_t mark)
{
    size = writable(c, size);
    if (p->touch == TOUCH_ALL) {
        memset(block, (int)mark, size);
        word_write(block + (size < WORD ? 0 : size - WORD), mark, size);
    }
    if (p->touch != TOUCH_NONE)
        word_write(block, mark, size);
}

/* In a block of 8 to 15 bytes the first word is over the last one. */
static bool block_holds(const struct play *p, const char *block, size_t size, uint64_t mark)
{
    if (p->touch == TOUCH_NONE)
        return true;
    return word_is(block, mark, size) && (p->touch != TOUCH_ALL || size < 2 * WORD || word_is(block + size - WORD, mark, size));
}

static __attribute__((noinline)) int mark_lost(const struct play *p, const void *block, size_t size)
{
    return ak_fail("step %llu of the trace's thread %u: the block of %zu bytes at %p does not hold what was written to it",
                   (unsigned long long)p->at, p->part->thread, size, block);
}

/* ---- steps ---- */

static inline int block_put(struct ctx *c, struct play *p, uint32_t slot, void *block, uint32_t size)
{
    if (__builtin_expect(block == NULL, 0))
        return ak_no_memory(size);
    uint64_t mark = ((uint64_t)p->part->thread + 1) << 40 | ++p->marks;
    block_mark(c, p, block, size, mark);
    p->part->size[slot] = size;
    p->part->mark[slot] = mark;
    __atomic_store_n(&p->part->block[slot], block, __ATOMIC_RELEASE);
    return 0;
}

static __attribute__((noinline)) void *block_await(struct play *p, void **place)
{
    void *block;
    unsigned spins = 0;
    p->waits++;
    while ((block = __atomic_load_n(place, __ATOMIC_ACQUIRE)) == NULL && !ak_failed())
        ak_relax(&spins);
    return block;
}

/* The block that a step takes, out of its slot. NULL after a failure. */
static inline char *block_take(struct ctx *c, struct play *p, const struct step *s, struct part *from)
{
    char *block = __atomic_load_n(&from->block[s->old_slot], __ATOMIC_ACQUIRE);
    if (__builtin_expect(block == NULL, 0) && (block = block_await(p, &from->block[s->old_slot])) == NULL)
        return NULL;
    size_t size = from->size[s->old_slot];
    if (!c->no_alloc && !block_holds(p, block, size, from->mark[s->old_slot])) {
        mark_lost(p, block, size);
        return NULL;
    }
    from->block[s->old_slot] = NULL;
    return block;
}

static int step_free(struct ctx *c, struct play *p, const struct step *s)
{
    void *block = block_take(c, p, s, &score.part[s->old_part]);
    if (block == NULL)
        return 1;
    c->free(block);
    return 0;
}

static int step_realloc(struct ctx *c, struct play *p, const struct step *s)
{
    struct part *from = &score.part[s->old_part];
    void *old = block_take(c, p, s, from);
    size_t kept = from->size[s->old_slot] < s->size ? from->size[s->old_slot] : s->size;
    uint64_t mark = from->mark[s->old_slot];
    if (old == NULL)
        return 1;
    char *block = c->realloc(old, s->size);
    if (block != NULL && !c->no_alloc && p->touch != TOUCH_NONE && !word_is(block, mark, kept))
        return mark_lost(p, block, kept);
    return block_put(c, p, s->slot, block, s->size);
}

static bool is_zero(const struct ctx *c, const struct play *p, const char *block, size_t size)
{
    return block == NULL || c->no_alloc || p->touch == TOUCH_NONE ||
           (word_is(block, 0, size) && (size < WORD || word_is(block + size - WORD, 0, size)));
}

static int step_calloc(struct ctx *c, struct play *p, const struct step *s)
{
    char *block = c->calloc(1, s->size);
    if (!is_zero(c, p, block, s->size))
        return ak_fail("calloc of %u bytes gave a block that is not zero", s->size);
    return block_put(c, p, s->slot, block, s->size);
}

static int step_aligned(struct ctx *c, struct play *p, const struct step *s)
{
    size_t align = (size_t)1 << s->align_log2;
    if (c->aligned_alloc == NULL)
        return ak_fail("the trace asks for aligned blocks, and this allocator has no aligned_alloc of its own");
    void *block = c->aligned_alloc(align, s->size);
    if (!c->no_alloc && ((uintptr_t)block & (align - 1)) != 0)
        return ak_fail("a block of %u bytes lies at %p, which is not aligned to %zu", s->size, block, align);
    return block_put(c, p, s->slot, block, s->size);
}

static int await(struct play *p, atomic_bool *flag)
{
    unsigned spins = 0;
    if (atomic_load_explicit(flag, memory_order_acquire))
        return 0;
    p->waits++;
    while (!atomic_load_explicit(flag, memory_order_acquire) && !ak_failed())
        ak_relax(&spins);
    return ak_failed();
}

static inline int step_play(struct ctx *c, struct play *p, const struct step *s)
{
    switch ((enum step_kind)s->kind) {
    case STEP_MALLOC:
        p->calls++;
        return block_put(c, p, s->slot, c->malloc(s->size), s->size);
    case STEP_FREE:
    case STEP_FREE_REMOTE:
        p->calls++;
        return step_free(c, p, s);
    case STEP_REALLOC:
    case STEP_REALLOC_REMOTE:
        p->calls++;
        return step_realloc(c, p, s);
    case STEP_CALLOC:
        p->calls++;
        return step_calloc(c, p, s);
    case STEP_ALIGNED:
        p->calls++;
        return step_aligned(c, p, s);
    case STEP_BEAR:
        atomic_store_explicit(&voice_of(c, s->slot)->open, true, memory_order_release);
        return 0;
    case STEP_JOIN:
        return await(p, &voice_of(c, s->slot)->ended);
    }
    return ak_fail("step %llu is none", (unsigned long long)p->at);
}

/* ---- time ---- */

/* The round begins when its first worker does. */
static double round_start(struct play *p)
{
    double none = 0, now = ak_now_ns();
    return atomic_compare_exchange_strong(&p->shared->start_ns, &none, now) ? now : none;
}

static void await_time(struct play *p, double start)
{
    double due = start + (double)p->part->time[p->at], now;
    while ((now = ak_now_ns()) < due && !ak_failed())
        if (due - now > NAP_ABOVE_NS) {
            double nap = due - now - NAP_SPARE_NS;
            nanosleep(&(struct timespec){ (time_t)(nap / 1e9), (long)nap % 1000000000 }, NULL);
        }
    p->late_ns = now - due > p->late_ns ? now - due : p->late_ns;
}

/* ---- rounds ---- */

/* All workers, or a failure. */
static int meet(struct ctx *c, struct play *p)
{
    unsigned spins = 0, all = ++p->meetings * c->threads;
    atomic_fetch_add(&p->shared->arrived, 1);
    while (atomic_load(&p->shared->arrived) < all && !ak_failed())
        ak_relax(&spins);
    return ak_failed();
}

static void free_all(struct ctx *c, struct play *p)
{
    for (uint64_t i = 0; i < p->part->slots; i++)
        if (p->part->block[i] != NULL) {
            c->free(p->part->block[i]);
            p->part->block[i] = NULL;
        }
}

static int inherit(struct ctx *c, struct play *p)
{
    for (uint64_t i = 0; i < p->part->inherited_count; i++)
        if (block_put(c, p, p->part->inherited[i], c->malloc(p->part->inherited_size[i]), p->part->inherited_size[i]) != 0)
            return 1;
    return 0;
}

/* To the trace's beginning, with nothing left of the round that ended. */
static int rewind_all(struct ctx *c, struct play *p)
{
    if (meet(c, p) != 0)
        return 1;
    free_all(c, p);
    atomic_store(&p->voice->open, !p->part->gated);
    atomic_store(&p->voice->ended, false);
    atomic_store(&p->shared->start_ns, 0);
    p->at = p->piece = 0;
    return inherit(c, p) != 0 || meet(c, p);
}

static int setup(struct ctx *c)
{
    struct play *p = c->priv;
    const char *touch = param_word("touch");

    p->part = &score.part[c->thread];
    p->shared = c->shared;
    p->voice = voice_of(c, c->thread);
    p->touch = strcmp(touch, "none") == 0 ? TOUCH_NONE : strcmp(touch, "first") == 0 ? TOUCH_FIRST : TOUCH_ALL;
    p->paced = strcmp(param_word("pace"), "recorded") == 0;
    atomic_store(&p->voice->open, !p->part->gated);
    c->live = (struct live_set){ p->part->block, p->part->size, p->part->slots };
    return inherit(c, p);
}

static int piece_play(struct ctx *c, struct play *p)
{
    const struct part *part = p->part;
    uint64_t end = part->piece_end[p->piece++];
    double start = p->paced ? round_start(p) : 0;

    if (p->at == 0 && end > 0 && await(p, &p->voice->open) != 0)
        return 1;
    for (; p->at < end; p->at++) {
        if (p->paced)
            await_time(p, start);
        if (step_play(c, p, &part->step[p->at]) != 0)
            return 1;
    }
    if (p->at == part->steps)
        atomic_store_explicit(&p->voice->ended, true, memory_order_release);
    p->rounds += p->piece == PIECES;
    return 0;
}

static int run(struct ctx *c, uint64_t iters)
{
    struct play *p = c->priv;
    for (uint64_t i = 0; i < iters; i++)
        if ((p->piece == PIECES && rewind_all(c, p) != 0) || piece_play(c, p) != 0)
            return 1;
    return 0;
}

/* Asked once, after the throughput pass, which is the first. */
static uint64_t ops(const struct ctx *c, uint64_t iters)
{
    (void)iters;
    return ((const struct play *)c->priv)->calls;
}

/* Pieces to the memory pass's next look. */
static uint64_t step(const struct ctx *c)
{
    const struct play *p = c->priv;
    uint64_t steps = param_int("mem_steps") < PIECES ? param_int("mem_steps") : PIECES, piece = p->piece % PIECES;
    uint64_t next = piece * steps / PIECES + 1;
    return (next * PIECES + steps - 1) / steps - piece;
}

/* ---- proof ---- */

static uint64_t calls_expected(const struct play *p)
{
    uint64_t calls = p->rounds * p->part->calls;
    for (uint64_t i = 0; p->piece < PIECES && i < p->at; i++)
        calls += p->part->step[i].kind < STEP_BEAR;
    return calls;
}

static int verify(struct ctx *c)
{
    const struct play *p = c->priv;
    uint64_t live = 0;

    if (p->calls != calls_expected(p) || p->rounds * PIECES + p->piece % PIECES != c->iters_done)
        return ak_fail("%llu events of the trace's thread %u were done, expected %llu", (unsigned long long)p->calls,
                       p->part->thread, (unsigned long long)calls_expected(p));
    if (p->piece == PIECES && p->at != p->part->steps)
        return ak_fail("%llu steps of the trace's thread %u were played, it has %llu", (unsigned long long)p->at,
                       p->part->thread, (unsigned long long)p->part->steps);
    for (uint64_t i = 0; i < p->part->slots; i++)
        if (p->part->block[i] != NULL) {
            live++;
            if (!c->no_alloc && !block_holds(p, p->part->block[i], p->part->size[i], p->part->mark[i]))
                return mark_lost(p, p->part->block[i], p->part->size[i]);
        }
    if (p->piece == PIECES && live != p->part->live_at_end)
        return ak_fail("%llu blocks of the trace's thread %u live at its end, the trace left %llu", (unsigned long long)live,
                       p->part->thread, (unsigned long long)p->part->live_at_end);
    return 0;
}

static void teardown(struct ctx *c)
{
    free_all(c, c->priv);
}

/* ---- metrics ---- */

#define NO_LOOK "no such look with live bytes: it needs the memory pass"

static void report(void)
{
    const char *why = ak_ctx(0)->no_alloc ? "a stub served" : NULL;
    struct look baseline, look, peak = { 0 }, end = { 0 };
    uint64_t waits = 0;
    unsigned first = 0, looks = 0;
    double late = 0;

    ak_look(0, &baseline);
    for (unsigned i = 0; ak_look(i, &look); i++)
        if (look.memory_pass) {
            first = looks++ == 0 ? i : first;
            end = look;
            peak = look.live > peak.live ? look : peak;
        }
    fragmentation_report(&peak, (double)baseline.rss, "peak", why, NO_LOOK);
    fragmentation_report(&end, (double)baseline.rss, "end", why, NO_LOOK);
    for (uint32_t i = 0; i < score.parts; i++) {
        const struct play *p = ak_ctx(i)->priv;
        waits += p->waits;
        late = p->late_ns > late ? p->late_ns : late;
    }
    ak_metric("timeline_first", "count", (double)first, looks > 0 ? NULL : "no memory pass");
    ak_metric("timeline_looks", "count", (double)looks, NULL);
    ak_metric("trace_calls", "count", (double)score.calls, NULL);
    ak_metric("trace_live_peak_bytes", "bytes", (double)score.live_peak, NULL);
    ak_metric("trace_duration_ms", "ms", (double)score.facts.duration_ns / 1e6, NULL);
    ak_metric("replay_waits", "count", (double)waits, NULL);
    ak_metric("replay_late_max_ms", "ms", late / 1e6,
              strcmp(param_word("pace"), "full") == 0 ? "at full speed no event has a time" : NULL);
}

const struct kernel kernel = {
    .name = "replay",
    .what = "a recorded program's allocation events, on its threads and in its order",
    .params = params,
    .op = "one recorded call",
    .own_threads = true,
    .thread_count = thread_count,
    .whole = true,
    .sizes = SIZES_NONE,
    .default_ops = PIECES,
    .start_s = 0.25, /* measured with the three traces of the sweep: 0.1 to 0.4 s, and 8 to 20 us a thousandth */
    .op_ns = 14e3,
    .priv_bytes = sizeof(struct play),
    .shared_bytes = shared_bytes,
    .live_slots = live_slots,
    .refuse = refuse,
    .step = step,
    .setup = setup,
    .run = run,
    .ops = ops,
    .verify = verify,
    .teardown = teardown,
    .report = report,
};
