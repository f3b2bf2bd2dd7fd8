/* ak compare: one's own command under each allocator, and whether another one is worth it. */
#include "child.h"
#include "command.h"
#include "compare.h"
#include "compare_contenders.h"
#include "compare_launch.h"
#include "compare_plot.h"
#include "compare_report.h"
#include "compare_table.h"
#include "output.h"
#include "places.h"
#include "progress.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RUNS_DEFAULT   10
#define RUNS_MOST      100000
#define WARMUP_DEFAULT 1
#define TIMEOUT_MOST_S 1000000

/* ---- the command line ---- */

static bool take_number(const char *name, const char *text, uint64_t least, uint64_t most, uint64_t *value,
                        struct fault *f)
{
    if (!text)
        return true;
    return (text_uint(text, 0, value) && *value >= least && *value <= most) ||
           fault_set(f, AK_USAGE, "compare: %s = '%s', expected a whole number from %" PRIu64 " to %" PRIu64,
                     name, text, least, most);
}

static bool take_signal(const char *text, int *number, struct fault *f)
{
    uint64_t value;
    *number = SIGTERM;
    if (!text)
        return true;
    const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
    for (int s = 1; s < NSIG; s++) {
        const char *known = sigabbrev_np(s);
        if (known && strcmp(known, name) == 0) {
            *number = s;
            return true;
        }
    }
    if (text_uint(text, 0, &value) && value >= 1 && value < NSIG) {
        *number = (int)value;
        return true;
    }
    return fault_set(f, AK_USAGE, "compare: --stop '%s', expected a signal, as TERM, INT, QUIT or a number",
                     text);
}

static bool check_input(const char *path, struct fault *f)
{
    if (path && path_is_folder(path))
        return fault_set(f, AK_USAGE, "compare: --stdin %s: a folder, expected a file", path);
    return !path || access(path, R_OK) == 0 ||
           fault_set(f, AK_USAGE, "compare: --stdin %s: %s", path, strerror(errno));
}

static bool blank(const char *text)
{
    return text && !text[strspn(text, " \t\n")];
}

static bool same_file(struct arena *a, const char *one, const char *other)
{
    const char *x = path_real(a, one), *y = path_real(a, other);
    const char *in_x = path_real(a, path_folder(a, one)), *in_y = path_real(a, path_folder(a, other));
    if (x && y)
        return strcmp(x, y) == 0;
    return !x && !y && in_x && in_y && strcmp(in_x, in_y) == 0 &&
           strcmp(path_name(one), path_name(other)) == 0;
}

static bool check_texts(struct arena *a, const struct compare_options *o, struct fault *f)
{
    if (blank(o->csv) || blank(o->plot))
        return fault_set(f, AK_USAGE, "compare: %s '', expected a file", blank(o->csv) ? "--csv" : "--plot");
    if (o->csv && o->plot && same_file(a, o->csv, o->plot))
        return fault_set(f, AK_USAGE, "compare: --csv and --plot are both %s, expected two files", o->csv);
    if (blank(o->ready) || blank(o->load))
        return fault_set(f, AK_USAGE, "compare: %s '', expected a line for sh",
                         blank(o->ready) ? "--ready" : "--load");
    return true;
}

