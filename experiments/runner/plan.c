#include "plan.h"
#include "csv.h"
#include "linked.h"
#include "simulator/quantum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For estimates only, where a kernel tells none of its own: a cycle with all passes on one CPU, and the start of a
 * process. */
#define ROUGH_NS_PER_OP     400.0
#define ROUGH_NS_PER_LAUNCH 60e6
/* The same in the simulated machine, of all threads together. */
#define ROUGH_SIM_NS_PER_OP     20e3
#define ROUGH_SIM_NS_PER_LAUNCH 1e9

/* An allocator that never frees is planned only where its blocks fit into this. It touches the head of each
 * block. */
#define NEVER_FREES_BYTES_MAX (512.0 * 1024 * 1024)
#define NEVER_FREES_PASSES    5                                  /* warm-up and four passes */
#define NEVER_FREES_LEAST     16                                 /* bytes of the smallest block */
#define NEVER_FREES_SPACE_MAX (16.0 * 1024 * 1024 * 1024 * 1024) /* of the 128 TiB of a process */
#define NEVER_FREES_PAGE      4096

#define AXES_MAX  64
#define MAX_REPS  64          /* with ci_width, where the sweep does not say */
#define SEED_MASK 0x7fffffffu /* seeds fit R's integers */

/* One dimension of the cross product: a key and its values. */
struct axis {
    const char *key;
    struct words values; /* as passed */
    struct words stable; /* as recorded */
};

struct expansion {
    struct arena *arena;
    const struct paths *paths;
    const struct sweep *sweep;
    struct registry *registry;
    unsigned cpus;
    struct plan *plan;
    struct fault *fault;
    /* of the kernel at hand */
    const struct kernel_info *kernel;
    struct axis axis[AXES_MAX];
    size_t axes;
    uint64_t timeout_s;
};

const char *block_option(const struct block *b, const char *key)
{
    for (size_t i = 0; i < b->options; i++)
        if (strcmp(b->option[i].key, key) == 0)
            return b->option[i].stable;
    return "";
}

void block_arguments(struct arena *a, const struct block *b, struct words *argv)
{
    static const char *const outside[] = {"machine", "sim_mode", "sim_quantum"};
    for (size_t i = 0; i < b->options; i++) {
        bool is_outside = b->profiled && strcmp(b->option[i].key, "profile") == 0;
        for (size_t k = 0; k < sizeof outside / sizeof *outside && b->machine; k++)
            is_outside |= strcmp(outside[k], b->option[i].key) == 0;
        if (is_outside)
            continue;
        char *name = arena_printf(a, "--%s", b->option[i].key);
        for (char *c = name; *c; c++)
            *c = *c == '_' ? '-' : *c;
        words_add(a, argv, name);
        words_add(a, argv, b->option[i].value);
    }
}

/* ---- axes of a kernel ---- */

static bool add_axis(struct expansion *x, const char *key, struct words values)
{
    if (x->axes == AXES_MAX)
        return fault_set(x->fault, AK_USAGE, "kernel %s has more than %d parameters", x->kernel->name,
                         AXES_MAX);
    x->axis[x->axes++] = (struct axis){key, values, values};
    return true;
}

/* Values of a key for the kernel, or `fallback` (NULL: no axis) where nothing sets it. */
static bool axis_of(struct expansion *x, const struct sweep_key *key, const char *fallback)
{
    const struct setting *s = sweep_get(x->sweep, x->kernel->name, key->name);
    struct words values = {0};
    if (s) {
        if (!setting_values(x->arena, s, key, &values, x->fault))
            return false;
    } else if (fallback) {
        words_add(x->arena, &values, fallback);
    } else {
        return true;
    }
    return add_axis(x, key->name, values);
}

static bool variant_axis(struct expansion *x)
{
    const struct setting *s = sweep_get(x->sweep, x->kernel->name, "variant");
    struct words values = {0}, asked = {0};
    if (!x->kernel->variants.count)
        return true;
    if (s && !setting_values(x->arena, s, sweep_key("variant"), &asked, x->fault))
        return false;
    for (size_t i = 0; i < asked.count; i++)
        if (words_have(&x->kernel->variants, asked.word[i]))
            words_add(x->arena, &values, asked.word[i]);
    if (!values.count)
        words_add(x->arena, &values, x->kernel->variants.word[0]);
    return add_axis(x, "variant", values);
}

