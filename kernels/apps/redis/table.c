#include <stdlib.h>
#include <string.h>

#include "table.h"

/* Field `wanted` of a line, without its quotes; NULL past the last. A quote inside a field is doubled. */
static const char *field_of(const char *line, unsigned wanted, size_t *length)
{
    for (unsigned i = 0; *line == '"'; i++) {
        const char *start = ++line;
        while (*line != '\0' && *line != '\n' && (*line != '"' || line[1] == '"'))
            line += *line == '"' ? 2 : 1;
        *length = (size_t)(line - start);
        if (i == wanted)
            return *line == '"' ? start : NULL;
        line += *line == '"';
        line += *line == ',';
    }
    return NULL;
}

bool table_value(const char *table, const char *name, double *value)
{
    const char *values = strchr(table, '\n'), *field;
    size_t length;

    for (unsigned i = 0; values != NULL && (field = field_of(table, i, &length)) != NULL; i++) {
        if (length != strlen(name) || memcmp(field, name, length) != 0)
            continue;
        char *end;
        if ((field = field_of(values + 1, i, &length)) == NULL || length == 0)
            return false;
        *value = strtod(field, &end);
        return end == field + length;
    }
    return false;
}
