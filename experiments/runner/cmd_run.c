/* ak run: expand a sweep and run what is not done of it. */
#include "admit.h"
#include "cells.h"
#include "child.h"
#include "command.h"
#include "execute.h"
#include "linked.h"
#include "machine.h"
#include "merged.h"
#include "meta.h"
#include "plan.h"
#include "progress.h"
#include "results.h"
#include "csv.h"
#include "simulator.h"
#include "simulator/quantum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND_WIDTH   110 /* of a line of the dry run's command */
#define CELLS_PRINTED   12  /* that are not narrow enough */
#define REASONS_PRINTED 12  /* for which rows were skipped */
#define TEXT_OF_(macro) #macro
#define TEXT_OF(macro)  TEXT_OF_(macro)
#define WEAVE_DEFAULT   TEXT_OF(WEAVE_QUANTUM)
#define TIMED_DEFAULT   TEXT_OF(TIMED_QUANTUM)

/* The command line. */
struct run_options {
    const char *sweep, *preset, *out, *allocators, *threads, *reps, *seed, *counters, *timeout, *registry;
    const char *machine, *sim_mode, *sim_quantum, *ci_width, *max_reps;
    bool resume, dry_run;
};

static bool read_options(struct arena *a, int argc, char **argv, struct run_options *o, struct fault *f)
{
    const struct command_option known[] = {
        {"--preset", &o->preset, NULL},
        {"--out", &o->out, NULL},
        {"--allocators", &o->allocators, NULL},
        {"--threads", &o->threads, NULL},
        {"--reps", &o->reps, NULL},
        {"--ci-width", &o->ci_width, NULL},
        {"--max-reps", &o->max_reps, NULL},
        {"--seed", &o->seed, NULL},
        {"--counters", &o->counters, NULL},
        {"--machine", &o->machine, NULL},
        {"--sim-mode", &o->sim_mode, NULL},
        {"--sim-quantum", &o->sim_quantum, NULL},
        {"--timeout", &o->timeout, NULL},
        {"--registry", &o->registry, NULL},
        {"--resume", NULL, &o->resume},
        {"--dry-run", NULL, &o->dry_run},
        {NULL, NULL, NULL},
    };
    int left;
    if (!command_options(a, argc, argv, known, &left, f))
        return false;
    if (left != 2)
        return fault_set(f, AK_USAGE, "run: %s, expected one SWEEP (see `ak list sweeps`)",
                         left < 2 ? "no sweep" : "more than one argument");
    o->sweep = argv[1];
    o->preset = o->preset ? o->preset : PRESET_DEFAULT;
    return true;
}

/* --allocators A,B,name=library: the plain names are left for the sweep. Only commas separate where a
 * library's path, which may hold blanks, is among them. */
static bool name_allocators(struct suite *s, const char *text, const char **plain, struct fault *f)
{
    struct words list = strchr(text, '=') ? text_list(&s->arena, text) : text_list_loose(&s->arena, text);
    *plain = "";
    for (size_t i = 0; i < list.count; i++) {
        const char *equals = strchr(list.word[i], '=');
        const char *name = list.word[i];
        if (!equals && strchr(name, '/'))
            return fault_set(
                f, AK_USAGE,
                "--allocators: '%s' is a path, expected NAME or NAME=LIBRARY separated by commas; give "
                "a path that holds a comma by AK_LIBRARY_NAME instead",
                name);
        if (equals) {
            name = arena_strndup(&s->arena, list.word[i], (size_t)(equals - list.word[i]));
            if (!registry_add_library(&s->arena, &s->registry, name, equals + 1, f))
                return false;
        }
        *plain = arena_printf(&s->arena, "%s%s%s", *plain, i ? "," : "", name);
    }
    return true;
}

/* Options of the simulated machine without a row that is simulated are a mistake. */
static bool check_simulation(const struct run_options *o, const struct plan *plan, struct fault *f)
{
    const char *option = o->machine       ? "--machine"
                         : o->sim_mode    ? "--sim-mode"
                         : o->sim_quantum ? "--sim-quantum"
                                          : NULL;
    return !option || plan->machines ||
           fault_set(f, AK_USAGE, "%s without a row that is simulated, expected --counters sim with it",
                     option);
}

