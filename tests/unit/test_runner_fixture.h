/*
 * test_runner_fixture.h - a temporary suite for the runner's tests: kernels by description, a registry,
 * presets.
 */
#ifndef TEST_RUNNER_FIXTURE_H
#define TEST_RUNNER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "arena.h"
#include "fault.h"
#include "kernels.h"
#include "plan.h"
#include "registry.h"
#include "sweep.h"

struct fixture {
    struct arena arena;
    struct fault fault;
    char folder[64];
    struct paths paths;
    struct kernels kernels;
    struct registry registry;
};

static inline char *fixture_write_bytes(struct fixture *x, const char *name, const char *bytes, size_t length)
{
    char *path = arena_printf(&x->arena, "%s/%s", x->folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline char *fixture_write(struct fixture *x, const char *name, const char *text)
{
    return fixture_write_bytes(x, name, text, strlen(text));
}

static inline void fixture_kernel(struct fixture *x, const char *name, const char *rest)
{
    char *json =
        arena_printf(&x->arena, "{\"name\": \"%s\", \"what\": \"w\", \"op\": \"o\", %s}", name, rest);
    x->kernels.kernel = arena_grow(&x->arena, x->kernels.kernel, x->kernels.count, sizeof *x->kernels.kernel);
    struct kernel_info *k = &x->kernels.kernel[x->kernels.count++];
    *k = (struct kernel_info){.name = name, .path = arena_printf(&x->arena, "/k/%s", name)};
    assert_true(kernel_description(&x->arena, json, strlen(json), k));
    words_add(&x->arena, &x->kernels.names, name);
}

/* Four kernels: one with sizes and parameters, one that does not allocate, one with variants that needs two
 * threads, one that takes its own threads. Allocators aa, bb, cc, and floor, which never frees and runs in
 * churn only. */
static inline int fixture_open(void **state)
{
    struct fixture *x = calloc(1, sizeof *x);
    assert_non_null(x);
    snprintf(x->folder, sizeof x->folder, "/tmp/ak-unit-XXXXXX");
    assert_non_null(mkdtemp(x->folder));
    mkdir(arena_printf(&x->arena, "%s/presets", x->folder), 0777);
    x->paths.experiments = x->folder;
    fixture_write(x, "presets/smoke.ini", "reps = 1\nops = 10\n");
    fixture_write(x, "presets/quick.ini", "reps = 3\nops = 20\ntimeout = 7\n");
    fixture_kernel(
        x, "churn",
        "\"variants\": [], \"min_threads\": 1, \"own_threads\": false, \"no_alloc\": false, \"sizes\": true,"
        "\"params\": [{\"name\": \"live_blocks\", \"type\": \"int\", \"default\": \"1000\", \"min\": 1,"
        "\"max\": 100000}, {\"name\": \"touch\", \"type\": \"word\", \"default\": \"page\","
        "\"words\": [\"none\", \"page\"]}]");
    fixture_kernel(x, "null", "\"no_alloc\": true, \"params\": []");
    fixture_kernel(x, "share", "\"variants\": [\"shared\", \"private\"], \"min_threads\": 2, \"params\": []");
    fixture_kernel(x, "c2c", "\"min_threads\": 2, \"own_threads\": true, \"no_alloc\": true, \"params\": []");
    char *registry = fixture_write(x, "registry.ini",
                                   "[glibc]\nlibrary =\n[aa]\nlibrary = liba.so\n[bb]\nlibrary = libb.so\n"
                                   "[cc]\nlibrary = libc.so\n[floor]\nlibrary = libf.so\nfrees = no\n"
                                   "kernels = churn\n");
    assert_true(registry_read(&x->arena, registry, &x->registry, &x->fault));
    *state = x;
    return 0;
}

static inline int fixture_close(void **state)
{
    struct fixture *x = *state;
    char *command[] = {"rm", "-rf", x->folder, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        execvp(command[0], command);
        _exit(1);
    }
    arena_free(&x->arena);
    free(x);
    return 0;
}

/* Read and check a sweep text under a preset. */
static inline bool fixture_sweep(struct fixture *x, const char *text, const char *preset, struct sweep *s)
{
    char *path = fixture_write(x, "test.sweep", text);
    x->fault = (struct fault){0};
    return sweep_read(&x->arena, &x->paths, path, preset, s, &x->fault) &&
           sweep_check(&x->arena, s, &x->kernels, &x->registry, &x->fault);
}

static inline bool fixture_plan(struct fixture *x, const char *text, const char *preset, struct sweep *s,
                                struct plan *p)
{
    return fixture_sweep(x, text, preset, s) &&
           plan_make(&x->arena, &x->paths, s, &x->kernels, &x->registry, 4, p, &x->fault);
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in '%s'", part, text);
}

#endif
