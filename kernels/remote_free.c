/*
 * remote_free - blocks freed by a thread that did not allocate them.
 *
 * Producers allocate, write a tag into each block and hand blocks over in messages of `batch`; consumers sum the tags
 * and free. pairs: thread 2i to thread 2i + 1 (an odd last one to itself); one_to_n: thread 0 to all others; n_to_one:
 * all others to thread 0; rotating: every thread sends each message to another partner and frees what it receives.
 * Work per op: one malloc, one store, one load, one free, and 1/batch of a message.
 */
#include <stdatomic.h>

#include "kernel.h"

#define BATCH_MAX 64
#define MESSAGES  32u /* of an inbox; a power of two */

struct message {
    atomic_uint_fast64_t sequence;
    uint64_t count;
    void    *block[BATCH_MAX];
};

/*
 * A bounded queue of messages for one consumer from many producers (the scheme of D. Vyukov's bounded MPMC queue,
 * with a single consumer). Slot i is free for ticket k where sequence = k, full where sequence = k + 1.
 * Owner: the consumer; producers touch `tail` and the slots.
 */
struct inbox {
    _Alignas(CACHE_SECTOR) atomic_uint_fast64_t tail;
    _Alignas(CACHE_SECTOR) uint64_t head;
    _Alignas(CACHE_SECTOR) struct message ring[MESSAGES];
};

enum mode { MODE_PAIRS, MODE_ONE_TO_N, MODE_N_TO_ONE, MODE_ROTATING };

struct state {
    enum mode mode;
    uint64_t batch;
    uint64_t made, taken;   /* blocks, over all runs */
    int64_t  ahead;         /* taken more than the runs so far asked for: producers may be a run ahead */
    uint64_t issued, found; /* sums of tags */
};

/* What one run asks of one thread. */
struct quota { uint64_t make, take; };

static const struct param params[] = {
    { "batch", PARAM_INT, "32", "count", 1, BATCH_MAX, NULL, "blocks handed over at once" },
    { 0 },
};

static size_t shared_bytes(void)
{
    return param_int("threads") * sizeof(struct inbox);
}

/* No block is live at a barrier: what was made in a run was freed in it. */
static uint64_t live_slots(void)
{
    return 0;
}

/* Claim a slot for one message; NULL where the inbox is full. The claimer fills and sends it. */
static struct message *inbox_claim(struct inbox *box)
{
    uint_fast64_t ticket = atomic_load_explicit(&box->tail, memory_order_relaxed);
    while (true) {
        struct message *m = &box->ring[ticket % MESSAGES];
        uint_fast64_t sequence = atomic_load_explicit(&m->sequence, memory_order_acquire);
        if (sequence < ticket)
            return NULL;
        if (sequence > ticket)
            ticket = atomic_load_explicit(&box->tail, memory_order_relaxed);
        else if (atomic_compare_exchange_weak_explicit(&box->tail, &ticket, ticket + 1, memory_order_relaxed,
                                                       memory_order_relaxed))
            return m;
    }
}

static void message_send(struct message *m)
{
    uint_fast64_t ticket = atomic_load_explicit(&m->sequence, memory_order_relaxed);
    atomic_store_explicit(&m->sequence, ticket + 1, memory_order_release);
}

/* Take one message and free its blocks; the number of blocks, 0 where the inbox is empty. */
static uint64_t inbox_free_one(struct ctx *c, struct state *s)
{
    struct inbox *box = (struct inbox *)c->shared + c->thread;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the harness maps c->shared or ends the launch */
    struct message *m = &box->ring[box->head % MESSAGES];
    void (*const release)(void *) = c->free;
    uint64_t found = 0;

    if (atomic_load_explicit(&m->sequence, memory_order_acquire) != box->head + 1)
        return 0;
    uint64_t count = m->count;
    if (c->no_alloc) /* reading the stub's few lines would fetch each from the producer, over and over */
        for (uint64_t i = 0; i < count; i++)
            release(m->block[i]);
    else
        for (uint64_t i = 0; i < count; i++) {
            found += *(volatile unsigned char *)m->block[i];
            release(m->block[i]);
        }
    s->found += found;
    s->taken += count;
    box->head++;
    atomic_store_explicit(&m->sequence, box->head - 1 + MESSAGES, memory_order_release);
    return count;
}

/* Every block that is made in a run is taken in it: the takes of all threads equal the makes. */
static struct quota quota_of(const struct ctx *c, const struct state *s, uint64_t iters)
{
    uint64_t all = iters * c->threads, others = c->threads - 1;
    bool odd_last = c->thread == c->threads - 1 && c->threads % 2 == 1;
    struct quota q = { 0, 0 };

