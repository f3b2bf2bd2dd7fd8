#include "kernels.h"
#include "buildid.h"
#include "child.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DESCRIBE_TIMEOUT_MS   20000
#define DESCRIPTION_BYTES_MAX (1 << 20)

const struct kernel_info *kernels_find(const struct kernels *k, const char *name)
{
    for (size_t i = 0; i < k->count; i++)
        if (strcmp(k->kernel[i].name, name) == 0)
            return &k->kernel[i];
    return NULL;
}

const struct kernel_param *kernel_param(const struct kernel_info *k, const char *name)
{
    for (size_t i = 0; i < k->params; i++)
        if (strcmp(k->param[i].name, name) == 0)
            return &k->param[i];
    return NULL;
}

static const char *text_member(struct arena *a, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    char *line = arena_strdup(a, text ? text : "");
    text_one_line(line);
    return line;
}

static uint64_t bound(const json_t *object, const char *key, uint64_t otherwise)
{
    const json_t *number = json_object_get(object, key);
    if (json_is_integer(number) && json_integer_value(number) >= 0)
        return (uint64_t)json_integer_value(number);
    return otherwise;
}

/* Text such as "64K"; `otherwise` where there is none. */
static bool size_member(const json_t *object, const char *key, uint64_t otherwise, uint64_t *size)
{
    const char *text = json_string_value(json_object_get(object, key));
    *size = otherwise;
    return !text || text_uint(text, 1024, size);
}

/* "a|b|c" or ["a", "b", "c"]: descriptions may give either. */
static struct words word_choice(struct arena *a, const json_t *words)
{
    struct words list = {0};
    size_t i;
    json_t *word;
    json_array_foreach(words, i, word) if (json_string_value(word))
        words_add(a, &list, arena_strdup(a, json_string_value(word)));
    if (json_string_value(words)) {
        char *rest = arena_strdup(a, json_string_value(words)), *one;
        while ((one = strsep(&rest, "|")))
            words_add(a, &list, one);
    }
    return list;
}

static bool describe_param(struct arena *a, const json_t *json, struct kernel_param *p)
{
    const char *type = json_string_value(json_object_get(json, "type"));
    if (!type || !json_string_value(json_object_get(json, "name")))
        return false;
    p->name = text_member(a, json, "name");
    p->fallback = text_member(a, json, "default");
    p->unit = text_member(a, json, "unit");
    p->what = text_member(a, json, "what");
    p->type = strcmp(type, "size") == 0 ? VALUE_SIZE : strcmp(type, "word") == 0 ? VALUE_WORD : VALUE_INT;
    p->min = bound(json, "min", 0);
    p->max = bound(json, "max", UINT64_MAX);
    p->words = word_choice(a, json_object_get(json, "words"));
    return true;
}

bool kernel_description(struct arena *a, const char *text, size_t length, struct kernel_info *k)
{
    json_error_t error;
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(json)) {
        k->trouble =
            arena_printf(a, "--describe prints no JSON object: %s", json ? "other JSON" : error.text);
        json_decref(json);
        return false;
    }
    const char *name = json_string_value(json_object_get(json, "name"));
    if (!name || strcmp(name, k->name) != 0)
        k->trouble = arena_printf(a, "calls itself '%s'", name ? name : "");
    k->what = text_member(a, json, "what");
    k->op = text_member(a, json, "op");
    k->variants = word_choice(a, json_object_get(json, "variants"));
    k->min_threads = bound(json, "min_threads", 1);
    k->own_threads = json_is_true(json_object_get(json, "own_threads"));
    k->no_alloc = json_is_true(json_object_get(json, "no_alloc"));
    k->app = json_is_true(json_object_get(json, "app"));
    k->timed = json_is_true(json_object_get(json, "timed"));
    k->watched = json_is_true(json_object_get(json, "watched"));
    k->check = json_is_true(json_object_get(json, "check"));
    k->sizes = json_is_true(json_object_get(json, "sizes"));
    if (!size_member(json, "size_min", 16, &k->size_min) ||
        !size_member(json, "size_max", 65536, &k->size_max))
        k->trouble = "a size_min or size_max that is no size";
    k->start_s = json_number_value(json_object_get(json, "start_s"));
    k->op_ns = json_number_value(json_object_get(json, "op_ns"));
    k->op_times = text_member(a, json, "op_times");
    size_t i;
    json_t *param;
    json_array_foreach(json_object_get(json, "params"), i, param)
    {
        k->param = arena_grow(a, k->param, k->params, sizeof *k->param);
        if (describe_param(a, param, &k->param[k->params]))
            k->params++;
        else
            k->trouble = "a parameter without name or type";
    }
    json_decref(json);
    return !k->trouble;
}

