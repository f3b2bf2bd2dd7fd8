/* Names of code from ELF files: this program's own, and files that are broken in every way that chance finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "symbols.h"

#define SELF  "/proc/self/exe"
#define TRIES 400

static char file_name[] = "/tmp/symbols-XXXXXX";

__attribute__((noinline)) static int a_function_of_this_file(int x)
{
    return x + 1;
}

/* The symbol of that name, or NULL. */
static const struct symbol *named(const struct symbols *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->symbol[i].name, name) == 0)
            return &s->symbol[i];
    return NULL;
}

static void own_names_are_found(void **state)
{
    (void)state;
    struct arena a = {0};
    struct symbols s;
    const char *why;
    uint64_t address;
    assert_int_equal(a_function_of_this_file(1), 2);
    assert_true(symbols_read(&a, SELF, &s, &why));
    const struct symbol *own = named(&s, "own_names_are_found");
    assert_non_null(own);
    assert_ptr_equal(symbols_find(&s, own->start + own->size - 1, ""), own);
    assert_ptr_not_equal(symbols_find(&s, own->start + own->size, ""), own);
    assert_true(symbols_address(&s, 0, &address));
    assert_false(symbols_address(&s, UINT64_MAX, &address));
    arena_free(&a);
}

/* Of several names the one that is wanted, else without underscores, short, by the alphabet. */
static void names_are_chosen(void **state)
{
    (void)state;
    struct symbol symbol[] = {{16, 8, "__libc_malloc", true}, {16, 8, "mi_malloc", true}, {16, 8, "malloc", true},
                              {16, 8, "balloc", true},        {24, 8, "next", true},      {16, 8, "__mi", true}};
    struct symbols s = {.symbol = symbol, .count = sizeof symbol / sizeof *symbol};
    assert_string_equal(symbols_find(&s, 17, "mi_malloc")->name, "mi_malloc");
    assert_string_equal(symbols_find(&s, 16, "__mi")->name, "__mi");
    assert_string_equal(symbols_find(&s, 16, "free")->name, "balloc");
    assert_string_equal(symbols_find(&s, 24, "malloc")->name, "next");
    assert_null(symbols_find(&s, 32, "malloc"));
    assert_null(symbols_find(&s, 15, "malloc"));
}

static void broken_files_are_survived(void **state)
{
    (void)state;
    FILE *self = fopen(SELF, "rb");
    assert_non_null(self);
    fseek(self, 0, SEEK_END);
    size_t length = (size_t)ftell(self);
    unsigned char *bytes = malloc(length);
    rewind(self);
    assert_int_equal(fread(bytes, 1, length, self), length);
    fclose(self);
    srand(1);
    for (int i = 0; i < TRIES; i++) {
        struct arena a = {0};
        struct symbols s;
        const char *why;
        unsigned char kept[64];
        memcpy(kept, bytes, sizeof kept);
        for (int flips = 0; flips < i % 8; flips++) /* the header, where all that leads on stands */
            bytes[4 + rand() % 60] = (unsigned char)rand();
        FILE *file = fopen(file_name, "wb");
        assert_non_null(file);
        size_t part = i % 2 ? length : (size_t)rand() % (i % 4 ? length : 200);
        fwrite(bytes, 1, part, file);
        fclose(file);
        bool good = symbols_read(&a, file_name, &s, &why);
        assert_true(good == !why);
        memcpy(bytes, kept, sizeof kept);
        arena_free(&a);
    }
    free(bytes);
}

static void what_is_no_elf_file_is_refused(void **state)
{
    (void)state;
    struct arena a = {0};
    struct symbols s;
    const char *why;
    assert_false(symbols_read(&a, "/nonexistent", &s, &why));
    assert_string_equal(why, "No such file or directory");
    assert_false(symbols_read(&a, "/dev/null", &s, &why));
    assert_string_equal(why, "not a 64-bit ELF file");
    arena_free(&a);
}

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(file_name);
    return fd < 0 || close(fd) != 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(file_name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_names_are_found),
        cmocka_unit_test(names_are_chosen),
        cmocka_unit_test(broken_files_are_survived),
        cmocka_unit_test(what_is_no_elf_file_is_refused),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
