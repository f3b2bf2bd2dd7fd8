/*
 * counters.c - choose a counter backend, load it, and turn raw counts into columns.
 *
 * Choosing and opening may allocate (dlopen, the libraries); start and stop only pass through to the backend.
 * Per event the totals over threads are kept; a single thread's doubtful count empties the event, and with it
 * every column whose formula uses it.
 */
#include "counters.h"
#include "counters_hopeless.h"
#include "counters_probe.h"
#include "groups.h"
#include "kernel.h"
#include "readings.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX 4096
#define CPUINFO     "/proc/cpuinfo"

/* What is known by name; `why_unbuilt` stands where no module of that name is built. */
static const struct known_backend {
    const char *name, *what, *why_unbuilt;
    bool automatic; /* tried by `auto`, in this order */
    bool simulated; /* the simulated machine: there or not, and its counts are a model's */
} known[] = {
    {"papi", "PAPI: hardware events in user mode, native names or presets",
     "not built: install libpapi-dev and build again", true, false},
    {"likwid", "LIKWID's marker interface: hardware events of pinned workers, by MSR access",
     "not built: install likwid and build again", true, false},
    {"perf", "perf_event_open(2): hardware events in user mode, software events; needs no library",
     "not built: run make", true, false},
    {"sim", "the simulated many-core machine: caches, coherence and NUMA by model", "not built: run make", false, true},
    {"none", "counts nothing; every counter column stays empty", "not built: run make", false, false},
};
#define KNOWN (sizeof known / sizeof known[0])

/* The events of one backend's dialect that the wanted columns need, in order of priority. */
struct plan {
    const char *spelling[COUNTER_EVENTS_MAX];
    uint8_t event[COUNTER_EVENTS_MAX]; /* number in the group */
    size_t n;
    uint32_t hardware;                /* bit i: spelling[i] is a hardware event */
    int column_line[COUNTER_COLUMNS]; /* the group's column line in use, or -1 */
};

/* This launch. `refused` and `total` go by the plan's number of the event. */
static struct {
    const struct counter_backend *backend; /* NULL: none */
    void *handle;
    struct group group;
    struct plan plan;
    uint32_t moved;   /* events that the probe saw move */
    uint32_t certain; /* events that any code makes happen */
    double total[COUNTER_EVENTS_MAX];
    char refused[COUNTER_EVENTS_MAX][COUNTER_REASON_MAX];
    unsigned opened, collected;
    /* workers still read it while others, done, write what is above: lines of its own */
    _Alignas(CACHE_SECTOR) bool active[THREADS_MAX];
    char choice_reason
        [COUNTER_REASON_MAX]; /* why a backend before this one, or a whole kind, does not count */
    bool software_only, simulated;
    struct counter_result result;
} launch;
static pthread_mutex_t launch_lock = PTHREAD_MUTEX_INITIALIZER;

