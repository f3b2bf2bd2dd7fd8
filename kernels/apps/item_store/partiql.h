/*
 * partiql.h - one statement of PartiQL: INSERT INTO "table" VALUE {'name': value, ...}
 *
 * value is 'text' ('' stands for a quote), a number, true, false, null, [value, ...], {'name': value, ...}, << value,
 * ... >> (a set of texts or of numbers), or ?, the next of the parameters.
 */
#ifndef AK_PARTIQL_H
#define AK_PARTIQL_H

#include <jansson.h>

#define PARTIQL_NAME_MAX 256 /* bytes of a table's name, with its terminator */

/* The item as typed JSON (attribute.h; not checked), a new reference; `parameters` is an array of typed values, or
 * NULL. NULL with *why, which lasts, where the statement is no such INSERT. */
json_t *partiql_insert(const char *statement, json_t *parameters, char table[PARTIQL_NAME_MAX],
                       const char **why);

#endif
