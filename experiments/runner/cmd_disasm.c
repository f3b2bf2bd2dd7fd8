/* ak disasm: the machine code that a hot malloc or free executed, one cell of fastpath-anatomy.sweep. */
#include "child.h"
#include "command.h"
#include "execute.h"
#include "listing.h"
#include "machine.h"
#include "plan.h"
#include "simulator.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define SWEEP        "fastpath-anatomy"
#define SIZE_DEFAULT "64"
#define SIZE_LIMIT   "64M" /* QEMU maps and unmaps page by page: of a larger block 1000 times takes minutes */
#define HEAP_DEFAULT "warm"
#define OBJDUMP      "objdump"

struct disasm_options {
    const char *allocator, *size, *op, *heap_state, *registry;
    bool json;
};

/* What the kernel says of the path, in the order in which it is told: a metric's name without the call, and words. */
static const struct fact {
    const char *name, *one, *many;
} facts[] = {
    {"instructions", "instruction", "instructions"},
    {"loads", "load", "loads"},
    {"stores", "store", "stores"},
    {"atomics", "atomic", "atomic"},
    {"thread_locals", "TLS access", "TLS accesses"},
    {"branches", "branch", "branches"},
    {"lines", "line of data", "lines of data"},
    {"stack_lines", "of the stack", "of the stack"},
    {"code_lines", "of code", "of code"},
};
#define FACTS (sizeof facts / sizeof *facts)

/* What was asked, what served it, what came of it. */
struct dissection {
    struct disasm_options o;
    struct allocator *allocator;
    struct sweep sweep;
    struct plan plan;
    uint64_t calls, paths, fact[FACTS];
    double fast_ratio;
    struct listing listing;
};

/* ---- ask ---- */

static bool read_options(struct arena *a, int argc, char **argv, struct disasm_options *o, struct fault *f)
{
    const struct command_option known[] = {
        {"--size", &o->size, NULL},
        {"--op", &o->op, NULL},
        {"--heap-state", &o->heap_state, NULL},
        {"--registry", &o->registry, NULL},
        {"--json", NULL, &o->json},
        {NULL, NULL, NULL},
    };
    struct words ops = {0};
    uint64_t size, limit;
    int left;
    words_add(a, &ops, "malloc");
    words_add(a, &ops, "free");
    if (!command_options(a, argc, argv, known, &left, f))
        return false;
    if (left != 2)
        return fault_set(f, AK_USAGE, "disasm: %s, expected one ALLOCATOR (see `ak list allocators`)",
                         left < 2 ? "no allocator" : "more than one argument");
    o->allocator = argv[1];
    o->size = o->size ? o->size : SIZE_DEFAULT;
    o->op = o->op ? o->op : ops.word[0];
    o->heap_state = o->heap_state ? o->heap_state : HEAP_DEFAULT;
    if (text_uint(o->size, 1024, &size) && text_uint(SIZE_LIMIT, 1024, &limit) && size > limit)
        return fault_set(f, AK_USAGE,
                         "--size: %s, expected at most " SIZE_LIMIT
                         ": QEMU takes minutes to map and unmap more; "
                         "take " SIZE_LIMIT " for what a large block executes",
                         o->size);
    return words_have(&ops, o->op) ||
           fault_set(f, AK_USAGE, "--op: '%s'%s", o->op, nearest_hint(a, o->op, &ops));
}

/* NAME, or NAME=LIBRARY for one that no registry knows. */
static bool find_allocator(struct suite *s, struct dissection *d, struct fault *f)
{
    const char *equals = strchr(d->o.allocator, '=');
    if (equals) {
        const char *name = arena_strndup(&s->arena, d->o.allocator, (size_t)(equals - d->o.allocator));
        if (!registry_add_library(&s->arena, &s->registry, name, equals + 1, f))
            return false;
        d->o.allocator = name;
    }
    d->allocator = registry_find(&s->registry, d->o.allocator);
    return d->allocator || fault_set(f, AK_USAGE, "disasm: unknown allocator '%s'%s", d->o.allocator,
                                     nearest_hint(&s->arena, d->o.allocator, &s->registry.names));
}

static bool make_plan(struct suite *s, struct dissection *d, struct fault *f)
{
    const char *path = sweep_locate(&s->arena, &s->paths, SWEEP, f);
    if (!path || !sweep_read(&s->arena, &s->paths, path, PRESET_DEFAULT, &d->sweep, f) ||
        !suite_kernels(s, f))
        return false;
    sweep_override(&s->arena, &d->sweep, "allocators", d->o.allocator);
    sweep_override(&s->arena, &d->sweep, "size", d->o.size);
    sweep_override(&s->arena, &d->sweep, "heap_state", d->o.heap_state);
    sweep_override(&s->arena, &d->sweep, "reps", "1");
    if (!sweep_check(&s->arena, &d->sweep, &s->kernels, &s->registry, f) ||
        !plan_make(&s->arena, &s->paths, &d->sweep, &s->kernels, &s->registry, machine_cpus(), &d->plan, f))
        return false;
    const struct block_member *member = &d->plan.row[0].block->member[d->plan.row[0].member];
    if (d->plan.rows != 1)
        return fault_set(f, AK_USAGE, "disasm: %zu cells, expected one size and one heap state",
                         d->plan.rows);
    return !member->skip || fault_set(f, AK_USAGE, "disasm: %s", member->skip);
}

