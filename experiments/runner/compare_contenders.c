#include "compare_contenders.h"

#include <string.h>

/* "5.3.0-0-g54eaed1" is 5.3.0 to people. */
static const char *label_of(struct arena *a, const char *name, const char *version)
{
    return *version ? arena_printf(a, "%s %.*s", name, (int)strcspn(version, "-"), version) : name;
}

static void add(struct arena *a, struct comparison *cmp, const struct contender *c)
{
    cmp->contender = arena_grow(a, cmp->contender, cmp->contenders, sizeof *cmp->contender);
    cmp->contender[cmp->contenders++] = *c;
}

/* The names to compare, each in the registry from here on. */
static bool names_wanted(struct suite *s, const char *text, struct words *names, struct fault *f)
{
    if (!text) {
        for (size_t i = 0; i < s->registry.count; i++)
            if (s->registry.allocator[i].compare)
                words_add(&s->arena, names, s->registry.allocator[i].name);
        return true;
    }
    struct words list = strchr(text, '=') ? text_list(&s->arena, text) : text_list_loose(&s->arena, text);
    for (size_t i = 0; i < list.count; i++) {
        const char *equals = strchr(list.word[i], '='), *name = list.word[i];
        if (equals) {
            name = arena_strndup(&s->arena, name, (size_t)(equals - name));
            if (registry_find(&s->registry, name) && !words_have(names, name))
                return fault_set(f, AK_USAGE,
                                 "--allocators: %s=%s: %s is a name of the registry: choose another", name,
                                 equals + 1, name);
            if (!registry_add_library(&s->arena, &s->registry, name, equals + 1, f))
                return false;
        }
        struct allocator *al = registry_find(&s->registry, name);
        if (!al)
            return fault_set(f, AK_USAGE, "--allocators: '%s'%s", name,
                             nearest_hint(&s->arena, name, &s->registry.names));
        if (words_have(names, name))
            return fault_set(f, AK_USAGE, "--allocators: %s twice, expected once", name);
        if (*al->linked)
            return fault_set(f, AK_USAGE,
                             "--allocators: %s is linked into static programs of the suite; it cannot be "
                             "preloaded",
                             name);
        al->named = true;
        words_add(&s->arena, names, name);
    }
    return names->count > 0 || fault_set(f, AK_USAGE, "--allocators: no name, expected A,B or NAME=LIBRARY");
}

static bool resolve(struct suite *s, struct allocator *al, struct fault *f)
{
    const char *probe = arena_printf(&s->arena, "%s/null", s->paths.kernels);
    if (!allocator_resolve(&s->arena, &s->paths, al, f))
        return false;
    if (!al->found || !path_is_file(probe))
        return true;
    if (!allocator_probe(&s->arena, &s->paths, probe, al, f))
        return false;
    if (*al->trouble && *al->preload) {
        al->found = false;
        al->reason = al->trouble;
    }
    return true;
}

static bool take(struct suite *s, const struct stage *stage, struct comparison *cmp,
                 const struct allocator *al, const char *preload, struct fault *f)
{
    struct contender c = {.name = al->name,
                          .label = label_of(&s->arena, al->name, al->version),
                          .version = al->version,
                          .real = al->real,
                          .build_id = al->build_id,
                          .env = al->env,
                          .parts = al->parts,
                          .colour = al->colour,
                          .no_share = "not profiled"};
    c.preload = stage_loadable(&s->arena, stage, preload, f);
    if (!c.preload)
        return false;
    add(&s->arena, cmp, &c);
    return true;
}

static struct allocator *libc_entry(struct suite *s)
{
    for (size_t i = 0; i < s->registry.count; i++)
        if (!*s->registry.allocator[i].library && s->registry.allocator[i].compare)
            return &s->registry.allocator[i];
    return NULL;
}

bool contenders_find(struct suite *s, const struct stage *stage, struct comparison *cmp, struct fault *f)
{
    struct words names = {0};
    const char *lacking = "", *get = "";
    const struct contender first = {.name = "default",
                                    .label = "default",
                                    .version = "",
                                    .real = "",
                                    .build_id = "",
                                    .preload = "",
                                    .colour = 1,
                                    .no_share = "not profiled"};
    add(&s->arena, cmp, &first);
    if (!names_wanted(s, cmp->options.allocators, &names, f))
        return false;
    for (size_t i = 0; i < names.count; i++) {
        struct allocator *al = registry_find(&s->registry, names.word[i]);
        if (!resolve(s, al, f))
            return false;
        if (!al->found && al->named)
            return fault_set(f, AK_ENVIRONMENT, "allocator %s: %s; nothing was run", al->name, al->reason);
        if (!al->found) {
            lacking = arena_printf(&s->arena, "%s%s%s", lacking, *lacking ? ", " : "", al->name);
            get = *al->get ? al->get : get;
        } else if (*al->preload && !take(s, stage, cmp, al, al->real, f)) {
            return false;
        }
    }
    if (*lacking)
        words_add(&s->arena, &cmp->skipped,
                  arena_printf(&s->arena, "%s (ak doctor says why%s%s)", lacking, *get ? "; " : "", get));
    return true;
}

/* The contender that is the default already, but for what it sets in the environment; 0: none. */
static size_t same_as_default(const struct comparison *cmp)
{
    for (size_t i = 1; i < cmp->contenders; i++)
        if (strcmp(cmp->contender[i].real, cmp->contender[0].real) == 0 && !cmp->contender[i].env.count)
            return i;
    return 0;
}

bool contenders_know_default(struct suite *s, const struct stage *stage, struct comparison *cmp,
                             const struct compare_launch *first, struct fault *f)
{
    struct arena *a = &s->arena;
    struct allocator *libc = libc_entry(s);
    struct contender *base = &cmp->contender[0];
    base->real = first->object;
    base->build_id = first->build_id;
    if (libc && !libc->found && !resolve(s, libc, f))
        return false;
    if (libc && libc->found && strcmp(libc->real, base->real) == 0) {
        base->name = libc->name;
        base->version = libc->version;
        base->colour = libc->colour;
        base->label = label_of(a, libc->name, libc->version);
        return true;
    }
    const size_t same = same_as_default(cmp);
    if (same) {
        base->name = cmp->contender[same].name;
        base->version = cmp->contender[same].version;
        base->label = cmp->contender[same].label;
        base->colour = cmp->contender[same].colour;
        base->parts = cmp->contender[same].parts;
        memmove(&cmp->contender[same], &cmp->contender[same + 1],
                (--cmp->contenders - same) * sizeof *cmp->contender);
    } else {
        const char *name = path_name(base->real), *end = strstr(name, ".so");
        base->name = base->label = arena_strndup(a, name, end ? (size_t)(end - name) : strlen(name));
    }
    words_add(
        a, &cmp->notes,
        arena_printf(
            a, "malloc comes from %s even when nothing is preloaded: the default is %s, not the C library's",
            base->real, base->name));
    if (libc && libc->found && (!cmp->options.allocators || libc->named))
        return take(s, stage, cmp, libc, libc->real, f);
    return true;
}
