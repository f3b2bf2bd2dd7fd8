#include "meta.h"
#include "buildid.h"
#include "child.h"
#include "inifile.h"
#include "linked.h"

#include <gnu/libc-version.h>
#include <hwloc.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define META_BYTES_MAX ((size_t)16 << 20)

char *time_stamp(struct arena *a)
{
    char text[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return arena_strdup(a, text);
}

const char *meta_text(const json_t *meta, const char *key)
{
    const char *text = json_string_value(json_object_get(meta, key));
    return text ? text : "";
}

bool meta_kernel_is(const json_t *meta, const char *kernel, const char *flag)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(meta, "kernels"), i, entry)
    {
        if (strcmp(meta_text(entry, "name"), kernel) == 0)
            return json_is_true(json_object_get(entry, flag));
    }
    return false;
}

static json_t *text_or_null(const char *text)
{
    json_t *json = text && *text ? json_string(text) : json_null();
    return json ? json : json_string("(not UTF-8)");
}

static json_t *words_list(const struct words *words)
{
    json_t *list = json_array();
    for (size_t i = 0; i < words->count; i++) {
        json_t *text = json_string(words->word[i]);
        json_array_append_new(list, text ? text : json_string("(not UTF-8)"));
    }
    return list;
}

/* The file's stamp where no build-id tells builds apart. */
static json_t *file_or_null(const char *build_id, const char *stamp)
{
    return build_id && !*build_id ? text_or_null(stamp) : json_null();
}

/* ---- other programs ---- */

static json_t *tools(struct arena *a, const struct paths *paths)
{
    static const char *const names[] = {"Rscript", "gnuplot", "pdflatex", "qemu-x86_64"};
    json_t *list = json_object();
    json_object_set_new(list, "compiler", json_string(__VERSION__));
    json_object_set_new(list, "glibc", json_string(gnu_get_libc_version()));
    json_object_set_new(list, "hwloc", json_sprintf("%x", hwloc_get_api_version()));
    json_object_set_new(list, "jansson", json_string(jansson_version_str()));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *program = program_find(a, names[i]);
        const char *argv[] = {program, "--version", NULL};
        json_object_set_new(list, names[i],
                            text_or_null(program ? child_line(a, paths->launcher, argv) : NULL));
    }
    return list;
}

static json_t *suite(struct arena *a, const struct paths *paths)
{
    json_t *s =
        json_pack("{s:s, s:n, s:n, s:n}", "version", SUITE_VERSION, "git_commit", "git_dirty", "git_reason");
    const char *git = program_find(a, "git"), *why = NULL;
    if (!paths->root)
        why = "installed, not run from a source tree";
    else if (!git)
        why = "no git on PATH";
    else {
        const char *head[] = {git, "-C", paths->root, "rev-parse", "HEAD", NULL};
        const char *status[] = {git, "-C", paths->root, "status", "--porcelain", "--untracked-files=no",
                                NULL};
        const char *commit = child_line(a, paths->launcher, head);
        if (commit) {
            json_object_set_new(s, "git_commit", json_string(commit));
            const char *changed = child_line(a, paths->launcher, status);
            json_object_set_new(s, "git_dirty", changed ? json_boolean(*changed) : json_null());
        } else
            why = "the source tree is no git checkout that this user may read";
    }
    if (why)
        json_object_set_new(s, "git_reason", json_string(why));
    return s;
}

/* ---- the run ---- */

static json_t *command_line(char **command)
{
    json_t *list = json_array();
    for (; *command; command++) {
        json_t *word = json_string(*command);
        json_array_append_new(list, word ? word : json_string("(not UTF-8)"));
    }
    return list;
}

/* The static programs of an allocator that is linked in, by kernel; `path` is then their folder. */
static json_t *programs_meta(const struct allocator *al)
{
    json_t *programs = json_object();
    for (size_t i = 0; i < al->programs; i++)
        json_object_set_new(programs, al->program[i].kernel, json_string(al->program[i].build_id));
    return programs;
}

