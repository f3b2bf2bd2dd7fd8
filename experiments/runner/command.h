/*
 * command.h - a subcommand of ak. A file cmd_NAME.c defines one with AK_COMMAND; no list names it.
 */
#ifndef AK_COMMAND_H
#define AK_COMMAND_H

#include "arena.h"
#include "fault.h"
#include "kernels.h"
#include "places.h"
#include "registry.h"
#include "sweep.h"

#include <stdbool.h>

struct command {
    const char *name, *usage; /* usage: the arguments, on one line */
    const char *what;         /* one line */
    const char *help;         /* options, a line each; may be "" */
    /* argv[0] is the subcommand. Returns the exit code. */
    int (*run)(int argc, char **argv);
};

/* The linker gathers these into one array. */
#define AK_COMMAND(symbol, ...)                                                                              \
    static const struct command symbol = {__VA_ARGS__};                                                      \
    static const struct command *const symbol##_entry __attribute__((used, section("ak_commands"))) = &symbol

/* An option of a subcommand; `value` is set to the text after it, `flag` to true. */
struct command_option {
    const char *name; /* with its dashes */
    const char **value;
    bool *flag;
};
/* Take the options out of argv; what remains are the arguments (argc_left of them, in argv[1...]). Ends
 * with a NULL name. "--key=value" and "--key value" alike; "--" ends the options. False with AK_USAGE. */
bool command_options(struct arena *, int argc, char **argv, const struct command_option *, int *argc_left,
                     struct fault *);

/* What most subcommands begin with. */
struct suite {
    struct arena arena;
    struct paths paths;
    struct registry registry;
    struct kernels kernels;
};
/* Find the parts and read the registries (`more`: the user's, or NULL). Kernels are read on demand. */
bool suite_open(struct suite *, const char *more, struct fault *);
bool suite_kernels(struct suite *, struct fault *);
void suite_close(struct suite *);
/* The kernel that probes allocators: null, else any. NULL if there is none. */
const char *suite_probe_kernel(const struct suite *);

#endif