/* ops and ops_total are two kinds of one axis: cells of both. The highest level that sets either speaks for both, so
 * that a preset with ops_total replaces a sweep's ops. */
static bool work_axis(struct expansion *x)
{
    static const char *const keys[] = {"ops", "ops_total"};
    const struct setting *s[2];
    struct words work = {0};
    int level = -1;
    for (int i = 0; i < 2; i++) {
        s[i] = sweep_get(x->sweep, x->kernel->name, keys[i]);
        if (s[i] && (int)s[i]->level > level)
            level = (int)s[i]->level;
    }
    for (int i = 0; i < 2; i++) {
        struct words values;
        if (!s[i] || (int)s[i]->level < level)
            continue;
        if (!setting_values(x->arena, s[i], sweep_key(keys[i]), &values, x->fault))
            return false;
        for (size_t v = 0; v < values.count; v++)
            words_add(x->arena, &work, arena_printf(x->arena, "%s %s", keys[i], values.word[v]));
    }
    if (!work.count)
        words_add(x->arena, &work, "ops 1000000");
    return add_axis(x, "work", work);
}

/* size = 16, 64 stands for size_min = size_max = that, fixed; the later level of `size` and the triple
 * wins. */
static bool size_axis(struct expansion *x)
{
    const char *kernel = x->kernel->name;
    const struct setting *size = sweep_get(x->sweep, kernel, "size"), *other = NULL;
    static const char *const triple[] = {"size_min", "size_max", "size_dist"};
    for (int i = 0; i < 3; i++) {
        const struct setting *s = sweep_get(x->sweep, kernel, triple[i]);
        if (s && (!other || s->level > other->level))
            other = s;
    }
    if (size && other && other->level == size->level)
        return setting_fault(x->fault, other, "'%s' beside 'size', expected one or the other", other->key);
    if (size && (!other || size->level > other->level))
        return axis_of(x, sweep_key("size"), NULL);
    const char *least = arena_printf(x->arena, "%" PRIu64, x->kernel->size_min);
    const char *most = arena_printf(x->arena, "%" PRIu64, x->kernel->size_max);
    if (!axis_of(x, sweep_key("size_min"), least) || !axis_of(x, sweep_key("size_max"), most) ||
        !axis_of(x, sweep_key("size_dist"), "loguniform"))
        return false;
    struct axis *dist = &x->axis[x->axes - 1];
    const struct setting *s = sweep_get(x->sweep, kernel, "size_dist");
    if (s && s->file && strncmp(s->value, "file:", 5) == 0) {
        char *path = arena_strdup(x->arena, s->value + 5);
        if (*path != '/')
            path = arena_printf(x->arena, "%s/%s", path_folder(x->arena, path_absolute(x->arena, s->file)),
                                path);
        if (!path_is_file(path))
            return setting_fault(x->fault, s, "size_dist: %s is no file, expected lines of size and weight",
                                 path);
        dist->values = (struct words){0};
        words_add(x->arena, &dist->values, arena_printf(x->arena, "file:%s", path));
    }
    uint64_t low = 0, high = 0;
    text_uint(x->axis[x->axes - 3].values.word[0], 0, &low);
    text_uint(x->axis[x->axes - 2].values.word[0], 0, &high);
    if (low > high)
        return other ? setting_fault(x->fault, other,
                                     "size_min %" PRIu64 " above size_max %" PRIu64 ", expected min <= max",
                                     low, high)
                     : fault_set(x->fault, AK_USAGE, "size_min above size_max");
    return true;
}

static bool passes_axis(struct expansion *x)
{
    const struct setting *s = sweep_get(x->sweep, x->kernel->name, "passes");
    struct words values, joined = {0};
    if (!s)
        return true;
    if (!setting_values(x->arena, s, sweep_key("passes"), &values, x->fault))
        return false;
    const char *list = values.word[0];
    for (size_t i = 1; i < values.count; i++)
        list = arena_printf(x->arena, "%s,%s", list, values.word[i]);
    words_add(x->arena, &joined, list);
    return add_axis(x, "passes", joined);
}

