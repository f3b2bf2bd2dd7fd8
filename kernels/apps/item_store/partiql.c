#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "attribute.h"
#include "partiql.h"

/* A reading position. Once `why` is set, nothing more is read. */
struct reader {
    const char *at;
    json_t *parameters;
    size_t used; /* parameters that ? took */
    unsigned depth;
    const char *why;
};

static json_t *fault(struct reader *r, const char *why)
{
    if (r->why == NULL)
        r->why = why;
    return NULL;
}

static void blanks_skip(struct reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

static bool take(struct reader *r, const char *text)
{
    blanks_skip(r);
    if (strncmp(r->at, text, strlen(text)) != 0)
        return false;
    r->at += strlen(text);
    return true;
}

/* A word in any case, and its end. */
static bool take_word(struct reader *r, const char *word)
{
    size_t length = strlen(word);

    blanks_skip(r);
    if (strncasecmp(r->at, word, length) != 0 || isalnum((unsigned char)r->at[length]) ||
        r->at[length] == '_')
        return false;
    r->at += length;
    return true;
}

/* Quoted text, its quotes doubled inside, as a block of its own; NULL after fault(). */
static char *quoted_read(struct reader *r, char quote)
{
    const char *at = r->at + 1;
    char *text = malloc(strlen(r->at)), *to = text;

    if (text == NULL)
        return (char *)fault(r, "out of memory");
    for (; *at != '\0'; *to++ = *at++)
        if (*at == quote && *++at != quote)
            break;
    if (at[-1] != quote || at == r->at + 1) {
        free(text);
        return (char *)fault(r, "a quoted text does not end");
    }
    *to = '\0';
    r->at = at;
    return text;
}

static json_t *typed(struct reader *r, const char *type, json_t *value)
{
    json_t *object = json_object();
    if (object == NULL || json_object_set_new(object, type, value) != 0) { /* takes the value in any case */
        json_decref(object);
        return fault(r, "a text is not UTF-8, or memory is out");
    }
    return object;
}

static json_t *text_read(struct reader *r)
{
    char *text = quoted_read(r, '\'');
    json_t *value = text ? typed(r, "S", json_string(text)) : NULL;
    free(text);
    return value;
}

/* DynamoDB keeps numbers as text. */
static json_t *number_read(struct reader *r)
{
    size_t length = strspn(r->at, "+-.0123456789eE");
    char *text = strndup(r->at, length);

    if (text == NULL || !attribute_is_number(text)) {
        free(text);
        return fault(r, "expected a value");
    }
    r->at += length;
    json_t *value = typed(r, "N", json_string(text));
    free(text);
    return value;
}

static json_t *parameter_read(struct reader *r)
{
    json_t *value = json_array_get(r->parameters, r->used++);
    return value ? json_incref(value) : fault(r, "more ? than parameters");
}

static json_t *value_read(struct reader *r);

static json_t *list_read(struct reader *r)
{
    json_t *list = json_array();

    if (take(r, "]"))
        return typed(r, "L", list);
    do {
        json_array_append_new(list, value_read(r));
    } while (r->why == NULL && take(r, ","));
    if (r->why == NULL && !take(r, "]"))
        fault(r, "a list does not end");
    return typed(r, "L", list);
}

/* Of texts or of numbers: what the first is, all are. */
static json_t *set_read(struct reader *r)
{
    json_t *set = json_array();
    const char *type = NULL;

    do {
        json_t *value = value_read(r), *text;
        const char *own = json_object_iter_key(json_object_iter(value));
        if (type == NULL && own != NULL)
            type = *own == 'N' ? "N" : "S";
        text = type ? json_object_get(value, type) : NULL;
        if (!json_is_string(text))
            fault(r, "a set holds something else than texts or numbers alone");
        json_array_append(set, text);
        json_decref(value);
    } while (r->why == NULL && take(r, ","));
    if (r->why == NULL && !take(r, ">>"))
        fault(r, "a set does not end");
    return typed(r, type && *type == 'N' ? "NS" : "SS", set);
}

/* After its brace; the names are not yet the keys of typed values. */
static json_t *members_read(struct reader *r)
{
    json_t *members = json_object();

    if (take(r, "}"))
        return members;
    do {
        blanks_skip(r);
        char *name = *r->at == '\'' || *r->at == '"' ? quoted_read(r, *r->at)
                                                     : (char *)fault(r, "expected a quoted name");
        if (name != NULL && !take(r, ":"))
            fault(r, "expected : after a name");
        json_t *value = r->why == NULL ? value_read(r) : NULL;
        if (value != NULL && json_object_get(members, name) != NULL)
            fault(r, "a name stands twice");
        if (value != NULL && json_object_set_new(members, name, value) != 0)
            fault(r, "a name is not UTF-8, or memory is out");
        free(name);
    } while (r->why == NULL && take(r, ","));
    if (r->why == NULL && !take(r, "}"))
        fault(r, "a map does not end");
    return members;
}

/* A new reference, or NULL after fault(). */
static json_t *value_read(struct reader *r)
{
    json_t *value;

    if (r->depth++ > ATTRIBUTE_DEPTH_MAX)
        return fault(r, "lists and maps lie too deep");
    blanks_skip(r);
    if (*r->at == '\'')
        value = text_read(r);
    else if (take(r, "<<"))
        value = set_read(r);
    else if (take(r, "["))
        value = list_read(r);
    else if (take(r, "{"))
        value = typed(r, "M", members_read(r));
    else if (take(r, "?"))
        value = parameter_read(r);
    else if (take_word(r, "true"))
        value = typed(r, "BOOL", json_true());
    else if (take_word(r, "false"))
        value = typed(r, "BOOL", json_false());
    else if (take_word(r, "null"))
        value = typed(r, "NULL", json_true());
    else
        value = number_read(r);
    r->depth--;
    return value;
}

static char *bare_name_read(struct reader *r)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    char *name = strndup(r->at, strspn(r->at, letters));
    r->at += name ? strlen(name) : 0;
    return name;
}

static bool table_read(struct reader *r, char table[PARTIQL_NAME_MAX])
{
    blanks_skip(r);
    char *name = *r->at == '"' ? quoted_read(r, '"') : bare_name_read(r);
    bool well = name != NULL && *name != '\0' && strlen(name) < PARTIQL_NAME_MAX;
    if (well)
        memcpy(table, name, strlen(name) + 1);
    else
        fault(r, "expected a table's name");
    free(name);
    return well;
}

json_t *partiql_insert(const char *statement, json_t *parameters, char table[PARTIQL_NAME_MAX],
                       const char **why)
{
    struct reader r = {.at = statement, .parameters = parameters};
    json_t *item = NULL;

    if (!take_word(&r, "INSERT") || !take_word(&r, "INTO"))
        fault(&r, "expected INSERT INTO");
    else if (table_read(&r, table) && (!take_word(&r, "VALUE") || !take(&r, "{")))
        fault(&r, "expected VALUE { after the table");
    else if (r.why == NULL)
        item = members_read(&r);
    blanks_skip(&r);
    if (r.why == NULL && *r.at != '\0')
        fault(&r, "something stands after the item");
    if (r.why == NULL && r.used < json_array_size(parameters))
        fault(&r, "more parameters than ?");
    if (r.why != NULL) {
        json_decref(item);
        item = NULL;
    }
    *why = r.why;
    return item;
}
