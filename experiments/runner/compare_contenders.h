/*
 * compare_contenders.h - the allocators that a comparison is between.
 */
#ifndef AK_COMPARE_CONTENDERS_H
#define AK_COMPARE_CONTENDERS_H

#include "command.h"
#include "compare.h"
#include "compare_launch.h"

/* Those of --allocators, or all of the registry that are meant for it (compare) and are here, with the default as the
 * first, of which nothing is known yet. Unknown names: AK_USAGE; a named one that is not here: AK_ENVIRONMENT. */
bool contenders_find(struct suite *, const struct stage *, struct comparison *, struct fault *);

/* What the first launch told of the default: its name and object. Another that is the very same leaves; where the
 * default is not the C library's malloc, that one becomes a contender. */
bool contenders_know_default(struct suite *, const struct stage *, struct comparison *,
                             const struct compare_launch *first, struct fault *);

#endif
