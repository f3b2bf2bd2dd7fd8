/* Numbers, lists, lines and names that come from users and kernels. */
#include "test_runner_fixture.h"
#include "text.h"

static void numbers(void **state)
{
    (void)state;
    uint64_t n;
    assert_true(text_uint("0", 0, &n) && n == 0);
    assert_true(text_uint("18446744073709551615", 0, &n) && n == UINT64_MAX);
    assert_true(text_uint("10M", 1000, &n) && n == 10000000);
    assert_true(text_uint("64k", 1024, &n) && n == 65536);
    assert_true(text_uint("1G", 1024, &n) && n == 1073741824);
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.5",
                                      "1e6",
                                      "0x10",
                                      "K",
                                      "1KB",
                                      "1T",
                                      "18446744073709551616",
                                      "18446744073709551615K",
                                      "99999999999999999999",
                                      "nan"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(text_uint(bad[i], 1000, &n));
    assert_false(text_uint("1K", 0, &n));
}

static void one_line(void **state)
{
    (void)state;
    char text[] = "  a\tb\r\n\033[31mred\x01\xff\xc3\x28 \xc3\xa4\x7f end \n";
    text_one_line(text);
    assert_string_equal(text, "a b [31mred ( \xc3\xa4 end");
    char empty[] = "\n\t ";
    text_one_line(empty);
    assert_string_equal(empty, "");
}

static void utf8(void **state)
{
    (void)state;
    size_t at = 99;
    assert_true(text_is_utf8("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 10, &at));
    static const char *const bad[] = {"a\xff", "a\xc0\x80", "a\xed\xa0\x80", "a\xf5\x80\x80\x80",
                                      "a\xe2\x82"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(text_is_utf8(bad[i], strlen(bad[i]), &at));
        assert_int_equal(at, 1);
    }
    assert_false(text_is_utf8("a\0b", 3, &at));
}

static void lists(void **state)
{
    (void)state;
    struct arena a = {0};
    struct words w = text_list(&a, " a, b ,c");
    assert_int_equal(w.count, 3);
    assert_string_equal(w.word[1], "b");
    w = text_list(&a, "a,,b,");
    assert_int_equal(w.count, 4);
    assert_string_equal(w.word[3], "");
    w = text_list_loose(&a, " 1 2,4, 8 ");
    assert_int_equal(w.count, 4);
    assert_string_equal(w.word[3], "8");
    assert_int_equal(text_list_loose(&a, " , ").count, 0);
    assert_string_equal(text_last_line(&a, "one\ntwo\n\n  \n", 100), "two");
    assert_string_equal(text_last_line(&a, "", 100), "");
    arena_free(&a);
}

static void hints(void **state)
{
    (void)state;
    struct arena a = {0};
    struct words known = {0};
    assert_has(nearest_hint(&a, "x", &known), "there are none");
    words_add(&a, &known, "contention");
    words_add(&a, &known, "fastpath");
    assert_has(nearest_hint(&a, "contentoin", &known), "did you mean 'contention'");
    assert_has(nearest_hint(&a, "zzz", &known), "contention, fastpath");
    arena_free(&a);
}

/* Row ids are compared between versions of ak: the hash must never change. */
static void hash_is_fixed(void **state)
{
    (void)state;
    assert_true(hash_bytes(HASH_START, "a", 1) == 0xaf63dc4c8601ec8cu);
    assert_true(hash_text(HASH_START, "ab") != hash_text(hash_text(HASH_START, "a"), "b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers), cmocka_unit_test(one_line), cmocka_unit_test(utf8),
        cmocka_unit_test(lists),   cmocka_unit_test(hints),    cmocka_unit_test(hash_is_fixed),
    };
    return cmocka_run_group_tests_name("runner_text", tests, NULL, NULL);
}
