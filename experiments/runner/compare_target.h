/*
 * compare_target.h - what a command runs, and whether an allocator can be preloaded into it.
 *
 * A script is followed to its interpreter, and through `env` to what that starts: the interpreter is what allocates.
 * The program found so is refused where the loader ignores LD_PRELOAD (static, set-uid, set-gid, file capabilities),
 * cannot load the libraries here (32 bits, another machine, musl's loader), or where malloc is the program's own.
 * What a file does not tell, as what children a command has, the witness tells when it runs.
 */
#ifndef AK_COMPARE_TARGET_H
#define AK_COMPARE_TARGET_H

#include "arena.h"
#include "fault.h"

struct target {
    const char *path;    /* of the command, as it is started */
    const char *program; /* the ELF file: the same, or a script's interpreter; real path */
    const char *refusal; /* why no other allocator can serve it, a whole sentence; NULL: one can */
    const char *note;    /* what to know of it besides; "" */
};

/* `command` as a shell finds it; `who` asks, "compare" or "record". False with AK_USAGE where there is no such program. */
bool target_find(struct arena *, const char *who, const char *command, struct target *, struct fault *);

#endif
