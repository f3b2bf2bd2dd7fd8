#include "linked.h"
#include "buildid.h"
#include "symbols.h"

#include <string.h>
#include <unistd.h>

static const char *const calls[] = {"malloc", "free", "calloc", "realloc"};
#define CALLS (sizeof calls / sizeof *calls)

bool linked_is(const struct allocator *al)
{
    return *al->linked != '\0';
}

bool linked_is_plain(const struct allocator *al)
{
    return linked_is(al) && *al->file && !*al->library;
}

const struct linked_program *linked_program(const struct allocator *al, const char *kernel)
{
    for (size_t i = 0; i < al->programs; i++)
        if (strcmp(al->program[i].kernel, kernel) == 0)
            return &al->program[i];
    return NULL;
}

const struct linked_program *linked_probe(const struct allocator *al, const char *probe_kernel)
{
    const struct linked_program *program = linked_program(al, path_name(probe_kernel));
    return program || !al->programs ? program : &al->program[0];
}

void linked_resolve(struct arena *a, const struct paths *paths, struct allocator *al, const char *folder)
{
    folder = strchr(folder, '/') ? folder : arena_printf(a, "%s/%s", paths->linked, folder);
    struct words names = names_in(a, folder, "");
    al->program = NULL;
    al->programs = 0;
    al->preload = "";
    al->expect = linked_is_plain(al) ? "libc" : "";
    al->real = path_real(a, folder);
    al->build_id = al->stamp = "";
    for (size_t i = 0; i < names.count && al->real; i++) {
        const char *why, *path = arena_printf(a, "%s/%s", al->real, names.word[i]);
        const char *id =
            strchr(names.word[i], '.') || access(path, X_OK) != 0 ? NULL : elf_build_id(a, path, &why);
        if (!id)
            continue;
        al->program = arena_grow(a, al->program, al->programs, sizeof *al->program);
        al->program[al->programs++] = (struct linked_program){
            .kernel = names.word[i], .path = path, .build_id = id, .stamp = file_stamp(a, path)};
    }
    al->found = al->programs > 0;
    if (!al->found)
        al->reason = arena_printf(a, "no static programs in %s", folder);
}

static const struct symbol *symbol_named(const struct symbols *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->symbol[i].name, name) == 0)
            return &s->symbol[i];
    return NULL;
}

/* Where the malloc of a program lies: between the marks of what was linked in; with the C library's own there are
 * none. */
static const char *trouble_of(struct arena *a, const struct symbols *s, bool plain)
{
    const struct symbol *begin = symbol_named(s, "ak_linked_begin"), *end = symbol_named(s, "ak_linked_end");
    if (plain && begin)
        return "an allocator is linked into it, expected the C library's own";
    if (!plain && (!begin || !end))
        return "no allocator is linked into it";
    for (size_t i = 0; i < CALLS; i++) {
        const struct symbol *call = symbol_named(s, calls[i]);
        if (!call)
            return arena_printf(a, "no symbol %s: it was stripped, and proves nothing", calls[i]);
        if (!plain && (call->start <= begin->start || call->start >= end->start))
            return arena_printf(a, "its %s is not of the allocator that was linked in", calls[i]);
    }
    return NULL;
}

/* What the file of a program holds: sets trouble and bytes. */
static void inspect(struct arena *a, struct linked_program *program, bool plain)
{
    struct arena own = {0};
    struct symbols s;
    const char *why;
    if (symbols_read(&own, program->path, &s, &why))
        why = trouble_of(&own, &s, plain);
    program->trouble = why ? arena_strdup(a, why) : NULL;
    program->bytes = 0;
    for (size_t i = 0; i < s.segments; i++)
        if (s.segment[i].offset + s.segment[i].size > program->bytes)
            program->bytes = s.segment[i].offset + s.segment[i].size;
    arena_free(&own);
}

void linked_inspect(struct arena *a, const struct paths *paths, const struct plan *plan, struct registry *r,
                    struct allocator *al)
{
    struct allocator *plain = NULL;
    for (size_t i = 0; i < r->count && !plain; i++)
        plain = linked_is_plain(&r->allocator[i]) ? &r->allocator[i] : NULL;
    if (plain && !plain->real)
        linked_resolve(a, paths, plain, plain->linked);
    for (size_t i = 0; i < al->programs; i++) {
        struct linked_program *program = &al->program[i];
        bool wanted = false;
        for (size_t b = 0; b < plan->blocks; b++)
            wanted |= strcmp(plan->block[b].kernel->name, program->kernel) == 0;
        if (!wanted)
            continue;
        inspect(a, program, linked_is_plain(al));
        struct linked_program beside = {0};
        const struct linked_program *same = plain ? linked_program(plain, program->kernel) : NULL;
        if (same) {
            beside = *same;
            inspect(a, &beside, true);
        }
        program->plain_bytes = same && !beside.trouble ? beside.bytes : 0;
    }
}

const char *linked_lacks(struct arena *a, const struct allocator *al, const char *kernel)
{
    const struct linked_program *program = linked_program(al, kernel);
    if (!linked_is(al) || (program && !program->trouble))
        return NULL;
    return program ? arena_printf(a, "%s: %s", program->path, program->trouble)
                   : arena_printf(
                         a, "%s is not built as a static program with %s: make musl builds those that can be",
                         kernel, al->name);
}

const char *linked_changed(struct arena *a, const struct allocator *al, const char *kernel)
{
    const struct linked_program *program = linked_program(al, kernel);
    const char *why, *id = elf_build_id(a, program->path, &why);
    if (!id)
        return arena_printf(a, "%s: %s", program->path, why);
    if (strcmp(id, program->build_id) != 0 ||
        (!*id && strcmp(file_stamp(a, program->path), program->stamp) != 0))
        return arena_printf(a, "%s is another build than when the run began", program->path);
    return NULL;
}
