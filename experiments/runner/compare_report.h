/*
 * compare_report.h - a comparison as files: a CSV row a launch, and JSON of the whole. docs/compare.md lists the
 * columns.
 */
#ifndef AK_COMPARE_REPORT_H
#define AK_COMPARE_REPORT_H

#include "compare.h"
#include "text.h"

#include <jansson.h>

/* Header and rows, in the order of the launches. What was not measured is empty. */
void compare_csv(const struct comparison *, struct buffer *);
/* What the table says, in numbers. NULL where nothing is known. The caller's. */
json_t *compare_json(struct arena *, const struct comparison *);

#endif
