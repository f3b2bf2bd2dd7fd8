/* ak list: kernels, allocators, sweeps and counters, with a line each. */
#include "command.h"
#include "linked.h"
#include "machine.h"
#include "simmachine.h"
#include "simulator.h"
#include "trust.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Every list is an array of objects; the text is drawn from it. */

static json_t *words_json(const struct words *w)
{
    json_t *list = json_array();
    for (size_t i = 0; i < w->count; i++)
        json_array_append_new(list, json_string(w->word[i]));
    return list;
}

static json_t *params_json(const struct kernel_info *k)
{
    static const char *const types[] = {[VALUE_INT] = "int", [VALUE_SIZE] = "size", [VALUE_WORD] = "word"};
    json_t *list = json_array();
    for (size_t i = 0; i < k->params; i++) {
        const struct kernel_param *p = &k->param[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "name", p->name, "type",
                                              types[p->type], "default", p->fallback, "unit", p->unit, "what",
                                              p->what, "words", words_json(&p->words)));
    }
    return list;
}

static json_t *list_kernels(struct suite *s, struct fault *f)
{
    if (!suite_kernels(s, f))
        return NULL;
    json_t *list = json_array();
    for (size_t i = 0; i < s->kernels.count; i++) {
        const struct kernel_info *k = &s->kernels.kernel[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:I, s:b, s:b, s:b, s:o, s:s?}", "name",
                                              k->name, "what", k->trouble ? "cannot be used" : k->what, "op",
                                              *k->op ? k->op : "one malloc/free cycle", "variants",
                                              words_json(&k->variants), "min_threads",
                                              (json_int_t)k->min_threads, "own_threads", (int)k->own_threads,
                                              "no_alloc", (int)k->no_alloc, "sizes", (int)k->sizes, "params",
                                              params_json(k), "trouble", k->trouble));
    }
    return list;
}

static json_t *list_allocators(struct suite *s, struct fault *f)
{
    json_t *list = json_array();
    if (!suite_kernels(s, f)) {
        json_decref(list);
        return NULL;
    }
    const char *probe = suite_probe_kernel(s);
    for (size_t i = 0; i < s->registry.count; i++) {
        struct allocator *al = &s->registry.allocator[i];
        if (!allocator_resolve(&s->arena, &s->paths, al, f) ||
            (al->found && probe && !allocator_probe(&s->arena, &s->paths, probe, al, f))) {
            json_decref(list);
            return NULL;
        }
        const char *trouble = al->found ? al->trouble : al->reason;
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:I, s:b, s:b, s:b, s:b, s:s, s:s, s:s, s:s, s:o, s:o}", "name",
                            al->name, "label", al->label, "what", al->what, "colour", (json_int_t)al->colour,
                            "required", (int)al->required, "frees", (int)al->frees, "linked",
                            (int)linked_is(al), "found", (int)al->found, "version", al->version, "path",
                            al->found ? al->real : "", "build_id", al->build_id, "trouble", trouble,
                            "kernels", words_json(&al->kernels), "env", words_json(&al->env)));
    }
    return list;
}

static json_t *list_sweeps(struct suite *s, struct fault *f)
{
    json_t *list = json_array();
    struct words names = sweep_names(&s->arena, &s->paths);
    for (size_t i = 0; i < names.count; i++) {
        struct sweep sweep;
        const char *path = sweep_locate(&s->arena, &s->paths, names.word[i], f);
        if (!path || !sweep_read(&s->arena, &s->paths, path, "quick", &sweep, f)) {
            json_decref(list);
            return NULL;
        }
        struct words kernels = sweep_kernels(&s->arena, &sweep);
        json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", sweep.name, "what", sweep.what,
                                              "kernels", words_json(&kernels)));
    }
    return list;
}

/* What of the simulated machine may be trusted in which mode. */
static json_t *trust_json(void)
{
    json_t *list = json_array();
    for (const struct trust_metric *m = trust_metrics; m->name; m++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", m->name, "weave",
                                              trust_words[m->weave], "timed", trust_words[m->timed], "why",
                                              m->why));
    return list;
}

static void take_backend(const char *name, const char *what, bool can, const char *why, void *user)
{
    json_t *backend = json_pack("{s:s, s:s, s:b, s:s}", "name", name, "what", what, "can", (int)can,
                                "trouble", can ? "" : why);
    if (strcmp(name, "sim") == 0)
        json_object_set_new(backend, "metrics", trust_json());
    json_array_append_new(user, backend);
}

static json_t *list_counters(struct suite *s, struct fault *f)
{
    (void)f;
    json_t *list = json_array();
    simulator_survey(&s->arena, &s->paths, take_backend, list);
    return list;
}

static json_t *list_machines(struct suite *s, struct fault *f)
{
    json_t *list = json_array();
    struct words names = simmachine_names(&s->arena, &s->paths);
    for (size_t i = 0; i < names.count; i++) {
        const char *path = simmachine_locate(&s->arena, &s->paths, ".", names.word[i]);
        const struct simmachine *m = simmachine_read(&s->arena, path, f);
        if (!m) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:i, s:i, s:s}", "name", m->name, "what", m->what,
                                        "cores", (int)m->cores, "nodes", (int)m->nodes, "words", m->words));
    }
    return list;
}