/* Append to a reason, "; " between; what does not fit is cut. */
__attribute__((format(printf, 2, 3))) static void add_reason(char why[COUNTER_REASON_MAX], const char *format,
                                                             ...)
{
    size_t used = strlen(why);
    if (used > 0 && used < COUNTER_REASON_MAX - 3) {
        memcpy(why + used, "; ", 3);
        used += 2;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(why + used, COUNTER_REASON_MAX - used, format, args);
    va_end(args);
}

/* ---- where things lie ---- */

static void program_dir(char dir[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", dir, PATH_MAX - 1);
    dir[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(dir, '/');
    if (slash != NULL)
        *slash = '\0';
}

/* dir/rest; a path that is too long is no path. */
static bool join(char path[PATH_MAX], const char *dir, const char *rest)
{
    size_t n = strlen(dir), m = strlen(rest);
    if (n + m + 2 > PATH_MAX) {
        path[0] = '\0';
        return false;
    }
    memmove(path, dir, n);
    path[n] = '/';
    memcpy(path + n + 1, rest, m + 1);
    return true;
}

/* The folder of the modules: beside the programs' one, where built and where installed. */
static void module_dir(char dir[PATH_MAX])
{
    static const char *const beside[] = {"../counters", "../lib/alloc-kernels/counters"};
    char program[PATH_MAX];
    const char *override = getenv("AK_COUNTERS_DIR");
    if (override != NULL && *override) {
        snprintf(dir, PATH_MAX, "%s", override);
        return;
    }
    program_dir(program);
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++)
        if (join(dir, program, beside[i]) && access(dir, R_OK) == 0)
            return;
    join(dir, program, beside[0]);
}

/* The folder of the event groups: with the modules, or in the source tree that the program was built in. */
static void groups_dir(char dir[PATH_MAX])
{
    char up[PATH_MAX];
    const char *override = getenv("AK_GROUPS_DIR");
    if (override != NULL && *override) {
        snprintf(dir, PATH_MAX, "%s", override);
        return;
    }
    module_dir(up);
    if (join(dir, up, "groups") && access(dir, R_OK) == 0)
        return;
    program_dir(up);
    for (char *slash; (slash = strrchr(up, '/')) != NULL; *slash = '\0')
        if (join(dir, up, "kernels/counters/groups") && access(dir, R_OK) == 0)
            return;
    snprintf(dir, PATH_MAX, "kernels/counters/groups");
}

static bool module_path(const char *name, char path[PATH_MAX])
{
    char dir[PATH_MAX], file[64];
    module_dir(dir);
    snprintf(file, sizeof file, "%s.so", name);
    return join(path, dir, file) && access(path, R_OK) == 0;
}

/* ---- planning: columns to events ---- */

static int dialect_number(const char *name)
{
    for (int d = 0; d < DIALECTS; d++)
        if (strcmp(group_dialect_name[d], name) == 0)
            return d;
    return -1;
}

/* The set of columns asked for by AK_COUNTERS_SET (a name, or a number that wraps around), or NULL: as many
 * columns as fit. */
static const struct group_set *set_asked(const struct group *g)
{
    const char *text = getenv("AK_COUNTERS_SET");
    if (text == NULL || *text == '\0' || g->n_sets == 0)
        return NULL;
    for (unsigned i = 0; i < g->n_sets; i++)
        if (strcmp(g->set[i].name, text) == 0)
            return &g->set[i];
    char *end = NULL;
    unsigned long number = strtoul(text, &end, 10);
    return *end == '\0' ? &g->set[number % g->n_sets] : NULL;
}

/* The columns wanted, first come first counted. */
static unsigned wanted_columns(const struct group *g, uint8_t order[COUNTER_COLUMNS])
{
    const struct group_set *asked = set_asked(g);
    uint32_t seen = 0;
    unsigned n = 0;
    for (unsigned s = 0; s < g->n_sets; s++)
        for (unsigned i = 0; i < g->set[s].n; i++) {
            unsigned column = g->set[s].order[i];
            if ((asked == NULL || asked == &g->set[s]) && !(seen >> column & 1)) {
                order[n++] = (uint8_t)column;
                seen |= UINT32_C(1) << column;
            }
        }
    for (unsigned i = 0; i < g->n_columns; i++) {
        unsigned column = g->column[i].column;
        bool software = true; /* needs no counter of the hardware: always wanted */
        for (unsigned e = 0; e < g->n_events; e++)
            if (g->column[i].formula.events >> e & 1)
                software = software && g->event[e].software;
        if (!(seen >> column & 1) && (asked == NULL || software)) {
            order[n++] = (uint8_t)column;
            seen |= UINT32_C(1) << column;
        }
    }
    return n;
}

static bool has_all_events(const struct group *g, const struct formula *f, int dialect)
{
    for (unsigned e = 0; e < g->n_events; e++)
        if ((f->events >> e & 1) && g->event[e].spelling[dialect] == NULL)
            return false;
    return true;
}

static bool plan_has(const struct plan *p, unsigned event)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->event[i] == event)
            return true;
    return false;
}

static void make_plan(const struct group *g, int dialect, struct plan *p)
{
    uint8_t order[COUNTER_COLUMNS];
    *p = (struct plan){.n = 0};
    for (int c = 0; c < COUNTER_COLUMNS; c++)
        p->column_line[c] = -1;
    unsigned n = dialect >= 0 ? wanted_columns(g, order) : 0;
    for (unsigned w = 0; w < n; w++)
        for (unsigned i = 0; i < g->n_columns; i++) {
            const struct group_column *c = &g->column[i];
            if (c->column != order[w] || p->column_line[c->column] >= 0 ||
                !has_all_events(g, &c->formula, dialect))
                continue;
            p->column_line[c->column] = (int)i;
            for (unsigned e = 0; e < g->n_events; e++)
                if ((c->formula.events >> e & 1) && !plan_has(p, e)) {
                    if (!g->event[e].software)
                        p->hardware |= UINT32_C(1) << p->n;
                    p->event[p->n] = (uint8_t)e;
                    p->spelling[p->n++] = g->event[e].spelling[dialect];
                }
        }
}