static bool make_plan(struct suite *s, struct run_options *o, struct sweep *sweep, struct plan *plan,
                      struct fault *f)
{
    const char *path = sweep_locate(&s->arena, &s->paths, o->sweep, f);
    const char *allocators = NULL;
    if (!path || !sweep_read(&s->arena, &s->paths, path, o->preset, sweep, f) || !suite_kernels(s, f) ||
        !registry_check(&s->arena, &s->registry, &s->kernels.names, f) ||
        (o->allocators && !name_allocators(s, o->allocators, &allocators, f)))
        return false;
    const char *const keys[] = {"allocators", "threads",  "reps",        "seed",     "counters", "timeout",
                                "machine",    "sim_mode", "sim_quantum", "ci_width", "max_reps"};
    const char *const values[] = {allocators,     o->threads,  o->reps,    o->seed,
                                  o->counters,    o->timeout,  o->machine, o->sim_mode,
                                  o->sim_quantum, o->ci_width, o->max_reps};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (values[i])
            sweep_override(&s->arena, sweep, keys[i], values[i]);
    if (!sweep_check(&s->arena, sweep, &s->kernels, &s->registry, f) ||
        !plan_make(&s->arena, &s->paths, sweep, &s->kernels, &s->registry, machine_cpus(), plan, f) ||
        !check_simulation(o, plan, f))
        return false;
    struct words named = text_list_loose(&s->arena, allocators ? allocators : "");
    for (size_t i = 0; i < named.count; i++)
        registry_find(&s->registry, named.word[i])->named = true;
    return true;
}

/* Find and ask every allocator of the plan. One that was demanded and is not there ends the run before it
 * begins. */
static bool find_allocators(struct suite *s, const struct plan *plan, struct fault *f)
{
    for (size_t i = 0; i < plan->allocators.count; i++) {
        struct allocator *al = registry_find(&s->registry, plan->allocators.word[i]);
        if (!allocator_resolve(&s->arena, &s->paths, al, f))
            return false;
        if (!al->found && al->named)
            return fault_set(f, AK_ENVIRONMENT, "allocator %s: %s; nothing was run", al->name, al->reason);
        if (!al->found && al->required)
            return fault_set(
                f, AK_ENVIRONMENT,
                "allocator %s is required by %s:%u, but %s; install it, or leave it out with --allocators",
                al->name, al->file, al->line, al->reason);
        if (al->found && !allocator_probe(&s->arena, &s->paths, suite_probe_kernel(s), al, f))
            return false;
        if (al->found && linked_is(al))
            linked_inspect(&s->arena, &s->paths, plan, &s->registry, al);
        if (child_interrupts)
            return fault_set(f, AK_FAILED, "interrupted before the first launch");
    }
    return true;
}

struct wanted_backend {
    const char *name;
    bool known, can;
    char why[COUNTER_REASON_MAX];
};

static void take_wanted(const char *name, const char *what, bool can, const char *why, void *user)
{
    struct wanted_backend *wanted = user;
    (void)what;
    if (strcmp(name, wanted->name) != 0)
        return;
    wanted->known = true;
    wanted->can = can;
    snprintf(wanted->why, sizeof wanted->why, "%s", why);
}

/* A counter backend that the plan names and that cannot count here would make every row an error: say it first. */
static bool check_counters(struct suite *s, const struct plan *plan, struct fault *f)
{
    struct wanted_backend wanted = {.name = ""};
    for (size_t b = 0; b < plan->blocks; b++) {
        const char *name = block_option(&plan->block[b], "counters");
        if (!*name || strcmp(name, "auto") == 0 || strcmp(name, "none") == 0 ||
            strcmp(name, wanted.name) == 0)
            continue;
        wanted = (struct wanted_backend){.name = name};
        simulator_survey(&s->arena, &s->paths, take_wanted, &wanted);
        if (!wanted.known || !wanted.can)
            return fault_set(f, AK_ENVIRONMENT, "counters %s: %s; nothing was run", name,
                             wanted.known ? wanted.why : "not known here");
    }
    return true;
}

/* How the first simulated row is started, in lines that a shell takes; a word of more than letters and signs of paths in
 * quotes. */