    switch (s->mode) {
    case MODE_PAIRS:
        if (odd_last)
            q = (struct quota){ iters, iters };
        else if (c->thread % 2 == 0)
            q.make = 2 * iters;
        else
            q.take = 2 * iters;
        break;
    case MODE_ONE_TO_N:
        if (c->thread == 0) {
            q.make = all;
        } else {
            /* message m goes to consumer m mod n; the last message may be short */
            uint64_t messages = (all + s->batch - 1) / s->batch, consumer = c->thread - 1;
            q.take = (messages + others - 1 - consumer) / others * s->batch;
            if ((messages - 1) % others == consumer)
                q.take -= messages * s->batch - all;
        }
        break;
    case MODE_N_TO_ONE:
        if (c->thread == 0)
            q.take = all;
        else
            q.make = all / others + (c->thread - 1 < all % others);
        break;
    case MODE_ROTATING:
        q = (struct quota){ iters, iters };
        break;
    }
    return q;
}

static unsigned partner(const struct ctx *c, const struct state *s, uint64_t message)
{
    unsigned others = c->threads - 1;
    switch (s->mode) {
    case MODE_PAIRS: return c->thread + 1 < c->threads ? c->thread + 1 : c->thread;
    case MODE_ONE_TO_N: return 1 + (unsigned)(message % others);
    case MODE_N_TO_ONE: return 0;
    default: return (c->thread + 1 + (unsigned)(message % others)) % c->threads;
    }
}

/* Straight into the message: one copy less, and the lines move once. One draw a message, then the table in order. */
static int message_fill(struct ctx *c, struct state *s, struct message *m, uint64_t count)
{
    void *(*const allocate)(size_t) = c->malloc;
    uint64_t draw = rng_next(&c->rng), issued = 0;

    for (uint64_t i = 0; i < count; i++, draw++) {
        unsigned char *block = m->block[i] = allocate(c->size_table[draw & SIZE_TABLE_MASK]);
        if (__builtin_expect(block == NULL, 0))
            return ak_no_memory(c->size_table[draw & SIZE_TABLE_MASK]);
        *(volatile unsigned char *)block = (unsigned char)draw;
        issued += (unsigned char)draw;
    }
    m->count = count;
    s->issued += issued;
    return 0;
}

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    struct inbox *box = (struct inbox *)c->shared + c->thread;

    s->mode = variant_is("pairs") ? MODE_PAIRS : variant_is("one_to_n") ? MODE_ONE_TO_N
            : variant_is("n_to_one") ? MODE_N_TO_ONE : MODE_ROTATING;
    s->batch = param_int("batch");
    for (uint64_t i = 0; i < MESSAGES; i++)
        atomic_init(&box->ring[i].sequence, i);
    return 0;
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    struct inbox *boxes = c->shared;
    struct quota quota = quota_of(c, s, iters);
    uint64_t make = quota.make;
    int64_t take = (int64_t)quota.take - s->ahead;
    unsigned spins = 0;

    s->made += make;
    for (uint64_t message = 0; make > 0 || take > 0;) {
        bool moved = false;
        struct message *m = make > 0 ? inbox_claim(&boxes[partner(c, s, message)]) : NULL;
        if (m != NULL) {
            uint64_t count = make < s->batch ? make : s->batch;
            if (message_fill(c, s, m, count) != 0)
                return 1;
            message_send(m);
            make -= count;
            message++;
            moved = true;
        }
        /* Also while the partner's inbox is full, so that no circle of threads waits. */
        uint64_t got = take > 0 ? inbox_free_one(c, s) : 0;
        take -= (int64_t)got;
        if (moved || got > 0)
            spins = 0;
        else if (ak_failed())
            return 1;
        else
            ak_relax(&spins);
    }
    s->ahead = -take;
    return 0;
}

static uint64_t ops(const struct ctx *c, uint64_t iters)
{
    return quota_of(c, c->priv, iters).make;
}

/* All threads are quiescent here, so the first one may sum over them. */
static int verify(struct ctx *c)
{
    uint64_t made = 0, taken = 0, issued = 0, found = 0;

    if (!c->no_alloc && ak_verify_blocks(c, 0) != 0)
        return 1;
    if (c->thread != 0)
        return 0;
    for (unsigned t = 0; t < c->threads; t++) {
        const struct state *s = ak_ctx(t)->priv;
        made += s->made;
        taken += s->taken;
        issued += s->issued;
        found += s->found;
    }
    if (made != taken || made != c->iters_done * c->threads)
        return ak_fail("%llu blocks were made, %llu taken, %llu asked for", (unsigned long long)made,
                       (unsigned long long)taken, (unsigned long long)(c->iters_done * c->threads));
    if (issued != found && !c->no_alloc)
        return ak_fail("block contents changed on the way: tags sum to %llu, issued were %llu", (unsigned long long)found,
                       (unsigned long long)issued);
    return 0;
}

const struct kernel kernel = {
    .name = "remote_free",
    .what = "producers and consumers: blocks freed by another thread than the one that allocated them",
    .variants = "pairs|one_to_n|n_to_one|rotating",
    .params = params,
    .op = "one block allocated by one thread and freed by another",
    .min_threads = 2,
    .sizes = SIZES_RANGE,
    .priv_bytes = sizeof(struct state),
    .shared_bytes = shared_bytes,
    .live_slots = live_slots,
    .setup = setup,
    .run = run,
    .verify = verify,
    .ops = ops,
};
