#include "execute.h"
#include "child.h"
#include "linked.h"
#include "machine.h"
#include "meta.h"
#include "progress.h"
#include "simulator.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define RESULT_BYTES_MAX ((size_t)64 << 20)
/* Strings on the stack of a new process shift everything below them, and with it speed: every launch is
 * padded to a multiple of this, whatever the length of the library's path. */
#define STACK_GRAIN 4096
#define RETRIES_MAX 3 /* of a simulated row whose counts may differ from run to run */

/* The kernel's arguments: the same number for every allocator. */
static const char **arguments(struct arena *a, const struct planned *p)
{
    const struct allocator *al = p->block->member[p->member].allocator;
    const struct linked_program *program = linked_program(al, p->block->kernel->name);
    struct words argv = {0};
    words_add(a, &argv, program ? program->path : p->block->kernel->path);
    block_arguments(a, p->block, &argv);
    words_add(a, &argv, "--seed");
    words_add(a, &argv, arena_printf(a, "%" PRIu64, p->seed));
    words_add(a, &argv, "--expect");
    words_add(a, &argv, program && !*al->expect ? program->path : al->expect);
    words_add(a, &argv, "--version-call");
    words_add(a, &argv, *al->version_call ? al->version_call : "file");
    words_add(a, &argv, "--metadata-call");
    words_add(a, &argv, al->metadata_call);
    words_add(a, &argv, "--json");
    words_add(a, &argv, NULL);
    return argv.word;
}

/* The environment with one more variable that makes up for lengths. */
static char **padded(struct arena *a, char **env, const char *const *argv, const struct allocator *al)
{
    struct words all = {0};
    size_t bytes = strlen("LD_PRELOAD=") + strlen(al->preload) + strlen("AK_PAD=") + 2 + strlen(argv[0]) + 1;
    for (; *argv; argv++)
        bytes += strlen(*argv) + 1;
    for (; *env; env++) {
        words_add(a, &all, *env);
        bytes += strlen(*env) + 1;
    }
    size_t pad = STACK_GRAIN - bytes % STACK_GRAIN;
    char *variable = arena_alloc(a, strlen("AK_PAD=") + pad + 1);
    memcpy(variable, "AK_PAD=", strlen("AK_PAD="));
    memset(variable + strlen("AK_PAD="), '.', pad);
    words_add(a, &all, variable);
    words_add(a, &all, NULL);
    return (char **)(uintptr_t)all.word;
}

bool launch_request(struct arena *a, const struct simulator *sim, const struct planned *p,
                    struct child_request *request, const char **why)
{
    const struct allocator *al = p->block->member[p->member].allocator;
    const char *const *argv = arguments(a, p);
    struct words set = {0};
    for (size_t i = 0; i < al->env.count; i++)
        words_add(a, &set, al->env.word[i]);
    if (p->block->machine)
        simulator_variables(a, p->block->machine, &set);
    char **env = padded(a, child_environment_with(a, &set), argv, al);
    *request = (struct child_request){.argv = argv,
                                      .env = env,
                                      .preload = al->preload,
                                      .directory = al->directory,
                                      .timeout_ms = p->block->timeout_s * 1000u,
                                      .out_max = RESULT_BYTES_MAX,
                                      .interrupts_max = 2};
    if (!p->block->machine)
        return true;
    char **qemu_env = NULL;
    request->argv = simulator_command(a, sim, p, argv, al->preload, env, &qemu_env, why);
    request->env = qemu_env;
    request->preload = "";
    request->fixed_addresses = true;
    return request->argv != NULL;
}

const char **launch_command(struct arena *a, const struct simulator *sim, const struct planned *p)
{
    struct child_request request;
    const char *why;
    return launch_request(a, sim, p, &request, &why) ? (const char **)(uintptr_t)request.argv : NULL;
}

/* What every launch of a run needs. */
struct execution {
    const struct paths *paths;
    const struct simulator *sim;
    const struct run_facts *facts;
    const struct profiler *profiler;
};

/* The share of malloc and free in an ok row. False where it was stopped by the user, or with a fault. */
static bool take_share(struct arena *a, const struct execution *x, const struct planned *p,
                       const struct profile *profile, const char *why, struct result *r, struct fault *f)
{
    struct share_scope scope;
    struct share share = {.malloc_share = NAN, .libc_share = NAN, .why = why, .libc_why = why};
    result_share_scope(a, r, p, &scope);
    if (!why && !profile_share(a, x->paths->launcher, x->profiler, profile, &scope, &share, f))
        return false;
    result_share(r, p, &share);
    return child_interrupts < 2;
}

/* Launch one row. False where it was stopped by the user (no row), or with a fault. */
static bool launch_once(struct arena *a, const struct execution *x, const struct planned *p, bool profiled,
                        struct result *r, struct fault *f)
{
    struct child_request request;
    struct child_outcome outcome;
    struct profile profile = {.fd = -1};
    const char *why;
    if (!launch_request(a, x->sim, p, &request, &why)) {
        result_fail(a, r, STATUS_SKIPPED, "%s", why);
        return true;
    }
    why = profiled ? x->profiler->why : NULL;
    if (profiled && linked_is(p->block->member[p->member].allocator))
        why = "an allocator that is linked in has no file of its own to tell samples by";
    if (profiled && !why && !profile_begin(a, x->profiler, &request, &profile, &why))
        profile.fd = -1;
    uint64_t before = 0, after = 0;
    bool counted = cgroup_oom_kills(&before);
    bool made = child_run(x->paths->launcher, &request, &outcome, f);
    if (made) {
        made = outcome.end != CHILD_STOPPED || child_interrupts < 2;
        counted = counted && cgroup_oom_kills(&after);
        if (made)
            result_take(a, r, p, &outcome, counted && after > before ? after - before : 0);
        if (made && profiled && r->status == STATUS_OK)
            made = take_share(a, x, p, &profile, why, r, f);
        if (made)
            result_launched(r, p, &outcome);
        child_outcome_free(&outcome);
    }
    profile_free(&profile);
    return made;
}

