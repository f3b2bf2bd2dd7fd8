/*
 * ak - runs sweeps of allocator kernels and keeps their results. Subcommands are in cmd_*.c.
 */
#include "child.h"
#include "command.h"
#include "meta.h"
#include "orphans.h"
#include "../launcher/standard_fds.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern const struct command *const __start_ak_commands[], *const __stop_ak_commands[];

static void print_help(FILE *to)
{
    fputs("usage: ak COMMAND [OPTIONS]\n\n", to);
    for (const struct command *const *c = __start_ak_commands; c < __stop_ak_commands; c++)
        fprintf(to, "  %-8s %s\n", (*c)->name, (*c)->what);
    fputs("  help     this text, or `ak help COMMAND`\n\n"
          "exit codes: 0 done; 1 a measured failure; 2 wrong usage or a bad input file; 3 the environment "
          "cannot do\n"
          "what was demanded\n",
          to);
}

static const struct command *find(const char *name)
{
    for (const struct command *const *c = __start_ak_commands; c < __stop_ak_commands; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static void print_command(const struct command *c)
{
    printf("usage: ak %s %s\n\n%s\n%s%s", c->name, c->usage, c->what, *c->help ? "\n" : "", c->help);
}

static int unknown(const char *name)
{
    struct arena arena = {0};
    struct words known = {0};
    for (const struct command *const *c = __start_ak_commands; c < __stop_ak_commands; c++)
        words_add(&arena, &known, (*c)->name);
    words_add(&arena, &known, "help");
    fprintf(stderr, "ak: unknown command '%s'%s\n", name, nearest_hint(&arena, name, &known));
    arena_free(&arena);
    return AK_USAGE;
}

/* Whoever reads has had enough (`| head`): how much was written by then is chance, and no failure. */
static bool reader_left(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

int main(int argc, char **argv)
{
    if (!standard_fds_reserve())
        return AK_ENVIRONMENT; /* there may be nowhere to say so */
    if (argc > 1 && strcmp(argv[1], "merge") == 0)
        child_watch_interrupts(); /* before anything else: it must leave nothing, whenever it is ended */
    orphans_adopt();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of a write, not a death */
    signal(SIGXFSZ, SIG_IGN); /* and so is a full quota */
    if (argc < 2) {
        print_help(stderr);
        return AK_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("alloc-kernels " SUITE_VERSION);
        return AK_DONE;
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        const struct command *c = argc > 2 ? find(argv[2]) : NULL;
        if (argc > 2 && !c)
            return unknown(argv[2]);
        if (c)
            print_command(c);
        else
            print_help(stdout);
        return AK_DONE;
    }
    const struct command *c = find(argv[1]);
    if (!c)
        return unknown(argv[1]);
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_command(c);
            return AK_DONE;
        }
    int code = c->run(argc - 1, argv + 1);
    bool written = fflush(stdout) == 0 && !ferror(stdout);
    if (!written && code == AK_DONE && !reader_left()) {
        fputs("ak: the output could not be written\n", stderr);
        return AK_ENVIRONMENT;
    }
    return code;
}
