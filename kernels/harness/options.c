#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "options.h"

#define THREADS_MAX 4096
#define OPS_MAX     1000000000000u
#define OWN_MAX     24

struct option_flags options;

static const struct param common[] = {
    { "threads", PARAM_INT, "1", "count", 1, THREADS_MAX, NULL, "worker threads" },
    { "ops", PARAM_INT, "1000000", "count", 1, OPS_MAX, NULL, "operations of each thread in the throughput pass" },
    { "ops_total", PARAM_INT, "0", "count", 0, OPS_MAX, NULL, "instead of ops: a total to divide by the threads" },
    { "size_min", PARAM_SIZE, "16", "bytes", 1, 1u << 30, NULL, "smallest size" },
    { "size_max", PARAM_SIZE, "65536", "bytes", 1, 1u << 30, NULL, "largest size" },
    { "size_dist", PARAM_WORD, "loguniform", "", 0, 0, NULL, "loguniform, uniform, fixed or file:PATH" },
    { "seed", PARAM_INT, "1", "", 0, INT64_MAX, NULL, "every random number derives from it" },
    { "variant", PARAM_WORD, "", "", 0, 0, NULL, "the kernel's form" },
    { "placement", PARAM_WORD, "compact", "", 0, 0, NULL, "compact, scatter, none or node:N" },
    { "numa", PARAM_WORD, "local", "", 0, 0, NULL, "local, interleave or bind:N" },
    { "passes", PARAM_WORD, "throughput,batch,latency,memory", "", 0, 0, NULL, "which passes to run" },
    { "lat_ops", PARAM_INT, "0", "count", 0, OPS_MAX, NULL, "operations of each thread in the latency pass (0: as ops)" },
    { "lat_gap", PARAM_INT, "8", "count", 1, 1000000, NULL, "mean gap between sampled calls" },
    { "mem_steps", PARAM_INT, "16", "count", 1, 100000, NULL, "quiescent samples in the memory pass" },
    { "mem_idle_ms", PARAM_INT, "0", "ms", 0, 3600000, NULL, "idle time before each quiescent sample of the memory pass" },
    { "settle_ms", PARAM_INT, "0", "ms", 0, 3600000, NULL, "idle time before the last sample of resident memory" },
    { "counters", PARAM_WORD, "auto", "", 0, 0, "auto|papi|likwid|perf|sim|none", "counter backend" },
    { "expect", PARAM_WORD, "", "", 0, 0, NULL, "object that must serve malloc: a path, or libc" },
    { "version_call", PARAM_WORD, "", "", 0, 0, NULL, "how to read the allocator's version" },
    { "metadata_call", PARAM_WORD, "", "", 0, 0, NULL, "how to ask the allocator what its own books take" },
};
#define COMMON (sizeof common / sizeof common[0])

static const struct { const char *name; bool *flag; const char *what; } flags[] = {
    { "json", &options.json, "print one JSON object" },
    { "no_alloc", &options.no_alloc, "the same loop with a stub allocator: the kernel's own cost" },
    { "probe", &options.probe, "only say which allocator serves" },
    { "check", &options.check, "only say whether the options go together" },
    { "describe", &options.describe, "print variants and parameters as JSON" },
    { "help", &options.help, "print this" },
};
#define FLAGS (sizeof flags / sizeof flags[0])

static struct option_value values[COMMON + OWN_MAX];
static unsigned value_count;

int parse_number(const char *text, uint64_t base, uint64_t min, uint64_t max, uint64_t *number)
{
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return -1;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0)
        return -1;
    uint64_t factor = 1;
    switch (*end) {
    case 'G': factor *= base; /* fall through */
    case 'M': factor *= base; /* fall through */
    case 'K': factor *= base; end++; break;
    default: break;
    }
    if (*end != '\0' || __builtin_mul_overflow(value, factor, &value) || value < min || value > max)
        return -1;
    *number = value;
    return 0;
}

const struct option_value *option(const char *name)
{
    for (unsigned i = 0; i < value_count; i++)
        if (strcmp(values[i].param->name, name) == 0)
            return &values[i];
    return NULL;
}

const struct option_value *option_own(unsigned index)
{
    return COMMON + index < value_count ? &values[COMMON + index] : NULL;
}

void option_threads_set(unsigned threads)
{
    ((struct option_value *)option("threads"))->number = threads;
}

uint64_t param_int(const char *name)
{
    const struct option_value *v = option(name);
    if (v == NULL || v->param->type == PARAM_WORD) {
        fprintf(stderr, "%s: internal error: no numeric parameter '%s'\n", kernel.name, name);
        abort();
    }
    return v->number;
}

const char *param_word(const char *name)
{
    const struct option_value *v = option(name);
    if (v == NULL) {
        fprintf(stderr, "%s: internal error: no parameter '%s'\n", kernel.name, name);
        abort();
    }
    return v->text;
}

bool variant_is(const char *name)
{
    return strcmp(param_word("variant"), name) == 0;
}

