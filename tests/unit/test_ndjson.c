/* The lines of kernel ndjson and what its parser makes of them: whatever is changed in a line changes its sums, or is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "apps/ndjson/aggregate.c"
#include "apps/ndjson/generate.c"
#include "apps/ndjson/record.c"

#define LINES 2000

static void parser_and_generator_agree(void **state)
{
    (void)state;
    struct generator g;
    struct totals written = {0}, read = {0}, again = {0};
    char line[LINE_BYTES_MAX], why[200];
    size_t bytes = 0, fewest = SIZE_MAX, most = 0;
    generator_start(&g, 7);
    for (int i = 0; i < LINES; i++) {
        size_t length = generate_line(&g, line, &written);
        struct record *r = record_parse(line, length - 1, why);
        assert_true(length < LINE_BYTES_MAX && line[length - 1] == '\n');
        assert_null(memchr(line, '\n', length - 1));
        assert_non_null(r);
        fewest = r->values.fields < fewest ? r->values.fields : fewest;
        most = r->values.fields > most ? r->values.fields : most;
        record_fold(r, &read);
        record_free(r);
        bytes += length;
    }
    assert_null(totals_differ(&written, &read));
    assert_int_equal(fewest, 7);
    assert_int_equal(most, 10);
    assert_in_range(bytes / LINES, 170, 190);
    generator_start(&g, 7);
    for (int i = 0; i < LINES; i++)
        generate_line(&g, line, &again);
    assert_null(totals_differ(&written, &again));
    generator_start(&g, 8);
    again = (struct totals){0};
    for (int i = 0; i < LINES; i++)
        generate_line(&g, line, &again);
    assert_non_null(totals_differ(&written, &again));
}

/* Cut anywhere, or with another letter or digit anywhere but in the date. */
static void every_change_is_seen(void **state)
{
    (void)state;
    struct generator g;
    char line[LINE_BYTES_MAX], why[200];
    generator_start(&g, 3);
    for (int i = 0; i < 50; i++) {
        struct totals written = {0};
        size_t length = generate_line(&g, line, &written) - 1;
        for (size_t at = 0; at < length; at++) {
            struct totals read = {0};
            assert_null(record_parse(line, at, why));
            assert_true(*why != '\0');
            if (at < strlen("{\"ts\":\"2026-03-14T") || line[at] == 'Z')
                continue;
            char kept = line[at];
            line[at] = kept == '1' ? '2' : '1';
            struct record *r = record_parse(line, length, why);
            line[at] = kept;
            if (r) {
                record_fold(r, &read);
                assert_non_null(totals_differ(&written, &read));
            }
            record_free(r);
        }
    }
}

static void other_objects_are_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "", "[]", "{}", "null", "{\"ts\":1}", "{\"ts\":\"2026-03-14T09:26:53.589Z\",\"level\":\"loud\"}",
        "{\"ts\":\"2026-03-14T09:26:53.589Z\",\"level\":\"info\",\"user\":{\"name\":\"x\"},\"tags\":[1],\"msg\":\"\"}",
        "{\"ts\":\"2026-03-14T09:26:53.589Z\",\"level\":\"info\",\"user\":{\"name\":\"x\"},\"tags\":{},\"msg\":\"\"}",
        "{\"ts\":\"2026-03-14T09:26:53.589Z\",\"level\":\"info\",\"user\":{\"name\":\"x\"},\"tags\":[],\"msg\":7}",
        "{\"a\":1,\"a\":2}",
    };
    char why[200];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_null(record_parse(lines[i], strlen(lines[i]), why));
        assert_true(*why != '\0');
    }
}

static void sums_of_parts_are_the_whole(void **state)
{
    (void)state;
    struct totals part = {0}, thrice = {0}, added = {0};
    struct generator g;
    char line[LINE_BYTES_MAX];
    generator_start(&g, 5);
    generate_line(&g, line, &part);
    for (int i = 0; i < 3; i++) {
        generator_start(&g, 5);
        generate_line(&g, line, &added);
    }
    totals_add_all(&thrice, &part, 3);
    assert_null(totals_differ(&thrice, &added));
    assert_string_equal(totals_differ(&part, &added), "lines");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parser_and_generator_agree),
        cmocka_unit_test(every_change_is_seen),
        cmocka_unit_test(other_objects_are_refused),
        cmocka_unit_test(sums_of_parts_are_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
