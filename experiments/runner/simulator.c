#include "simulator.h"
#include "child.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

#define QEMU           "qemu-x86_64"
#define QEMU_SUPPORTED "7.2"
#define NO_FILE        "/dev/null"
#define PERSONALITY    0xffffffffu /* asks, changes nothing */

/* What a machine's ROOT holds; FILE is in the folder of its kind. */
#define CPUS  "sys/devices/system/cpu"
#define NODES "sys/devices/system/node"
static const char *const cpu_files[] = {"online", "possible", "present"};
static const char *const node_files[] = {"online", "possible", "has_cpu", "has_memory", "has_normal_memory"};

/* ---- what is needed ---- */

/* "qemu-x86_64 version 7.2.22 (Debian ...)" */
static bool qemu_is_supported(struct arena *a, struct simulator *s, const char *line)
{
    static const char mark[] = " version ";
    const char *version = line ? strstr(line, mark) : NULL;
    if (!version) {
        s->why = arena_printf(a, "%s --version does not tell its version", s->qemu);
        return false;
    }
    version += strlen(mark);
    s->version = arena_strndup(a, version, strcspn(version, " ("));
    size_t length = strlen(QEMU_SUPPORTED);
    if (strncmp(s->version, QEMU_SUPPORTED, length) == 0 &&
        (s->version[length] == '.' || !s->version[length]))
        return true;
    s->why = arena_printf(
        a, "%s is QEMU %s, whose interface for plugins is not known here; supported is %s (Debian 12)",
        s->qemu, s->version, QEMU_SUPPORTED);
    return false;
}

static const char *missing(struct arena *a, const struct paths *paths, struct simulator *s)
{
#if !defined(__x86_64__)
    return "kernels are programs of another processor here, and only those of x86-64 can be simulated";
#endif
    int before = personality(PERSONALITY);
    if (!path_is_file(s->plugin))
        return arena_printf(a, "%s is not built: run make", s->plugin);
    if (!path_is_file(arena_printf(a, "%s/sim.so", paths->counters)))
        return arena_printf(a, "%s/sim.so is not built: run make", paths->counters);
    if (!*s->qemu)
        return QEMU " is not on PATH: apt install qemu-user";
    if (before == -1 || personality((unsigned)before | ADDR_NO_RANDOMIZE) == -1)
        return arena_printf(
            a,
            "addresses cannot be made the same in every run (personality: %s), as in containers: allow "
            "it in the seccomp profile",
            strerror(errno));
    personality((unsigned)before);
    return NULL;
}

void simulator_find(struct arena *a, const struct paths *paths, struct simulator *s)
{
    const char *qemu = program_find(a, QEMU);
    *s = (struct simulator){.why = "", .qemu = qemu ? qemu : "", .version = "", .plugin = paths->simulator};
    const char *why = missing(a, paths, s);
    const char *argv[] = {s->qemu, "--version", NULL};
    if (why)
        s->why = why;
    else
        s->can = qemu_is_supported(a, s, child_line(a, paths->launcher, argv));
}

struct survey {
    struct simulator simulator;
    void (*visit)(const char *, const char *, bool, const char *, void *);
    void *user;
};

static void pass_on(const char *name, const char *what, bool can, const char *why, void *user)
{
    const struct survey *s = user;
    if (strcmp(name, "sim") == 0)
        s->visit(name, what, s->simulator.can, s->simulator.why, s->user);
    else
        s->visit(name, what, can, why, s->user);
}

void simulator_survey(struct arena *a, const struct paths *paths,
                      void (*visit)(const char *name, const char *what, bool can, const char *why,
                                    void *user),
                      void *user)
{
    struct survey survey = {.visit = visit, .user = user};
    simulator_find(a, paths, &survey.simulator);
    counters_survey(pass_on, &survey);
}

/* ---- what the kernel sees of the machine ---- */

/* The file ROOT/FOLDER/NAME; makes the folders above. */
static bool put_file(struct arena *a, const char *root, const char *folder, const char *name,
                     const char *text)
{
    char *path = arena_printf(a, "%s/%s/%s", root, folder, name);
    for (char *slash = path + strlen(root); (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made)
            return false;
    }
    FILE *file = fopen(path, "we");
    bool good = file && fputs(text, file) >= 0;
    return file && fclose(file) == 0 && good;
}

static char *list_text(struct arena *a, unsigned first, unsigned count)
{
    return count > 1 ? arena_printf(a, "%u-%u\n", first, first + count - 1) : arena_printf(a, "%u\n", first);
}

