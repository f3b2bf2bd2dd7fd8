/*
 * c2c - latency of one cache line moved between each pair of CPUs, by the line's state at the holder.
 *
 * For each ordered pair the holder prepares LINES lines of its own (modified: writes them; exclusive: flushes, then
 * reads them; shared: the same, and a third CPU reads them too), then the fetcher walks them in random order and is
 * timed. pingpong: two CPUs hand one word back and forth; half a round trip counts. Work per op: one round over
 * all pairs. One thread per CPU; the others wait at the barrier.
 */
#include <stdatomic.h>
#include <string.h>

#include "kernel.h"

#define LINES      64
#define STRIDE     (2 * CACHE_SECTOR) /* apart, so that adjacent-line prefetchers do not help */
#define ROUNDS_MAX 64
#define TRIPS      256
#define CPUS_MAX   256

enum line_state { STATE_MODIFIED, STATE_EXCLUSIVE, STATE_SHARED, STATE_PINGPONG, STATES };
static const char *const state_name[STATES] = { "modified", "exclusive", "shared", "pingpong" };

struct node { struct node *next; uint64_t word; char apart[STRIDE - 16]; };
_Static_assert(sizeof(struct node) == STRIDE, "one node a stride");

struct state {
    struct node lines[LINES]; /* what this CPU holds when its turn comes */
    uint64_t rounds;
    uint64_t walks, closed;   /* walks of this thread as the fetcher; those that ended where they began */
};

/* c->shared: the ping-pong word, then times in ns by pair, state and round (the last ROUNDS_MAX are kept). */
struct shared {
    _Alignas(CACHE_SECTOR) atomic_uint ball;
    _Alignas(CACHE_SECTOR) float ns[];
};

static size_t shared_bytes(void)
{
    uint64_t n = param_int("threads");
    return sizeof(struct shared) + n * n * STATES * ROUNDS_MAX * sizeof(float);
}

static float *cell(const struct ctx *c, unsigned from, unsigned to, enum line_state state)
{
    struct shared *shared = c->shared;
    return &shared->ns[(((uint64_t)from * c->threads + to) * STATES + state) * ROUNDS_MAX];
}

static void line_flush(const void *line)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_clflush(line);
#elif defined(__aarch64__)
    __asm__ volatile("dc civac, %0" ::"r"(line) : "memory");
#endif
}

static struct node *lines_walk(struct node *first)
{
    struct node *at = first;
    for (unsigned i = 0; i < LINES; i++)
        at = *(struct node *volatile *)&at->next;
    return at;
}

static void lines_prepare(struct node *lines, enum line_state state)
{
    if (state == STATE_MODIFIED) {
        for (unsigned i = 0; i < LINES; i++)
            *(volatile uint64_t *)&lines[i].word += 1;
    } else {
        for (unsigned i = 0; i < LINES; i++)
            line_flush(&lines[i]);
    }
    __sync_synchronize();
    if (state != STATE_MODIFIED)
        lines_walk(lines);
}

/* A CPU that is neither; there is one from three threads on. */
static unsigned third_of(unsigned from, unsigned to)
{
    unsigned third = 0;
    while (third == from || third == to)
        third++;
    return third;
}

static void fetch_measure(struct ctx *c, unsigned from, unsigned to, enum line_state state)
{
    struct state *s = c->priv, *holder = ak_ctx(from)->priv;

    if (c->thread == from)
        lines_prepare(holder->lines, state);
    ak_barrier(c);
    if (state == STATE_SHARED) {
        if (c->thread == third_of(from, to))
            lines_walk(holder->lines);
        ak_barrier(c);
    }
    if (c->thread == to) {
        double start = ak_now_ns();
        struct node *end = lines_walk(holder->lines);
        double stop = ak_now_ns();
        s->walks++;
        s->closed += end == holder->lines;
        cell(c, from, to, state)[s->rounds % ROUNDS_MAX] = (float)((stop - start) / LINES);
    }
    ak_barrier(c);
}

