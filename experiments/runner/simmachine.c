#include "simmachine.h"
#include "inifile.h"
#include "simulator/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a file may say. `member` as in the text form; of a cache it is the section. */
static const struct {
    const char *section, *key, *member;
    bool size;     /* with suffixes */
    bool optional; /* with one node */
} keys[] = {
    {"machine", "nodes", "nodes", false, false},
    {"machine", "cores_per_node", "cores_per_node", false, false},
    {"machine", "mhz", "mhz", false, false},
    {"l1", "size", NULL, true, false},
    {"l1", "ways", NULL, false, false},
    {"l1", "latency", NULL, false, false},
    {"l2", "size", NULL, true, false},
    {"l2", "ways", NULL, false, false},
    {"l2", "latency", NULL, false, false},
    {"l3", "size", NULL, true, false},
    {"l3", "ways", NULL, false, false},
    {"l3", "latency", NULL, false, false},
    {"cache", "local", "cache_local", false, false},
    {"cache", "remote", "cache_remote", false, true},
    {"memory", "local", "memory_local", false, false},
    {"memory", "remote", "memory_remote", false, true},
};
#define KEYS (sizeof keys / sizeof *keys)

struct reading {
    struct arena *arena;
    const struct ini_file *file;
    struct machine machine;
    struct fault *fault;
};

struct words simmachine_names(struct arena *a, const struct paths *paths)
{
    return names_in(a, arena_printf(a, "%s/machines", paths->experiments), ".ini");
}

const char *simmachine_locate(struct arena *a, const struct paths *paths, const char *folder,
                              const char *name)
{
    struct words names = simmachine_names(a, paths);
    if (words_have(&names, name))
        return arena_printf(a, "%s/machines/%s.ini", paths->experiments, name);
    const char *path = *name == '/' ? name : arena_printf(a, "%s/%s", folder, name);
    return path_is_file(path) ? arena_strdup(a, path) : NULL;
}

static unsigned section_line(const struct ini_file *file, const char *name)
{
    for (size_t i = 0; i < file->sections; i++)
        if (strcmp(file->section[i].name, name) == 0)
            return file->section[i].line;
    return 0;
}

/* Sections and keys known; what is no number of a machine: [machine] what and line. */
static bool check_names(const struct reading *r)
{
    const struct ini_file *file = r->file;
    struct words sections = {0}, *in;
    for (size_t k = 0; k < KEYS; k++)
        if (!words_have(&sections, keys[k].section))
            words_add(r->arena, &sections, keys[k].section);
    for (size_t i = 0; i < file->sections; i++)
        if (!words_have(&sections, file->section[i].name))
            return fault_at(r->fault, file->path, file->section[i].line, "section [%s]%s",
                            file->section[i].name, nearest_hint(r->arena, file->section[i].name, &sections));
    for (size_t i = 0; i < file->entries; i++) {
        const struct ini_entry *e = &file->entry[i];
        in = &(struct words){0};
        for (size_t k = 0; k < KEYS; k++)
            if (strcmp(keys[k].section, e->section) == 0)
                words_add(r->arena, in, keys[k].key);
        if (strcmp(e->section, "machine") == 0) {
            words_add(r->arena, in, "what");
            words_add(r->arena, in, "line");
        }
        if (!*e->section)
            return fault_at(r->fault, file->path, e->line,
                            "'%s' before any section, expected [machine] first", e->name);
        if (!words_have(in, e->name))
            return fault_at(r->fault, file->path, e->line, "'%s' in [%s]%s", e->name, e->section,
                            nearest_hint(r->arena, e->name, in));
    }
    return true;
}

/* The number of a key; 0 where it may be missing and is. */
static bool take_number(const struct reading *r, size_t k, uint64_t *number)
{
    const struct ini_entry *e = inifile_find(r->file, keys[k].section, keys[k].key);
    unsigned line = section_line(r->file, keys[k].section);
    *number = 0;
    if (!e)
        return (keys[k].optional && r->machine.nodes == 1) ||
               fault_at(r->fault, r->file->path, line, "no '%s' in [%s], expected %s = NUMBER", keys[k].key,
                        keys[k].section, keys[k].key);
    return text_uint(e->value, keys[k].size ? 1024 : 0, number) ||
           fault_at(r->fault, r->file->path, e->line, "%s = '%s', expected a whole number%s", e->name,
                    e->value, keys[k].size ? ", with K or M where wanted" : "");
}

