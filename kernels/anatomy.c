/*
 * anatomy - what a hot malloc and a hot free execute: instructions, loads, stores, locked operations, lines.
 *
 * Each block is freed at once, so that the allocator serves the hottest one; both calls are marked, and the simulated
 * machine (--counters sim) takes down what each executes between its first instruction and its return. The path that
 * most calls took is reported, and which share of them took it. Work per op: one malloc, one free. Natively a mark is
 * an instruction that does nothing, and there is nothing to report.
 *
 * Of several threads the calls of one are taken down. `heap_state` as in fastpath: an empty heap gives its last page back
 * at every free.
 */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"
#include "simulator/protocol.h"

#define WARM_SLOTS 300

/* Of larger blocks the ends alone are verified: a byte takes instructions, and the machine looks at each of these. */
#define WHOLE_BYTES_MAX (64u << 10)

struct state {
    uint64_t size, done;
};

static const struct param params[] = {
    { "heap_state", PARAM_WORD, "warm", "", 0, 0, "empty|one|warm", "other live blocks of the size: 0, 1 or 300" },
    { 0 },
};

static uint64_t live_slots(void)
{
    const char *state = param_word("heap_state");
    return strcmp(state, "empty") == 0 ? 0 : strcmp(state, "one") == 0 ? 1 : WARM_SLOTS;
}

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    s->size = param_int("size_min");
    for (uint64_t i = 0; i < c->live.slots; i++) {
        c->live.block[i] = c->malloc(s->size);
        c->live.size[i] = (uint32_t)s->size;
        if (c->live.block[i] == NULL)
            return ak_no_memory(s->size);
    }
    return 0;
}

/* A mark is of the next call, whatever that calls: nothing may come between the two. */
static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    void *(*const allocate)(size_t) = c->malloc;
    void (*const release)(void *) = c->free;
    const size_t size = s->size;

    for (uint64_t i = 0; i < iters; i++) {
        SIM_WATCH(SIM_MALLOC);
        void *block = allocate(size);
        if (__builtin_expect(block == NULL, 0))
            return ak_no_memory(size);
        SIM_WATCH(SIM_FREE);
        release(block);
    }
    s->done += iters;
    return 0;
}

/* Live blocks of the size, each with words of its own at both ends. */
static int verify_ends(struct ctx *c, uint64_t size)
{
    enum { BLOCKS = 8 };
    unsigned char *block[BLOCKS];
    int rc = 0;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        block[i] = c->malloc(size);
        if (block[i] == NULL)
            return ak_no_memory(size);
        memcpy(block[i], &i, sizeof i);
        memcpy(block[i] + size - sizeof i, &i, sizeof i);
    }
    for (uint64_t i = 0; i < BLOCKS; i++) {
        uint64_t head, tail;
        memcpy(&head, block[i], sizeof head);
        memcpy(&tail, block[i] + size - sizeof tail, sizeof tail);
        if (head != i || tail != i)
            rc = ak_fail("block %llu of %llu bytes was overwritten through another block", (unsigned long long)i,
                         (unsigned long long)size);
        c->free(block[i]);
    }
    return rc;
}

static int verify(struct ctx *c)
{
    const struct state *s = c->priv;
    if (s->done != c->iters_done)
        return ak_fail("%llu ops were done, %llu asked for", (unsigned long long)s->done,
                       (unsigned long long)c->iters_done);
    if (c->no_alloc)
        return 0;
    return s->size > WHOLE_BYTES_MAX ? verify_ends(c, s->size) : ak_verify_blocks(c, s->size);
}

static void teardown(struct ctx *c)
{
    for (uint64_t i = 0; i < c->live.slots; i++) {
        c->free(c->live.block[i]);
        c->live.block[i] = NULL;
    }
}

static void report_call(enum sim_watched watched)
{
    struct sim_path path = {.watched = watched};
    syscall(SIM_CALL, SIM_PATH, &path);
    double calls = path.calls > 0 ? path.calls : 1;
    const char *why = path.taken > 0 ? NULL : "only the simulated machine watches calls (--counters sim)";
    const struct {
        const char *name[SIM_WATCHED_MAX + 1], *unit;
        double value;
    } metric[] = {
        { { NULL, "malloc_calls", "free_calls" }, "count", path.calls },
        { { NULL, "malloc_paths", "free_paths" }, "count", path.paths },
        { { NULL, "malloc_fast_ratio", "free_fast_ratio" }, "0..1", path.taken / calls },
        { { NULL, "malloc_mean_instructions", "free_mean_instructions" }, "count", (double)path.executed / calls },
        { { NULL, "malloc_instructions", "free_instructions" }, "count", path.instructions },
        { { NULL, "malloc_loads", "free_loads" }, "count", path.loads },
        { { NULL, "malloc_stores", "free_stores" }, "count", path.stores },
        { { NULL, "malloc_atomics", "free_atomics" }, "count", path.atomics },
        { { NULL, "malloc_thread_locals", "free_thread_locals" }, "count", path.thread_locals },
        { { NULL, "malloc_branches", "free_branches" }, "count", path.branches },
        { { NULL, "malloc_lines", "free_lines" }, "count", path.lines },
        { { NULL, "malloc_stack_lines", "free_stack_lines" }, "count", path.stack_lines },
        { { NULL, "malloc_code_lines", "free_code_lines" }, "count", path.code_lines },
    };
    for (size_t i = 0; i < sizeof metric / sizeof metric[0]; i++)
        ak_metric(metric[i].name[watched], metric[i].unit, metric[i].value, why);
}

static void report(void)
{
    report_call(SIM_MALLOC);
    report_call(SIM_FREE);
}

const struct kernel kernel = {
    .name = "anatomy",
    .what = "what a hot malloc and a hot free execute, call by call in the simulated machine",
    .params = params,
    .watched = true,
    .sizes = SIZES_FIXED,
    .default_ops = 1000,
    .priv_bytes = sizeof(struct state),
    .live_slots = live_slots,
    .setup = setup,
    .run = run,
    .verify = verify,
    .teardown = teardown,
    .report = report,
};