static json_t *allocator_meta(struct arena *a, const struct registry *r, const struct allocator *al)
{
    json_t *m = json_object();
    json_object_set_new(m, "name", json_string(al->name));
    json_object_set_new(m, "label", json_string(al->label));
    json_object_set_new(m, "colour", json_integer((json_int_t)al->colour));
    json_object_set_new(m, "order", json_integer((json_int_t)registry_index(r, al) + 1));
    json_object_set_new(m, "what", text_or_null(al->what));
    json_object_set_new(m, "library", text_or_null(al->library));
    json_object_set_new(m, "required", json_boolean(al->required));
    json_object_set_new(m, "frees", json_boolean(al->frees));
    json_object_set_new(m, "found", json_boolean(al->found));
    json_object_set_new(m, "reason", text_or_null(al->found ? al->trouble : al->reason));
    json_object_set_new(m, "path", text_or_null(al->real ? text_clean(a, al->real) : NULL));
    json_object_set_new(m, "build_id", text_or_null(al->build_id));
    json_object_set_new(m, "file", file_or_null(al->build_id, al->stamp));
    json_object_set_new(m, "version", text_or_null(al->version));
    json_object_set_new(m, "env", words_list(&al->env));
    if (linked_is(al))
        json_object_set_new(m, "programs", programs_meta(al));
    return m;
}

static json_t *start_meta(struct arena *a, char **command)
{
    return json_pack("{s:s, s:o, s:i}", "at", time_stamp(a), "command_line", command_line(command), "pid",
                     (int)getpid());
}

static json_t *kernels_meta(const struct plan *plan)
{
    json_t *list = json_array();
    const struct kernel_info *last = NULL;
    for (size_t i = 0; i < plan->blocks; i++) {
        const struct kernel_info *k = plan->block[i].kernel;
        if (k != last)
            json_array_append_new(
                list,
                json_pack("{s:s, s:s, s:s, s:b, s:b, s:b, s:o, s:o, s:o}", "name", k->name, "what", k->what,
                          "op", *k->op ? k->op : "one malloc/free cycle", "no_alloc", (int)k->no_alloc, "app",
                          (int)k->app, "timed", (int)k->timed, "path", text_or_null(k->path), "build_id",
                          text_or_null(k->build_id), "file", file_or_null(k->build_id, k->stamp)));
        last = k;
    }
    return list;
}

/* The simulator and its machines; null where no row is simulated. */
static json_t *simulator_meta(struct arena *a, const struct plan *plan, const struct simulator *s)
{
    const char *why;
    if (!plan->machines)
        return json_null();
    json_t *machines = json_array();
    for (size_t i = 0; i < plan->machines; i++) {
        const struct simmachine *m = plan->machine[i];
        json_array_append_new(machines, json_pack("{s:s, s:o, s:s, s:s}", "name", m->name, "what",
                                                  text_or_null(m->what), "path", text_clean(a, m->path),
                                                  "words", m->words));
    }
    const char *id = elf_build_id(a, s->plugin, &why);
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "qemu", text_clean(a, s->qemu), "qemu_version", s->version,
                     "plugin", text_or_null(text_clean(a, s->plugin)), "plugin_build_id", text_or_null(id),
                     "machines", machines);
}

/* When it began and its seed, for people to read; and some digits, since two runs may begin in one second. */
static const char *new_run_id(struct arena *a, const char *machine_id, uint64_t seed)
{
    char when[32];
    struct timespec now;
    struct tm utc;
    pid_t pid = getpid();
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", gmtime_r(&now.tv_sec, &utc));
    uint64_t tag = hash_bytes(hash_text(HASH_START, machine_id), &now, sizeof now);
    tag = hash_mix(hash_bytes(tag, &pid, sizeof pid));
    return arena_printf(a, "%s-%" PRIu64 "-%08" PRIx32, when, seed, (uint32_t)tag);
}

json_t *meta_make(struct arena *a, const struct paths *paths, const struct plan *plan,
                  const struct simulator *simulator, const struct registry *registry,
                  const struct machine *machine, char **command, struct fault *f)
{
    json_t *meta = json_object(), *allocators = json_array();
    struct words kept = {0};
    char *now = time_stamp(a);
    child_environment(a, &kept);
    const char *machine_id = "";
    for (size_t i = 0; i < registry->count; i++) {
        const struct allocator *al = &registry->allocator[i];
        if (!words_have(&plan->allocators, al->name))
            continue;
        json_array_append_new(allocators, allocator_meta(a, registry, al));
        machine_id = *machine_id ? machine_id : al->machine_id;
    }
    json_object_set_new(meta, "schema", json_integer(META_SCHEMA));
    json_object_set_new(meta, "run_id", json_string(new_run_id(a, machine_id, plan->seed)));
    json_object_set_new(meta, "sweep", json_string(plan->sweep->name));
    json_object_set_new(meta, "sweep_text", json_stringn(plan->sweep->text, plan->sweep->length));
    json_object_set_new(meta, "preset", json_string(plan->sweep->preset));
    json_object_set_new(meta, "seed", json_integer((json_int_t)plan->seed));
    json_object_set_new(meta, "reps", json_integer((json_int_t)plan->reps));
    json_object_set_new(meta, "warmup", json_integer((json_int_t)plan->warmups));
    json_object_set_new(meta, "planned_rows", json_integer((json_int_t)plan->rows));
    json_object_set_new(meta, "stopping", stopping_json(&plan->stopping));
    json_object_set_new(meta, "begun_at", json_string(now));
    json_object_set_new(meta, "finished_at", json_null());
    json_object_set_new(meta, "command_line", command_line(command));
    json_object_set_new(meta, "starts", json_pack("[o]", start_meta(a, command)));
    json_object_set_new(meta, "machine_id", text_or_null(machine_id));
    json_object_set(meta, "machine", machine->facts);
    json_object_set(meta, "machine_unknown", machine->unknown);
    json_object_set_new(meta, "allocators", allocators);
    json_object_set_new(meta, "kernels", kernels_meta(plan));
    json_object_set_new(meta, "simulator", simulator_meta(a, plan, simulator));
    json_object_set_new(meta, "environment", words_list(&kept));
    json_object_set_new(meta, "suite", suite(a, paths));
    json_object_set_new(meta, "tools", tools(a, paths));
    if (child_interrupts) {
        fault_set(f, AK_FAILED, "interrupted before the first launch");
        json_decref(meta);
        return NULL;
    }
    return meta;
}

