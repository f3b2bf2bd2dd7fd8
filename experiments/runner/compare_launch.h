/*
 * compare_launch.h - one launch of a command under one allocator, as a user would start it: in the current folder,
 * with the user's environment, and with the witness and the allocator preloaded.
 *
 * Its output is read and dropped: some programs notice a /dev/null and then do less. A command that is a server is
 * polled until it is ready, driven by the load, and told to stop; its output goes to files, since nobody reads while
 * the load runs. The load and the poll run in the user's environment, without the allocator.
 */
#ifndef AK_COMPARE_LAUNCH_H
#define AK_COMPARE_LAUNCH_H

#include "compare.h"
#include "fault.h"

/* What launches share. */
struct stage {
    const struct paths *paths;
    const struct comparison *comparison;
    const char *folder;  /* of temporary files, this comparison's own */
    const char *witness; /* as LD_PRELOAD can carry it */
    struct profiler profiler;
};

/* Make the folder and find the witness. False with AK_ENVIRONMENT. */
bool stage_open(struct arena *, const struct paths *, const struct comparison *, struct stage *,
                struct fault *);
/* Nothing of the folder remains. */
void stage_close(struct stage *);
/* A path that LD_PRELOAD can carry for `library`: itself, or a link in the stage's folder where blanks or colons
 * would part it. NULL with a fault. */
const char *stage_loadable(struct arena *, const struct stage *, const char *library, struct fault *);

/* Run it. `l` has contender, kind, round and order already; all else is filled, in the arena. `profile`: where the
 * share goes of a profiled launch, else NULL. False where ak was interrupted (nothing is known of the launch) or
 * cannot start anything. */
bool compare_launch(struct arena *, const struct stage *, struct compare_launch *l, struct contender *profile,
                    struct fault *);

#endif
