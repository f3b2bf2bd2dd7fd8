#include "sweep.h"
#include "inifile.h"
#include "simulator/quantum.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPS_MAX        1000000000000u
#define SIZE_MAX_BYTES (1u << 30)

/* Ranges are those of docs/kernel-interface.md; the kernel checks again. */
static const struct sweep_key runner_keys[] = {
    {"what", KEY_TEXT, false, 0, 0, 0, NULL},
    {"kernel", KEY_NAMES, true, 0, 0, 0, NULL},
    {"allocators", KEY_NAMES, true, 0, 0, 0, NULL},
    {"variant", KEY_NAMES, true, 0, 0, 0, NULL},
    {"threads", KEY_NUMBER, true, 0, 1, 4096, NULL},
    {"reps", KEY_NUMBER, false, 0, 1, 100000, NULL},
    {"ci_width", KEY_SHARE, false, 0, 0, 0, NULL},
    {"max_reps", KEY_NUMBER, false, 0, 1, 100000, NULL},
    {"warmup", KEY_NUMBER, false, 0, 0, 1000, NULL},
    {"profile", KEY_WORD, true, 0, 0, 0, "yes|no"},
    {"seed", KEY_NUMBER, false, 0, 0, INT64_MAX, NULL},
    {"timeout", KEY_NUMBER, false, 0, 1, 604800, NULL},
    {"ops", KEY_NUMBER, true, 1000, 1, OPS_MAX, NULL},
    {"ops_total", KEY_NUMBER, true, 1000, 1, OPS_MAX, NULL},
    {"size", KEY_NUMBER, true, 1024, 1, SIZE_MAX_BYTES, NULL},
    {"size_min", KEY_NUMBER, false, 1024, 1, SIZE_MAX_BYTES, NULL},
    {"size_max", KEY_NUMBER, false, 1024, 1, SIZE_MAX_BYTES, NULL},
    {"size_dist", KEY_WORD, false, 0, 0, 0, "loguniform|uniform|fixed|file:*"},
    {"placement", KEY_WORD, true, 0, 0, 0, "compact|scatter|none|node:#"},
    {"numa", KEY_WORD, true, 0, 0, 0, "local|interleave|bind:#"},
    {"passes", KEY_WORD, true, 0, 0, 0, "throughput|batch|latency|memory"},
    {"lat_ops", KEY_NUMBER, false, 1000, 0, OPS_MAX, NULL},
    {"lat_gap", KEY_NUMBER, false, 0, 1, 1000000, NULL},
    {"mem_steps", KEY_NUMBER, false, 0, 1, 100000, NULL},
    {"mem_idle_ms", KEY_NUMBER, false, 0, 0, 3600000, NULL},
    {"settle_ms", KEY_NUMBER, false, 0, 0, 3600000, NULL},
    {"counters", KEY_WORD, false, 0, 0, 0, "auto|papi|likwid|perf|sim|none"},
    {"machine", KEY_FILES, true, 0, 0, 0, NULL},
    {"sim_mode", KEY_WORD, true, 0, 0, 0, "weave|timed"},
    {"sim_quantum", KEY_NUMBER, true, 1000, 1, QUANTUM_MAX, NULL},
};
#define RUNNER_KEYS (sizeof runner_keys / sizeof *runner_keys)

const struct sweep_key *sweep_key(const char *name)
{
    for (size_t i = 0; i < RUNNER_KEYS; i++)
        if (strcmp(runner_keys[i].name, name) == 0)
            return &runner_keys[i];
    return NULL;
}

struct sweep_key sweep_key_of(struct arena *a, const struct kernel_param *p)
{
    struct sweep_key key = {p->name, p->type == VALUE_WORD ? KEY_WORD : KEY_NUMBER,
                            true,    p->type == VALUE_SIZE ? 1024 : 1000,
                            p->min,  p->max,
                            NULL};
    for (size_t i = 0; i < p->words.count; i++)
        key.words = arena_printf(a, "%s%s%s", key.words ? key.words : "", i ? "|" : "", p->words.word[i]);
    return key;
}

