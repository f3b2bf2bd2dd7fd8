#include <string.h>

#include "attribute.h"

static const char *digits_skip(const char *at, unsigned *digits)
{
    for (; *at >= '0' && *at <= '9'; at++)
        ++*digits;
    return at;
}

bool attribute_is_number(const char *text)
{
    unsigned digits = 0, exponent = 1;
    const char *at = digits_skip(text + (*text == '-' || *text == '+'), &digits);

    if (*at == '.')
        at = digits_skip(at + 1, &digits);
    if (digits > 0 && (*at == 'e' || *at == 'E')) {
        exponent = 0;
        at++;
        at = digits_skip(at + (*at == '-' || *at == '+'), &exponent);
    }
    return digits > 0 && exponent > 0 && *at == '\0';
}

static bool is_base64(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t length = strspn(text, letters), padding = strspn(text + length, "=");
    return padding <= 2 && text[length + padding] == '\0' && (length + padding) % 4 == 0;
}

/* Of the types S, N and B, the first letter of a set's type too. */
static const char *scalar_fault(char type, json_t *value)
{
    if (!json_is_string(value))
        return "a value is not a string, as its type has it";
    if (type == 'N' && !attribute_is_number(json_string_value(value)))
        return "the text of a number is none";
    if (type == 'B' && !is_base64(json_string_value(value)))
        return "the text of a binary value is not base64";
    return NULL;
}

static const char *set_fault(char type, json_t *values)
{
    const char *fault = json_array_size(values) == 0 ? "a set is empty or no array" : NULL;
    for (size_t i = 0; fault == NULL && i < json_array_size(values); i++)
        fault = scalar_fault(type, json_array_get(values, i));
    return fault;
}

static const char *value_fault(json_t *typed, unsigned depth);

static const char *list_fault(json_t *list, unsigned depth)
{
    const char *fault = json_is_array(list) ? NULL : "the value of a list is no array";
    for (size_t i = 0; fault == NULL && i < json_array_size(list); i++)
        fault = value_fault(json_array_get(list, i), depth + 1);
    return fault;
}

static const char *value_fault(json_t *typed, unsigned depth)
{
    void *only = json_object_iter(typed);

    if (depth > ATTRIBUTE_DEPTH_MAX)
        return "lists and maps lie too deep";
    if (json_object_size(typed) != 1)
        return "a value must have exactly one type";
    const char *type = json_object_iter_key(only);
    json_t *value = json_object_iter_value(only);
    if (strcmp(type, "S") == 0 || strcmp(type, "N") == 0 || strcmp(type, "B") == 0)
        return scalar_fault(*type, value);
    if (strcmp(type, "BOOL") == 0)
        return json_is_boolean(value) ? NULL : "the value of a BOOL is neither true nor false";
    if (strcmp(type, "NULL") == 0)
        return json_is_true(value) ? NULL : "the value of a NULL is not true";
    if (strcmp(type, "SS") == 0 || strcmp(type, "NS") == 0 || strcmp(type, "BS") == 0)
        return set_fault(*type, value);
    if (strcmp(type, "L") == 0)
        return list_fault(value, depth);
    return strcmp(type, "M") == 0 ? attributes_fault(value, depth + 1)
                                  : "a value has a type that there is not";
}

const char *attributes_fault(json_t *map, unsigned depth)
{
    const char *name, *fault = json_is_object(map) ? NULL : "the value of a map is no object";
    json_t *value;

    json_object_foreach(map, name, value)
    {
        if (fault != NULL)
            break;
        fault = *name == '\0' ? "an attribute has no name" : value_fault(value, depth);
    }
    return fault;
}