static const struct topic {
    const char *name;
    json_t *(*list)(struct suite *, struct fault *);
} topics[] = {{"kernels", list_kernels},
              {"allocators", list_allocators},
              {"sweeps", list_sweeps},
              {"counters", list_counters},
              {"machines", list_machines}};
#define TOPICS (sizeof topics / sizeof *topics)

/* The metrics of the simulated machine by mode; each reason once, by a number. */
static void print_trust(const json_t *metrics, int indent)
{
    struct arena a = {0};
    struct words reasons = {0};
    size_t i, r;
    json_t *m;
    if (json_array_size(metrics))
        printf("  %*s  %-18s %-8s %-8s\n", indent, "", "may be trusted in", "weave", "timed");
    json_array_foreach(metrics, i, m)
    {
        const char *why = json_string_value(json_object_get(m, "why"));
        printf("  %*s  %-18s %-8s %-8s", indent, "", json_string_value(json_object_get(m, "name")),
               json_string_value(json_object_get(m, "weave")),
               json_string_value(json_object_get(m, "timed")));
        if (*why && !words_have(&reasons, why))
            words_add(&a, &reasons, why);
        for (r = 0; r < reasons.count && *why; r++)
            if (strcmp(reasons.word[r], why) == 0)
                printf(" [%zu]", r + 1);
        putchar('\n');
    }
    for (r = 0; r < reasons.count; r++)
        printf("  %*s  [%zu] %s\n", indent, "", r + 1, reasons.word[r]);
    arena_free(&a);
}

static void print_topic(const struct topic *topic, const json_t *list)
{
    size_t i;
    json_t *item;
    int width = 0;
    json_array_foreach(list, i, item)
    {
        int length = (int)strlen(json_string_value(json_object_get(item, "name")));
        width = length > width ? length : width;
    }
    printf("%s:\n", topic->name);
    json_array_foreach(list, i, item)
    {
        const char *version = json_string_value(json_object_get(item, "version"));
        const char *trouble = json_string_value(json_object_get(item, "trouble"));
        const char *op = json_string_value(json_object_get(item, "op"));
        bool plain = !op || strcmp(op, "one malloc/free cycle") == 0;
        printf("  %-*s  %s%s%s%s%s%s%s%s%s\n", width, json_string_value(json_object_get(item, "name")),
               json_string_value(json_object_get(item, "what")), version && *version ? " (" : "",
               version ? version : "", version && *version ? ")" : "",
               trouble && *trouble ? " [cannot be used: " : "", trouble ? trouble : "",
               trouble && *trouble ? "]" : "", plain ? "" : "; an op: ", plain ? "" : op);
        print_trust(json_object_get(item, "metrics"), width);
    }
}

static bool list_topics(struct suite *s, const char *only, bool as_json, struct fault *f)
{
    json_t *all = json_object();
    for (size_t i = 0; i < TOPICS; i++) {
        if (only && strcmp(only, topics[i].name) != 0)
            continue;
        json_t *list = topics[i].list(s, f);
        if (!list)
            break;
        if (!as_json)
            print_topic(&topics[i], list);
        json_object_set_new(all, topics[i].name, list);
    }
    if (as_json && f->code == AK_DONE) {
        json_dumpf(only ? json_object_get(all, only) : all, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(all);
    return f->code == AK_DONE;
}

static int cmd_list(int argc, char **argv)
{
    struct suite suite = {0};
    struct fault fault = {0};
    bool as_json = false;
    const char *registry = NULL;
    const struct command_option known[] = {
        {"--json", NULL, &as_json}, {"--registry", &registry, NULL}, {NULL, NULL, NULL}};
    struct arena words = {0};
    int left;
    bool good = command_options(&words, argc, argv, known, &left, &fault);
    if (good && left > 2)
        good = fault_set(
            &fault, AK_USAGE,
            "list: more than one argument, expected kernels, allocators, sweeps, counters or machines");
    const char *only = good && left == 2 ? argv[1] : NULL;
    struct words names = {0};
    for (size_t i = 0; i < TOPICS; i++)
        words_add(&words, &names, topics[i].name);
    if (only && !words_have(&names, only))
        good = fault_set(&fault, AK_USAGE, "list: '%s'%s", only, nearest_hint(&words, only, &names));
    good = good && suite_open(&suite, registry, &fault) && list_topics(&suite, only, as_json, &fault);
    suite_close(&suite);
    arena_free(&words);
    return good ? AK_DONE : fault_print(&fault);
}

AK_COMMAND(command_list, "list", "[kernels|allocators|sweeps|counters|machines] [--json] [--registry FILE]",
           "what there is, with a line each",
           "  --json            as JSON: an array for one kind, an object of arrays for all\n"
           "  --registry FILE   further allocators\n",
           cmd_list);