static bool scalar(struct expansion *x, const char *kernel, const char *key, uint64_t fallback,
                   uint64_t *value)
{
    const struct setting *s = sweep_get(x->sweep, kernel, key);
    struct words values;
    *value = fallback;
    return !s || (setting_values(x->arena, s, sweep_key(key), &values, x->fault) &&
                  (text_uint(values.word[0], 0, value) || setting_fault(x->fault, s, "not a number")));
}

/* ---- the simulated machine ---- */

/* Read a machine unless it was before. */
static bool add_machine(struct expansion *x, const char *path, const struct simmachine **machine)
{
    struct plan *p = x->plan;
    for (size_t i = 0; i < p->machines; i++)
        if (strcmp(p->machine[i]->path, path) == 0) {
            *machine = p->machine[i];
            return true;
        }
    struct simmachine *read = simmachine_read(x->arena, path, x->fault);
    *machine = read;
    if (!read)
        return false;
    for (size_t i = 0; i < p->machines; i++)
        if (strcmp(p->machine[i]->name, read->name) == 0)
            return fault_at(x->fault, path, 0, "a machine of the same name as %s, expected another",
                            p->machine[i]->path);
    p->machine = arena_grow(x->arena, p->machine, p->machines, sizeof *p->machine);
    p->machine[p->machines++] = read;
    return true;
}

/* Threads of the largest cell of the whole sweep. */
static uint64_t most_threads(const struct expansion *x)
{
    struct words names = sweep_kernels(x->arena, x->sweep);
    uint64_t most = 1, threads;
    for (size_t k = 0; k < names.count; k++) {
        const struct setting *s = sweep_get(x->sweep, names.word[k], "threads");
        struct words list = text_list_loose(x->arena, s ? s->value : "");
        for (size_t i = 0; i < list.count; i++)
            if (text_uint(list.word[i], 0, &threads) && threads > most)
                most = threads;
    }
    return most;
}

/* Where none is asked for, one machine for the whole sweep: of those that come with the suite the smallest that has a
 * core for every thread, else the largest; of equals the first by name. */
static bool default_machine(struct expansion *x, const char **path)
{
    struct words names = simmachine_names(x->arena, x->paths);
    uint64_t wanted = most_threads(x), best = 0;
    *path = NULL;
    for (size_t i = 0; i < names.count; i++) {
        const char *candidate = simmachine_locate(x->arena, x->paths, ".", names.word[i]);
        const struct simmachine *m = simmachine_read(x->arena, candidate, x->fault);
        if (!m)
            return false;
        bool better = best < wanted ? m->cores > best : m->cores >= wanted && m->cores < best;
        if (!*path || better) {
            *path = candidate;
            best = m->cores;
        }
    }
    return *path || fault_set(x->fault, AK_ENVIRONMENT, "no machine to simulate in %s/machines",
                              x->paths->experiments);
}

/* A machine as recorded is its name: the file's path is not the same on every host. */
static bool machine_axis(struct expansion *x)
{
    const struct setting *s = sweep_get(x->sweep, x->kernel->name, "machine");
    struct words asked = {0}, paths = {0}, names = {0};
    const struct simmachine *machine;
    const char *path;
    if (s && !setting_values(x->arena, s, sweep_key("machine"), &asked, x->fault))
        return false;
    if (!s && !default_machine(x, &path))
        return false;
    if (!s)
        words_add(x->arena, &paths, path);
    for (size_t i = 0; i < asked.count; i++) {
        path = simmachine_locate(x->arena, x->paths, setting_folder(x->arena, s), asked.word[i]);
        struct words known = simmachine_names(x->arena, x->paths);
        if (!path)
            return setting_fault(x->fault, s, "machine = '%s', neither a machine of the suite nor a file%s",
                                 asked.word[i], nearest_hint(x->arena, asked.word[i], &known));
        words_add(x->arena, &paths, path);
    }
    for (size_t i = 0; i < paths.count; i++) {
        if (!add_machine(x, paths.word[i], &machine))
            return false;
        words_add(x->arena, &names, machine->name);
    }
    return add_axis(x, "machine", names);
}

/* Weave mode runs the throughput pass only: without a clock there are no latencies. */
static bool weave_has_pass(struct expansion *x)
{
    const struct setting *passes = sweep_get(x->sweep, x->kernel->name, "passes");
    if (!passes || strstr(passes->value, "throughput"))
        return true;
    return setting_fault(
        x->fault, passes,
        "passes = %s, but weave mode has no clock and runs the throughput pass only: expected "
        "sim_mode = timed",
        passes->value);
}

