/*
 * kernels.h - the kernels that are built, as they describe themselves (--describe).
 */
#ifndef AK_KERNELS_H
#define AK_KERNELS_H

#include "arena.h"
#include "fault.h"
#include "places.h"
#include "text.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum value_type { VALUE_INT, VALUE_SIZE, VALUE_WORD };

struct kernel_param {
    const char *name, *fallback, *unit, *what;
    enum value_type type;
    uint64_t min, max;
    struct words words; /* empty: any word */
};

struct kernel_info {
    const char *name, *path;
    const char *build_id, *stamp; /* of its file when it was described */
    const char *trouble;          /* why it cannot be used; NULL: it can */
    const char *what, *op;
    struct words variants; /* the first is the default; none: "" */
    uint64_t min_threads;
    bool own_threads;            /* takes its threads by itself */
    bool no_alloc;               /* never calls the allocator under test */
    bool app;                    /* its rss_peak_bytes is the largest at any moment */
    bool timed;                  /* does as many ops as its time allows */
    bool watched;                /* marks its calls for the simulated machine */
    bool check;                  /* offers --check */
    bool sizes;                  /* takes size_min, size_max, size_dist */
    uint64_t size_min, size_max; /* where a sweep gives none */
    double start_s, op_ns;       /* of a launch and of an op, for estimates; 0: not told */
    const char *op_times;        /* the parameter that op_ns is multiplied by, or "" */
    struct kernel_param *param;
    size_t params;
};

/* All of them, by name. */
struct kernels {
    struct kernel_info *kernel;
    size_t count;
    struct words names;
};

/* Ask every executable of the kernels' folder. A kernel that does not answer is listed with its trouble. */
bool kernels_read(struct arena *, const struct paths *, struct kernels *, struct fault *);
/* NULL if the program is still the one that was described; else what changed. */
const char *kernel_changed(struct arena *, const struct kernel_info *);
const struct kernel_info *kernels_find(const struct kernels *, const char *name);
const struct kernel_param *kernel_param(const struct kernel_info *, const char *name);
/* Read a description; false with kernel_info.trouble set where it is not what docs/kernel-interface.md
 * says. */
bool kernel_description(struct arena *, const char *json, size_t length, struct kernel_info *);

#endif