/* Options, then --, then the command, which is left as it is. */
static bool read_options(struct arena *a, int argc, char **argv, struct compare_options *o, struct fault *f)
{
    const char *runs = NULL, *warmup = NULL, *seed = NULL, *timeout = NULL, *stop = NULL;
    uint64_t timeout_s = 0;
    const struct command_option known[] = {
        {"--allocators", &o->allocators, NULL},
        {"--runs", &runs, NULL},
        {"--warmup", &warmup, NULL},
        {"--csv", &o->csv, NULL},
        {"--json", NULL, &o->json},
        {"--no-profile", NULL, &o->no_profile},
        {"--plot", &o->plot, NULL},
        {"--stdin", &o->in, NULL},
        {"--ready", &o->ready, NULL},
        {"--load", &o->load, NULL},
        {"--stop", &stop, NULL},
        {"--seed", &seed, NULL},
        {"--timeout", &timeout, NULL},
        {"--registry", &o->registry, NULL},
        {NULL, NULL, NULL},
    };
    struct timespec now;
    int options = 1, left;
    while (options < argc && strcmp(argv[options], "--") != 0)
        options++;
    if (!command_options(a, options, argv, known, &left, f))
        return false;
    if (left > 1)
        return fault_set(f, AK_USAGE, "compare: '%s', expected options, then -- COMMAND", argv[1]);
    if (options + 1 >= argc || !*argv[options + 1])
        return fault_set(f, AK_USAGE,
                         "compare: no command, expected -- COMMAND (as in: ak compare -- sort file)");
    o->command = argv + options + 1;
    clock_gettime(CLOCK_REALTIME, &now);
    o->runs = RUNS_DEFAULT;
    o->warmup = WARMUP_DEFAULT;
    o->seed = hash_mix((uint64_t)now.tv_sec ^ (uint64_t)now.tv_nsec << 20) % 1000000;
    if (!take_number("--runs", runs, 1, RUNS_MOST, &o->runs, f) ||
        !take_number("--warmup", warmup, 0, RUNS_MOST, &o->warmup, f) ||
        !take_number("--seed", seed, 0, UINT32_MAX, &o->seed, f) ||
        !take_number("--timeout", timeout, 1, TIMEOUT_MOST_S, &timeout_s, f) ||
        !take_signal(stop, &o->stop_signal, f) || !check_input(o->in, f) || !check_texts(a, o, f))
        return false;
    o->timeout_ms = timeout_s * 1000u;
    if (!o->load != !o->ready)
        return fault_set(f, AK_USAGE, "compare: %s without %s, expected both for a server",
                         o->load ? "--load" : "--ready", o->load ? "--ready" : "--load");
    return !stop || o->load ||
           fault_set(f, AK_USAGE, "compare: --stop without --ready and --load, expected all for a server");
}

/* ---- running it ---- */

struct campaign {
    struct suite *suite;
    struct comparison *cmp;
    struct stage *stage;
    struct compare_view view;
    struct timespec begun;
    uint64_t done, planned; /* launches */
};

static double since_s(const struct timespec *begun)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begun->tv_sec) + (double)(now.tv_nsec - begun->tv_nsec) / 1e9;
}

static void tell(struct campaign *k, const char *phase, const char *name)
{
    char left[32];
    struct arena a = {0};
    const double spent = since_s(&k->begun);
    const char *rest =
        k->done && k->planned > k->done
            ? arena_printf(&a, ", about %s left",
                           duration_text(spent * (double)(k->planned - k->done) / (double)k->done, left))
            : "";
    compare_view_show(&k->view, k->cmp, arena_printf(&a, "%s: %s%s", phase, name, rest));
    arena_free(&a);
}

/* One launch, kept. False where nothing more is to be launched: stopped by the user (no fault), or a fault. */
static bool launch(struct campaign *k, size_t contender, enum compare_kind kind, uint64_t round,
                   uint64_t order, struct fault *f)
{
    struct arena *a = &k->suite->arena;
    struct comparison *cmp = k->cmp;
    struct compare_launch l = {.contender = contender, .kind = kind, .round = round, .order = order};
    struct contender *profiled = kind == KIND_PROFILED ? &cmp->contender[contender] : NULL;
    if (!compare_launch(a, k->stage, &l, profiled, f)) {
        cmp->stopped = child_interrupts > 0;
        if (cmp->stopped)
            *f = (struct fault){0};
        return false;
    }
    k->done++;
    if (!l.launched)
        return true;
    cmp->launch = arena_grow(a, cmp->launch, cmp->launches, sizeof *cmp->launch);
    cmp->launch[cmp->launches++] = l;
    if (kind == KIND_WARMUP && l.status != COMPARE_OK)
        cmp->contender[contender].gone = l.detail;
    if (child_interrupts)
        cmp->stopped = true;
    return !cmp->stopped;
}