/* The kernel's own view of CPUs and nodes, as far as C libraries and allocators look. */
static bool make_root(struct arena *a, const char *root, const struct simmachine *m)
{
    bool good = mkdir(root, 0755) == 0;
    for (size_t i = 0; i < sizeof cpu_files / sizeof *cpu_files && good; i++)
        good = put_file(a, root, CPUS, cpu_files[i], list_text(a, 0, m->cores));
    for (size_t i = 0; i < sizeof node_files / sizeof *node_files && good; i++)
        good = put_file(a, root, NODES, node_files[i], list_text(a, 0, m->nodes));
    for (unsigned n = 0; n < m->nodes && good; n++)
        good = put_file(a, root, arena_printf(a, NODES "/node%u", n), "cpulist",
                        list_text(a, n * m->cores_per_node, m->cores_per_node));
    return good;
}

bool simulator_roots_make(struct arena *a, struct simulator *s, const struct plan *plan, struct fault *f)
{
    const char *folder = getenv("TMPDIR");
    if (!plan->machines)
        return true;
    folder = folder && *folder ? path_absolute(a, folder) : "/tmp";
    s->roots = arena_printf(a, "%s/ak-sim-XXXXXX", folder);
    if (!mkdtemp(s->roots)) {
        fault_set(f, AK_ENVIRONMENT, "%s: %s; TMPDIR names another folder for temporary files", s->roots,
                  strerror(errno));
        s->roots = NULL;
        return false;
    }
    for (size_t i = 0; i < plan->machines; i++)
        if (!make_root(a, arena_printf(a, "%s/%s", s->roots, plan->machine[i]->name), plan->machine[i])) {
            fault_set(f, AK_ENVIRONMENT, "%s: %s", s->roots, strerror(errno));
            simulator_roots_remove(s, plan);
            return false;
        }
    return true;
}

/* A folder of our own making, with all that is in it. */
static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char below[4096];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int length = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof below || unlink(below) == 0)
            continue;
        remove_folder(below);
    }
    if (folder)
        closedir(folder);
    rmdir(path);
}

void simulator_roots_remove(struct simulator *s, const struct plan *plan)
{
    if (s->roots && plan->machines)
        remove_folder(s->roots);
    s->roots = NULL;
}

void simulator_variables(struct arena *a, const struct simmachine *m, struct words *env)
{
    words_add(a, env,
              arena_printf(a, "HWLOC_SYNTHETIC=Package:%u [NUMANode] L3Cache:1 Core:%u PU:1", m->nodes,
                           m->cores_per_node));
    words_add(a, env, "HWLOC_THISSYSTEM=1"); /* bind, and ask where threads may run, all the same */
}

/* ---- the command ---- */

/* QEMU splits options at commas; a doubled one stands for itself. */
static char *without_commas(struct arena *a, const char *text)
{
    char *out = arena_alloc(a, 2 * strlen(text) + 1), *to = out;
    for (; *text; text++) {
        if (*text == ',')
            *to++ = ',';
        *to++ = *text;
    }
    *to = '\0';
    return out;
}

/* -E splits at commas too, and knows no way around that. */
static bool add_variable(struct arena *a, struct words *argv, const char *variable, const char **why)
{
    if (strchr(variable, ',')) {
        *why = arena_printf(a, "%s: a comma, which QEMU's -E cannot carry", variable);
        return false;
    }
    words_add(a, argv, "-E");
    words_add(a, argv, variable);
    return true;
}

const char **simulator_command(struct arena *a, const struct simulator *s, const struct planned *p,
                               const char *const *kernel, const char *preload, char *const *env,
                               char ***qemu_env, const char **why)
{
    const struct block *b = p->block;
    struct words argv = {0}, kept = {0};
    words_add(a, &argv, s->qemu);
    words_add(a, &argv, "-L");
    words_add(a, &argv, s->roots ? arena_printf(a, "%s/%s", s->roots, b->machine->name) : "ROOT");
    words_add(a, &argv, "-seed");
    words_add(a, &argv, arena_printf(a, "%" PRIu64, p->seed));
    words_add(a, &argv, "-plugin");
    const char *watch = s->watch ? s->watch : NO_FILE;
    words_add(a, &argv,
              arena_printf(a, "file=%s,%s,mode=%s,quantum=%s,seed=%" PRIu64 "%s%s",
                           without_commas(a, s->plugin), b->machine->words, block_option(b, "sim_mode"),
                           block_option(b, "sim_quantum"), p->seed, b->kernel->watched ? ",watch=" : "",
                           b->kernel->watched ? without_commas(a, watch) : ""));
    if (!add_variable(a, &argv, arena_printf(a, "LD_PRELOAD=%s", preload), why))
        return NULL;
    for (; *env; env++)
        if (strncmp(*env, "LD_", strlen("LD_")) != 0)
            words_add(a, &kept, *env);
        else if (!add_variable(a, &argv, *env, why))
            return NULL;
    for (; *kernel; kernel++)
        words_add(a, &argv, *kernel);
    words_add(a, &argv, NULL);
    words_add(a, &kept, NULL);
    *qemu_env = (char **)(uintptr_t)kept.word;
    return argv.word;
}