/* Everything that is needed is here: else the environment cannot do it. */
static bool check_environment(struct suite *s, struct dissection *d, struct simulator *simulator,
                              const char **objdump, struct fault *f)
{
    struct allocator *al = d->allocator;
    simulator_find(&s->arena, &s->paths, simulator);
    *objdump = program_find(&s->arena, OBJDUMP);
    if (!simulator->can)
        return fault_set(f, AK_ENVIRONMENT, "disasm: %s", simulator->why);
    if (!*objdump)
        return fault_set(f, AK_ENVIRONMENT, "disasm: " OBJDUMP " is not on PATH: apt install binutils");
    if (!allocator_resolve(&s->arena, &s->paths, al, f))
        return false;
    if (!al->found)
        return fault_set(f, AK_ENVIRONMENT, "allocator %s: %s%s%s", al->name, al->reason,
                         *al->get ? "; get it by " : "", al->get);
    return allocator_probe(&s->arena, &s->paths, suite_probe_kernel(s), al, f);
}

/* ---- run ---- */

static const json_t *metric(const json_t *result, const char *call, const char *name)
{
    size_t i;
    json_t *m;
    json_array_foreach(json_object_get(result, "metrics"), i, m)
    {
        const char *own = json_string_value(json_object_get(m, "name"));
        size_t length = strlen(call);
        if (own && strncmp(own, call, length) == 0 && own[length] == '_' &&
            strcmp(own + length + 1, name) == 0)
            return json_object_get(m, "value");
    }
    return NULL;
}

static uint64_t metric_count(const json_t *result, const char *call, const char *name)
{
    double value = json_number_value(metric(result, call, name));
    return value > 0 ? (uint64_t)value : 0;
}

static bool take_facts(struct dissection *d, const struct child_outcome *outcome, struct fault *f)
{
    json_t *result = json_loadb(outcome->out.data, outcome->out.length, 0, NULL);
    for (size_t i = 0; i < FACTS; i++)
        d->fact[i] = metric_count(result, d->o.op, facts[i].name);
    d->calls = metric_count(result, d->o.op, "calls");
    d->paths = metric_count(result, d->o.op, "paths");
    d->fast_ratio = json_number_value(metric(result, d->o.op, "fast_ratio"));
    json_decref(result);
    return d->calls > 0 ||
           fault_set(f, AK_FAILED, "disasm: the simulated machine saw no call of %s", d->o.op);
}

/* One launch, checked as a row of a sweep would be: which library served, that it verified. */
static bool launch_watched(struct suite *s, struct dissection *d, const struct simulator *simulator,
                           struct fault *f)
{
    const struct planned *p = &d->plan.row[0];
    const struct run_facts run = {.run_id = "", .sweep = SWEEP, .machine_id = "", .cpus = machine_cpus()};
    struct child_request request;
    struct child_outcome outcome;
    struct result result;
    const char *why;
    if (!launch_request(&s->arena, simulator, p, &request, &why))
        return fault_set(f, AK_ENVIRONMENT, "disasm: %s", why);
    request.interrupts_max = 1;
    if (!child_run(s->paths.launcher, &request, &outcome, f))
        return false;
    result_begin(&s->arena, &run, p, "", &result);
    result_take(&s->arena, &result, p, &outcome, 0);
    bool good = result.status == STATUS_OK
                    ? take_facts(d, &outcome, f)
                    : fault_set(f, AK_FAILED, "disasm: %s under %s: %s: %s", p->block->kernel->name,
                                d->o.allocator, status_names[result.status], result.detail);
    result_free(&result);
    child_outcome_free(&outcome);
    return good;
}

static bool dissect(struct suite *s, struct dissection *d, struct fault *f)
{
    struct simulator simulator;
    const char *objdump;
    if (!find_allocator(s, d, f) || !make_plan(s, d, f) ||
        !check_environment(s, d, &simulator, &objdump, f) ||
        !simulator_roots_make(&s->arena, &simulator, &d->plan, f))
        return false;
    simulator.watch = arena_printf(&s->arena, "%s/executed", simulator.roots);
    bool good = launch_watched(s, d, &simulator, f) &&
                listing_read(&s->arena, simulator.watch, d->o.op, &d->listing, f) &&
                listing_decode(&s->arena, s->paths.launcher, objdump, d->o.op, &d->listing, f);
    simulator_roots_remove(&simulator, &d->plan);
    return good;
}

