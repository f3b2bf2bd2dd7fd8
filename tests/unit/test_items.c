/*
 * The item store's own parsers: typed values, a PartiQL INSERT, and the generator whose two forms must come to the
 * same item. Each statement is cut short at every byte as well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "apps/item_store/attribute.c"
#include "apps/item_store/items.c"
#include "apps/item_store/partiql.c"

#define SEED  7
#define ITEMS 300

/* ---- typed values ---- */

static void types_are_checked(void **state)
{
    static const struct {
        const char *map;
        bool well;
    } cases[] = {
        {"{}", true},
        {"{\"a\":{\"S\":\"\"}}", true},
        {"{\"a\":{\"N\":\"-1.5e+3\"}}", true},
        {"{\"a\":{\"B\":\"aGFsbG8=\"}}", true},
        {"{\"a\":{\"BOOL\":false},\"b\":{\"NULL\":true}}", true},
        {"{\"a\":{\"L\":[{\"M\":{\"b\":{\"SS\":[\"x\",\"y\"]}}},{\"L\":[]}]}}", true},
        {"{\"a\":{\"NS\":[\"1\",\"2.5\"]}}", true},
        {"[]", false},
        {"{\"\":{\"S\":\"x\"}}", false},
        {"{\"a\":\"x\"}", false},
        {"{\"a\":{}}", false},
        {"{\"a\":{\"S\":\"x\",\"N\":\"1\"}}", false},
        {"{\"a\":{\"S\":1}}", false},
        {"{\"a\":{\"N\":1}}", false},
        {"{\"a\":{\"N\":\"\"}}", false},
        {"{\"a\":{\"N\":\"1e\"}}", false},
        {"{\"a\":{\"N\":\".\"}}", false},
        {"{\"a\":{\"B\":\"abc\"}}", false},
        {"{\"a\":{\"BOOL\":\"true\"}}", false},
        {"{\"a\":{\"NULL\":false}}", false},
        {"{\"a\":{\"SS\":[]}}", false},
        {"{\"a\":{\"NS\":[\"1\",\"x\"]}}", false},
        {"{\"a\":{\"L\":[{\"S\":\"x\"},{\"T\":\"x\"}]}}", false},
        {"{\"a\":{\"M\":[]}}", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *map = json_loads(cases[i].map, 0, NULL);
        assert_non_null(map);
        if ((attributes_fault(map, 0) == NULL) != cases[i].well)
            fail_msg("%s: %s", cases[i].map, cases[i].well ? "refused" : "taken");
        json_decref(map);
    }
}

/* A list in a list, so many times. */
static json_t *nested(unsigned depth)
{
    json_t *value = json_pack("{s:s}", "S", "x");
    while (depth-- > 0)
        value = json_pack("{s:[o]}", "L", value);
    return json_pack("{s:o}", "a", value);
}

static void depth_is_limited(void **state)
{
    json_t *most = nested(ATTRIBUTE_DEPTH_MAX), *more = nested(ATTRIBUTE_DEPTH_MAX + 1);
    (void)state;
    assert_null(attributes_fault(most, 0));
    assert_non_null(attributes_fault(more, 0));
    json_decref(most);
    json_decref(more);
}

/* ---- statements ---- */

/* The item of a statement as JSON with sorted keys, or "refused". */
static const char *read_as(const char *statement, const char *parameters)
{
    static char text[ITEM_BODY_MAX];
    char table[PARTIQL_NAME_MAX] = "";
    const char *why = NULL;
    json_t *given = parameters ? json_loads(parameters, 0, NULL) : NULL;
    json_t *item = partiql_insert(statement, given, table, &why);

    json_decref(given);
    assert_true((item == NULL) == (why != NULL));
    if (item == NULL)
        return "refused";
    char *dumped = json_dumps(item, JSON_COMPACT | JSON_SORT_KEYS);
    snprintf(text, sizeof text, "%s %s", table, dumped);
    free(dumped);
    json_decref(item);
    return text;
}

static void statements_are_read(void **state)
{
    (void)state;
    assert_string_equal(read_as("INSERT INTO \"a table\" VALUE {'pk': 'it''s', 'n': -1.5e3}", NULL),
                        "a table {\"n\":{\"N\":\"-1.5e3\"},\"pk\":{\"S\":\"it's\"}}");
    assert_string_equal(
        read_as(" insert  into t value{'a':[1,'x',[],{}],'b':{'c':null,'d':TRUE,'e':false}} ", NULL),
        "t {\"a\":{\"L\":[{\"N\":\"1\"},{\"S\":\"x\"},{\"L\":[]},{\"M\":{}}]},"
        "\"b\":{\"M\":{\"c\":{\"NULL\":true},\"d\":{\"BOOL\":true},\"e\":{\"BOOL\":false}}}}");
    assert_string_equal(read_as("INSERT INTO t VALUE {'s':<<'x','y'>>,'n':<<1, 2>>,\"q\":''}", NULL),
                        "t {\"n\":{\"NS\":[\"1\",\"2\"]},\"q\":{\"S\":\"\"},\"s\":{\"SS\":[\"x\",\"y\"]}}");
    assert_string_equal(read_as("INSERT INTO t VALUE {'a':?,'b':?}", "[{\"S\":\"1\"},{\"N\":\"2\"}]"),
                        "t {\"a\":{\"S\":\"1\"},\"b\":{\"N\":\"2\"}}");
}

static void other_statements_are_refused(void **state)
{
    static const char *const statements[] = {
        "",
        "SELECT * FROM t",
        "INSERT INTO t",
        "INSERT INTO VALUE {}",
        "INSERTINTO t VALUE {}",
        "INSERT INTO \"t VALUE {}",
        "INSERT INTO t VALUES {}",
        "INSERT INTO t VALUE {} x",
        "INSERT INTO t VALUE {'a'}",
        "INSERT INTO t VALUE {a:1}",
        "INSERT INTO t VALUE {'a':}",
        "INSERT INTO t VALUE {'a':1,}",
        "INSERT INTO t VALUE {'a':1,'a':2}",
        "INSERT INTO t VALUE {'a':'x''}",
        "INSERT INTO t VALUE {'a':truex}",
        "INSERT INTO t VALUE {'a':<<>>}",
        "INSERT INTO t VALUE {'a':<<1,'x'>>}",
        "INSERT INTO t VALUE {'a':<<[1]>>}",
        "INSERT INTO t VALUE {'a':1.2.3}",
        "INSERT INTO t VALUE {'a':?}",
        "INSERT INTO t VALUE {'a':'\xff'}",
        "INSERT INTO t VALUE {'\xff':1}",
    };
    char deep[256] = "INSERT INTO t VALUE {'a':";
    (void)state;
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        if (strcmp(read_as(statements[i], NULL), "refused") != 0)
            fail_msg("taken: %s", statements[i]);
    assert_string_equal(read_as("INSERT INTO t VALUE {'a':1}", "[{\"S\":\"x\"}]"), "refused");
    memset(deep + strlen(deep), '[', 200);
    assert_string_equal(read_as(deep, NULL), "refused");
}

/* ---- items ---- */

/* The typed item in a request's body; *statement: the PartiQL, of an insert. */
static json_t *item_sent(enum item_form form, uint64_t n, char *statement)
{
    char text[ITEM_BODY_MAX], table[PARTIQL_NAME_MAX];
    const char *why;
    json_t *body = json_loadb(text, item_body(text, form, SEED, n), JSON_REJECT_DUPLICATES, NULL);

    assert_non_null(body);
    strcpy(statement, form == ITEM_INSERT ? json_string_value(json_object_get(body, "Statement")) : "");
    json_t *item = form == ITEM_INSERT ? partiql_insert(statement, NULL, table, &why)
                                       : json_incref(json_object_get(body, "Item"));
    json_decref(body);
    return item;
}

static void both_forms_are_one_item(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < ITEMS; n++) {
        char text[ITEM_BODY_MAX], statement[ITEM_BODY_MAX], table[PARTIQL_NAME_MAX];
        const char *why;
        json_t *item = json_loadb(text, item_json(text, SEED, n), 0, NULL);
        json_t *put = item_sent(ITEM_PUT, n, statement), *insert = item_sent(ITEM_INSERT, n, statement);
        assert_true(json_equal(item, put));
        assert_true(json_equal(item, insert));
        assert_null(attributes_fault(item, 0));
        json_decref(put);
        json_decref(insert);
        json_decref(item);
        for (size_t length = n < 3 ? strlen(statement) : 0; length-- > 0;) {
            statement[length] = '\0';
            assert_null(partiql_insert(statement, NULL, table, &why));
        }
    }
}

static void keys_tell_their_number(void **state)
{
    static const uint64_t numbers[] = {0, 1, 599999, ITEM_WARM, ITEM_WARM + 255};
    char key[ITEM_KEY_MAX];
    uint64_t n;
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        item_key(key, SEED, numbers[i]);
        assert_true(item_number(key, SEED, &n));
        assert_int_equal(n, numbers[i]);
        assert_false(item_number(key, SEED + 1, &n));
    }
    assert_false(item_number("wrong", SEED, &n));
    assert_false(item_number("0000000000000000-0000000000000000", SEED, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_checked),       cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(statements_are_read),     cmocka_unit_test(other_statements_are_refused),
        cmocka_unit_test(both_forms_are_one_item), cmocka_unit_test(keys_tell_their_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