static bool describe(struct arena *a, const struct paths *paths, struct kernel_info *k, struct fault *f)
{
    const char *argv[] = {k->path, "--describe", NULL};
    struct words kept = {0};
    struct child_request request = {.argv = argv,
                                    .env = child_environment(a, &kept),
                                    .timeout_ms = DESCRIBE_TIMEOUT_MS,
                                    .out_max = DESCRIPTION_BYTES_MAX,
                                    .interrupts_max = 1};
    struct child_outcome outcome;
    if (!child_run(paths->launcher, &request, &outcome, f))
        return false;
    if (outcome.end != CHILD_EXITED || outcome.code != 0)
        k->trouble = arena_printf(a, "--describe: %s %s", child_end_words(a, &outcome),
                                  text_last_line(a, outcome.err.data, 200));
    else
        kernel_description(a, outcome.out.data, outcome.out.length, k);
    child_outcome_free(&outcome);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct kernel_info *)a)->name, ((const struct kernel_info *)b)->name);
}

/* A kernel may be a script, which has no build-id. */
static void identify(struct arena *a, struct kernel_info *k)
{
    const char *why, *id = elf_build_id(a, k->path, &why);
    k->build_id = id ? id : "";
    k->stamp = file_stamp(a, k->path);
}

const char *kernel_changed(struct arena *a, const struct kernel_info *k)
{
    struct kernel_info now = {.path = k->path};
    identify(a, &now);
    if (!*now.stamp)
        return arena_printf(a, "kernel %s (%s) is gone", k->name, k->path);
    if (strcmp(now.build_id, k->build_id) != 0 || (!*now.build_id && strcmp(now.stamp, k->stamp) != 0))
        return arena_printf(a, "kernel %s (%s) is another build than when this start of the run began",
                            k->name, k->path);
    return NULL;
}

/* NAME.lacks stands where a kernel could not be built: it holds the packages that it takes. */
#define LACKS ".lacks"

static const char *lacks_words(struct arena *a, const char *path)
{
    char line[256] = "";
    FILE *file = fopen(path, "re");
    bool read = file && fgets(line, sizeof line, file);
    if (file)
        fclose(file);
    text_one_line(line);
    return arena_printf(a, "not built: it takes %s (make deps-apps, then make)", read ? line : "more packages");
}

bool kernels_read(struct arena *a, const struct paths *paths, struct kernels *kernels, struct fault *f)
{
    *kernels = (struct kernels){0};
    DIR *folder = opendir(paths->kernels);
    if (!folder)
        return fault_set(f, AK_ENVIRONMENT, "%s: %s; build the kernels (make)", paths->kernels,
                         strerror(errno));
    for (struct dirent *entry; (entry = readdir(folder));) {
        char *path = arena_printf(a, "%s/%s", paths->kernels, entry->d_name);
        char *name = arena_strdup(a, entry->d_name), *dot = strchr(name, '.');
        bool lacks = dot && strcmp(dot, LACKS) == 0;
        if (name[0] == '.' || (dot && !lacks) || !path_is_file(path) || (!lacks && access(path, X_OK) != 0))
            continue;
        kernels->kernel = arena_grow(a, kernels->kernel, kernels->count, sizeof *kernels->kernel);
        struct kernel_info *k = &kernels->kernel[kernels->count++];
        *k = (struct kernel_info){.name = name, .path = path, .what = "", .op = "", .op_times = ""};
        if (lacks) {
            *dot = '\0';
            k->trouble = lacks_words(a, path);
            k->build_id = k->stamp = "";
        } else {
            identify(a, k);
        }
    }
    closedir(folder);
    if (kernels->count)
        qsort(kernels->kernel, kernels->count, sizeof *kernels->kernel, by_name);
    for (size_t i = 0; i < kernels->count; i++) {
        if (!kernels->kernel[i].trouble && !describe(a, paths, &kernels->kernel[i], f))
            return false;
        words_add(a, &kernels->names, kernels->kernel[i].name);
    }
    return true;
}
