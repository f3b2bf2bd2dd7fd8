/*
 * progress.h - how far a run is: one line that is rewritten on a terminal, a line a launch elsewhere.
 */
#ifndef AK_PROGRESS_H
#define AK_PROGRESS_H

#include "plan.h"
#include "result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    const struct plan *plan;
    bool terminal;
    uint64_t start_ms, row_ms;
    size_t first, done;         /* rows done before this start; now */
    size_t rows;                /* of the plan, less those that turned out not to be needed */
    double cost_all, cost_done; /* of this start's rows, rough: weighs the time left */
    size_t width;               /* of the line on the terminal */
};

void progress_start(struct progress *, const struct plan *, const bool *done, size_t done_count);
/* Before a launch. */
void progress_row(struct progress *, const struct planned *);
/* After it. */
void progress_done(struct progress *, const struct planned *, const struct result *);
/* A planned launch that is not needed any more. */
void progress_spare(struct progress *, const struct planned *);
/* Leave the terminal's line clean. */
void progress_end(struct progress *);
/* "1 h 03 min", "4 min 10 s", "12 s". `text` of at least 32 bytes. */
const char *duration_text(double seconds, char text[32]);

#endif