/* Mode and quantum are one axis, since a quantum's default depends on the mode. */
static bool mode_axis(struct expansion *x)
{
    const struct setting *mode = sweep_get(x->sweep, x->kernel->name, "sim_mode");
    const struct setting *quantum = sweep_get(x->sweep, x->kernel->name, "sim_quantum");
    struct words modes = {0}, quanta = {0}, both = {0};
    if (mode && !setting_values(x->arena, mode, sweep_key("sim_mode"), &modes, x->fault))
        return false;
    if (quantum && !setting_values(x->arena, quantum, sweep_key("sim_quantum"), &quanta, x->fault))
        return false;
    if (!mode)
        words_add(x->arena, &modes, "weave");
    if (words_have(&modes, "weave") && !weave_has_pass(x))
        return false;
    for (size_t m = 0; m < modes.count; m++) {
        bool weave = strcmp(modes.word[m], "weave") == 0;
        if (!quantum)
            words_add(x->arena, &both,
                      arena_printf(x->arena, "%s %d", modes.word[m], weave ? WEAVE_QUANTUM : TIMED_QUANTUM));
        for (size_t q = 0; q < quanta.count; q++)
            words_add(x->arena, &both, arena_printf(x->arena, "%s %s", modes.word[m], quanta.word[q]));
    }
    return add_axis(x, "simulation", both);
}

static bool is_simulated(struct expansion *x)
{
    const struct setting *s = sweep_get(x->sweep, x->kernel->name, "counters");
    return s && strcmp(s->value, "sim") == 0;
}

/* Only where it is asked for: a row without a profiler has no such option. */
static bool profile_axis(struct expansion *x)
{
    const struct setting *s = sweep_get(x->sweep, x->kernel->name, "profile");
    struct words asked;
    if (!s || kernel_param(x->kernel, "profile"))
        return true;
    if (!setting_values(x->arena, s, sweep_key("profile"), &asked, x->fault))
        return false;
    if (!words_have(&asked, "yes"))
        return true;
    if (is_simulated(x))
        return setting_fault(x->fault, s,
                             "profile = yes, but the simulated machine has no clock to take samples by");
    return add_axis(x, "profile", asked);
}

static bool gather_axes(struct expansion *x)
{
    static const char *const plain[] = {"lat_ops", "lat_gap", "mem_steps", "mem_idle_ms", "settle_ms"};
    const struct kernel_info *k = x->kernel;
    x->axes = 0;
    if (!variant_axis(x) || (!k->own_threads && !axis_of(x, sweep_key("threads"), "1")) || !work_axis(x) ||
        (k->sizes && !size_axis(x)) || !axis_of(x, sweep_key("placement"), "compact") ||
        !axis_of(x, sweep_key("numa"), "local") || !passes_axis(x) ||
        !axis_of(x, sweep_key("counters"), "auto") ||
        (is_simulated(x) && (!machine_axis(x) || !mode_axis(x))) || !profile_axis(x))
        return false;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!axis_of(x, sweep_key(plain[i]), NULL))
            return false;
    for (size_t p = 0; p < k->params; p++) {
        struct sweep_key key = sweep_key_of(x->arena, &k->param[p]);
        const char *fallback = *k->param[p].fallback ? k->param[p].fallback : NULL;
        uint64_t number;
        if (fallback && key.kind == KEY_NUMBER && text_uint(fallback, key.kilo, &number))
            fallback = arena_printf(x->arena, "%" PRIu64, number);
        if (!axis_of(x, &key, fallback))
            return false;
    }
    return scalar(x, k->name, "timeout", 300, &x->timeout_s);
}

/* ---- allocators of a kernel ---- */

static uint64_t total_ops(const struct block *b, unsigned cpus)
{
    uint64_t ops = 0, threads = b->threads ? b->threads : b->machine ? b->machine->cores : cpus;
    if (text_uint(block_option(b, "ops"), 0, &ops))
        return ops * threads;
    text_uint(block_option(b, "ops_total"), 0, &ops);
    return ops;
}