static void print_command(struct suite *s, const struct plan *plan)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./@%";
    struct simulator simulator;
    size_t i = 0;
    while (i < plan->rows &&
           (!plan->row[i].block->machine || plan->row[i].block->member[plan->row[i].member].skip))
        i++;
    if (i == plan->rows)
        return;
    simulator_find(&s->arena, &s->paths, &simulator);
    const char **word = launch_command(&s->arena, &simulator, &plan->row[i]);
    int column = printf("%s is started by:", plan->row[i].row_id);
    for (; word && *word; word++) {
        const bool is_plain = **word && strspn(*word, plain) == strlen(*word);
        const int length = (int)strlen(*word) + (is_plain ? 1 : 3);
        if (column + length > COMMAND_WIDTH)
            column = printf(" \\\n   ") - 3;
        column += printf(is_plain ? " %s" : " '%s'", *word);
    }
    puts("\n");
}

static void print_plan(struct suite *s, const struct plan *plan)
{
    char rough[32], most[32];
    double estimate = 0, longest = 0;
    size_t skipped = 0;
    print_command(s, plan);
    for (size_t i = 0; i < plan->rows; i++) {
        const struct planned *p = &plan->row[i];
        const struct block *b = p->block;
        const struct block_member *m = &b->member[p->member];
        const char *skip = m->skip               ? m->skip
                           : m->allocator->found ? linked_lacks(&s->arena, m->allocator, b->kernel->name)
                                                 : m->allocator->reason;
        printf("%s rep=%" PRIu64 " seed=%" PRIu64 " %s %s", p->row_id, p->rep, p->seed, b->kernel->name,
               m->allocator->name);
        for (size_t o = 0; o < b->options; o++)
            printf(" %s=%s", b->option[o].key, b->option[o].stable);
        printf("%s%s\n", skip ? "  skipped: " : "", skip ? skip : "");
        skipped += skip != NULL;
        estimate += skip ? 0 : plan_row_ns(p) / 1e9;
        longest += skip ? 0 : (double)(plan_row_launches(p) * b->timeout_s);
    }
    printf("%s%zu launches (%zu of them skipped), preset %s, seed %" PRIu64 ", %" PRIu64
           " repetitions: roughly %s, "
           "by the timeouts at most %s\n",
           plan->stopping.width > 0 ? "at most " : "", plan->rows, skipped, plan->sweep->preset, plan->seed,
           plan->reps, duration_text(estimate, rough), duration_text(longest, most));
}

/* Take the folder: a new run, or the rest of an old one. *meta is the caller's. */
static bool take_folder(struct suite *s, const struct run_options *o, const struct simulator *simulator,
                        const struct plan *plan, char **command, struct results *results, json_t **meta,
                        struct fault *f)
{
    enum folder_state state = results_state(results->folder);
    if (state == FOLDER_FOREIGN)
        return fault_set(f, AK_USAGE, "%s holds other files, expected an empty folder or none",
                         results->folder);
    if (folder_is_merged(results->folder))
        return fault_set(f, AK_USAGE, "%s holds merged runs; go on with each where it was made",
                         results->folder);
    if (state == FOLDER_COMPLETE && !o->resume)
        return fault_set(f, AK_USAGE, "%s holds a run already; go on with --resume, or choose another --out",
                         results->folder);
    if (state == FOLDER_BEGUN && !o->resume)
        return fault_set(f, AK_USAGE,
                         "%s holds a run that was ended while it began; begin it anew with --resume",
                         results->folder);
    if (state == FOLDER_COMPLETE) {
        *meta = meta_read(&s->arena, results->folder, f);
        return *meta && meta_continue(&s->arena, *meta, plan, simulator, &s->registry, command, f) &&
               results_resume(&s->arena, results, plan, f) && results_write_meta(results, *meta, f);
    }
    struct machine machine;
    machine_read(&machine);
    *meta = meta_make(&s->arena, &s->paths, plan, simulator, &s->registry, &machine, command, f);
    machine_free(&machine);
    return *meta && results_create(results, plan, *meta, f);
}

/* What somebody who names one of these on the command line wants to see run; a sweep on its own may be skipped. */
static bool demands(const struct run_options *o)
{
    return o->machine || o->threads || o->allocators || o->counters;
}

/* One line for each distinct reason, in the order of the rows. */
static void print_skipped(struct arena *a, const struct csv_table *runs, int status, int detail)
{
    struct words reasons = {0};
    for (size_t i = 0; i < runs->rows; i++) {
        const char **field = runs->row[i].field;
        if (status_find(field[status]) == STATUS_SKIPPED && !words_have(&reasons, field[detail]))
            words_add(a, &reasons, field[detail]);
    }
    for (size_t r = 0; r < reasons.count && r < REASONS_PRINTED; r++) {
        size_t count = 0;
        for (size_t i = 0; i < runs->rows; i++)
            count += status_find(runs->row[i].field[status]) == STATUS_SKIPPED &&
                     strcmp(runs->row[i].field[detail], reasons.word[r]) == 0;
        printf("  %zu skipped: %s\n", count, reasons.word[r]);
    }
    if (reasons.count > REASONS_PRINTED)
        printf("  and for %zu more reasons: status_detail in %s\n", reasons.count - REASONS_PRINTED,
               FILE_RUNS);
}