json_t *meta_read(struct arena *a, const char *folder, struct fault *f)
{
    const char *path = arena_printf(a, "%s/meta.json", folder);
    size_t length;
    char *text = file_read(a, path, META_BYTES_MAX, &length, f);
    json_error_t error;
    if (!text)
        return NULL;
    json_t *meta = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(meta) && json_integer_value(json_object_get(meta, "schema")) == META_SCHEMA)
        return meta;
    if (meta)
        fault_at(f, path, 0, "not of a results folder, expected an object with schema %d", META_SCHEMA);
    else
        fault_at(f, path, error.line > 0 ? (unsigned)error.line : 0, "%s, expected JSON", error.text);
    json_decref(meta);
    return NULL;
}

static bool same_text(const json_t *meta, const char *key, const char *now, struct fault *f)
{
    const char *then = meta_text(meta, key);
    return strcmp(then, now) == 0 ||
           fault_set(f, AK_USAGE,
                     "the folder's run has %s '%s', now it is '%s'; resume with what it began with", key,
                     then, now);
}

static bool same_number(const json_t *meta, const char *key, uint64_t now, struct fault *f)
{
    json_int_t then = json_integer_value(json_object_get(meta, key));
    return (uint64_t)then == now || fault_set(f, AK_USAGE,
                                              "the folder's run has %s %" JSON_INTEGER_FORMAT
                                              ", now it is %" PRIu64 "; resume with what it began with",
                                              key, then, now);
}

/* The file is the one whose stamp was recorded, if any was. */
static bool same_file(const json_t *then, const char *name, const char *now, struct fault *f)
{
    const char *stamp = meta_text(then, "file");
    return !*stamp || strcmp(stamp, now) == 0 ||
           fault_set(f, AK_USAGE,
                     "%s has no build-id and is another file (%s) than when the folder's run began (%s)",
                     name, now, stamp);
}

/* One that was not there when the run began stays missing. */
static bool same_programs(const json_t *then, struct allocator *al, struct fault *f)
{
    const json_t *programs = json_object_get(then, "programs");
    for (size_t i = 0; i < al->programs; i++) {
        struct linked_program *program = &al->program[i];
        const json_t *id = json_object_get(programs, program->kernel);
        if (!id)
            program->trouble = "it was missing when the run began";
        else if (strcmp(json_string_value(id) ? json_string_value(id) : "", program->build_id) != 0)
            return fault_set(f, AK_USAGE, "%s has build-id %s, the folder's run began with %s", program->path,
                             *program->build_id ? program->build_id : "(none)", json_string_value(id));
    }
    return true;
}

static bool same_allocator(struct arena *a, const json_t *then, const struct registry *registry,
                           struct fault *f)
{
    struct allocator *al = registry_find(registry, meta_text(then, "name"));
    if (!al || !al->found)
        return true; /* gone: its rows will be skipped */
    if (!json_is_true(json_object_get(then, "found"))) {
        al->found = false;
        al->reason = arena_printf(a, "it was missing when the run began: %s", meta_text(then, "reason"));
        return true;
    }
    if (strcmp(meta_text(then, "build_id"), al->build_id) != 0 ||
        strcmp(meta_text(then, "path"), text_clean(a, al->real)) != 0)
        return fault_set(f, AK_USAGE,
                         "%s is now %s (build-id %s), the folder's run began with %s (build-id %s)", al->name,
                         al->real, al->build_id, meta_text(then, "path"), meta_text(then, "build_id"));
    if (!same_programs(then, al, f))
        return false;
    json_t *env = words_list(&al->env), *env_then = json_object_get(then, "env");
    bool same_env = !env_then || json_equal(env, env_then);
    json_decref(env);
    if (!same_env)
        return fault_set(f, AK_USAGE,
                         "env of %s is not what it was when the folder's run began; begin a new run",
                         al->name);
    return *al->build_id || linked_is(al) || same_file(then, al->name, al->stamp, f);
}