/* ---- choosing ---- */

static const struct known_backend *find_known(const char *name)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (strcmp(known[i].name, name) == 0)
            return &known[i];
    return NULL;
}

/* The events of this CPU's family, or of the simulated machine. */
static int load_group(struct group *g, bool simulated, char why[COUNTER_REASON_MAX])
{
    char dir[PATH_MAX];
    struct cpu_id cpu = {.vendor = "simulated"};
    const char *cpuinfo = getenv("AK_CPUINFO"); /* for tests: be another machine */
    groups_dir(dir);
    if (!simulated && cpu_identify(cpuinfo ? cpuinfo : CPUINFO, &cpu, why) != 0)
        return -3;
    return group_choose(dir, &cpu, g, why);
}

/* Try a backend in a child. The number of its hardware events that open, or -1 with `why`. */
static int try_backend(const struct known_backend *b, const struct group *g, struct plan *p,
                       struct probe_report *report, char why[COUNTER_REASON_MAX])
{
    char path[PATH_MAX];
    if (!module_path(b->name, path)) {
        snprintf(why, COUNTER_REASON_MAX, "%s", b->why_unbuilt);
        return -1;
    }
    const char *override =
        getenv("AK_COUNTERS_DIR"); /* another folder's modules may not need what this build's do */
    if ((override == NULL || *override == '\0') && counters_hopeless(b->name, why))
        return -1;
    make_plan(g, dialect_number(b->name), p);
    counters_probe(path, p->spelling, p->n, p->hardware, report);
    snprintf(why, COUNTER_REASON_MAX, "%s", report->why);
    if (!report->can)
        return -1;
    if (p->hardware == 0)
        snprintf(why, COUNTER_REASON_MAX, "no hardware event of this CPU family (%s) is known in its dialect",
                 g->family);
    return __builtin_popcount(report->opened & p->hardware);
}

/* Load a backend that the child found fit. */
static int take_backend(const struct known_backend *b, const struct probe_report *report, unsigned threads,
                        char why[COUNTER_REASON_MAX])
{
    char path[PATH_MAX];
    if (!module_path(b->name, path))
        return -1;
    launch.backend = counters_load(path, &launch.handle, why);
    if (launch.backend == NULL)
        return -1;
    if (!launch.backend->available(why) ||
        launch.backend->prepare(launch.plan.spelling, launch.plan.n, threads, why) != 0) {
        launch.backend = NULL;
        return -1;
    }
    launch.moved = report->moved;
    if (launch.simulated)
        return 0;
    for (int c = COUNTER_CYCLES; c <= COUNTER_L1D_ACCESS; c++)
        for (size_t i = 0; i < launch.plan.n && launch.plan.column_line[c] >= 0; i++)
            if (launch.group.column[launch.plan.column_line[c]].formula.events >> launch.plan.event[i] & 1)
                launch.certain |= UINT32_C(1) << i;
    return 0;
}

/* Forget the last choice: tests and long-lived callers choose more than once. A library stays loaded, since
 * counter libraries do not survive being unloaded. */
static void reset_launch(void)
{
    group_drop(&launch.group);
    memset(&launch, 0, sizeof launch);
}

static int choose_auto(unsigned threads, char why[COUNTER_REASON_MAX])
{
    struct probe_report report;
    char refusal[COUNTER_REASON_MAX];
    for (size_t i = 0; i < KNOWN; i++) {
        if (!known[i].automatic)
            continue;
        int hardware = try_backend(&known[i], &launch.group, &launch.plan, &report, refusal);
        bool software = hardware == 0 && (report.opened & ~launch.plan.hardware) != 0 &&
                        strcmp(known[i].name, "perf") == 0;
        if ((hardware > 0 || software) && take_backend(&known[i], &report, threads, refusal) == 0) {
            launch.software_only = software;
            if (software)
                add_reason(why, "%s: software events only: %s", known[i].name, refusal);
            return 0;
        }
        add_reason(why, "%s: %s", known[i].name, refusal[0] ? refusal : "no event could be opened");
    }
    make_plan(&launch.group, -1, &launch.plan);
    return 0; /* none, with the refusals as the reason */
}

