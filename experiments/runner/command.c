#include "command.h"

#include <string.h>

bool command_options(struct arena *a, int argc, char **argv, const struct command_option *options, int *left,
                     struct fault *f)
{
    int kept = 1;
    bool only_arguments = false;
    for (int i = 1; i < argc; i++) {
        if (only_arguments || argv[i][0] != '-' || !argv[i][1]) {
            argv[kept++] = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--") == 0) {
            only_arguments = true;
            continue;
        }
        size_t length = strcspn(argv[i], "=");
        const struct command_option *o = options;
        struct words known = {0};
        while (o->name && (strncmp(o->name, argv[i], length) != 0 || o->name[length]))
            words_add(a, &known, o++->name);
        if (!o->name)
            return fault_set(f, AK_USAGE, "%s: unknown option '%s'%s", argv[0], argv[i],
                             nearest_hint(a, arena_strndup(a, argv[i], length), &known));
        if (o->flag) {
            if (argv[i][length])
                return fault_set(f, AK_USAGE, "%s: %s takes no value", argv[0], o->name);
            *o->flag = true;
        } else if (*o->value) {
            return fault_set(f, AK_USAGE, "%s: %s twice, expected once", argv[0], o->name);
        } else if (argv[i][length]) {
            *o->value = argv[i] + length + 1;
        } else if (i + 1 < argc) {
            *o->value = argv[++i];
        } else {
            return fault_set(f, AK_USAGE, "%s: %s needs a value", argv[0], o->name);
        }
    }
    *left = kept;
    return true;
}

bool suite_open(struct suite *s, const char *more, struct fault *f)
{
    *s = (struct suite){0};
    return paths_find(&s->arena, &s->paths, f) &&
           registry_read(&s->arena, s->paths.registry, &s->registry, f) &&
           (!more || registry_read(&s->arena, more, &s->registry, f));
}

bool suite_kernels(struct suite *s, struct fault *f)
{
    return kernels_read(&s->arena, &s->paths, &s->kernels, f);
}

void suite_close(struct suite *s)
{
    arena_free(&s->arena);
}

const char *suite_probe_kernel(const struct suite *s)
{
    const struct kernel_info *null = kernels_find(&s->kernels, "null");
    return null ? null->path : s->kernels.count ? s->kernels.kernel[0].path : NULL;
}