/* Another build of a kernel measures another thing: rows of both must not stand in one folder. */
static bool same_kernels(const json_t *meta, const struct plan *plan, struct fault *f)
{
    size_t i;
    json_t *then;
    json_array_foreach(json_object_get(meta, "kernels"), i, then)
    {
        const char *name = meta_text(then, "name"), *id = meta_text(then, "build_id");
        for (size_t b = 0; b < plan->blocks; b++) {
            const struct kernel_info *k = plan->block[b].kernel;
            if (strcmp(k->name, name) != 0)
                continue;
            if (*id && strcmp(id, k->build_id) != 0)
                return fault_set(
                    f, AK_USAGE,
                    "kernel %s (%s) has build-id %s, the folder's run began with %s; put that build "
                    "back, or begin a new run",
                    name, k->path, *k->build_id ? k->build_id : "(none)", id);
            if (!*id && !same_file(then, name, k->stamp, f))
                return false;
            break;
        }
    }
    return true;
}

/* Another simulator or another machine counts other things. */
static bool same_simulator(struct arena *a, const json_t *meta, const struct plan *plan,
                           const struct simulator *s, struct fault *f)
{
    static const char *const builds[] = {"qemu_version", "plugin_build_id"};
    const json_t *then = json_object_get(meta, "simulator");
    json_t *now = simulator_meta(a, plan, s);
    bool same = true;
    for (size_t i = 0;
         i < sizeof builds / sizeof *builds && same && json_is_object(then) && json_is_object(now); i++)
        same = strcmp(meta_text(then, builds[i]), meta_text(now, builds[i])) == 0 ||
               fault_set(f, AK_USAGE,
                         "the simulator has %s '%s', the folder's run began with '%s'; begin a new run",
                         builds[i], meta_text(now, builds[i]), meta_text(then, builds[i]));
    size_t i;
    json_t *machine;
    json_array_foreach(json_object_get(then, "machines"), i,
                       machine) for (size_t m = 0; m < plan->machines && same; m++) same =
        strcmp(meta_text(machine, "name"), plan->machine[m]->name) != 0 ||
        strcmp(meta_text(machine, "words"), plan->machine[m]->words) == 0 ||
        fault_at(f, plan->machine[m]->path, 0,
                 "the machine is not what it was when the folder's run began; begin a new run");
    json_decref(now);
    return same;
}

bool meta_continue(struct arena *a, json_t *meta, const struct plan *plan, const struct simulator *simulator,
                   const struct registry *registry, char **command, struct fault *f)
{
    if (!same_text(meta, "sweep", plan->sweep->name, f) ||
        !same_text(meta, "preset", plan->sweep->preset, f) || !same_number(meta, "seed", plan->seed, f) ||
        !same_number(meta, "reps", plan->reps, f) || !same_number(meta, "planned_rows", plan->rows, f) ||
        !same_number(meta, "warmup", plan->warmups, f) || !same_kernels(meta, plan, f) ||
        !same_simulator(a, meta, plan, simulator, f))
        return false;
    json_t *stopping = stopping_json(&plan->stopping), *stopping_then = json_object_get(meta, "stopping");
    const bool same_stopping =
        json_equal(stopping, stopping_then) || (!stopping_then && json_is_null(stopping));
    json_decref(stopping);
    if (!same_stopping)
        return fault_set(f, AK_USAGE,
                         "the folder's run was begun with another ci_width, reps or max_reps; resume with "
                         "what it began with");
    size_t i;
    json_t *then;
    const char *machine_id = meta_text(meta, "machine_id");
    json_array_foreach(json_object_get(meta, "allocators"), i,
                       then) if (!same_allocator(a, then, registry, f)) return false;
    for (i = 0; i < registry->count; i++) {
        const char *now = registry->allocator[i].machine_id;
        if (*machine_id && *now && strcmp(machine_id, now) != 0)
            return fault_set(f, AK_USAGE,
                             "the folder's run was begun on machine %s, this is %s; merge runs, not rows",
                             machine_id, now);
    }
    json_array_append_new(json_object_get(meta, "starts"), start_meta(a, command));
    json_object_set_new(meta, "finished_at", json_null());
    return true;
}