/* ---- tell ---- */

static void print_head(const struct dissection *d)
{
    uint64_t taken = (uint64_t)(d->fast_ratio * (double)d->calls + 0.5);
    const struct allocator *al = d->allocator;
    printf("%s%s%s (%s%s%s): a hot %s of %s bytes, heap %s\n", al->name, *al->version ? " " : "", al->version,
           al->real, *al->build_id ? ", build-id " : "", al->build_id, d->o.op,
           block_option(d->plan.row[0].block, "size_min"), d->o.heap_state);
    printf("%" PRIu64 " of %" PRIu64 " calls took this path, %" PRIu64 " %s seen:", taken, d->calls, d->paths,
           d->paths == 1 ? "path was" : "different ones were");
    for (size_t i = 0; i < FACTS; i++)
        printf("%s %" PRIu64 " %s", i ? "," : "", d->fact[i], d->fact[i] == 1 ? facts[i].one : facts[i].many);
    putchar('\n');
}

static const char *does(struct arena *a, const struct instruction *i)
{
    const char *kinds[] = {i->load ? "load" : NULL, i->store ? "store" : NULL, i->atomic ? "atomic" : NULL,
                           i->thread_local_ ? "TLS" : NULL, i->branch ? "branch" : NULL};
    const char *all = "";
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (kinds[k])
            all = arena_printf(a, "%s%s%s", all, *all ? " " : "", kinds[k]);
    return all;
}

/* A headline wherever the path comes to another function or file. */
static void print_text(struct arena *a, const struct dissection *d)
{
    const struct instruction *before = NULL;
    print_head(d);
    for (size_t n = 0; n < d->listing.count; n++) {
        const struct instruction *i = &d->listing.instruction[n];
        if (!before || strcmp(before->function, i->function) != 0 || strcmp(before->object, i->object) != 0)
            printf("\n%s, %s:\n", *i->function ? i->function : "a function without a name",
                   *i->object ? path_name(i->object) : "of no file");
        printf("%10" PRIx64 "  %-16s  %s\n", i->address, does(a, i), *i->text ? i->text : i->bytes);
        before = i;
    }
}

static void print_json(const struct dissection *d)
{
    json_t *path = json_array(), *all;
    for (size_t n = 0; n < d->listing.count; n++) {
        const struct instruction *i = &d->listing.instruction[n];
        json_array_append_new(path, json_pack("{s:I, s:s, s:s, s:I, s:s, s:s, s:b, s:b, s:b, s:b, s:b}",
                                              "address", (json_int_t)i->address, "object", i->object,
                                              "function", i->function, "into", (json_int_t)i->into, "bytes",
                                              i->bytes, "text", i->text, "load", (int)i->load, "store",
                                              (int)i->store, "atomic", (int)i->atomic, "thread_local",
                                              (int)i->thread_local_, "branch", (int)i->branch));
    }
    const struct allocator *al = d->allocator;
    all = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:f}", "allocator", al->name,
                    "allocator_version", al->version, "allocator_path", al->real, "allocator_build_id",
                    al->build_id, "op", d->o.op, "size", block_option(d->plan.row[0].block, "size_min"),
                    "heap_state", d->o.heap_state, "calls", (json_int_t)d->calls, "paths",
                    (json_int_t)d->paths, "fast_ratio", d->fast_ratio);
    for (size_t i = 0; i < FACTS; i++)
        json_object_set_new(all, facts[i].name, json_integer((json_int_t)d->fact[i]));
    json_object_set_new(all, "path", path);
    json_dumpf(all, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(all);
}

static int cmd_disasm(int argc, char **argv)
{
    struct suite suite = {0};
    struct fault fault = {0};
    struct arena words = {0};
    struct dissection d = {0};
    child_watch_interrupts();
    bool good = read_options(&words, argc, argv, &d.o, &fault) && suite_open(&suite, d.o.registry, &fault) &&
                dissect(&suite, &d, &fault);
    if (good && d.o.json)
        print_json(&d);
    else if (good)
        print_text(&words, &d);
    suite_close(&suite);
    arena_free(&words);
    return good ? AK_DONE : fault_print(&fault);
}

AK_COMMAND(command_disasm, "disasm",
           "ALLOCATOR [--size N] [--op malloc|free] [--heap-state empty|one|warm] [--json] [--registry FILE]",
           "the machine code that a hot malloc or free executed, in the simulated machine",
           "  ALLOCATOR         a name of the registry, or NAME=LIBRARY for one of your own\n"
           "  --size N          bytes of the block, at most " SIZE_LIMIT "; default " SIZE_DEFAULT "\n"
           "  --op OP           malloc (default) or free\n"
           "  --heap-state H    other live blocks of the size: empty (none), one, warm (300, default)\n"
           "  --json            as one JSON object\n"
           "  --registry FILE   further allocators, in the format of allocators/registry.ini\n",
           cmd_disasm);