/* Memory and address space that a launch takes under an allocator that never frees, in bytes; 0 where the kernel
 * does not allocate. Without a header only what the kernel touches becomes memory, a page of each block at most. */
static double unfreed_bytes(const struct block *b, unsigned cpus, double *space)
{
    uint64_t size = 0;
    bool touched = strcmp(block_option(b, "touch"), "none") != 0;
    text_uint(block_option(b, "size_max"), 0, &size);
    double blocks = b->kernel->no_alloc ? 0 : (double)total_ops(b, cpus) * NEVER_FREES_PASSES;
    *space = blocks * (double)(size < NEVER_FREES_LEAST ? NEVER_FREES_LEAST : size);
    return touched ? blocks * (size < NEVER_FREES_PAGE ? (double)size : NEVER_FREES_PAGE) : 0;
}

/* Why an allocator cannot run this block, or NULL. */
static const char *why_not(struct expansion *x, const struct block *b, const struct allocator *al)
{
    if (!allocator_runs_in(al, x->kernel))
        return arena_printf(x->arena, "%s does not run in %s: its registry section lists other kernels",
                            al->name, x->kernel->name);
    const char *counters = block_option(b, "counters");
    if (linked_is(al) && *counters && strcmp(counters, "auto") != 0 && strcmp(counters, "none") != 0)
        return arena_printf(x->arena, "%s is linked into a static program, which can load no counters (%s)",
                            al->name, counters);
    double space = 0, bytes = al->frees ? 0 : unfreed_bytes(b, x->cpus, &space);
    if (bytes > NEVER_FREES_BYTES_MAX)
        return arena_printf(x->arena, "%s never frees: it would need %.1f GiB", al->name,
                            bytes / 1024 / 1024 / 1024);
    if (!al->frees && space > NEVER_FREES_SPACE_MAX)
        return arena_printf(x->arena, "%s never frees: it would need %.1f TiB of address space", al->name,
                            space / 1024 / 1024 / 1024 / 1024);
    return NULL;
}

static bool gather_members(struct expansion *x, struct block *b)
{
    const struct kernel_info *k = x->kernel;
    const struct setting *s = sweep_get(x->sweep, k->name, "allocators");
    struct words names;
    if (!setting_values(x->arena, s, sweep_key("allocators"), &names, x->fault))
        return false;
    bool own_list = s->kernel != NULL;
    for (size_t i = 0; i < x->sweep->settings && s->level == LEVEL_COMMAND_LINE; i++) {
        const struct setting *other = &x->sweep->setting[i];
        own_list |= other->chosen && other->kernel && strcmp(other->kernel, k->name) == 0 &&
                    strcmp(other->key, "allocators") == 0;
    }
    if (k->no_alloc && !own_list) { /* the allocator does not matter: one is enough */
        const char *first = words_have(&names, "glibc") ? "glibc" : names.word[0];
        names = (struct words){0};
        words_add(x->arena, &names, first);
    }
    b->member = arena_alloc(x->arena, names.count * sizeof *b->member);
    for (size_t i = 0; i < names.count; i++) {
        struct allocator *al = registry_find(x->registry, names.word[i]);
        const char *skip = why_not(x, b, al);
        if (skip && s->level != LEVEL_COMMAND_LINE && !allocator_runs_in(al, k))
            continue;
        if (!skip && b->machine && b->threads > b->machine->cores)
            skip = arena_printf(
                x->arena, "the simulated machine %s has %u cores, and %" PRIu64 " threads are asked for",
                b->machine->name, b->machine->cores, b->threads);
        if (!skip && b->threads && b->threads < k->min_threads)
            skip = arena_printf(x->arena, "%s needs at least %" PRIu64 " threads", k->name, k->min_threads);
        b->member[b->members++] = (struct block_member){al, skip};
        if (!words_have(&x->plan->allocators, al->name))
            words_add(x->arena, &x->plan->allocators, al->name);
    }
    return true;
}

/* ---- blocks ---- */

static void add_option(struct expansion *x, struct block *b, const char *key, const char *value,
                       const char *stable)
{
    b->option = arena_grow(x->arena, b->option, b->options, sizeof *b->option);
    b->option[b->options++] = (struct option_pair){key, value, stable};
}

static double option_number(const struct block *b, const char *key, double otherwise)
{
    uint64_t number;
    return text_uint(block_option(b, key), 0, &number) ? (double)number : otherwise;
}

