/* timed.c - see timed.h. */
#include "timed.h"

#include "latency.h"

/* Cycles of a PAUSE: 140 since Skylake, 40 and more on Zen (A. Fog, Instruction tables; Intel Optimization Manual). From half of it
 * to one and a half, by the seed: see timed_jitter. */
#define PAUSE_CYCLES 100

/* A futex call that sleeps or wakes, in the kernel: about a microsecond each on the machines of the presets. */
#define WAKE_NS 1000

struct timed_stamp timed_stamp[TIMED_STAMPS];
struct timed_thread timed_thread[TURNS_MAX];
struct mode_setting timed_setting;

/* From the first timed region of all to the last one's end. */
static struct {
    uint64_t first, last;
} span = {.first = UINT64_MAX};

void timed_init(const struct mode_setting *setting)
{
    timed_setting = *setting;
}

/* ---- turns ---- */

static uint64_t ns_cycles(uint64_t ns)
{
    return ns * timed_setting.machine.mhz / 1000;
}

/* Puts the instructions of the turn on the clock. */
static uint64_t turn_end(unsigned thread)
{
    struct timed_thread *t = &timed_thread[thread];
    uint64_t now = *timed_setting.instructions;
    struct timed_thread *account = &timed_thread[t->account];
    t->clock += now - t->counted;
    account->instructions += account->counting ? now - t->counted : 0;
    t->counted = now;
    return t->clock;
}

static void turn_start(unsigned thread)
{
    struct timed_thread *t = &timed_thread[thread];
    uint64_t turn = turns_clock(thread);
    t->clock = turn > t->clock ? turn : t->clock; /* later, where it was woken */
    t->counted = *timed_setting.instructions;
    t->limit = turns_rival(thread);
}

void timed_turn_over(unsigned thread)
{
    turns_yield(thread, turn_end(thread));
    turn_start(thread);
}

static void timed_idle(unsigned thread)
{
    struct timed_thread *t = &timed_thread[thread];
    t->clock += PAUSE_CYCLES / 2 + timed_draw(t) % (PAUSE_CYCLES + 1);
    timed_turn_over(thread);
}

/* ---- the mode ---- */

static void timed_born_at(unsigned thread, unsigned core, uint64_t clock)
{
    timed_thread[thread] =
        (struct timed_thread){.core = core,
                              .account = thread,
                              .clock = clock,
                              .random = ((timed_setting.seed + 1) * 0x9e3779b97f4a7c15 + thread) | 1};
    turns_add(thread, clock);
}

static void timed_born(unsigned thread, unsigned core)
{
    unsigned creator = turns_running();
    timed_born_at(thread, core, turn_end(creator));
    if (timed_thread[creator].counting)
        timed_thread[thread].account = creator;
    timed_thread[creator].limit = turns_rival(creator);
}

static void timed_begin(unsigned thread, unsigned cpu)
{
    (void)cpu;
    timed_born_at(thread, 0, 0);
    turns_begin(thread, NULL);
    turn_start(thread);
}

static void timed_join(unsigned thread)
{
    turns_join(thread);
    turn_start(thread);
}

static void timed_died(unsigned thread, const volatile uint32_t *gone)
{
    turn_end(thread);
    turns_leave(thread, gone);
}

static bool timed_wait(unsigned thread, uint64_t key, uint32_t mask, uint64_t end_ns)
{
    uint64_t end = end_ns == TURNS_NEVER ? end_ns : (end_ns / 1000 + 1) * timed_setting.machine.mhz;
    bool woken = turns_wait(thread, turn_end(thread), key, mask, end);
    turn_start(thread);
    return woken;
}

static void timed_wake(unsigned thread, uint64_t key, uint32_t mask, unsigned most)
{
    struct timed_thread *t = &timed_thread[thread];
    uint64_t clock = turn_end(thread);
    if (turns_wake(clock + ns_cycles(WAKE_NS), key, mask, most) == 0)
        return;
    t->clock += ns_cycles(WAKE_NS);
    t->limit = turns_rival(thread);
}

static void timed_go_outside(unsigned thread)
{
    turns_go_outside(thread, turn_end(thread));
}

static void timed_come_back(unsigned thread)
{
    turns_come_back(thread);
    turn_start(thread);
}

static uint64_t timed_now_ns(unsigned thread)
{
    return timed_clock(&timed_thread[thread]) * 1000 / timed_setting.machine.mhz;
}

static void timed_move(unsigned thread, unsigned core)
{
    if (timed_thread[thread].first != 0) /* it had a timed region, or is in one */
        model_move(timed_setting.model, timed_thread[thread].core, core);
    timed_thread[thread].core = core;
}

static void timed_forget(unsigned thread, uint64_t address, uint64_t bytes)
{
    (void)thread;
    model_forget(timed_setting.model, address, bytes);
}

static void timed_bind(unsigned thread, uint64_t address, uint64_t bytes, uint64_t mask)
{
    (void)thread;
    model_bind(timed_setting.model, address, bytes, mask);
}

static void timed_region(unsigned thread, bool start)
{
    struct timed_thread *t = &timed_thread[thread];
    timed_turn_over(thread); /* those that are before it have to get here first */
    uint64_t clock = turn_end(thread);
    if (start) {
        t->started = clock;
        t->first = t->last == 0 ? clock : t->first;
        span.first = clock < span.first ? clock : span.first;
    } else {
        t->cycles += clock - t->started;
        t->last = clock;
        span.last = clock > span.last ? clock : span.last;
    }
    t->counting = start;
    model_count(timed_setting.model, t->core, start);
}

static void timed_read(unsigned thread, struct sim_reading *reading)
{
    struct timed_thread *t = &timed_thread[thread];
    *reading = (struct sim_reading){.model = *model_counts(timed_setting.model, t->core),
                                    .instructions = t->instructions,
                                    .cycles = t->cycles,
                                    .first = t->first,
                                    .last = t->last,
                                    .core = t->core,
                                    .stirred = turns_stirred()};
}

static void timed_times(struct sim_times *times)
{
    times->first = span.last != 0 ? span.first : 0;
    times->last = span.last;
    times->stirred = turns_stirred();
    latency_answer(times->call);
}

const struct mode timed_mode = {
    .name = "timed",
    .begin = timed_begin,
    .born = timed_born,
    .join = timed_join,
    .died = timed_died,
    .idle = timed_idle,
    .wait = timed_wait,
    .wake = timed_wake,
    .go_outside = timed_go_outside,
    .come_back = timed_come_back,
    .now_ns = timed_now_ns,
    .move = timed_move,
    .forget = timed_forget,
    .bind = timed_bind,
    .region = timed_region,
    .read = timed_read,
    .times = timed_times,
};
