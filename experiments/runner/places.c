#include "places.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool path_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool path_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *path_absolute(struct arena *a, const char *path)
{
    char cwd[PATH_MAX];
    if (*path == '/' || !getcwd(cwd, sizeof cwd))
        return arena_strdup(a, path);
    while (path[0] == '.' && path[1] == '/')
        path += 2 + strspn(path + 2, "/");
    return arena_printf(a, "%s/%s", cwd, path);
}

char *path_real(struct arena *a, const char *path)
{
    char real[PATH_MAX];
    return realpath(path, real) ? arena_strdup(a, real) : NULL;
}

char *path_folder(struct arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return arena_strdup(a, ".");
    return slash == path ? arena_strdup(a, "/") : arena_strndup(a, path, (size_t)(slash - path));
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A source tree: the nearest folder above that holds the registry. */
static char *find_root(struct arena *a, const char *folder)
{
    char *up = arena_strdup(a, folder);
    while (strcmp(up, "/") != 0) {
        up = path_folder(a, up);
        if (path_is_file(arena_printf(a, "%s/allocators/registry.ini", up)))
            return up;
    }
    return NULL;
}

/* A build folder outside the tree: the build wrote the tree's path into BUILD/root. NULL if that leads nowhere. */
static char *recorded_root(struct arena *a, const char *build)
{
    char root[PATH_MAX] = "";
    FILE *file = fopen(arena_printf(a, "%s/root", build), "re");
    if (!file)
        return NULL;
    if (!fgets(root, sizeof root, file))
        *root = '\0';
    fclose(file);
    root[strcspn(root, "\n")] = '\0';
    return *root == '/' && path_is_file(arena_printf(a, "%s/allocators/registry.ini", root))
               ? arena_strdup(a, root)
               : NULL;
}

bool paths_find(struct arena *a, struct paths *p, struct fault *f)
{
    *p = (struct paths){0};
    char *program = path_real(a, "/proc/self/exe");
    if (!program)
        return fault_set(f, AK_ENVIRONMENT, "/proc/self/exe: %s; ak finds its parts from there",
                         strerror(errno));
    char *bin = path_folder(a, program), *prefix = path_folder(a, bin);
    p->program = program;
    p->launcher = arena_printf(a, "%s/ak-launch", bin);
    p->libraries = arena_printf(a, "%s/lib", prefix);
    p->kernels = arena_printf(a, "%s/lib/alloc-kernels/kernels", prefix);
    if (path_is_folder(p->kernels)) {
        p->counters = arena_printf(a, "%s/lib/alloc-kernels/counters", prefix);
        p->simulator = arena_printf(a, "%s/lib/alloc-kernels/simulator.so", prefix);
        p->linked = arena_printf(a, "%s/lib/alloc-kernels/musl", prefix);
        p->registry = arena_printf(a, "%s/share/alloc-kernels/registry.ini", prefix);
        p->experiments = arena_printf(a, "%s/share/alloc-kernels/experiments", prefix);
    } else {
        p->root = find_root(a, bin);
        if (!p->root)
            p->root = recorded_root(a, prefix);
        if (!p->root)
            return fault_set(f, AK_ENVIRONMENT,
                             "neither %s nor a source tree with allocators/registry.ini above %s or at the "
                             "path in %s/root: ak must "
                             "lie in its build folder or be installed with make install",
                             p->kernels, bin, prefix);
        p->kernels = arena_printf(a, "%s/kernels", prefix);
        p->counters = arena_printf(a, "%s/counters", prefix);
        p->simulator = arena_printf(a, "%s/simulator.so", p->libraries);
        p->linked = arena_printf(a, "%s/musl/kernels", prefix);
        p->registry = arena_printf(a, "%s/allocators/registry.ini", p->root);
        p->experiments = arena_printf(a, "%s/experiments", p->root);
    }
    if (access(p->launcher, X_OK) != 0)
        return fault_set(f, AK_ENVIRONMENT, "%s is missing; build it (make)", p->launcher);
    return true;
}

char *program_find(struct arena *a, const char *name)
{
    const char *path = getenv("PATH");
    char *rest = arena_strdup(a, path ? path : "/usr/bin:/bin"), *folder;
    while ((folder = strsep(&rest, ":"))) {
        char *file = arena_printf(a, "%s/%s", *folder ? folder : ".", name);
        if (path_is_file(file) && access(file, X_OK) == 0)
            return file;
    }
    return NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct words names_in(struct arena *a, const char *folder, const char *suffix)
{
    struct words names = {0};
    DIR *dir = opendir(folder);
    if (!dir)
        return names;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name), tail = strlen(suffix);
        if (entry->d_name[0] != '.' && length > tail && strcmp(entry->d_name + length - tail, suffix) == 0)
            words_add(a, &names, arena_strndup(a, entry->d_name, length - tail));
    }
    closedir(dir);
    if (names.count)
        qsort(names.word, names.count, sizeof *names.word, by_text);
    return names;
}