/* An option's name as it is given, with dashes; underscores do too. Until the next call. */
static const char *dashed(const char *name)
{
    static char text[64];
    snprintf(text, sizeof text, "%s", name);
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '_' ? '-' : *c;
    return text;
}

static bool word_in(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; at != NULL; at = strchr(at, '|'), at = at ? at + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == '|' || at[length] == '\0'))
            return length > 0;
    return false;
}

static int value_set(struct option_value *v, const char *text)
{
    const struct param *p = v->param;
    v->text = text;
    if (p->type == PARAM_WORD) {
        if (p->words != NULL && !word_in(p->words, text)) {
            fprintf(stderr, "%s: --%s: '%s' is not one of %s\n", kernel.name, dashed(p->name), text, p->words);
            return EXIT_USAGE;
        }
        return 0;
    }
    uint64_t base = p->type == PARAM_SIZE ? 1024 : 1000;
    if (parse_number(text, base, p->min, p->max, &v->number) != 0) {
        fprintf(stderr, "%s: --%s: '%s' is not a number from %llu to %llu\n", kernel.name, dashed(p->name), text,
                (unsigned long long)p->min, (unsigned long long)p->max);
        return EXIT_USAGE;
    }
    return 0;
}

static int value_add(const struct param *p, bool is_common, const char *fallback)
{
    struct option_value *v = &values[value_count++];
    v->param = p;
    v->common = is_common;
    v->fallback = fallback != NULL ? fallback : p->fallback;
    return value_set(v, v->fallback);
}

/* What the kernel has for a default of a common option, or NULL. */
static const char *kernel_default(const char *name)
{
    return strcmp(name, "size_min") == 0 ? kernel.default_size_min
         : strcmp(name, "size_max") == 0 ? kernel.default_size_max
         : strcmp(name, "placement") == 0 && (kernel.subject || (kernel.app && kernel.makes_threads)) ? "none" : NULL;
}

static int unknown_option(const char *name)
{
    const char *names[COMMON + OWN_MAX + FLAGS + 1];
    unsigned n = 0;
    for (unsigned i = 0; i < value_count; i++)
        names[n++] = values[i].param->name;
    for (unsigned i = 0; i < FLAGS; i++)
        names[n++] = flags[i].name;
    names[n] = NULL;
    const char *near = nearest(name, names);
    fprintf(stderr, "%s: unknown option --%s", kernel.name, dashed(name));
    fprintf(stderr, "%s%s; --help lists them\n", near ? "; did you mean --" : "", near ? dashed(near) : "");
    return EXIT_USAGE;
}

/* The variant's default and check need the kernel: "a|b|c", the first is the default. */
static int variant_resolve(void)
{
    struct option_value *v = (struct option_value *)option("variant");
    static char first[64];

    if (kernel.variants == NULL) {
        if (v->text[0] == '\0')
            return 0;
        fprintf(stderr, "%s: --variant: this kernel has none\n", kernel.name);
        return EXIT_USAGE;
    }
    if (v->text[0] == '\0') {
        snprintf(first, sizeof first, "%.*s", (int)strcspn(kernel.variants, "|"), kernel.variants);
        v->text = first;
    }
    if (word_in(kernel.variants, v->text))
        return 0;
    fprintf(stderr, "%s: --variant: '%s' is not one of %s\n", kernel.name, v->text, kernel.variants);
    return EXIT_USAGE;
}

/* A kernel of one size has size_dist fixed and size_max = size_min. */
static int sizes_resolve(void)
{
    struct option_value *dist = (struct option_value *)option("size_dist"), *max = (struct option_value *)option("size_max");
    uint64_t min = param_int("size_min");

    if (kernel.sizes == SIZES_FIXED) {
        if ((dist->given && strcmp(dist->text, "fixed") != 0) || (max->given && max->number != min)) {
            fprintf(stderr, "%s: takes one size, not --size-max and --size-dist: give --size-min alone, or size_dist fixed\n", kernel.name);
            return EXIT_USAGE;
        }
        dist->text = "fixed";
    }
    if (kernel.sizes == SIZES_NONE && (dist->given || max->given || option("size_min")->given)) {
        fprintf(stderr, "%s: takes no sizes\n", kernel.name);
        return EXIT_USAGE;
    }
    if (strcmp(dist->text, "fixed") == 0)
        max->number = min;
    return 0;
}

static int passes_check(const char *list)
{
    if (*list == '\0') {
        fprintf(stderr, "%s: --passes: empty, expected some of throughput, batch, latency, memory\n", kernel.name);
        return EXIT_USAGE;
    }
    for (const char *at = list; *at != '\0';) {
        size_t length = strcspn(at, ",");
        char pass[16];
        snprintf(pass, sizeof pass, "%.*s", (int)length, at);
        if (length >= sizeof pass || !word_in("throughput|batch|latency|memory", pass)) {
            fprintf(stderr, "%s: --passes: '%.*s' is not one of throughput, batch, latency, memory\n", kernel.name,
                    (int)length, at);
            return EXIT_USAGE;
        }
        at += length + (at[length] == ',');
    }
    return 0;
}

