/*
 * score.h - a trace as the workers play it: decoded, checked, and in memory before anything is measured.
 *
 * Each thread with events becomes a part: an array of steps, 16 bytes each. A block lies in a slot of the part that makes
 * it. A slot whose block is taken by its own part is used again, the last one first, as the program's memory was; one whose
 * block another part takes is used once: it is empty until the block is there, and so that part can wait for it.
 *
 * Births and joins are steps too: BEAR opens a part's gate, each part begins by waiting at its own, and JOIN waits for a
 * part's end. For looks at memory the score is cut into PIECES of about as many events each, by the recorded time: what a
 * piece takes was made in it or before it.
 */
#ifndef AK_SCORE_H
#define AK_SCORE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace.h"

#define PIECES    1000u
#define NO_SLOT   UINT32_MAX

enum step_kind { STEP_MALLOC, STEP_CALLOC, STEP_ALIGNED, STEP_REALLOC, STEP_FREE, STEP_FREE_REMOTE, STEP_REALLOC_REMOTE,
                 STEP_BEAR, STEP_JOIN };

struct step {
    uint32_t slot;         /* that gets the block; BEAR, JOIN: the part */
    uint32_t size;
    uint32_t old_slot;     /* FREE..., REALLOC...: of the block taken */
    uint16_t old_part;     /* whose slot that is */
    uint8_t  kind;
    uint8_t  align_log2;   /* ALIGNED */
};
_Static_assert(sizeof(struct step) == 16, "four steps a line");

struct part {
    uint32_t thread;       /* of the trace */
    uint64_t steps, calls; /* calls: steps that are events of the program */
    uint64_t slots;        /* of its live set: */
    void    **block;       /* NULL: empty */
    uint32_t *size;        /* requested */
    uint64_t *mark;        /* what the block's first word holds, and its last one */
    struct step *step;
    uint64_t *time;        /* of each step, in ns since the recording began */
    uint64_t piece_end[PIECES]; /* steps of this part up to the end of a piece */
    uint32_t *inherited, *inherited_size; /* slots whose blocks are there before the first step */
    uint64_t inherited_count;
    bool     gated;        /* another part bears it */
    uint64_t live_at_end;  /* blocks of its own that nobody takes */
};

struct score {
    struct part *part;
    uint32_t parts;
    struct trace_facts facts;
    uint64_t calls, live_peak; /* live_peak: requested bytes */
};

/* 0; or an exit code with why: 2 where the file is no sound trace or cannot be played, 3 where it is not there. */
int score_read(struct score *, const char *path, char *why, size_t why_size);

#endif