/* A trial would tell nothing of a model, and its threads and pages would be the first that the model sees. */
static int choose_simulated(const struct known_backend *b, unsigned threads, char why[COUNTER_REASON_MAX])
{
    static const struct probe_report untried;
    char path[PATH_MAX];
    if (!module_path(b->name, path)) {
        snprintf(why, COUNTER_REASON_MAX, "%s", b->why_unbuilt);
        return -3;
    }
    make_plan(&launch.group, dialect_number(b->name), &launch.plan);
    return take_backend(b, &untried, threads, why) == 0 ? 0 : -3;
}

static int choose_named(const struct known_backend *b, unsigned threads, char why[COUNTER_REASON_MAX])
{
    struct probe_report report;
    if (b->simulated)
        return choose_simulated(b, threads, why);
    if (try_backend(b, &launch.group, &launch.plan, &report, why) < 0)
        return -3;
    if (report.opened == 0) {
        if (why[0] == '\0')
            snprintf(why, COUNTER_REASON_MAX, "none of its events could be opened");
        return -3;
    }
    if (take_backend(b, &report, threads, why) != 0)
        return -3;
    why[0] = '\0';
    return 0;
}

void counters_none(const char *reason)
{
    reset_launch();
    make_plan(&launch.group, -1, &launch.plan);
    snprintf(launch.choice_reason, sizeof launch.choice_reason, "%s", reason);
}

int counters_choose(const char *name, unsigned threads, char why[COUNTER_REASON_MAX])
{
    const struct known_backend *b = find_known(name);
    bool automatic = strcmp(name, "auto") == 0;
    reset_launch();
    why[0] = '\0';
    if (b == NULL && !automatic) {
        snprintf(why, COUNTER_REASON_MAX,
                 "unknown counter backend '%s': expected auto, papi, likwid, perf, sim or none", name);
        return -2;
    }
    if (threads > THREADS_MAX) {
        snprintf(why, COUNTER_REASON_MAX, "more than %d threads", THREADS_MAX);
        return -2;
    }
    if (!automatic && strcmp(name, "none") == 0) {
        counters_none("none was asked for (--counters none)");
        return 0;
    }
    launch.simulated = b != NULL && b->simulated;
    int rc = load_group(&launch.group, launch.simulated, why);
    if (rc == 0)
        rc = automatic ? choose_auto(threads, launch.choice_reason) : choose_named(b, threads, why);
    else if (rc == -3 && automatic) {
        add_reason(launch.choice_reason, "%s", why);
        make_plan(&launch.group, -1, &launch.plan);
        rc = 0;
    }
    return rc;
}

/* ---- counting ---- */

static void refuse_event(size_t i, const char *why)
{
    if (launch.refused[i][0] == '\0')
        snprintf(launch.refused[i], COUNTER_REASON_MAX, "%s", why);
}

int counters_open(unsigned thread)
{
    char why[COUNTER_REASON_MAX] = "", text[COUNTER_REASON_MAX];
    if (launch.backend == NULL || thread >= THREADS_MAX)
        return 0;
    int rc = launch.backend->open(thread, why);
    pthread_mutex_lock(&launch_lock);
    launch.opened += rc == 0;
    snprintf(text, sizeof text, "thread %u: %.480s", thread, why);
    for (size_t i = 0; rc != 0 && i < launch.plan.n; i++)
        refuse_event(i, text);
    pthread_mutex_unlock(&launch_lock);
    launch.active[thread] = rc == 0;
    return rc;
}

void counters_start(unsigned thread)
{
    if (launch.backend != NULL && launch.active[thread])
        launch.backend->start(thread);
}

void counters_stop(unsigned thread)
{
    if (launch.backend != NULL && launch.active[thread])
        launch.backend->stop(thread);
}

