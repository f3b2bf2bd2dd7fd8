/*
 * compare.h - one comparison: a command, the allocators that it runs under, and what each launch gave.
 *
 * Contender 0 is the default: what serves the command when nothing is preloaded. Launches are kept in the order in
 * which they were made. Rounds of timed launches count from 1; trials and warm-ups are of round 0.
 */
#ifndef AK_COMPARE_H
#define AK_COMPARE_H

#include "arena.h"
#include "compare_target.h"
#include "compare_verdict.h"
#include "registry.h"
#include "share.h"

#include <stdbool.h>
#include <stdint.h>

struct contender {
    const char *name;    /* of the registry, or of the object */
    const char *label;   /* with its version, for people */
    const char *version; /* "" where it is not known */
    const char *real,
        *build_id; /* of the object that has to serve; "" until the first launch tells, for the default */
    const char *preload; /* "": none */
    struct words env;    /* NAME=VALUE, for its processes */
    struct words parts;  /* sonames of further libraries that it consists of */
    uint64_t colour;
    const char *gone;     /* why it is launched no more; NULL: it is */
    struct share share;   /* of the profiled launch */
    const char *no_share; /* why there is none; NULL: there is */
};

enum compare_kind { KIND_WARMUP, KIND_PROFILED, KIND_TIMED };
extern const char *const compare_kinds[];

enum compare_status { COMPARE_OK, COMPARE_FAILED, COMPARE_TIMEOUT, COMPARE_NOT_SERVED };
extern const char *const compare_statuses[];

struct compare_launch {
    size_t contender;
    enum compare_kind kind;
    enum compare_status status;
    uint64_t round, order; /* order: among the launches of the round, from 1 */
    const char *started_at;
    const char *detail; /* why it is not ok; "" */
    const char *said;   /* the last lines of stderr where it is not ok; "" */
    int exit_code;      /* of the command; -1: it did not exit by itself */
    int signal;         /* that ended it; 0: none */
    /* Known where status is ok. Of the tree: the command, and those of its descendants that were waited for. */
    uint64_t wall_ns; /* of the command; of the load where there is one */
    uint64_t user_ns, system_ns;
    uint64_t rss_peak_bytes; /* of the largest process (ru_maxrss) */
    uint64_t minor_faults, major_faults, voluntary_switches, involuntary_switches;
    uint64_t env_bytes; /* all strings that the process began with */
    size_t processes, served;
    double reach; /* share of the tree's CPU time in processes that the allocator served, about */
    const char *object, *build_id; /* that served */
    const char *other;             /* the most costly process that it did not serve; NULL: none seen */
    bool launched;                 /* false: it could not be profiled, and was not started */
};

/* What the command line asks for. */
struct compare_options {
    const char *allocators, *csv, *plot, *in, *ready, *load, *registry;
    uint64_t runs, warmup, seed, timeout_ms;
    int stop_signal;
    bool json, no_profile;
    char *const *command; /* NULL-terminated */
};

struct comparison {
    struct compare_options options;
    struct target target;
    struct contender *contender;
    size_t contenders;
    struct words skipped; /* "NAME: reason" of what is not here */
    struct words notes;   /* what to know besides, a line each */
    struct compare_launch *launch;
    size_t launches;
    uint64_t rounds; /* begun */
    bool stopped;    /* by the user */
};

/* What is known of a contender by now, over its timed launches that were ok. Medians; NAN without a launch. */
struct compare_summary {
    size_t ok, failed; /* timed launches */
    double wall_ns, user_ns, system_ns, rss_peak_bytes, minor_faults, major_faults, switches, reach;
    struct ratio wall, cpu, memory; /* to the default */
    struct verdict_given given;     /* of contenders but the default */
};
void compare_summarise(struct arena *, const struct comparison *, size_t contender, struct compare_summary *);

/* "1.23 s", "4.5 ms"; "24.1 MiB". `text` of at least 32 bytes. */
const char *compare_time_text(double ns, char text[32]);
const char *compare_bytes_text(double bytes, char text[32]);
/* The command as a shell (bash, zsh, ksh) takes it, in one line of UTF-8: what a line cannot hold stands in $'...'. In the
 * arena. */
const char *compare_command_text(struct arena *, const struct comparison *);

#endif
