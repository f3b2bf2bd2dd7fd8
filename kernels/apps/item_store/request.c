#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "attribute.h"
#include "items.h"
#include "partiql.h"
#include "request.h"
#include "store.h"

#define TARGET_START  "DynamoDB_20120810."
#define FAULT_START   "com.amazonaws.dynamodb.v20120810#"
#define SERIALIZATION "com.amazon.coral.service#SerializationException"
#define KEY_BYTES_MAX 2048

/* What an answer says is wrong; in `type` the names that DynamoDB's clients know. */
struct fault {
    const char *type, *message;
};

/* An insert, taken from a request. */
struct insert {
    json_t *item;    /* typed; our own reference */
    const char *key; /* inside item */
    bool put;        /* by PutItem: what is there already fails the condition */
};

static struct answer answer_json(unsigned status, json_t *json)
{
    struct answer answer = {status, json_dumps(json, JSON_COMPACT)};
    json_decref(json);
    return answer;
}

static struct answer answer_fault(unsigned status, const char *type, const char *message)
{
    return answer_json(status, json_pack("{s:s, s:s}", "__type", type, "message", message));
}

static int invalid(struct fault *fault, const char *message)
{
    *fault = (struct fault){"com.amazon.coral.validate#ValidationException", message};
    return -1;
}

static int table_check(const char *table, struct fault *fault)
{
    if (table == NULL)
        return invalid(fault, "TableName is no string");
    if (strcmp(table, ITEM_TABLE) == 0)
        return 0;
    *fault = (struct fault){FAULT_START "ResourceNotFoundException", "Requested resource not found"};
    return -1;
}

static int key_find(struct insert *insert, struct fault *fault)
{
    const char *wrong = attributes_fault(insert->item, 0);
    if (wrong != NULL)
        return invalid(fault, wrong);
    insert->key = json_string_value(json_object_get(json_object_get(insert->item, ITEM_KEY), "S"));
    if (insert->key == NULL || *insert->key == '\0' || strlen(insert->key) > KEY_BYTES_MAX)
        return invalid(fault, "the item has no key, or none that is a text of 1 to 2048 bytes");
    return 0;
}

/* attribute_not_exists(NAME), where NAME is the key's or an alias of it; blanks may stand between. */
static bool condition_is_new_key(const char *text, json_t *aliases)
{
    static const char function[] = "attribute_not_exists", blanks[] = " \t\n";
    char name[64];

    text += strspn(text, blanks);
    if (strncmp(text, function, sizeof function - 1) != 0)
        return false;
    text += sizeof function - 1;
    text += strspn(text, blanks);
    if (*text++ != '(')
        return false;
    text += strspn(text, blanks);
    size_t length = strcspn(text, " \t\n)");
    if (length >= sizeof name)
        return false;
    memcpy(name, text, length);
    name[length] = '\0';
    text += length;
    text += strspn(text, blanks);
    if (*text++ != ')' || text[strspn(text, blanks)] != '\0')
        return false;
    const char *aliased = name[0] == '#' ? json_string_value(json_object_get(aliases, name)) : name;
    return aliased != NULL && strcmp(aliased, ITEM_KEY) == 0;
}

static int put_read(json_t *root, struct insert *insert, struct fault *fault)
{
    const char *condition = json_string_value(json_object_get(root, "ConditionExpression"));

    if (table_check(json_string_value(json_object_get(root, "TableName")), fault) != 0)
        return -1;
    if (condition == NULL ||
        !condition_is_new_key(condition, json_object_get(root, "ExpressionAttributeNames")))
        return invalid(fault, "ConditionExpression: only attribute_not_exists(" ITEM_KEY ") is served");
    insert->put = true;
    insert->item = json_incref(json_object_get(root, "Item"));
    return key_find(insert, fault);
}

static int statement_read(json_t *root, struct insert *insert, struct fault *fault)
{
    const char *statement = json_string_value(json_object_get(root, "Statement")),
               *why = "Statement is no string";
    char table[PARTIQL_NAME_MAX];

    if (statement != NULL)
        insert->item = partiql_insert(statement, json_object_get(root, "Parameters"), table, &why);
    if (insert->item == NULL)
        return invalid(fault, why);
    return table_check(table, fault) != 0 ? -1 : key_find(insert, fault);
}

static struct answer insert_do(const struct insert *insert)
{
    char *text = json_dumps(insert->item, JSON_COMPACT);
    enum stored stored = text ? store_insert(insert->key, text) : STORE_FAILED;

    free(text);
    if (stored == STORE_FAILED)
        return answer_fault(500, FAULT_START "InternalServerError", "The request could not be processed");
    if (stored == STORE_EXISTS && insert->put)
        return answer_fault(400, FAULT_START "ConditionalCheckFailedException",
                            "The conditional request failed");
    if (stored == STORE_EXISTS)
        return answer_fault(400, FAULT_START "DuplicateItemException",
                            "Duplicate primary key exists in table");
    return answer_json(200, insert->put ? json_object() : json_pack("{s:[]}", "Items"));
}

struct answer request_answer(const char *target, const char *body, size_t length)
{
    int (*read)(json_t *, struct insert *, struct fault *) = NULL;
    struct insert insert = {0};
    struct fault fault;
    json_error_t error;

    if (target != NULL && strcmp(target, TARGET_START "PutItem") == 0)
        read = put_read;
    else if (target != NULL && strcmp(target, TARGET_START "ExecuteStatement") == 0)
        read = statement_read;
    if (read == NULL)
        return answer_fault(400, "com.amazon.coral.service#UnknownOperationException", "no such operation");
    json_t *root = json_loadb(body, length, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return answer_fault(400, SERIALIZATION, error.text);
    struct answer answer = !json_is_object(root) ? answer_fault(400, SERIALIZATION, "the body is no object")
                           : read(root, &insert, &fault) != 0 ? answer_fault(400, fault.type, fault.message)
                                                              : insert_do(&insert);
    json_decref(insert.item);
    json_decref(root);
    return answer;
}