/* What the hardware's counts have to pass, and a model's need not: it has no clock, and its 0 is a 0. */
static bool counts(const struct counter_reading *reading, size_t event, char why[COUNTER_REASON_MAX])
{
    if (!launch.simulated)
        return reading_stands(reading, launch.certain >> event & 1, why);
    snprintf(why, COUNTER_REASON_MAX, "could not be read");
    return reading->valid;
}

void counters_collect(unsigned thread)
{
    struct counter_reading readings[COUNTER_EVENTS_MAX];
    char why[COUNTER_REASON_MAX];
    uint64_t enabled_ns = 0, running_ns = 0;
    if (launch.backend == NULL || !launch.active[thread])
        return;
    launch.backend->read(thread, readings);
    pthread_mutex_lock(&launch_lock);
    launch.collected++;
    for (size_t i = 0; i < launch.plan.n; i++) {
        const char *reason = launch.backend->reason(i);
        if (reason != NULL) {
            refuse_event(i, reason);
            continue;
        }
        /* the times of a launch are those of its longest and of its least counted event */
        if (readings[i].valid && readings[i].enabled_ns > enabled_ns)
            enabled_ns = readings[i].enabled_ns;
        if (readings[i].valid && (running_ns == 0 || readings[i].running_ns < running_ns))
            running_ns = readings[i].running_ns;
        if (counts(&readings[i], i, why))
            launch.total[i] += (double)readings[i].value;
        else
            refuse_event(i, why);
    }
    launch.result.enabled_ns += enabled_ns;
    launch.result.running_ns += running_ns;
    pthread_mutex_unlock(&launch_lock);
}

void counters_close(unsigned thread)
{
    if (launch.backend != NULL && launch.active[thread])
        launch.backend->close(thread);
    launch.active[thread] = false;
}

/* ---- the result ---- */

/* A hardware event that stayed 0, here and while the probe provoked it, may be dead: 0 is no finding then. */
static void refuse_silent_zeros(void)
{
    for (size_t i = 0; i < launch.plan.n; i++) {
        uint32_t bit = UINT32_C(1) << i;
        if (!(launch.plan.hardware & bit) || (launch.moved & bit) || launch.total[i] > 0)
            continue;
        refuse_event(
            i, "read 0 here and in a trial that provokes it as far as this machine can: a true 0 cannot be "
               "told from a dead counter");
    }
}

/* Why a column has no line in the plan. */
static const char *unplanned(enum counter_column c, char *why)
{
    if (launch.backend == NULL)
        return "no backend counts";
    if (launch.group.absent[c] != NULL)
        return launch.group.absent[c];
    const struct group_set *asked = set_asked(&launch.group);
    if (asked != NULL && !(asked->columns >> c & 1))
        snprintf(why, COUNTER_REASON_MAX, "not in the set '%s' that AK_COUNTERS_SET asks for", asked->name);
    else
        snprintf(why, COUNTER_REASON_MAX, "groups/%s.txt gives no event for it to %s", launch.group.family,
                 launch.backend->name);
    return why;
}

/* The refused events that a formula needs, those of one reason together. True if there are any; `bare` is the
 * first reason without the names. */
static bool explain_events(const struct formula *f, char why[COUNTER_REASON_MAX], const char **bare)
{
    uint32_t told = 0;
    *bare = NULL;
    for (size_t i = 0; i < launch.plan.n; i++) {
        char names[COUNTER_REASON_MAX] = "";
        for (size_t j = i; j < launch.plan.n; j++) {
            bool needed = f->events >> launch.plan.event[j] & 1, refused = launch.refused[j][0] != '\0';
            if (!needed || !refused || (told >> j & 1) || strcmp(launch.refused[i], launch.refused[j]) != 0)
                continue;
            size_t used = strlen(names);
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", launch.plan.spelling[j]);
            told |= UINT32_C(1) << j;
        }
        if (names[0] == '\0')
            continue;
        add_reason(why, "%s: %s", names, launch.refused[i]);
        if (*bare == NULL)
            *bare = launch.refused[i];
    }
    return *bare != NULL;
}