/* Rows of the whole folder that are not ok, from runs.csv; returns how many failed. */
static size_t report(struct arena *a, const struct results *r, bool *nothing, struct fault *f)
{
    struct csv_table runs;
    size_t counts[STATUSES] = {0}, failed = 0;
    if (!csv_read(a, arena_printf(a, "%s/%s", r->folder, FILE_RUNS), &runs, f))
        return 0;
    int status = column_find("status"), detail = column_find("status_detail"), kernel = column_find("kernel");
    int allocator = column_find("allocator"), threads = column_find("threads"), rep = column_find("rep");
    for (size_t i = 0; i < runs.rows; i++) {
        const char **field = runs.row[i].field;
        enum status s = status_find(field[status]);
        if (s == STATUSES)
            continue;
        counts[s]++;
        if (s == STATUS_OK || s == STATUS_SKIPPED)
            continue;
        if (failed++ == 0)
            puts("failed:");
        printf("  %s %s %s threads=%s rep=%s %s: %s\n", field[0], field[kernel], field[allocator],
               field[threads], field[rep], field[status], field[detail]);
    }
    printf("%zu rows:", runs.rows);
    for (int s = 0; s < STATUSES; s++)
        if (counts[s])
            printf(" %zu %s", counts[s], status_names[s]);
    putchar('\n');
    print_skipped(a, &runs, status, detail);
    *nothing = runs.rows && counts[STATUS_SKIPPED] == runs.rows;
    if (*nothing)
        printf("nothing was measured: every row was skipped (%s)\n", runs.row[0].field[detail]);
    return failed;
}

/* With --ci-width: how many cells are as narrow as wanted, and how far off the others are. */
static void print_cells(const struct cells *cells)
{
    const struct plan *plan = cells->plan;
    size_t compared;
    const size_t narrow = cells_narrow(cells, &compared);
    double load;
    printf("%zu of %zu cells within %g of their median (confidence %.4g at each of %zu looks), the "
           "others after %" PRIu64 " repetitions or without a time\n",
           narrow, compared, plan->stopping.width, plan->stopping.confidence, plan->stopping.looks,
           plan->reps);
    cells_print_wide(cells, CELLS_PRINTED);
    if (narrow < compared && getloadavg(&load, 1) == 1 && load > machine_cpus())
        printf("  load %.1f on %u CPUs: what else runs widens intervals\n", load, machine_cpus());
}

static int run_plan(struct suite *s, const struct run_options *o, const struct plan *plan, char **command,
                    struct fault *f)
{
    struct results results;
    struct tally tally = {0};
    struct simulator simulator = {0};
    struct cells cells = {0};
    json_t *meta = NULL;
    char *now = time_stamp(&s->arena), *to = now;
    for (const char *from = now; *from; from++) /* 20260131T120000Z */
        if (*from != '-' && *from != ':')
            *to++ = *from;
    *to = '\0';
    const char *folder =
        o->out ? o->out
               : arena_printf(&s->arena, "results/%s-%s-%s", plan->sweep->name, plan->sweep->preset, now);
    if (plan->machines)
        simulator_find(&s->arena, &s->paths, &simulator);
    bool good = results_lock(&results, folder, f) &&
                take_folder(s, o, &simulator, plan, command, &results, &meta, f) &&
                simulator_roots_make(&s->arena, &simulator, plan, f);
    if (good) {
        struct run_facts facts = {meta_text(meta, "run_id"), plan->sweep->name, meta_text(meta, "machine_id"),
                                  machine_cpus()};
        printf("%s, preset %s, seed %" PRIu64 ": %s%zu launches, %zu of them done; results in %s\n",
               plan->sweep->name, plan->sweep->preset, plan->seed, plan->stopping.width > 0 ? "at most " : "",
               plan->rows, results.done_count, folder);
        fflush(stdout);
        good = cells_open(&s->arena, &cells, plan, folder, f) &&
               execute_plan(&s->paths, &simulator, plan, &facts, &results, &cells, &tally, f);
        simulator_roots_remove(&simulator, plan);
    }
    good = good && results_in_place(&results, f);
    if (good && !tally.stopped) {
        json_object_set_new(meta, "finished_at", json_string(time_stamp(&s->arena)));
        good = results_write_meta(&results, meta, f);
    }
    if (good && !tally.stopped && cells.count)
        print_cells(&cells);
    bool nothing = false;
    size_t failed = good ? report(&s->arena, &results, &nothing, f) : 0;
    int code = !good || f->code != AK_DONE ? fault_print(f)
               : failed                    ? AK_FAILED
               : nothing && demands(o)     ? AK_ENVIRONMENT
                                           : AK_DONE;
    if (good && tally.stopped) {
        fprintf(stderr,
                "ak: stopped with %zu of %s%zu rows; go on with the same command and --out %s --resume\n",
                results.done_count, cells.count ? "at most " : "", plan->rows, folder);
        code = AK_FAILED;
    } else if (good) {
        printf("results in %s\n", folder);
    }
    json_decref(meta);
    results_close(&results);
    return code;
}

