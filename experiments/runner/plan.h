/*
 * plan.h - a sweep expanded to launches.
 *
 * Repetitions are outermost. Within one, the blocks (a cell for every allocator) come in random order, and
 * so do the allocators within a block: they follow each other closely in time, so slow drift hits all of
 * them alike. The order comes from the seed alone. All allocators of a block and repetition get the same
 * kernel seed.
 */
#ifndef AK_PLAN_H
#define AK_PLAN_H

#include "arena.h"
#include "fault.h"
#include "kernels.h"
#include "registry.h"
#include "simmachine.h"
#include "stopping.h"
#include "sweep.h"
#include "text.h"

#include <stdbool.h>
#include <stdint.h>

#define ROW_ID_LENGTH 16
#define PLAN_ROWS_MAX 1000000u

/* One option of a kernel: --key value. */
struct option_pair {
    const char *key;
    const char *value;  /* as passed: numbers in decimals, paths absolute */
    const char *stable; /* as hashed and recorded: the same on every machine */
};

/* A kernel with all its options but the allocator, the seed and the repetition. */
struct block {
    const struct kernel_info *kernel;
    const char *variant; /* "" if the kernel has none */
    uint64_t threads;    /* 0: the kernel takes its own */
    struct option_pair *option;
    size_t options;
    uint64_t timeout_s;
    uint64_t warmups; /* launches before the first of each allocator that are not kept */
    bool profiled;    /* under perf, for the share of malloc and free */
    const struct simmachine *machine; /* that simulates it; NULL: this one runs it */
    uint64_t hash;                    /* of sweep, kernel and options */
    double cost_ns;                   /* rough, for estimates */
    struct block_member {
        struct allocator *allocator;
        const char *skip; /* why it cannot run; NULL: it can */
    } * member;
    size_t members;
};

struct planned {
    char row_id[ROW_ID_LENGTH + 1];
    const struct block *block;
    size_t member;
    uint64_t rep; /* from 1 */
    uint64_t seed;
};

struct plan {
    const struct sweep *sweep;
    uint64_t seed, reps, warmups;
    struct stopping stopping; /* which of the repetitions a cell needs; all without a width */
    struct block *block;
    size_t blocks;
    struct planned *row;
    size_t rows;
    struct words allocators;     /* names of those that the plan needs */
    struct simmachine **machine; /* to be simulated, each once */
    size_t machines;
};

/* Expand. `named` are the allocators that the user named on the command line: rows of theirs that cannot be
 * are planned as skipped; of others they are left out. False with AK_USAGE. */
bool plan_make(struct arena *, const struct paths *, const struct sweep *, const struct kernels *,
               struct registry *, unsigned cpus, struct plan *, struct fault *);
/* An option's value as recorded, or "" where the block has none of that key. */
const char *block_option(const struct block *, const char *key);
/* All that the kernel takes as its arguments, --key value: not those that say how it is simulated. */
void block_arguments(struct arena *, const struct block *, struct words *argv);
/* The options that plan_csv wrote in one field, split again. False where they are none. */
bool plan_options(struct arena *, const char *text, struct option_pair **, size_t *count);
/* Hash of a block: what a row's id and seed derive from. */
uint64_t plan_hash(const char *sweep, const char *kernel, const struct option_pair *, size_t count);
/* The id and the seed of a repetition under a plan's seed. */
void plan_identify(uint64_t hash, const char *allocator, uint64_t rep, uint64_t plan_seed,
                   char row_id[ROW_ID_LENGTH + 1], uint64_t *seed);
/* Launches that a row takes, its warm-ups included; 0 where it cannot run. */
uint64_t plan_row_launches(const struct planned *);
/* Rough time of them, in nanoseconds. */
double plan_row_ns(const struct planned *);
/* The plan as CSV, the same bytes for the same plan. */
void plan_csv(const struct plan *, struct buffer *);

#endif