/* One word of the text form, from key `k` on; *k moves on. */
static bool take_member(struct reading *r, size_t *k)
{
    uint64_t number[3] = {0};
    const char *section = keys[*k].section, *word;
    char why[MACHINE_WHY_MAX];
    unsigned line = section_line(r->file, section);
    if (keys[*k].member) {
        const struct ini_entry *e = inifile_find(r->file, section, keys[*k].key);
        if (!take_number(r, *k, &number[0]))
            return false;
        word = arena_printf(r->arena, "%s=%" PRIu64, keys[*k].member, number[0]);
        line = e ? e->line : line;
        *k += 1;
    } else {
        bool none = strcmp(section, "l2") == 0 && !line;
        for (size_t i = 0; i < 3 && !none; i++)
            if (!take_number(r, *k + i, &number[i]))
                return false;
        word = arena_printf(r->arena, "%s=%" PRIu64 ":%" PRIu64 ":%" PRIu64, section, number[0], number[1],
                            number[2]);
        *k += 3;
    }
    return machine_set(&r->machine, word, why) || fault_at(r->fault, r->file->path, line, "%s", why);
}

/* Where a member that cannot be stands: a cache's section, or the key's line. */
static unsigned member_line(const struct ini_file *file, const char *member)
{
    for (size_t k = 0; k < KEYS; k++) {
        if (!keys[k].member && strcmp(keys[k].section, member) == 0)
            return section_line(file, member);
        const struct ini_entry *e = inifile_find(file, keys[k].section, keys[k].key);
        if (keys[k].member && strcmp(keys[k].member, member) == 0)
            return e ? e->line : section_line(file, keys[k].section);
    }
    return 0;
}

static bool check_line_size(const struct reading *r)
{
    const struct ini_entry *line = inifile_find(r->file, "machine", "line");
    uint64_t bytes = 0;
    return !line || (text_uint(line->value, 0, &bytes) && bytes == MACHINE_LINE) ||
           fault_at(r->fault, r->file->path, line->line,
                    "line = %s, expected %d: lines of another size are not modelled", line->value,
                    MACHINE_LINE);
}

static bool take_machine(struct reading *r)
{
    char why[MACHINE_WHY_MAX];
    const char *key;
    for (size_t k = 0; k < KEYS;)
        if (!take_member(r, &k))
            return false;
    return machine_check(&r->machine, &key, why) ||
           fault_at(r->fault, r->file->path, member_line(r->file, key), "%s: %s", key, why);
}

static const char *machine_name(struct arena *a, const char *path)
{
    const char *base = path_name(path);
    size_t length = strlen(base);
    return arena_strndup(a, base, length - (length > 4 && strcmp(base + length - 4, ".ini") == 0 ? 4 : 0));
}

struct simmachine *simmachine_read(struct arena *a, const char *path, struct fault *f)
{
    struct ini_file file;
    struct reading r = {.arena = a, .file = &file, .fault = f};
    if (!inifile_read(a, path, &file, f) || !check_names(&r) || !check_line_size(&r) || !take_machine(&r))
        return NULL;
    char words[MACHINE_TEXT_MAX];
    machine_text(&r.machine, ',', words);
    const char *name = machine_name(a, path);
    if (*name == '.') { /* also a folder's name, of the machine's ROOT */
        fault_at(f, path, 0, "the name begins with '.', expected a letter or a digit first");
        return NULL;
    }
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c <= ' ' || strchr("\"',=", *c)) {
            fault_at(f, path, 0, "the name holds '%c', expected a name without blanks, quotes, ',' or '='",
                     *c);
            return NULL;
        }
    const struct ini_entry *what = inifile_find(&file, "machine", "what");
    struct simmachine *m = arena_alloc(a, sizeof *m);
    *m = (struct simmachine){.name = name,
                             .path = file.path,
                             .what = what ? what->value : "",
                             .words = arena_strdup(a, words),
                             .nodes = r.machine.nodes,
                             .cores_per_node = r.machine.cores_per_node,
                             .cores = machine_cores(&r.machine)};
    return m;
}