/* No launch takes longer than its timeout. */
static void rough_cost(struct block *b, unsigned cpus)
{
    const struct kernel_info *k = b->kernel;
    uint64_t ops = total_ops(b, cpus), threads = b->threads ? b->threads : cpus;
    double parallel = threads < cpus ? (double)threads : (double)cpus, longest = (double)b->timeout_s * 1e9;
    double op_ns = (k->op_ns > 0 ? k->op_ns : ROUGH_NS_PER_OP) * option_number(b, k->op_times, 1);
    double work = k->timed ? option_number(b, "seconds", 0) * 1e9 : (double)ops / parallel * op_ns;
    b->cost_ns = (k->start_s > 0 ? k->start_s * 1e9 : ROUGH_NS_PER_LAUNCH) + work +
                 option_number(b, "rest_s", 0) * 1e9;
    if (b->machine)
        b->cost_ns = ROUGH_SIM_NS_PER_LAUNCH + (double)ops * ROUGH_SIM_NS_PER_OP;
    b->cost_ns = b->cost_ns < longest ? b->cost_ns : longest;
}

static bool add_block(struct expansion *x, const size_t *at)
{
    struct block b = {
        .kernel = x->kernel, .variant = "", .timeout_s = x->timeout_s, .warmups = x->plan->warmups};
    for (size_t i = 0; i < x->axes; i++) {
        const char *key = x->axis[i].key, *value = x->axis[i].values.word[at[i]],
                   *stable = x->axis[i].stable.word[at[i]];
        if (strcmp(key, "work") == 0) {
            const char *blank = strchr(value, ' ');
            key = arena_strndup(x->arena, value, (size_t)(blank - value));
            value = stable = blank + 1;
        } else if (strcmp(key, "simulation") == 0) {
            const char *blank = strchr(value, ' ');
            const char *mode = arena_strndup(x->arena, value, (size_t)(blank - value));
            add_option(x, &b, "sim_mode", mode, mode);
            key = "sim_quantum";
            value = stable = blank + 1;
        } else if (strcmp(key, "machine") == 0 && is_simulated(x)) {
            for (size_t m = 0; m < x->plan->machines; m++)
                if (strcmp(x->plan->machine[m]->name, value) == 0)
                    b.machine = x->plan->machine[m];
        } else if (strcmp(key, "size") == 0 && !kernel_param(x->kernel, "size")) {
            add_option(x, &b, "size_min", value, stable);
            add_option(x, &b, "size_max", value, stable);
            key = "size_dist";
            value = stable = "fixed";
        } else if (strcmp(key, "variant") == 0) {
            b.variant = value;
        } else if (strcmp(key, "profile") == 0 && !kernel_param(x->kernel, "profile")) {
            b.profiled = strcmp(value, "yes") == 0;
            if (!b.profiled)
                continue;
        } else if (strcmp(key, "threads") == 0) {
            text_uint(value, 0, &b.threads);
        }
        add_option(x, &b, key, value, stable);
    }
    if (!gather_members(x, &b))
        return false;
    if (!b.members)
        return true;
    b.hash = plan_hash(x->sweep->name, x->kernel->name, b.option, b.options);
    rough_cost(&b, x->cpus);
    x->plan->block = arena_grow(x->arena, x->plan->block, x->plan->blocks, sizeof *x->plan->block);
    x->plan->block[x->plan->blocks++] = b;
    return true;
}

static bool expand_kernel(struct expansion *x)
{
    if (!gather_axes(x))
        return false;
    uint64_t cells = 1;
    for (size_t i = 0; i < x->axes; i++)
        if (__builtin_mul_overflow(cells, x->axis[i].values.count, &cells) || cells > PLAN_ROWS_MAX)
            return fault_at(x->fault, x->sweep->path, 0,
                            "more than %u cells of %s, expected a smaller cross product", PLAN_ROWS_MAX,
                            x->kernel->name);
    size_t at[AXES_MAX] = {0};
    for (uint64_t cell = 0; cell < cells; cell++) {
        if (!add_block(x, at))
            return false;
        for (size_t i = x->axes; i-- > 0;) { /* an odometer */
            if (++at[i] < x->axis[i].values.count)
                break;
            at[i] = 0;
        }
    }
    return true;
}

