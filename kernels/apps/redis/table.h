/*
 * table.h - what `redis-benchmark --csv` prints: a line of names and a line of values, quoted. Older ones print no
 * names, and no more than the rate.
 */
#ifndef AK_REDIS_TABLE_H
#define AK_REDIS_TABLE_H

#include <stdbool.h>

/* The value under `name`; false where the table has no such column or no number in it. */
bool table_value(const char *table, const char *name, double *value);

#endif
