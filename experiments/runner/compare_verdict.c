#include "compare_verdict.h"

#include <inttypes.h>
#include <math.h>

const char *const verdict_words[] = {
    [VERDICT_WORTH] = "worth it",
    [VERDICT_COSTS_MEMORY] = "costs memory",
    [VERDICT_NOT_WORTH] = "not worth it",
    [VERDICT_UNKNOWN] = "cannot tell yet",
    [VERDICT_NONE] = "not measured",
};

/* "4.1 % less", "0.3 % more". */
static const char *change(struct arena *a, double ratio)
{
    return arena_printf(a, "%.1f %% %s", fabs(ratio - 1) * 100, ratio < 1 ? "less" : "more");
}

static const char *time_words(struct arena *a, const struct ratio *r)
{
    if (isnan(r->low))
        return arena_printf(a, "%s time", change(a, r->value));
    return arena_printf(a, "%s time (from %s to %s)", change(a, r->value), change(a, r->low),
                        change(a, r->high));
}

static const char *memory_words(struct arena *a, const struct ratio *r, double more)
{
    if (isnan(r->value))
        return "";
    if (fabs(more) < VERDICT_BYTES)
        return arena_printf(a, ", peak memory times %.2f", r->value);
    return arena_printf(a, ", peak memory times %.2f (%.0f MiB %s)", r->value, fabs(more) / VERDICT_BYTES,
                        more > 0 ? "more" : "less");
}

/* What a busy machine does: time falls, and neither the samples nor the CPU time say that the allocator made it. */
static bool unexplained(const struct verdict_facts *facts)
{
    return facts->share < VERDICT_SHARE && !isnan(facts->cpu.low) && facts->cpu.high > VERDICT_TIME;
}

/* Where time is undecided by its noise and CPU time is not. */
static const char *cpu_words(struct arena *a, const struct ratio *time, const struct ratio *cpu)
{
    const bool open = !isnan(time->low) && time->low <= VERDICT_TIME && time->high > VERDICT_TIME;
    if (!open || !cpu->pairs || isnan(cpu->low) || (cpu->low <= VERDICT_TIME && cpu->high > VERDICT_TIME))
        return "";
    return arena_printf(a, "; CPU time is clearer: %s (from %s to %s)", change(a, cpu->value),
                        change(a, cpu->low), change(a, cpu->high));
}

struct verdict_given verdict_give(struct arena *a, const struct verdict_facts *facts)
{
    const struct ratio *t = &facts->time, *m = &facts->memory;
    struct verdict_given given = {.verdict = VERDICT_UNKNOWN};
    const bool sure = !isnan(t->low), faster = sure && t->high <= VERDICT_TIME;
    const bool saves = sure && !isnan(m->high) && m->high <= VERDICT_SAVED && t->high <= VERDICT_NO_LOSS;
    const bool costs = !isnan(m->low) && m->low >= VERDICT_COSTS && facts->memory_more >= VERDICT_BYTES;
    if (!t->pairs) {
        given.verdict = VERDICT_NONE;
        given.words = "no pair of launches that ended well";
        return given;
    }
    given.words =
        arena_printf(a, "%s%s%s", time_words(a, t), memory_words(a, m, facts->memory_more), cpu_words(a, t, &facts->cpu));
    if (faster && !saves && unexplained(facts)) {
        given.more = t->pairs;
        given.words = arena_printf(a,
                                   "%s; but malloc and free take only %.1f %% of the samples, and CPU time did not "
                                   "fall with it: a busy machine may have made it; twice the launches would tell",
                                   given.words, facts->share * 100);
    } else if (faster || saves) {
        given.verdict = faster && costs ? VERDICT_COSTS_MEMORY : VERDICT_WORTH;
        if (faster && facts->share < VERDICT_SHARE) /* false for NAN */
            given.words =
                arena_printf(a,
                             "%s; malloc and free take only %.1f %% of the samples: where blocks lie, or the "
                             "kernel's work for them, may have made it",
                             given.words, facts->share * 100);
    } else if (sure && t->low > VERDICT_TIME) {
        given.verdict = VERDICT_NOT_WORTH;
    } else if (sure && facts->share < VERDICT_SHARE) {
        given.verdict = VERDICT_NOT_WORTH;
        given.words = arena_printf(a, "no gain shown: %s; only %.1f %% of the samples are in malloc and free",
                                   given.words, facts->share * 100);
    } else {
        given.more = ratio_pairs_needed(t, VERDICT_TIME);
        if (given.more == UINT64_MAX)
            given.words =
                arena_printf(a, "%s; more than %d launches would be needed", given.words, PAIRS_MOST);
        else
            given.words = arena_printf(a, "%s; about %" PRIu64 " more launch%s of each would tell%s",
                                       given.words, given.more, given.more == 1 ? "" : "es",
                                       sure ? "" : ", since there is no interval from fewer than 6");
    }
    return given;
}
