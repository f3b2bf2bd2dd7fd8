#include "registry.h"
#include "inifile.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define COLOURS 8

static const char *const keys[] = {"label", "colour", "library", "version", "metadata", "required", "kernels",
                                   "frees", "env",    "what",    "get",     "parts",    "compare",  "linked"};

struct allocator *registry_find(const struct registry *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->allocator[i].name, name) == 0)
            return &r->allocator[i];
    return NULL;
}

size_t registry_index(const struct registry *r, const struct allocator *allocator)
{
    return (size_t)(allocator - r->allocator);
}

static struct allocator *add(struct arena *a, struct registry *r, const char *name)
{
    struct allocator *old = registry_find(r, name);
    if (!old) {
        r->allocator = arena_grow(a, r->allocator, r->count, sizeof *r->allocator);
        old = &r->allocator[r->count++];
        words_add(a, &r->names, arena_strdup(a, name));
    }
    *old = (struct allocator){.name = arena_strdup(a, name),
                              .label = arena_strdup(a, name),
                              .library = "",
                              .linked = "",
                              .version_call = "",
                              .metadata_call = "",
                              .what = "",
                              .get = "",
                              .colour = 1 + (r->count - 1) % COLOURS,
                              .frees = true,
                              .compare = true,
                              .file = "",
                              .reason = "",
                              .preload = "",
                              .real = "",
                              .expect = "",
                              .build_id = "",
                              .version = "",
                              .trouble = "",
                              .machine_id = ""};
    return old;
}

static bool name_is_good(const char *name)
{
    if (!isalpha((unsigned char)*name))
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("-_.", *name))
            return false;
    return true;
}

static bool yes_or_no(const char *path, const struct ini_entry *e, bool *value, struct fault *f)
{
    *value = strcmp(e->value, "yes") == 0;
    return *value || strcmp(e->value, "no") == 0 ||
           fault_at(f, path, e->line, "%s = '%s', expected yes or no", e->name, e->value);
}

/* KIND:SYMBOL of one of the kinds (NULL-terminated), with a symbol. */
static bool call_is_good(const char *how, const char *const *kinds)
{
    for (; *kinds; kinds++) {
        size_t length = strlen(*kinds);
        if (strncmp(how, *kinds, length) == 0 && how[length] == ':' && how[length + 1])
            return true;
    }
    return false;
}

static const char *const version_calls[] = {"string", "hundreds", "mallctl", "tc", "text", NULL};
static const char *const metadata_calls[] = {"stat", "mallctl", NULL};