/* ---- rows ---- */

/* splitmix64: enough to shuffle, and the same everywhere. */
static uint64_t draw(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return hash_mix(*state);
}

static void shuffle(uint64_t *state, size_t *item, size_t count)
{
    for (size_t i = 0; i < count; i++)
        item[i] = i;
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)(draw(state) % i), kept = item[i - 1];
        item[i - 1] = item[j];
        item[j] = kept;
    }
}

uint64_t plan_hash(const char *sweep, const char *kernel, const struct option_pair *option, size_t count)
{
    uint64_t hash = hash_text(hash_text(HASH_START, sweep), kernel);
    for (size_t i = 0; i < count; i++)
        hash = hash_text(hash_text(hash, option[i].key), option[i].stable);
    return hash;
}

void plan_identify(uint64_t hash, const char *allocator, uint64_t rep, uint64_t plan_seed,
                   char row_id[ROW_ID_LENGTH + 1], uint64_t *seed)
{
    uint64_t id = hash_text(hash, allocator);
    id = hash_bytes(hash_bytes(id, &rep, sizeof rep), &plan_seed, sizeof plan_seed);
    snprintf(row_id, ROW_ID_LENGTH + 1, "%016" PRIx64, hash_mix(id));
    uint64_t mixed = hash_bytes(hash_bytes(hash, &rep, sizeof rep), &plan_seed, sizeof plan_seed);
    *seed = (hash_mix(mixed ^ 1) & SEED_MASK) + 1;
    if (*seed > SEED_MASK)
        *seed = 1;
}

static void fill_row(const struct plan *p, const struct block *b, size_t member, uint64_t rep,
                     struct planned *row)
{
    plan_identify(b->hash, b->member[member].allocator->name, rep, p->seed, row->row_id, &row->seed);
    row->block = b;
    row->member = member;
    row->rep = rep;
}

