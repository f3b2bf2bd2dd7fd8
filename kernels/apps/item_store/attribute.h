/* attribute.h - typed values, as DynamoDB's JSON has them: {"S":"text"}, {"N":"12.5"}, {"L":[...]}, {"M":{...}} and
 * so on. */
#ifndef AK_ATTRIBUTE_H
#define AK_ATTRIBUTE_H

#include <stdbool.h>

#include <jansson.h>

#define ATTRIBUTE_DEPTH_MAX 32 /* of lists and maps in each other */

/* True for the text of a number: digits with at most one point, a sign, an exponent. */
bool attribute_is_number(const char *text);

/* Why this is no map of names to typed values, or NULL where it is one. */
const char *attributes_fault(json_t *map, unsigned depth);

#endif
