/*
 * simulator.h - how a kernel is started in the simulated machine:
 *
 *   qemu-x86_64 -L ROOT -seed N -plugin file=BUILD/lib/simulator.so,MACHINE,mode=MODE,quantum=Q,seed=N
 *               [,watch=FILE] [-E NAME=VALUE] KERNEL ARGUMENTS
 *
 * Of all that makes two starts differ the runner pins what it can: addresses are not random, the environment is
 * the kernels' own and padded to one size, N is the row's seed. ROOT stands for / wherever it holds the file that is
 * opened: a folder made for the run with the CPUs and nodes of the simulated machine. The loader's variables (LD_*)
 * are given by -E, so that QEMU itself never loads an allocator; all others reach the kernel through QEMU's own
 * environment.
 */
#ifndef AK_SIMULATOR_H
#define AK_SIMULATOR_H

#include "arena.h"
#include "counters.h"
#include "fault.h"
#include "places.h"
#include "plan.h"

struct simulator {
    bool can;
    const char *why;                     /* it cannot, and what would help */
    const char *qemu, *version, *plugin; /* "" where not found */
    char *roots;                         /* a folder with a ROOT for each machine, by name; NULL: none made */
    const char *watch; /* file for what a marked call executes, of kernels that mark calls; NULL: none */
};

/* Look for its parts. */
void simulator_find(struct arena *, const struct paths *, struct simulator *);
/* counters_survey, with the word of this file on sim: whether a kernel can be started there. */
void simulator_survey(struct arena *, const struct paths *,
                      void (*visit)(const char *name, const char *what, bool can, const char *why,
                                    void *user),
                      void *user);

/* Make the folders of the plan's machines; nothing where it has none. */
bool simulator_roots_make(struct arena *, struct simulator *, const struct plan *, struct fault *);
void simulator_roots_remove(struct simulator *, const struct plan *);

/* The variables that describe the machine to hwloc: added to `env`. */
void simulator_variables(struct arena *, const struct simmachine *, struct words *env);
/* What to start for a row, and with what environment. `kernel` are the kernel's arguments, `env` its environment
 * without LD_PRELOAD; of these *qemu_env keeps what does not go by -E. NULL with *why where it cannot be said. */
const char **simulator_command(struct arena *, const struct simulator *, const struct planned *,
                               const char *const *kernel, const char *preload, char *const *env,
                               char ***qemu_env, const char **why);

#endif
