#include "admit.h"
#include "child.h"

#include <ctype.h>
#include <string.h>

#define CHECK_TIMEOUT_MS 20000
#define CHECK_BYTES_MAX  65536
#define REASON_MAX       400

static bool all_skipped(const struct block *b)
{
    for (size_t i = 0; i < b->members; i++)
        if (!b->member[i].skip)
            return false;
    return true;
}

/* True if `text` names the option as a whole word: --size_min or --size-min. */
static bool names_option(const char *text, const char *key)
{
    for (const char *at = text; (at = strstr(at, "--")); at += 2) {
        const char *name = at + 2, *k = key;
        for (; *k && (*name == *k || (*name == '-' && *k == '_')); name++)
            k++;
        if (!*k && !isalnum((unsigned char)*name) && *name != '_' && *name != '-')
            return true;
    }
    return false;
}

/* What set an option: `size` stands for three. */
static const struct setting *setting_of(const struct sweep *s, const struct block *b, const char *key)
{
    const struct setting *own = sweep_get(s, b->kernel->name, key);
    return own || strncmp(key, "size_", strlen("size_")) != 0 ? own : sweep_get(s, b->kernel->name, "size");
}

/* The fault stands at the first option that the kernel names and the sweep sets. */
static bool refused(struct arena *a, const struct plan *p, const struct block *b, const char *why,
                    struct fault *f)
{
    const struct setting *place = NULL;
    const char *values = "";
    for (size_t i = 0; i < b->options; i++) {
        const struct option_pair *o = &b->option[i];
        if (!names_option(why, o->key))
            continue;
        if (!place)
            place = setting_of(p->sweep, b, o->key);
        values = arena_printf(a, "%s%s%s = %s", values, *values ? ", " : "", o->key, o->stable);
    }
    if (place)
        return setting_fault(f, place, "%s (%s)", why, values);
    return fault_at(f, p->sweep->path, 0, "%s", why);
}

static bool block_admit(struct arena *a, const struct paths *paths, const struct plan *p,
                        const struct block *b, struct fault *f)
{
    struct words argv = {0}, kept = {0};
    words_add(a, &argv, b->kernel->path);
    words_add(a, &argv, "--check");
    block_arguments(a, b, &argv);
    words_add(a, &argv, NULL);
    struct child_request request = {.argv = argv.word,
                                    .env = child_environment(a, &kept),
                                    .timeout_ms = CHECK_TIMEOUT_MS,
                                    .out_max = CHECK_BYTES_MAX,
                                    .interrupts_max = 1};
    struct child_outcome outcome;
    if (!child_run(paths->launcher, &request, &outcome, f))
        return false;
    const char *why = text_last_line(a, outcome.err.data, REASON_MAX);
    bool wrong = outcome.end == CHILD_EXITED && outcome.code == AK_USAGE;
    bool good = outcome.end == CHILD_EXITED && outcome.code == AK_DONE;
    const char *end = child_end_words(a, &outcome);
    child_outcome_free(&outcome);
    if (wrong)
        return refused(a, p, b, why, f);
    return good || fault_set(f, AK_ENVIRONMENT, "kernel %s (%s) --check: %s %s", b->kernel->name,
                             b->kernel->path, end, why);
}

bool plan_admit(const struct paths *paths, const struct plan *p, struct fault *f)
{
    for (size_t i = 0; i < p->blocks; i++) {
        const struct block *b = &p->block[i];
        struct arena one = {0};
        bool good = !b->kernel->check || all_skipped(b) || block_admit(&one, paths, p, b, f);
        arena_free(&one);
        if (!good)
            return false;
    }
    return true;
}
