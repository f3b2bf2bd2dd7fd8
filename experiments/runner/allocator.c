/* What the loader makes of an allocator's library on this machine. */
#include "buildid.h"
#include "child.h"
#include "linked.h"
#include "registry.h"

#include <ctype.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PROBE_TIMEOUT_MS 20000
#define PROBE_BYTES_MAX  (1 << 20)

/* AK_LIBRARY_<NAME> or NULL. */
static const char * override(struct arena *a, const char *name)
{
    char *variable = arena_printf(a, "AK_LIBRARY_%s", name);
    for (char *c = variable; *c; c++)
        *c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

static bool same_file(const char *x, const char *y)
{
    struct stat one, other;
    return stat(x, &one) == 0 && stat(y, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* The loader's own words: "ERROR: ld.so: object 'x' from LD_PRELOAD cannot be preloaded (WHY): ignored." */
static const char *loader_words(struct arena *a, const char *err)
{
    const char *start = strstr(err, "cannot be preloaded (");
    if (!start)
        return text_last_line(a, err, 300);
    start += strlen("cannot be preloaded (");
    const char *end = strstr(start, "): ignored");
    char *words = arena_strndup(a, start, end ? (size_t)(end - start) : strcspn(start, "\n"));
    text_one_line(words);
    return words;
}

/* Of the C library's versions that the loader missed the newest; NULL where it missed none. */
static const char *version_missed(struct arena *a, const char *err)
{
    static const char missed[] = "version `GLIBC_";
    const char *newest = NULL;
    for (const char *at = err; (at = strstr(at, missed));) {
        at += strlen(missed);
        const char *version = arena_strndup(a, at, strcspn(at, "'"));
        if (!newest || strverscmp(version, newest) > 0)
            newest = version;
    }
    return newest;
}

/* Which of the objects that the loader mapped is the one asked for: by file for a path, else by name. */
static char *mapped_object(struct arena *a, const char *listing, const char *library)
{
    while (*listing) {
        size_t length = strcspn(listing, "\n");
        char *object = arena_strndup(a, listing, length);
        bool is_it =
            strchr(library, '/') ? same_file(object, library) : strcmp(path_name(object), library) == 0;
        if (is_it && *object == '/')
            return object;
        listing += length + (listing[length] == '\n');
    }
    return NULL;
}

/* LD_PRELOAD separates by blanks and colons and has no quoting: a path with such is given relative to the
 * folder that the kernel starts in. */
static bool set_preload(struct arena *a, struct allocator *al, const char *path)
{
    al->preload = path;
    al->directory = NULL;
    if (!strpbrk(path, ": \t\n"))
        return true;
    al->directory = path_folder(a, path);
    al->preload = arena_printf(a, "./%s", path_name(path));
    return !strpbrk(path_name(path), ": \t\n");
}

static bool run_where(const struct paths *paths, struct arena *a, const struct allocator *al,
                      struct child_outcome *outcome, struct fault *f)
{
    const char *argv[] = {paths->launcher, "--where", NULL};
    struct child_request request = {.argv = argv,
                                    .env = child_environment_with(a, &al->env),
                                    .preload = al->preload,
                                    .directory = al->directory,
                                    .timeout_ms = PROBE_TIMEOUT_MS,
                                    .out_max = PROBE_BYTES_MAX,
                                    .interrupts_max = 1};
    return child_run(paths->launcher, &request, outcome, f);
}

/* $ORIGIN in the variables is the folder that the library really lies in. */
static void set_origin(struct arena *a, struct allocator *al, const char *library)
{
    static const char origin[] = "$ORIGIN";
    const char *real = path_real(a, library);
    for (size_t i = 0; real && i < al->env.count; i++) {
        const char *at = strstr(al->env.word[i], origin);
        if (at)
            al->env.word[i] = arena_printf(a, "%.*s%s%s", (int)(at - al->env.word[i]), al->env.word[i],
                                           path_folder(a, real), at + strlen(origin));
    }
}

static bool resolve_libc(struct arena *a, const struct paths *paths, struct allocator *al, struct fault *f)
{
    struct child_outcome outcome;
    al->preload = "";
    al->expect = "libc";
    if (!run_where(paths, a, al, &outcome, f))
        return false;
    char *object = mapped_object(a, outcome.out.data, "libc.so.6");
    al->real = object ? path_real(a, object) : NULL;
    al->found = al->real != NULL;
    if (!al->found)
        al->reason = "no libc.so.6 among the objects of a program";
    child_outcome_free(&outcome);
    return true;
}

static bool resolve_library(struct arena *a, const struct paths *paths, struct allocator *al,
                            const char *library, struct fault *f)
{
    const char *own = arena_printf(a, "%s/%s", paths->libraries, library);
    if (!strchr(library, '/') && path_is_file(own))
        library = own;
    if (strchr(library, '/')) {
        const char *why = NULL;
        al->present = path_is_file(library);
        if (!al->present)
            why = errno == ENOENT ? "no such file" : strerror(errno ? errno : EINVAL);
        else
            elf_build_id(a, library, &why);
        if (why) {
            al->reason = arena_printf(a, "%s: %s", library, why);
            return true;
        }
    }
    size_t at;
    if (!text_is_utf8(library, strlen(library), &at)) {
        al->reason = arena_printf(a, "%s: the path is not UTF-8 (byte %zu), which results could not record",
                                  library, at + 1);
        return true;
    }
    if (!set_preload(a, al, library)) {
        al->reason = arena_printf(a, "%s: a blank or colon in the file's name, which LD_PRELOAD cannot carry",
                                  library);
        return true;
    }
    set_origin(a, al, library);
    struct child_outcome outcome;
    if (!run_where(paths, a, al, &outcome, f))
        return false;
    char *object =
        outcome.end == CHILD_EXITED && outcome.code == 0 ? mapped_object(a, outcome.out.data, library) : NULL;
    if (!object && outcome.end == CHILD_EXITED && outcome.code == 0 && al->directory &&
        strstr(outcome.out.data, al->preload))
        object = arena_strdup(a, library); /* mapped under its relative name */
    if (object && set_preload(a, al, object)) {
        al->real = path_real(a, object);
        al->expect = al->real;
        al->found = al->real != NULL;
        set_origin(a, al, object);
    }
    if (!al->found) {
        const char *words = loader_words(a, outcome.err.data);
        const char *version = version_missed(a, outcome.err.data);
        bool ran = outcome.end == CHILD_EXITED && outcome.code == 0;
        al->reason =
            arena_printf(a, "%s cannot be loaded: %s%s%s", library, *words ? words : "the loader left it out",
                         ran ? "" : "; a program with it: ", ran ? "" : child_end_words(a, &outcome));
        if (version)
            al->reason =
                arena_printf(a, "needs GLIBC_%s, this system has %s", version, gnu_get_libc_version());
    }
    child_outcome_free(&outcome);
    return true;
}

bool allocator_resolve(struct arena *a, const struct paths *paths, struct allocator *al, struct fault *f)
{
    const char *instead = override(a, al->name);
    const char *library = instead ? instead : al->library;
    al->named |= instead != NULL;
    if (instead && strchr(instead, '/'))
        library = path_absolute(a, instead);
    al->found = al->present = false;
    if (linked_is(al)) {
        linked_resolve(a, paths, al, instead ? library : al->linked);
        return true;
    }
    if (!*library ? !resolve_libc(a, paths, al, f) : !resolve_library(a, paths, al, library, f))
        return false;
    if (!al->found)
        return true;
    const char *why;
    const char *id = elf_build_id(a, al->real, &why);
    al->build_id = id ? id : "";
    al->stamp = file_stamp(a, al->real);
    return true;
}

/* As the kernel printed it. */
static const char *member(struct arena *a, const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    if (!value)
        value = json_object_get(json_object_get(json, "row"), key);
    return json_string_value(value) ? arena_strdup(a, json_string_value(value)) : "";
}

bool allocator_probe(struct arena *a, const struct paths *paths, const char *probe_kernel,
                     struct allocator *al, struct fault *f)
{
    const struct linked_program *program = linked_probe(al, probe_kernel);
    const char *path = program ? program->path : al->real;
    const char *argv[] = {program ? path : probe_kernel,
                          "--probe",
                          "--json",
                          "--expect",
                          *al->expect ? al->expect : path,
                          "--version-call",
                          *al->version_call ? al->version_call : "file",
                          NULL};
    struct child_request request = {.argv = argv,
                                    .env = child_environment_with(a, &al->env),
                                    .preload = al->preload,
                                    .directory = al->directory,
                                    .timeout_ms = PROBE_TIMEOUT_MS,
                                    .out_max = PROBE_BYTES_MAX,
                                    .interrupts_max = 1};
    struct child_outcome outcome;
    if (!child_run(paths->launcher, &request, &outcome, f))
        return false;
    json_t *json = json_loadb(outcome.out.data, outcome.out.length, 0, NULL);
    if (json_is_object(json) && outcome.end == CHILD_EXITED) {
        al->version = text_clean(a, member(a, json, "allocator_version"));
        al->machine_id = text_clean(a, member(a, json, "machine_id"));
        const char *trouble = text_clean(a, member(a, json, "trouble"));
        const char *detail = text_clean(a, member(a, json, "status_detail"));
        const char *served = member(a, json, "allocator_path");
        al->trouble = *trouble ? trouble : detail;
        if (!*al->trouble && strcmp(served, path) != 0)
            al->trouble = arena_printf(a, "malloc is served by %s", served);
        if (!*al->trouble && outcome.code != 0)
            al->trouble = arena_printf(a, "the probe ended with exit status %d", outcome.code);
    } else {
        const char *last = text_last_line(a, outcome.err.data, 300);
        al->trouble =
            arena_printf(a, "the probe ended: %s%s%s", child_end_words(a, &outcome), *last ? ": " : "", last);
    }
    json_decref(json);
    child_outcome_free(&outcome);
    return true;
}

const char *allocator_changed(struct arena *a, const struct allocator *al, const char *kernel)
{
    if (linked_is(al))
        return linked_changed(a, al, kernel);
    const char *why, *id = elf_build_id(a, al->real, &why);
    if (!id)
        return arena_printf(a, "%s: %s", al->real, why);
    if (strcmp(id, al->build_id) != 0)
        return arena_printf(a, "%s is another build than when the run began", al->real);
    if (!*id && strcmp(file_stamp(a, al->real), al->stamp) != 0)
        return arena_printf(a, "%s, which has no build-id, is another file than when the run began",
                            al->real);
    return NULL;
}