int options_parse(int argc, char **argv)
{
    value_count = 0;
    for (unsigned i = 0; i < COMMON; i++)
        value_add(&common[i], true, kernel_default(common[i].name));
    for (const struct param *p = kernel.params; p != NULL && p->name != NULL; p++) {
        if (value_count == COMMON + OWN_MAX || value_add(p, false, NULL) != 0) {
            fprintf(stderr, "%s: internal error: parameter '%s': too many, or a default out of range\n", kernel.name,
                    p->name);
            return EXIT_USAGE;
        }
    }

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            fprintf(stderr, "%s: unexpected argument '%s'; options begin with --\n", kernel.name, argv[i]);
            return EXIT_USAGE;
        }
        char name[64];
        const char *equals = strchr(argv[i], '=');
        size_t length = equals ? (size_t)(equals - argv[i]) - 2 : strlen(argv[i]) - 2;
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), argv[i] + 2);
        for (char *c = name; *c != '\0'; c++)
            if (*c == '-')
                *c = '_';

        bool is_flag = false;
        for (unsigned f = 0; f < FLAGS; f++)
            if (strcmp(flags[f].name, name) == 0)
                *flags[f].flag = is_flag = true;
        if (is_flag && equals != NULL) {
            fprintf(stderr, "%s: --%s takes no value\n", kernel.name, dashed(name));
            return EXIT_USAGE;
        }
        if (is_flag)
            continue;

        struct option_value *v = (struct option_value *)option(name);
        if (v == NULL)
            return unknown_option(name);
        const char *text = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
        if (text == NULL) {
            fprintf(stderr, "%s: --%s needs a value: %s\n", kernel.name, dashed(name), v->param->what);
            return EXIT_USAGE;
        }
        int rc = value_set(v, text);
        if (rc != 0)
            return rc;
        v->given = true;
    }
    if (kernel.default_ops != 0 && !option("ops")->given)
        ((struct option_value *)option("ops"))->number = kernel.default_ops;
    int rc = variant_resolve();
    if (rc == 0)
        rc = sizes_resolve();
    return rc != 0 ? rc : passes_check(param_word("passes"));
}

static void print_name(const char *name)
{
    printf("  --%-14s", dashed(name));
}

void options_print_help(void)
{
    printf("%s: %s\n\nusage: %s [options]   (the allocator comes by LD_PRELOAD)\n", kernel.name, kernel.what,
           kernel.name);
    if (kernel.variants != NULL)
        printf("\nvariants: %s\n", kernel.variants);
    for (unsigned i = 0; i < value_count; i++) {
        const struct param *p = values[i].param;
        if (i == 0)
            printf("\noptions of every kernel:\n");
        if (i == COMMON)
            printf("\noptions of %s:\n", kernel.name);
        print_name(p->name);
        printf(" %s%s%s [%s]\n", p->what, p->words ? ": " : "", p->words ? p->words : "", values[i].fallback);
    }
    printf("\nflags:\n");
    for (unsigned i = 0; i < FLAGS; i++) {
        print_name(flags[i].name);
        printf(" %s\n", flags[i].what);
    }
}

static json_t *words_json(const char *words)
{
    if (words == NULL)
        return json_null();
    json_t *list = json_array();
    for (const char *at = words; *at != '\0';) {
        size_t length = strcspn(at, "|");
        json_array_append_new(list, json_stringn(at, length));
        at += length + (at[length] == '|');
    }
    return list;
}

void options_print_description(void)
{
    static const char *const type_name[] = { "int", "size", "word" };
    json_t *params = json_array();
    for (unsigned i = 0; option_own(i) != NULL; i++) {
        const struct param *p = option_own(i)->param;
        json_array_append_new(params, json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:s}", "name", p->name, "type",
                                                type_name[p->type], "default", p->fallback, "unit", p->unit, "min",
                                                (json_int_t)p->min, "max", (json_int_t)p->max, "words",
                                                words_json(p->words), "what", p->what));
    }
    json_t *all = json_pack("{s:s, s:s, s:s, s:o, s:i, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:s, s:s, s:f, s:f, s:s, s:o}",
                            "name", kernel.name, "what", kernel.what,
                            "op", kernel.op ? kernel.op : "one malloc/free cycle", "variants",
                            kernel.variants ? words_json(kernel.variants) : json_array(), "min_threads",
                            kernel.min_threads ? (int)kernel.min_threads : 1, "own_threads", kernel.own_threads,
                            "no_alloc", kernel.no_alloc, "app", kernel.app, "timed", kernel.timed, "makes_threads", kernel.makes_threads,
                            "watched", kernel.watched,
                            "check", 1, "sizes", kernel.sizes != SIZES_NONE, "fixed_size", kernel.sizes == SIZES_FIXED,
                            "size_min", option("size_min")->fallback, "size_max", option("size_max")->fallback,
                            "start_s", kernel.start_s, "op_ns", kernel.op_ns, "op_times", kernel.op_times ? kernel.op_times : "",
                            "params", params);
    json_dumpf(all, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(all);
}