/* The contenders that are left, in a random order that the seed gives this round, whatever came before it. */
static size_t shuffle(const struct campaign *k, enum compare_kind kind, uint64_t round, size_t *order)
{
    uint64_t random = hash_mix(hash_mix(k->cmp->options.seed) ^ (uint64_t)kind << 60 ^ round);
    size_t n = 0;
    for (size_t i = 0; i < k->cmp->contenders; i++)
        if (!k->cmp->contender[i].gone)
            order[n++] = i;
    for (size_t i = n; i > 1; i--) {
        const size_t j = (random = hash_mix(random + 0x9e3779b97f4a7c15u)) % i, kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
    return n;
}

static bool round_of(struct campaign *k, enum compare_kind kind, uint64_t round, uint64_t of, struct fault *f)
{
    size_t *order = arena_alloc(&k->suite->arena, k->cmp->contenders * sizeof *order);
    const size_t n = shuffle(k, kind, round, order);
    const char *phase =
        kind == KIND_WARMUP     ? arena_printf(&k->suite->arena, "warm-up %" PRIu64 "/%" PRIu64, round, of)
        : kind == KIND_PROFILED ? "profile"
                                : arena_printf(&k->suite->arena, "round %" PRIu64 "/%" PRIu64, round, of);
    if (!k->view.terminal)
        fprintf(stderr, "ak: %s\n", phase);
    for (size_t i = 0; i < n; i++) {
        if (kind == KIND_WARMUP && round == 1 && order[i] == 0)
            continue; /* the first launch of all was its */
        tell(k, phase, k->cmp->contender[order[i]].name);
        if (!launch(k, order[i], kind, kind == KIND_TIMED ? round : 0, i + 1, f))
            return false;
    }
    return true;
}

static bool profile_all(struct campaign *k, struct fault *f)
{
    if (k->stage->profiler.why) {
        for (size_t i = 0; i < k->cmp->contenders; i++)
            k->cmp->contender[i].no_share = k->stage->profiler.why;
        return true;
    }
    return round_of(k, KIND_PROFILED, 1, 1, f);
}

/* The first launch tells whether the command runs at all, and what its default is. False where that is the end. */
static bool try_default(struct campaign *k, struct fault *f)
{
    struct comparison *cmp = k->cmp;
    tell(k, "first launch", "default");
    if (!launch(k, 0, KIND_WARMUP, 0, 1, f))
        return false;
    const struct compare_launch *first = &cmp->launch[0];
    if (first->status == COMPARE_NOT_SERVED)
        return fault_set(f, AK_ENVIRONMENT, "compare: %s: no other allocator can serve it: %s",
                         cmp->options.command[0], first->detail);
    if (first->status != COMPARE_OK)
        return false;
    if (!contenders_know_default(k->suite, k->stage, cmp, first, f))
        return false;
    return cmp->contenders > 1 ||
           fault_set(f, AK_ENVIRONMENT,
                     "compare: no allocator is here but the default, %s; ak doctor says what is missing",
                     cmp->contender[0].name);
}

static bool measure(struct campaign *k, struct fault *f)
{
    struct comparison *cmp = k->cmp;
    clock_gettime(CLOCK_MONOTONIC, &k->begun);
    if (!try_default(k, f))
        return false;
    const uint64_t rounds = cmp->options.warmup + (k->stage->profiler.why ? 0 : 1) + cmp->options.runs;
    k->planned = rounds * cmp->contenders + (cmp->options.warmup ? 0 : 1);
    for (uint64_t i = 1; i <= cmp->options.warmup; i++)
        if (!round_of(k, KIND_WARMUP, i, cmp->options.warmup, f))
            return false;
    if (!profile_all(k, f))
        return false;
    for (uint64_t i = 1; i <= cmp->options.runs; i++) {
        cmp->rounds = i;
        if (!round_of(k, KIND_TIMED, i, cmp->options.runs, f))
            return false;
    }
    return true;
}

/* ---- what comes out ---- */

static bool write_results(struct suite *s, const struct stage *stage, const struct comparison *cmp,
                          struct output *csv, struct fault *f)
{
    struct buffer text = {0};
    bool good = true;
    if (csv->file) {
        compare_csv(cmp, &text);
        good = output_write(csv, &text, f) && output_commit(csv, f);
    }
    if (good && cmp->options.plot && cmp->rounds)
        good = compare_plot(&s->arena, s->paths.launcher, stage->folder, cmp, cmp->options.plot, f);
    text.length = 0;
    if (cmp->options.json) {
        json_t *json = compare_json(&s->arena, cmp);
        json_dumpf(json, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(json);
    } else {
        compare_print(cmp, &text);
        fwrite(text.data, 1, text.length, stdout);
    }
    buffer_free(&text);
    return good;
}

static int code_of(const struct comparison *cmp)
{
    bool failed = cmp->stopped;
    for (size_t i = 0; i < cmp->launches; i++)
        failed |= cmp->launch[i].status != COMPARE_OK;
    return failed ? AK_FAILED : AK_DONE;
}

static bool compare(struct suite *s, struct comparison *cmp, struct fault *f)
{
    const struct compare_options *o = &cmp->options;
    struct stage stage = {0};
    struct output csv = {0};
    struct campaign campaign = {.suite = s, .cmp = cmp, .stage = &stage};
    bool good = (!o->plot || compare_plot_check(&s->arena, o->plot, f)) &&
                target_find(&s->arena, "compare", o->command[0], &cmp->target, f);
    if (good && cmp->target.refusal)
        good =
            fault_set(f, AK_ENVIRONMENT, "compare: no other allocator can serve it: %s", cmp->target.refusal);
    if (good && *cmp->target.note)
        words_add(&s->arena, &cmp->notes, cmp->target.note);
    good = good && stage_open(&s->arena, &s->paths, cmp, &stage, f) && contenders_find(s, &stage, cmp, f) &&
           (!o->csv || output_open(&s->arena, &csv, o->csv, f));
    if (good) {
        compare_view_open(&campaign.view, cmp);
        measure(&campaign, f);
        compare_view_show(&campaign.view, cmp, NULL);
        good = f->code == AK_DONE && write_results(s, &stage, cmp, &csv, f);
    }
    output_discard(&csv);
    stage_close(&stage);
    return good;
}

static int cmd_compare(int argc, char **argv)
{
    struct suite suite = {0};
    struct fault fault = {0};
    struct comparison comparison = {0};
    struct arena words = {0};
    child_watch_interrupts();
    const bool good = read_options(&words, argc, argv, &comparison.options, &fault) &&
                      suite_open(&suite, comparison.options.registry, &fault) &&
                      compare(&suite, &comparison, &fault);
    const int code = good ? code_of(&comparison) : fault_print(&fault);
    suite_close(&suite);
    arena_free(&words);
    return code;
}

AK_COMMAND(
    command_compare, "compare",
    "[--allocators A,B,NAME=LIB] [--runs N] [--warmup N] [--csv FILE] [--json] [--plot FILE] [--stdin FILE] "
    "[--no-profile] "
    "[--ready CMD --load CMD [--stop SIGNAL]] [--seed N] [--timeout S] [--registry FILE] -- COMMAND...",
    "one's own program under each allocator: paired, interleaved, with intervals and a verdict",
    "  --allocators L    names of the registry, or NAME=LIBRARY for one of your own; default: all that are "
    "here,\n"
    "                    but for those with compare = no\n"
    "  --runs N          timed launches under each (default 10; no interval from fewer than 6)\n"
    "  --warmup N        launches under each that are not counted (default 1)\n"
    "  --csv FILE        a row a launch\n"
    "  --json            the result as JSON on standard output\n"
    "  --plot FILE       the ratios as FILE.svg or FILE.pdf (needs gnuplot)\n"
    "  --stdin FILE      standard input of the command (default /dev/null)\n"
    "  --ready CMD       the command is a server: run this until it succeeds, then the load; it has to fail\n"
    "                    before the server is started\n"
    "  --load CMD        what drives the server, and is timed\n"
    "  --stop SIGNAL     what ends the server (default TERM)\n"
    "  --seed N          of the order\n"
    "  --timeout S       seconds that a launch, or each of --ready and --load, may take\n"
    "  --registry FILE   further allocators, in the format of allocators/registry.ini\n"
    "A share of CPU samples in malloc and free needs perf. docs/compare.md says how a verdict comes about.\n",
    cmd_compare);
