/* weave.c - see weave.h. */
#include "weave.h"

#include <sys/mman.h>

#include "turns.h"

/* A log has room for that many entries more than its longest turn: of system calls. */
#define LOG_MARGIN 4096

static struct {
    struct model *model;
    struct weave_log log[TURNS_MAX];
    unsigned end; /* threads above were never there */
    uint32_t quantum;
    uint64_t seed;
} weave;

/* ---- turns ---- */

/* xorshift64* (S. Vigna, An experimental exploration of Marsaglia's xorshift generators, 2016). */
static uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1d;
}

void weave_init(struct model *model, uint32_t quantum, uint64_t seed)
{
    weave.model = model;
    weave.quantum = quantum;
    weave.seed = seed;
}

struct weave_log *weave_log(unsigned thread)
{
    return &weave.log[thread];
}

void weave_reseed(unsigned thread)
{
    uint64_t mixed = (weave.seed + thread + 1) * 0x9e3779b97f4a7c15;
    weave.log[thread].random = (mixed ^ mixed >> 31) | 1;
}

void weave_add(unsigned thread, unsigned core)
{
    struct weave_log *log = &weave.log[thread];
    if (log->entry == NULL) {
        log->capacity = weave.quantum * 2 + LOG_MARGIN;
        log->entry = mmap(NULL, log->capacity * sizeof *log->entry, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    log->core = core;
    log->count = 0;
    weave_reseed(thread);
    weave_turn(thread);
    if (thread >= weave.end)
        weave.end = thread + 1;
}

void weave_turn(unsigned thread)
{
    struct weave_log *log = &weave.log[thread];
    log->limit = weave.quantum / 2 + (uint32_t)(random_next(&log->random) % (weave.quantum + 1)) + 1;
}

const struct model_counts *weave_counts(unsigned thread)
{
    return model_counts(weave.model, weave.log[thread].core);
}

/* ---- play ---- */

/* An entry that is no access; returns where the log goes on. */
static uint64_t *play_other(struct weave_log *log, uint64_t *entry)
{
    uint64_t address = *entry & ENTRY_ADDRESS;
    switch ((enum entry_kind)(*entry >> ENTRY_KIND_AT)) {
    case ENTRY_START: model_count(weave.model, log->core, true); break;
    case ENTRY_STOP: model_count(weave.model, log->core, false); break;
    case ENTRY_CORE: log->core = (uint32_t)address; break;
    case ENTRY_FORGET: model_forget(weave.model, address, *++entry); break;
    case ENTRY_BIND:
        model_bind(weave.model, address, entry[1], entry[2]);
        entry += 2;
        break;
    default: break;
    }
    return entry + 1;
}

static uint64_t *play_one(struct weave_log *log, uint64_t *entry)
{
    uint64_t kind = *entry >> ENTRY_KIND_AT;
    if (__builtin_expect(kind > ENTRY_ATOMIC, 0))
        return play_other(log, entry);
    model_access(weave.model, log->core, *entry & ENTRY_ADDRESS, 1u << (*entry >> ENTRY_SHIFT_AT & 7),
                 (enum model_kind)kind);
    return entry + 1;
}

void weave_play(void)
{
    static struct cursor {
        struct weave_log *log;
        uint64_t *at, *end;
    } cursor[TURNS_MAX];
    unsigned n = 0;
    for (unsigned thread = 0; thread < weave.end; thread++) {
        struct weave_log *log = &weave.log[thread];
        if (log->count != 0)
            cursor[n++] = (struct cursor){log, log->entry, log->entry + log->count};
        log->count = 0;
    }
    while (n > 0) {
        unsigned left = 0;
        for (unsigned i = 0; i < n; i++) {
            cursor[i].at = play_one(cursor[i].log, cursor[i].at);
            if (cursor[i].at < cursor[i].end)
                cursor[left++] = cursor[i];
        }
        n = left;
    }
}