bool setting_fault(struct fault *f, const struct setting *s, const char *format, ...)
{
    char what[FAULT_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (s->file)
        return fault_at(f, s->file, s->line, "%s", what);
    char option[64];
    snprintf(option, sizeof option, "%.*s", (int)strcspn(s->key, " "), s->key);
    for (char *c = option; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return fault_set(f, AK_USAGE, "--%s: %.900s", option, what);
}

/* ---- finding files ---- */

struct words sweep_names(struct arena *a, const struct paths *paths)
{
    return names_in(a, paths->experiments, ".sweep");
}

struct words sweep_presets(struct arena *a, const struct paths *paths)
{
    return names_in(a, arena_printf(a, "%s/presets", paths->experiments), ".ini");
}

const char *sweep_locate(struct arena *a, const struct paths *paths, const char *name, struct fault *f)
{
    struct words names = sweep_names(a, paths);
    if (words_have(&names, name))
        return arena_printf(a, "%s/%s.sweep", paths->experiments, name);
    if (path_is_file(name))
        return arena_strdup(a, name);
    if (strchr(name, '/') || strstr(name, ".sweep"))
        fault_at(f, name, 0, "%s, expected a sweep file",
                 path_is_folder(name) ? "is a folder" : "no such file");
    else
        fault_set(f, AK_USAGE, "unknown sweep '%s'%s", name, nearest_hint(a, name, &names));
    return NULL;
}

/* ---- reading ---- */

static void add(struct arena *a, struct sweep *s, struct setting setting)
{
    s->setting = arena_grow(a, s->setting, s->settings, sizeof *s->setting);
    s->setting[s->settings++] = setting;
}

/* "kernel.key" apart; a plain key has no kernel. */
static void add_entry(struct arena *a, struct sweep *s, enum level level, const char *file,
                      const struct ini_entry *e, bool chosen)
{
    const char *dot = strchr(e->name, '.');
    add(a, s,
        (struct setting){.level = level,
                         .kernel = dot ? arena_strndup(a, e->name, (size_t)(dot - e->name)) : NULL,
                         .key = dot ? dot + 1 : e->name,
                         .value = e->value,
                         .file = file,
                         .line = e->line,
                         .chosen = chosen});
}

static bool read_preset_file(struct arena *a, const struct paths *paths, struct sweep *s, struct fault *f)
{
    const char *path = arena_printf(a, "%s/presets/%s.ini", paths->experiments, s->preset);
    struct ini_file file;
    if (!inifile_read(a, path, &file, f))
        return false;
    if (file.sections)
        return fault_at(f, path, file.section[0].line, "section [%s] in a preset, expected keys only",
                        file.section[0].name);
    for (size_t i = 0; i < file.entries; i++)
        add_entry(a, s, LEVEL_PRESET_FILE, file.path, &file.entry[i], true);
    return true;
}

/* The file's name without folder and suffix; it stands in the results. */
static bool name_from(struct arena *a, struct sweep *s, struct fault *f)
{
    const char *base = path_name(s->path), *dot = strrchr(base, '.');
    char *name = arena_strndup(a, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
    size_t at;
    s->name = name;
    if (!text_is_utf8(name, strlen(name), &at))
        return fault_at(f, s->path, 0, "the name is not UTF-8 (byte %zu), expected UTF-8, which results are",
                        at + 1);
    for (; *name; name++)
        if ((unsigned char)*name <= ' ' || strchr("\"',=", *name))
            return fault_at(f, s->path, 0,
                            "the name holds '%c', expected a name without blanks, quotes, ',' or '='", *name);
    return true;
}

bool sweep_read(struct arena *a, const struct paths *paths, const char *path, const char *preset,
                struct sweep *s, struct fault *f)
{
    *s = (struct sweep){.path = path, .preset = preset, .what = "", .presets = sweep_presets(a, paths)};
    if (!words_have(&s->presets, preset))
        return fault_set(f, AK_USAGE, "unknown preset '%s'%s", preset, nearest_hint(a, preset, &s->presets));
    struct ini_file file;
    if (!name_from(a, s, f) || !inifile_read(a, path, &file, f) || !read_preset_file(a, paths, s, f))
        return false;
    s->text = file.text;
    s->length = file.length;
    for (size_t i = 0; i < file.sections; i++)
        if (!words_have(&s->presets, file.section[i].name))
            return fault_at(f, path, file.section[i].line, "section [%s] is no preset%s",
                            file.section[i].name, nearest_hint(a, file.section[i].name, &s->presets));
    for (size_t i = 0; i < file.entries; i++) {
        const struct ini_entry *e = &file.entry[i];
        bool base = !*e->section;
        add_entry(a, s, base ? LEVEL_BASE : LEVEL_SECTION, file.path, e,
                  base || strcmp(e->section, preset) == 0);
        if (base && strcmp(e->name, "what") == 0)
            s->what = e->value;
    }
    return true;
}

void sweep_override(struct arena *a, struct sweep *s, const char *key, const char *value)
{
    add(a, s, (struct setting){.level = LEVEL_COMMAND_LINE, .key = key, .value = value, .chosen = true});
}

/* ---- asking ---- */

/* Higher wins: the command line, then the sweep's settings (for one kernel first), then the preset's file. */
static int rank(const struct setting *s)
{
    switch (s->level) {
    case LEVEL_COMMAND_LINE:
        return 7;
    case LEVEL_SECTION:
        return s->kernel ? 6 : 4;
    case LEVEL_BASE:
        return s->kernel ? 5 : 3;
    case LEVEL_PRESET_FILE:
        break;
    }
    return s->kernel ? 2 : 1;
}

const struct setting *sweep_get(const struct sweep *s, const char *kernel, const char *key)
{
    const struct setting *best = NULL;
    for (size_t i = 0; i < s->settings; i++) {
        const struct setting *one = &s->setting[i];
        if (!one->chosen || strcmp(one->key, key) != 0)
            continue;
        if (one->kernel && (!kernel || strcmp(one->kernel, kernel) != 0))
            continue;
        if (!best || rank(one) > rank(best))
            best = one;
    }
    return best;
}

struct words sweep_kernels(struct arena *a, const struct sweep *s)
{
    const struct setting *kernel = sweep_get(s, NULL, "kernel");
    return kernel ? text_list(a, kernel->value) : (struct words){0};
}

/* True if `word` fits one of the patterns "a|node:#|file:*". */
static bool word_fits(struct arena *a, const char *patterns, const char *word)
{
    char *rest = arena_strdup(a, patterns), *pattern;
    while ((pattern = strsep(&rest, "|"))) {
        size_t fixed = strcspn(pattern, "#*");
        uint64_t number;
        if (strncmp(pattern, word, fixed) != 0)
            continue;
        if (pattern[fixed] == '#'   ? text_uint(word + fixed, 0, &number) && number < 4096
            : pattern[fixed] == '*' ? word[fixed] != '\0'
                                    : word[fixed] == '\0')
            return true;
    }
    return false;
}

static const char *words_text(struct arena *a, const char *patterns)
{
    char *text = arena_strdup(a, patterns);
    struct words list = {0};
    char *rest = text, *word;
    while ((word = strsep(&rest, "|")))
        words_add(a, &list, word);
    const char *all = "";
    for (size_t i = 0; i < list.count; i++)
        all = arena_printf(a, "%s%s%s", all, i ? ", " : "", list.word[i]);
    return all;
}

/* Decimal digits with at most one point, above 0 and up to 1. */
static bool is_share(const char *text)
{
    const char *point = strchr(text, '.');
    const double value = strtod(text, NULL);
    return isdigit((unsigned char)*text) && strspn(text, "0123456789.") == strlen(text) &&
           (!point || !strchr(point + 1, '.')) && value > 0 && value <= 1;
}

static bool check_value(struct arena *a, const struct setting *s, const struct sweep_key *key,
                        const char **value, struct fault *f)
{
    uint64_t number;
    if (!**value)
        return setting_fault(f, s, "%s has an empty %s, expected %s", s->key, key->list ? "item" : "value",
                             key->list ? "items separated by commas" : "a value");
    switch (key->kind) {
    case KEY_NUMBER:
        if (!text_uint(*value, key->kilo, &number) || number < key->min || number > key->max)
            return setting_fault(f, s, "%s = '%s', expected a whole number from %" PRIu64 " to %" PRIu64 "%s",
                                 s->key, *value, key->min, key->max, key->kilo ? " (suffixes K, M, G)" : "");
        *value = arena_printf(a, "%" PRIu64, number);
        return true;
    case KEY_SHARE:
        if (!is_share(*value))
            return setting_fault(f, s, "%s = '%s', expected a share above 0 and up to 1, like 0.05", s->key,
                                 *value);
        return true;
    case KEY_WORD:
        if (key->words && !word_fits(a, key->words, *value)) {
            char *rest = arena_strdup(a, key->words), *word;
            struct words known = {0};
            while ((word = strsep(&rest, "|")))
                words_add(a, &known, word);
            return setting_fault(
                f, s, "%s = '%s', expected one of %s%s", s->key, *value, words_text(a, key->words),
                strstr(nearest_hint(a, *value, &known), "mean") ? nearest_hint(a, *value, &known) : "");
        }
        return true;
    case KEY_TEXT:
    case KEY_NAMES:
    case KEY_FILES:
        break;
    }
    return true;
}

const char *setting_folder(struct arena *a, const struct setting *s)
{
    return s->file ? path_folder(a, path_absolute(a, s->file)) : ".";
}

static bool is_one_file(struct arena *a, const struct setting *s)
{
    return path_is_file(*s->value == '/' ? s->value
                                         : arena_printf(a, "%s/%s", setting_folder(a, s), s->value));
}

bool setting_values(struct arena *a, const struct setting *s, const struct sweep_key *key,
                    struct words *values, struct fault *f)
{
    bool loose = s->level == LEVEL_COMMAND_LINE;
    *values = (struct words){0};
    if (!key->list || (key->kind == KEY_FILES && is_one_file(a, s)))
        words_add(a, values, s->value);
    else
        *values = loose ? text_list_loose(a, s->value) : text_list(a, s->value);
    if (!values->count)
        return setting_fault(f, s, "%s is empty, expected at least one value", s->key);
    for (size_t i = 0; i < values->count; i++) {
        if (!key->list && key->kind != KEY_TEXT && strchr(values->word[i], ','))
            return setting_fault(f, s, "%s = '%s', expected one value, not a list", s->key, values->word[i]);
        if (!check_value(a, s, key, &values->word[i], f))
            return false;
        for (size_t j = 0; j < i; j++)
            if (strcmp(values->word[j], values->word[i]) == 0)
                return setting_fault(f, s, "%s lists %s twice, expected each value once", s->key,
                                     values->word[i]);
    }
    return true;
}

/* ---- checking ---- */

struct check {
    struct arena *arena;
    const struct sweep *sweep;
    const struct kernels *kernels;
    const struct registry *registry;
    struct words used; /* kernels of any preset of the sweep */
    struct fault *fault;
};

static bool check_kernels(struct check *c, const struct setting *s)
{
    struct words names;
    if (!setting_values(c->arena, s, sweep_key("kernel"), &names, c->fault))
        return false;
    for (size_t i = 0; i < names.count; i++) {
        const struct kernel_info *k = kernels_find(c->kernels, names.word[i]);
        if (!k)
            return setting_fault(c->fault, s, "unknown kernel '%s'%s", names.word[i],
                                 nearest_hint(c->arena, names.word[i], &c->kernels->names));
        if (k->trouble)
            return fault_set(c->fault, AK_ENVIRONMENT, "kernel %s (%s) cannot be used: %s", k->name, k->path,
                             k->trouble);
        if (!words_have(&c->used, k->name))
            words_add(c->arena, &c->used, k->name);
    }
    return true;
}

static bool check_allocators(struct check *c, const struct setting *s)
{
    struct words names;
    if (!setting_values(c->arena, s, sweep_key("allocators"), &names, c->fault))
        return false;
    for (size_t i = 0; i < names.count; i++)
        if (!registry_find(c->registry, names.word[i]))
            return setting_fault(c->fault, s, "unknown allocator '%s'%s", names.word[i],
                                 nearest_hint(c->arena, names.word[i], &c->registry->names));
    return true;
}

/* Kernels that a setting is about: the one it names, else the sweep's (a preset file: all). */
static bool concerns(const struct check *c, const struct setting *s, const struct kernel_info *k)
{
    if (s->kernel)
        return strcmp(s->kernel, k->name) == 0;
    return s->level == LEVEL_PRESET_FILE || words_have(&c->used, k->name);
}

/* Every variant must be of at least one of the kernels. */
static bool check_variants(struct check *c, const struct setting *s)
{
    struct words names, known = {0};
    if (!setting_values(c->arena, s, sweep_key("variant"), &names, c->fault))
        return false;
    for (size_t i = 0; i < c->kernels->count; i++) {
        const struct kernel_info *k = &c->kernels->kernel[i];
        for (size_t v = 0; concerns(c, s, k) && v < k->variants.count; v++)
            if (!words_have(&known, k->variants.word[v]))
                words_add(c->arena, &known, k->variants.word[v]);
    }
    for (size_t i = 0; i < names.count; i++)
        if (!words_have(&known, names.word[i]))
            return setting_fault(c->fault, s, "unknown variant '%s'%s", names.word[i],
                                 nearest_hint(c->arena, names.word[i], &known));
    return true;
}

/* A kernel's parameter: known to at least one kernel, and admissible for each that has it. */
static bool check_param(struct check *c, const struct setting *s, bool *known)
{
    for (size_t i = 0; i < c->kernels->count; i++) {
        const struct kernel_info *k = &c->kernels->kernel[i];
        const struct kernel_param *p = kernel_param(k, s->key);
        struct words values;
        if (!p || !concerns(c, s, k))
            continue;
        struct sweep_key key = sweep_key_of(c->arena, p);
        *known = true;
        if (!setting_values(c->arena, s, &key, &values, c->fault))
            return false;
    }
    return true;
}

static bool unknown_key(struct check *c, const struct setting *s)
{
    struct words known = {0};
    for (size_t i = 0; i < RUNNER_KEYS; i++)
        words_add(c->arena, &known, runner_keys[i].name);
    for (size_t i = 0; i < c->kernels->count; i++) {
        const struct kernel_info *k = &c->kernels->kernel[i];
        for (size_t p = 0; concerns(c, s, k) && p < k->params; p++)
            if (!words_have(&known, k->param[p].name))
                words_add(c->arena, &known, k->param[p].name);
    }
    return setting_fault(c->fault, s, "unknown key '%s'%s", s->key, nearest_hint(c->arena, s->key, &known));
}

static bool takes_sizes(const struct check *c, const struct setting *s)
{
    for (size_t i = 0; i < c->kernels->count; i++)
        if (c->kernels->kernel[i].sizes && concerns(c, s, &c->kernels->kernel[i]))
            return true;
    return false;
}

/* Keys that no kernel has by itself. */
static bool is_of_all(const char *key)
{
    static const char *const keys[] = {"kernel", "what", "reps", "seed", "ci_width", "max_reps", "warmup"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

static bool check_setting(struct check *c, const struct setting *s)
{
    if (s->kernel && !words_have(&c->used, s->kernel)) {
        if (s->level == LEVEL_PRESET_FILE && kernels_find(c->kernels, s->kernel))
            return true;
        if (kernels_find(c->kernels, s->kernel))
            return setting_fault(c->fault, s, "'%s.%s', but %s is no kernel of this sweep", s->kernel, s->key,
                                 s->kernel);
        return setting_fault(c->fault, s, "unknown kernel '%s' before '.%s'%s", s->kernel, s->key,
                             nearest_hint(c->arena, s->kernel, &c->kernels->names));
    }
    const struct sweep_key *key = sweep_key(s->key);
    struct words values;
    bool known = false;
    if (!check_param(c, s, &known))
        return false;
    if (!key)
        return known || unknown_key(c, s);
    if (s->kernel && is_of_all(s->key))
        return setting_fault(c->fault, s, "'%s' for one kernel, expected it for the whole sweep", s->key);
    if (strcmp(s->key, "kernel") == 0)
        return true; /* checked first */
    if (strcmp(s->key, "allocators") == 0)
        return check_allocators(c, s);
    if (strcmp(s->key, "variant") == 0)
        return check_variants(c, s);
    if (known && strcmp(s->key, "size") == 0)
        return true; /* the kernel's own */
    if (!known && strncmp(s->key, "size", strlen("size")) == 0 && s->level != LEVEL_PRESET_FILE &&
        !takes_sizes(c, s))
        return setting_fault(c->fault, s, "'%s', but %s", s->key,
                             s->kernel ? "this kernel takes no sizes"
                                       : "no kernel of this sweep takes sizes");
    return setting_values(c->arena, s, key, &values, c->fault);
}

bool sweep_check(struct arena *a, const struct sweep *s, const struct kernels *kernels,
                 const struct registry *registry, struct fault *f)
{
    struct check c = {a, s, kernels, registry, {0}, f};
    static const char *const needed[] = {"kernel", "allocators"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!sweep_get(s, NULL, needed[i]))
            return fault_at(f, s->path, 0, "no '%s', expected %s = NAME, NAME, ...", needed[i], needed[i]);
    for (size_t i = 0; i < s->settings; i++)
        if (!s->setting[i].kernel && strcmp(s->setting[i].key, "kernel") == 0 &&
            !check_kernels(&c, &s->setting[i]))
            return false;
    for (size_t i = 0; i < s->settings; i++)
        if (!check_setting(&c, &s->setting[i]))
            return false;
    return true;
}