/* Even values of the ball: the first CPU's turn. */
static void pingpong_measure(struct ctx *c, unsigned from, unsigned to)
{
    struct shared *shared = c->shared;
    struct state *s = c->priv;

    if (c->thread == from)
        atomic_store(&shared->ball, 0);
    ak_barrier(c);
    if (c->thread == from || c->thread == to) {
        unsigned parity = c->thread == to;
        double start = ak_now_ns();
        for (unsigned trip = 0; trip < TRIPS; trip++) {
            while (atomic_load_explicit(&shared->ball, memory_order_acquire) != 2 * trip + parity)
                ;
            atomic_store_explicit(&shared->ball, 2 * trip + parity + 1, memory_order_release);
        }
        if (c->thread == to)
            cell(c, from, to, STATE_PINGPONG)[s->rounds % ROUNDS_MAX] = (float)((ak_now_ns() - start) / (2.0 * TRIPS));
    }
    ak_barrier(c);
}

static const char *refuse(void)
{
    return strcmp(param_word("placement"), "none") == 0 ? "--placement none, and each thread needs a CPU of its own" : NULL;
}

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    unsigned order[LINES];

    if (c->threads > CPUS_MAX)
        return ak_fail("%u CPUs are more than the %u that c2c keeps times for", c->threads, CPUS_MAX);
    for (unsigned t = 0; t < c->thread; t++)
        if (ak_cpu(t) == ak_cpu(c->thread))
            return ak_fail("needs every thread pinned to a CPU of its own (--placement compact, threads <= CPUs)");
    for (unsigned i = 0; i < LINES; i++)
        order[i] = i;
    for (unsigned i = LINES - 1; i > 0; i--) {
        unsigned j = rng_below(rng_next(&c->rng), i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (unsigned i = 0; i < LINES; i++)
        s->lines[order[i]].next = &s->lines[order[(i + 1) % LINES]];
    return 0;
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    for (uint64_t i = 0; i < iters; i++, s->rounds++)
        for (unsigned from = 0; from < c->threads; from++)
            for (unsigned to = 0; to < c->threads; to++) {
                if (from == to)
                    continue;
                fetch_measure(c, from, to, STATE_MODIFIED);
                fetch_measure(c, from, to, STATE_EXCLUSIVE);
                if (c->threads > 2)
                    fetch_measure(c, from, to, STATE_SHARED);
                if (from < to)
                    pingpong_measure(c, from, to);
            }
    return 0;
}

static int verify(struct ctx *c)
{
    const struct state *s = c->priv;
    uint64_t walks = c->iters_done * (c->threads - 1) * (c->threads > 2 ? 3 : 2);
    if (s->walks != walks || s->closed != walks)
        return ak_fail("CPU %d walked %llu times and closed %llu cycles, expected %llu", ak_cpu(c->thread),
                       (unsigned long long)s->walks, (unsigned long long)s->closed, (unsigned long long)walks);
    return 0;
}

static float median(float *value, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++)
        for (uint64_t j = i; j > 0 && value[j] < value[j - 1]; j--) {
            float swap = value[j];
            value[j] = value[j - 1];
            value[j - 1] = swap;
        }
    return value[n / 2];
}

static void report(void)
{
    const struct ctx *c = ak_ctx(0);
    uint64_t kept = c->iters_done < ROUNDS_MAX ? c->iters_done : ROUNDS_MAX;

    for (unsigned from = 0; from < c->threads; from++)
        for (unsigned to = 0; to < c->threads; to++)
            for (enum line_state state = 0; state < STATES && from != to; state++) {
                float *ns = cell(c, from, to, state);
                if (ns[0] > 0)
                    ak_matrix((unsigned)ak_cpu(from), (unsigned)ak_cpu(to), state_name[state], (double)median(ns, kept));
            }
    if (c->threads < 3)
        ak_metric("c2c_shared_ns", "ns", 0, "a shared line needs a third CPU to read it");
}

const struct kernel kernel = {
    .name = "c2c",
    .what = "latency of one cache line moved between each pair of CPUs, by state",
    .op = "one round over all pairs of CPUs, per thread",
    .own_threads = true,
    .no_alloc = true,
    .once = true,
    .min_threads = 2,
    .default_ops = 32,
    .priv_bytes = sizeof(struct state),
    .shared_bytes = shared_bytes,
    .refuse = refuse,
    .setup = setup,
    .run = run,
    .verify = verify,
    .report = report,
};