static int by_row_id(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool check_unique(struct arena *a, const struct plan *p, struct fault *f)
{
    const char **id = arena_alloc(a, (p->rows + 1) * sizeof *id);
    for (size_t i = 0; i < p->rows; i++)
        id[i] = p->row[i].row_id;
    qsort(id, p->rows, sizeof *id, by_row_id);
    for (size_t i = 1; i < p->rows; i++)
        if (strcmp(id[i - 1], id[i]) == 0)
            return fault_at(f, p->sweep->path, 0, "the same cell twice (row id %s), expected each cell once",
                            id[i]);
    return true;
}

static bool order_rows(struct arena *a, struct plan *p, struct fault *f)
{
    uint64_t members = 0;
    size_t widest = 0;
    for (size_t i = 0; i < p->blocks; i++) {
        members += p->block[i].members;
        widest = p->block[i].members > widest ? p->block[i].members : widest;
    }
    if (!members)
        return fault_at(f, p->sweep->path, 0,
                        "plans no launch: no allocator of the list runs in its kernels");
    if (members * p->reps > PLAN_ROWS_MAX)
        return fault_at(f, p->sweep->path, 0, "%" PRIu64 " launches, expected at most %u", members * p->reps,
                        PLAN_ROWS_MAX);
    p->row = arena_alloc(a, members * p->reps * sizeof *p->row);
    size_t *blocks = arena_alloc(a, p->blocks * sizeof *blocks),
           *order = arena_alloc(a, widest * sizeof *order);
    for (uint64_t rep = 1; rep <= p->reps; rep++) {
        uint64_t state = hash_mix(p->seed * 0x9e3779b97f4a7c15u + rep);
        shuffle(&state, blocks, p->blocks);
        for (size_t i = 0; i < p->blocks; i++) {
            const struct block *b = &p->block[blocks[i]];
            shuffle(&state, order, b->members);
            for (size_t m = 0; m < b->members; m++)
                fill_row(p, b, order[m], rep, &p->row[p->rows++]);
        }
    }
    return check_unique(a, p, f);
}

/* With ci_width, `reps` is the least and max_reps the most: all are planned, and not all may be needed. */
static bool plan_stopping(struct expansion *x)
{
    struct plan *p = x->plan;
    const struct setting *width = sweep_get(x->sweep, NULL, "ci_width"),
                         *most = sweep_get(x->sweep, NULL, "max_reps");
    struct words values;
    uint64_t least = p->reps;
    if (!width)
        return !most || setting_fault(x->fault, most, "max_reps without ci_width, expected both");
    if (!setting_values(x->arena, width, sweep_key("ci_width"), &values, x->fault) ||
        !scalar(x, NULL, "max_reps", MAX_REPS, &p->reps))
        return false;
    return stopping_plan(&p->stopping, strtod(values.word[0], NULL), least, p->reps) ||
           setting_fault(x->fault, most ? most : width,
                         "at most %" PRIu64
                         " repetitions, expected at least 6 (fewer have no interval) and no fewer than "
                         "reps = %" PRIu64,
                         p->reps, least);
}

bool plan_make(struct arena *a, const struct paths *paths, const struct sweep *s,
               const struct kernels *kernels, struct registry *registry, unsigned cpus, struct plan *p,
               struct fault *f)
{
    *p = (struct plan){.sweep = s};
    struct expansion x = {
        .arena = a, .paths = paths, .sweep = s, .registry = registry, .cpus = cpus, .plan = p, .fault = f};
    if (!scalar(&x, NULL, "seed", 1, &p->seed) || !scalar(&x, NULL, "reps", 1, &p->reps) ||
        !scalar(&x, NULL, "warmup", 0, &p->warmups) || !plan_stopping(&x))
        return false;
    struct words names = sweep_kernels(a, s);
    for (size_t i = 0; i < names.count; i++) {
        x.kernel = kernels_find(kernels, names.word[i]);
        if (!expand_kernel(&x))
            return false;
    }
    const struct setting *width = sweep_get(s, NULL, "ci_width");
    if (width && p->machines)
        return setting_fault(f, width, "a width of times, but launches of the simulated machine have none");
    return order_rows(a, p, f);
}

/* ---- the plan as text ---- */

void plan_csv(const struct plan *p, struct buffer *out)
{
    static const char header[] =
        "row_id,position,kernel,variant,allocator,threads,rep,seed,timeout_s,skip,options\n";
    buffer_add(out, header, sizeof header - 1);
    for (size_t i = 0; i < p->rows; i++) {
        const struct planned *r = &p->row[i];
        const struct block *b = r->block;
        const struct block_member *m = &b->member[r->member];
        buffer_addf(out, "%s,%zu,", r->row_id, i + 1);
        csv_field(out, b->kernel->name);
        csv_field(out, b->variant);
        csv_field(out, m->allocator->name);
        if (b->threads)
            buffer_addf(out, "%" PRIu64, b->threads);
        buffer_addf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", r->rep, r->seed, b->timeout_s);
        csv_field(out, m->skip ? m->skip : "");
        struct buffer options = {0};
        for (size_t o = 0; o < b->options; o++)
            buffer_addf(&options, "%s%s=%s", o ? " " : "", b->option[o].key, b->option[o].stable);
        csv_field(out, options.data ? options.data : "");
        buffer_free(&options);
        csv_end_row(out);
    }
}

/* "key=value key=value": no value but the path of a table of sizes holds a blank, and `placement` follows that. */
bool plan_options(struct arena *a, const char *text, struct option_pair **option, size_t *count)
{
    static const char after_path[] = " placement=";
    *option = NULL;
    *count = 0;
    while (*text) {
        const char *equals = strchr(text, '='), *end = equals ? equals + strcspn(equals, " ") : NULL;
        if (!equals)
            return false;
        if (strncmp(text, "size_dist=file:", strlen("size_dist=file:")) == 0)
            for (const char *next = strstr(text, after_path); next; next = strstr(next + 1, after_path))
                end = next;
        const char *value = arena_strndup(a, equals + 1, (size_t)(end - equals - 1));
        *option = arena_grow(a, *option, *count, sizeof **option);
        (*option)[(*count)++] =
            (struct option_pair){arena_strndup(a, text, (size_t)(equals - text)), value, value};
        text = end + (*end == ' ');
    }
    return true;
}

uint64_t plan_row_launches(const struct planned *p)
{
    return p->block->member[p->member].skip ? 0 : p->rep == 1 ? 1 + p->block->warmups : 1;
}

double plan_row_ns(const struct planned *p)
{
    return p->block->cost_ns * (double)plan_row_launches(p);
}