/* A simulated row that could not keep its threads in order is tried again, and kept with a word where that does not
 * help. */
static bool launch(struct arena *a, const struct execution *x, const struct planned *p, struct result *r,
                   struct fault *f)
{
    for (unsigned retries = 0;; retries++) {
        const char *started_at = time_stamp(a);
        result_free(r);
        result_begin(a, x->facts, p, started_at, r);
        if (!launch_once(a, x, p, p->block->profiled, r, f))
            return false;
        bool stirred = r->status == STATUS_OK && r->stirred > 0;
        if (p->block->machine)
            result_simulated(a, r, retries);
        if (!stirred || retries == RETRIES_MAX || child_interrupts)
            return true;
    }
}

/* Launches that fill caches and bring the machine to its pace, and are forgotten, before the first of a cell that this start
 * of ak makes. One that does not end well ends them: the row will say why. False as for launch_once. */
static bool warm_up(const struct execution *x, const struct planned *p, struct fault *f)
{
    bool made = true, good = true;
    for (uint64_t i = 0; made && good && i < p->block->warmups; i++) {
        struct arena a = {0};
        struct result r;
        result_begin(&a, x->facts, p, "", &r);
        made = launch_once(&a, x, p, false, &r, f) && !child_interrupts;
        good = r.status == STATUS_OK;
        result_free(&r);
        arena_free(&a);
    }
    return made;
}

static size_t widest_block(const struct plan *plan)
{
    size_t widest = 0;
    for (size_t i = 0; i < plan->blocks; i++)
        widest = plan->block[i].members > widest ? plan->block[i].members : widest;
    return widest;
}

/* perf is tried once, and only where a row needs it. */
static bool find_profiler(struct arena *a, const struct paths *paths, const struct plan *plan,
                          struct profiler *profiler, struct fault *f)
{
    for (size_t i = 0; i < plan->blocks; i++)
        if (plan->block[i].profiled)
            return profiler_find(a, paths->launcher, profiler, f);
    return true;
}

bool execute_plan(const struct paths *paths, const struct simulator *sim, const struct plan *plan,
                  const struct run_facts *facts, struct results *results, struct cells *cells,
                  struct tally *tally, struct fault *f)
{
    struct arena memory = {0};
    struct profiler profiler = {0};
    struct progress progress;
    const struct execution x = {paths, sim, facts, &profiler};
    const size_t widest = widest_block(plan);
    bool *warm = arena_alloc(&memory, (plan->blocks * widest + 1) * sizeof *warm); /* by block and member */
    *tally = (struct tally){0};
    if (!find_profiler(&memory, paths, plan, &profiler, f)) {
        arena_free(&memory);
        return false;
    }
    progress_start(&progress, plan, results->done, results->done_count);
    for (size_t i = 0; i < plan->rows && f->code == AK_DONE; i++) {
        if (results->done[i])
            continue;
        if (!cells_need(cells, &plan->row[i])) {
            progress_spare(&progress, &plan->row[i]);
            continue;
        }
        if (child_interrupts) {
            tally->stopped = true;
            break;
        }
        struct arena arena = {0};
        struct result result;
        struct buffer line = {0};
        const struct planned *p = &plan->row[i];
        const struct block_member *m = &p->block->member[p->member];
        const char *changed;
        bool made = true;
        progress_row(&progress, p);
        result_begin(&arena, facts, p, time_stamp(&arena), &result);
        if (m->skip)
            result_fail(&arena, &result, STATUS_SKIPPED, "%s", m->skip);
        else if (!m->allocator->found)
            result_fail(&arena, &result, STATUS_SKIPPED, "%s%s: %s", m->allocator->name,
                        m->allocator->present ? "" : " is not installed", m->allocator->reason);
        else if ((changed = linked_lacks(&arena, m->allocator, p->block->kernel->name)))
            result_fail(&arena, &result, STATUS_SKIPPED, "%s", changed);
        else if ((changed = allocator_changed(&arena, m->allocator, p->block->kernel->name)))
            result_fail(&arena, &result, STATUS_SKIPPED, "%s went away: %s", m->allocator->name, changed);
        else if ((changed = kernel_changed(&arena, p->block->kernel)))
            made = fault_set(
                f, AK_ENVIRONMENT,
                "%s; stopped, so that no row is of another; put it back and go on with --resume, or begin "
                "a new run",
                changed);
        else {
            bool *is_warm = &warm[(size_t)(p->block - plan->block) * widest + p->member];
            made = (*is_warm || warm_up(&x, p, f)) && launch(&arena, &x, p, &result, f);
            *is_warm = true;
        }
        if (made) {
            result_csv(&result, &line);
            if (results_append(results, result.side, &line, f)) {
                results->done[i] = true;
                cells_take(cells, p, &result);
                tally->by_status[result.status]++;
                progress_done(&progress, p, &result);
            }
        } else if (f->code == AK_DONE) {
            tally->stopped = true;
        }
        buffer_free(&line);
        result_free(&result);
        arena_free(&arena);
        if (tally->stopped)
            break;
    }
    progress_end(&progress);
    arena_free(&memory);
    return f->code == AK_DONE;
}