/* Value or reason of one column; `bare` is the reason without event names. */
static void fill_column(enum counter_column c, const char **bare)
{
    struct counter_result *r = &launch.result;
    static char text[COUNTER_COLUMNS][COUNTER_REASON_MAX]; /* main thread */
    int line = launch.plan.column_line[c];
    char *why = r->column_reason[c];
    r->have[c] = false;
    r->meaning[c] = line >= 0 ? launch.group.column[line].meaning : NULL;
    why[0] = '\0';
    *bare = why;
    if (line < 0) {
        add_reason(why, "%s", unplanned(c, text[c]));
        return;
    }
    const struct formula *f = &launch.group.column[line].formula;
    if (explain_events(f, why, bare))
        return;
    *bare = why;
    if (launch.collected == 0) {
        add_reason(why, "no thread counted");
        return;
    }
    double count[COUNTER_EVENTS_MAX] = {0};
    for (size_t i = 0; i < launch.plan.n; i++)
        count[launch.plan.event[i]] = launch.total[i];
    if (!formula_value(f, count, &r->value[c]))
        add_reason(why, "its formula divides by 0");
    else if (r->value[c] < 0)
        add_reason(why, "its formula came out negative (%.0f): the events disagree", r->value[c]);
    else
        r->have[c] = true;
}

/* Name the empty columns with their reasons, each reason once. */
static void summarise(struct counter_result *r, const char *const bare[COUNTER_COLUMNS])
{
    for (int c = 0; c < (int)r->columns; c++) {
        bool told = r->have[c];
        for (int b = 0; b < c && !told; b++)
            told = !r->have[b] && strcmp(bare[b], bare[c]) == 0;
        if (told)
            continue;
        char names[COUNTER_REASON_MAX] = "";
        for (int d = c; d < (int)r->columns; d++)
            if (!r->have[d] && strcmp(bare[c], bare[d]) == 0) {
                size_t used = strlen(names);
                snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", counter_column_name[d]);
            }
        add_reason(r->reason, "%s: %s", names, bare[c]);
    }
}

const struct counter_result *counters_result(void)
{
    struct counter_result *r = &launch.result;
    pthread_mutex_lock(&launch_lock);
    r->backend = launch.backend != NULL ? launch.backend->name : "none";
    r->columns = launch.simulated ? COUNTER_COLUMNS : COUNTER_NATIVE;
    r->reason[0] = '\0';
    if (launch.collected > 0)
        refuse_silent_zeros();
    bool all = true;
    const char *bare[COUNTER_COLUMNS];
    for (int c = 0; c < COUNTER_COLUMNS; c++) {
        fill_column((enum counter_column)c, &bare[c]);
        all = all && (r->have[c] || c >= (int)r->columns);
    }
    if (!all && launch.choice_reason[0] != '\0')
        add_reason(r->reason, "%s", launch.choice_reason);
    if (!all && launch.backend != NULL && !launch.software_only)
        summarise(r, bare);
    pthread_mutex_unlock(&launch_lock);
    return r;
}

void counters_survey(void (*visit)(const char *name, const char *what, bool can, const char *why, void *user),
                     void *user)
{
    static struct group group; /* main thread */
    static struct plan plan;
    struct probe_report report;
    char why[COUNTER_REASON_MAX] = "";
    int rc = load_group(&group, false, why);
    for (size_t i = 0; i < KNOWN; i++) {
        bool counts_nothing = strcmp(known[i].name, "none") == 0;
        if (known[i].simulated) {
            char path[PATH_MAX];
            bool built = module_path(known[i].name, path);
            visit(known[i].name, known[i].what, built, built ? "" : known[i].why_unbuilt, user);
            continue;
        }
        if (rc != 0 && !counts_nothing) {
            visit(known[i].name, known[i].what, false, why, user);
            continue;
        }
        char refusal[COUNTER_REASON_MAX] = "";
        int hardware = counts_nothing ? 0 : try_backend(&known[i], &group, &plan, &report, refusal);
        bool can = counts_nothing || (hardware >= 0 && report.opened != 0);
        char text[COUNTER_REASON_MAX] = "";
        if (can && !counts_nothing && hardware == 0)
            add_reason(text, "software events only: %s", refusal);
        else if (!can)
            add_reason(text, "%s", refusal[0] ? refusal : "none of its events could be opened");
        else if (!counts_nothing && (report.opened & plan.hardware) != plan.hardware)
            add_reason(text, "not all events: %s", refusal);
        visit(known[i].name, known[i].what, can, text, user);
    }
    group_drop(&group);
}