static int cmd_run(int argc, char **argv)
{
    struct suite suite;
    struct fault fault = {0};
    struct run_options o = {0};
    struct sweep sweep;
    struct plan plan;
    int code;
    struct arena words = {0};
    char **command =
        arena_alloc(&words, ((size_t)argc + 2) * sizeof *command); /* before options are taken out */
    command[0] = arena_strdup(&words, "ak");
    memcpy(command + 1, argv, (size_t)argc * sizeof *command);

    child_watch_interrupts();
    suite = (struct suite){0};
    bool good = read_options(&words, argc, argv, &o, &fault) && suite_open(&suite, o.registry, &fault) &&
                make_plan(&suite, &o, &sweep, &plan, &fault) && plan_admit(&suite.paths, &plan, &fault) &&
                find_allocators(&suite, &plan, &fault) && check_counters(&suite, &plan, &fault);
    if (!good)
        code = fault_print(&fault);
    else if (o.dry_run) {
        print_plan(&suite, &plan);
        code = AK_DONE;
    } else
        code = run_plan(&suite, &o, &plan, command, &fault);
    suite_close(&suite);
    arena_free(&words);
    return code;
}

AK_COMMAND(
    command_run, "run",
    "SWEEP [--preset P] [--out DIR] [--allocators A,B,NAME=LIB] [--threads N,N] [--reps N] [--ci-width W "
    "[--max-reps N]] [--seed N] "
    "[--counters C] [--machine M] [--sim-mode M] [--sim-quantum N] [--timeout S] [--registry FILE] "
    "[--resume] "
    "[--dry-run]",
    "run a sweep: every cell in its own process, in random order, one row each",
    "  SWEEP             a name of `ak list sweeps`, or the path of a .sweep file\n"
    "  --preset P        smoke, quick (default) or paper\n"
    "  --out DIR         results folder; default results/SWEEP-PRESET-TIME here\n"
    "  --allocators L    names of the registry, or NAME=LIBRARY for one of your own\n"
    "  --threads L       thread counts, instead of the sweep's\n"
    "  --reps N          repetitions: launches of each cell\n"
    "  --ci-width W      further repetitions of a cell until the interval of its median ns per op is as "
    "narrow as\n"
    "                    this share of it (0.05), corrected for looking more than once\n"
    "  --max-reps N      with --ci-width: at most so many (default 64)\n"
    "  --seed N          of the order and of all random numbers\n"
    "  --counters C      auto, papi, likwid, perf, sim or none\n"
    "  --machine M       what --counters sim simulates: a name of `ak list machines` or a file; default: "
    "the\n"
    "                    smallest with a core for each of the sweep's threads\n"
    "  --sim-mode M      weave (default: fast; shared data) or timed (waiting takes simulated time)\n"
    "  --sim-quantum N   accesses of a turn (weave; default " WEAVE_DEFAULT ") or cycles of slack (timed; "
    "default " TIMED_DEFAULT ")\n"
    "  --timeout S       seconds that a launch may take\n"
    "  --registry FILE   further allocators, in the format of allocators/registry.ini\n"
    "  --resume          go on with the run in --out\n"
    "  --dry-run         print the plan and an estimate, run nothing\n",
    cmd_run);
