/*
 * compare_table.h - a comparison for people: a table that grows while it is measured, and the verdicts below it.
 */
#ifndef AK_COMPARE_TABLE_H
#define AK_COMPARE_TABLE_H

#include "compare.h"
#include "text.h"

/* On a terminal the table is drawn again after each launch; elsewhere a line a round goes to stderr. */
struct compare_view {
    bool terminal; /* stdout is one, and not taken by JSON */
    size_t lines;  /* of the last drawing, to be overwritten */
};

void compare_view_open(struct compare_view *, const struct comparison *);
/* `doing`: what is going on, a line; NULL: nothing any more, which leaves the terminal clean. */
void compare_view_show(struct compare_view *, const struct comparison *, const char *doing);
/* The whole: heading, table, verdicts, failures, notes. */
void compare_print(const struct comparison *, struct buffer *);

#endif
