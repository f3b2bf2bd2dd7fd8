/*
 * groups.h - which raw events make up a column: the files kernels/counters/groups/NAME.txt.
 *
 * A file describes one micro-architecture family, one statement a line; `#` begins a comment:
 *
 *   family NAME             as the file is called
 *   what TEXT               one line
 *   match KEY=VALUE ...     all keys of a line must hold, any line suffices. Keys: vendor (as in
 *                           /proc/cpuinfo; `simulated`: the simulated machine), family, model, implementer, part; numbers may be lists and ranges
 *                           (0x10-0x1f,0x60). `match any`: the family where no other one fits. `match
 *                           always`: added to whatever family fits.
 *   event NAME DIALECT=SPELLING ...
 *                           one raw event; dialects papi, likwid, perf, sim; one left out does not know it
 *   software NAME DIALECT=SPELLING ...
 *                           likewise, counted in software (by the kernel or the simulator): 0 is a fact, not a
 *                           dead counter
 *   column NAME = FORMULA | MEANING
 *                           a column of runs.csv. Of several lines for a column the first counts whose events
 *                           the dialect has all. The meaning `same` is that of the line before.
 *   absent NAME | REASON    a column that this family cannot fill, and why
 *   set NAME = COLUMN ...   columns that fit the hardware's counters together; the order of the sets is the
 *                           order in which columns get counters where not all fit
 */
#ifndef AK_GROUPS_H
#define AK_GROUPS_H

#include "counters.h"
#include "formula.h"

#define GROUP_MATCHES_MAX 8
#define GROUP_COLUMNS_MAX 32
#define GROUP_SETS_MAX    8
#define GROUP_LINE_MAX    1024

enum group_dialect { DIALECT_PAPI, DIALECT_LIKWID, DIALECT_PERF, DIALECT_SIM, DIALECTS };

/* Who this CPU is; numbers are 0 where the machine does not say. */
struct cpu_id {
    char     vendor[32];        /* GenuineIntel, AuthenticAMD; "ARM" style machines have none */
    unsigned family, model;     /* x86 */
    unsigned implementer, part; /* arm64 */
};

struct group_event {
    const char *name;
    const char *spelling[DIALECTS]; /* NULL: not known in this dialect */
    bool        software;
};

struct group_column {
    enum counter_column column;
    struct formula      formula; /* over the numbers of `events` */
    const char         *meaning;
};

struct group_set {
    const char *name;
    uint32_t    columns; /* bit c: enum counter_column c */
    uint8_t     order[COUNTER_COLUMNS];
    unsigned    n;
};

/* One parsed file, or a family's file with the `match always` ones appended. All text points into `text`. */
struct group {
    const char         *family, *what;
    const char         *matches[GROUP_MATCHES_MAX]; /* the text after `match` */
    unsigned            n_matches;
    bool                any, always;
    struct group_event  event[COUNTER_EVENTS_MAX];
    unsigned            n_events;
    struct group_column column[GROUP_COLUMNS_MAX];
    unsigned            n_columns;
    const char         *absent[COUNTER_COLUMNS]; /* reason, or NULL */
    struct group_set    set[GROUP_SETS_MAX];
    unsigned            n_sets;
    void               *text[4]; /* mappings that the strings live in */
    size_t              text_bytes[4];
    unsigned            n_texts;
};

/* Read who the CPU is from a file in the form of /proc/cpuinfo. 0, or -1 with `why`. */
int cpu_identify(const char *path, struct cpu_id *, char why[COUNTER_REASON_MAX]);

/* Append the file at `path` to *group (zeroed before the first). 0, or -2 with `why` as FILE:LINE: text. */
int group_parse(const char *path, struct group *, char why[COUNTER_REASON_MAX]);

/* True if one of the group's match lines holds for `cpu` (match any and match always do not count). */
bool group_matches(const struct group *, const struct cpu_id *);

/* Parse every file of `dir` and keep the family of `cpu` with the `match always` ones. 0; -2 if any file is
 * malformed or two families fit; -3 if the folder cannot be read or holds no family that fits. */
int group_choose(const char *dir, const struct cpu_id *, struct group *, char why[COUNTER_REASON_MAX]);

/* Forget a group: unmap its text. */
void group_drop(struct group *);

/* The column called `name`, or -1. */
int counter_column_named(const char *name);

extern const char *const group_dialect_name[DIALECTS];

#endif