/* NAME=VALUE. The preloaded library is the allocator itself, and not to be set here. */
static bool variable_is_good(const char *text)
{
    size_t length = strcspn(text, "=");
    for (size_t i = 0; i < length; i++)
        if (!isalpha((unsigned char)text[i]) && text[i] != '_' &&
            (i == 0 || !isdigit((unsigned char)text[i])))
            return false;
    return length > 0 && text[length] == '=' && strncmp(text, "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0;
}

/* A relative path is relative to the registry's folder; a plain name stays one. */
static const char *in_folder_of(struct arena *a, const char *path, const char *name)
{
    return !strchr(name, '/') || *name == '/'
               ? name
               : arena_printf(a, "%s/%s", path_folder(a, path_absolute(a, path)), name);
}

static bool take(struct arena *a, const char *path, const struct ini_entry *e, struct allocator *al,
                 struct fault *f)
{
    if (strcmp(e->name, "library") != 0 && strcmp(e->name, "version") != 0 && !*e->value)
        return fault_at(f, path, e->line, "%s is empty, expected a value", e->name);
    if (strcmp(e->name, "label") == 0)
        al->label = e->value;
    else if (strcmp(e->name, "what") == 0)
        al->what = e->value;
    else if (strcmp(e->name, "get") == 0)
        al->get = e->value;
    else if (strcmp(e->name, "library") == 0)
        al->library = in_folder_of(a, path, e->value);
    else if (strcmp(e->name, "version") == 0) {
        al->version_call = e->value;
        return !*e->value || strcmp(e->value, "file") == 0 || call_is_good(e->value, version_calls) ||
               fault_at(f, path, e->line,
                        "version = '%s', expected string:SYMBOL, hundreds:SYMBOL, mallctl:NAME, tc:SYMBOL, "
                        "text:SYMBOL or file",
                        e->value);
    } else if (strcmp(e->name, "metadata") == 0) {
        al->metadata_call = e->value;
        return call_is_good(e->value, metadata_calls) ||
               fault_at(f, path, e->line, "metadata = '%s', expected stat:SYMBOL or mallctl:NAME", e->value);
    } else if (strcmp(e->name, "colour") == 0)
        return (text_uint(e->value, 0, &al->colour) && al->colour >= 1 && al->colour <= COLOURS) ||
               fault_at(f, path, e->line, "colour = '%s', expected a number from 1 to %d", e->value, COLOURS);
    else if (strcmp(e->name, "required") == 0)
        return yes_or_no(path, e, &al->required, f);
    else if (strcmp(e->name, "frees") == 0)
        return yes_or_no(path, e, &al->frees, f);
    else if (strcmp(e->name, "linked") == 0)
        al->linked = in_folder_of(a, path, e->value);
    else if (strcmp(e->name, "compare") == 0)
        return yes_or_no(path, e, &al->compare, f);
    else if (strcmp(e->name, "kernels") == 0) {
        al->kernels = text_list(a, e->value);
        al->kernels_line = e->line;
        return !words_have(&al->kernels, "") ||
               fault_at(f, path, e->line, "empty item in '%s', expected names separated by commas", e->value);
    } else if (strcmp(e->name, "parts") == 0) {
        al->parts = text_list(a, e->value);
        return !words_have(&al->parts, "") ||
               fault_at(f, path, e->line, "empty item in '%s', expected sonames separated by commas",
                        e->value);
    } else if (strcmp(e->name, "env") == 0) {
        al->env = text_list(a, e->value);
        for (size_t i = 0; i < al->env.count; i++)
            if (!variable_is_good(al->env.word[i]))
                return fault_at(f, path, e->line, "env = '%s', expected NAME=VALUE, NAME not LD_PRELOAD",
                                al->env.word[i]);
    } else {
        struct words known = {0};
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            words_add(a, &known, keys[i]);
        return fault_at(f, path, e->line, "unknown key '%s'%s", e->name, nearest_hint(a, e->name, &known));
    }
    return true;
}

bool registry_read(struct arena *a, const char *path, struct registry *r, struct fault *f)
{
    struct ini_file file;
    if (!inifile_read(a, path, &file, f))
        return false;
    for (size_t i = 0; i < file.entries; i++)
        if (!*file.entry[i].section)
            return fault_at(f, path, file.entry[i].line,
                            "'%s' before any section, expected [allocator] first", file.entry[i].name);
    if (!file.sections)
        return fault_at(f, path, 0, "no section, expected one for each allocator");
    for (size_t s = 0; s < file.sections; s++) {
        const struct ini_section *section = &file.section[s];
        if (!name_is_good(section->name))
            return fault_at(f, path, section->line,
                            "allocator '%s', expected a letter, then letters, digits, '-', '_' or '.'",
                            section->name);
        struct allocator *al = add(a, r, section->name);
        al->file = file.path;
        al->line = section->line;
        for (size_t i = 0; i < file.entries; i++)
            if (strcmp(file.entry[i].section, section->name) == 0 && !take(a, path, &file.entry[i], al, f))
                return false;
        al->compare &= !*al->linked; /* it cannot be preloaded */
    }
    return true;
}

bool registry_check(struct arena *a, const struct registry *r, const struct words *kernels, struct fault *f)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct allocator *al = &r->allocator[i];
        for (size_t k = 0; k < al->kernels.count; k++)
            if (!words_have(kernels, al->kernels.word[k]))
                return fault_at(f, al->file, al->kernels_line, "unknown kernel '%s'%s", al->kernels.word[k],
                                nearest_hint(a, al->kernels.word[k], kernels));
    }
    return true;
}

bool registry_add_library(struct arena *a, struct registry *r, const char *name, const char *library,
                          struct fault *f)
{
    if (!name_is_good(name) || !*library)
        return fault_set(f, AK_USAGE,
                         "allocator '%s=%s', expected NAME=LIBRARY, NAME of letters, digits, '-', '_', '.'",
                         name, library);
    struct allocator *al = add(a, r, name);
    al->named = true;
    al->what = "named on the command line";
    al->version_call = "file";
    if (path_is_folder(library)) {
        al->linked = path_absolute(a, library);
        al->compare = false;
        al->library = "(as linked)";
        return true;
    }
    al->library = strchr(library, '/') || path_is_file(library) ? path_absolute(a, library) : library;
    return true;
}

bool allocator_runs_in(const struct allocator *al, const struct kernel_info *kernel)
{
    return !al->kernels.count || words_have(&al->kernels, kernel->name);
}
