/*
 * trust.h - which metric of the simulated machine may be trusted in which mode. One table: rows are filled by it, and
 * `ak list counters` prints it.
 *
 * In weave mode threads run for a quantum each and their accesses are woven afterwards: what data they share is
 * seen, but a lock that is taken and given back within one quantum is never contended, and nobody waits. In timed
 * mode the core with the smallest clock runs next, so waiting takes time.
 */
#ifndef AK_TRUST_H
#define AK_TRUST_H

#include <stdbool.h>

enum trust {
    TRUST_NONE,  /* empty in a row, with the reason */
    TRUST_LIMIT, /* there, within the limit that `why` names */
    TRUST_FULL,
};

struct trust_metric {
    const char *name; /* a column of runs.csv or of metrics.csv; with a star at its end, all that begin so */
    enum trust weave, timed;
    const char *why; /* of what is not full */
};
extern const struct trust_metric trust_metrics[]; /* ends with a NULL name */

extern const char *const trust_words[]; /* "no", "limited", "yes" */

/* The entry that a column or metric falls under; NULL: it is none of the simulated machine's. */
const struct trust_metric *trust_find(const char *name);

/* Trust in a mode: weave or timed. */
enum trust trust_in(const struct trust_metric *, const char *mode);

#endif
