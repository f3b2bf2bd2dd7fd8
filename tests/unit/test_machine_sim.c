/* The geometry of a simulated machine: its text form both ways, and what cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../kernels/simulator/machine.h"

static char why[MACHINE_WHY_MAX];

static void set(struct machine *machine, const char *word)
{
    if (!machine_set(machine, word, why))
        fail_msg("%s", why);
}

static void the_default_can_be(void **state)
{
    const char *key;
    (void)state;
    if (!machine_check(&machine_default, &key, why))
        fail_msg("%s: %s", key, why);
    assert_int_equal(machine_cores(&machine_default), 8);
}

static void text_both_ways(void **state)
{
    char text[MACHINE_TEXT_MAX], again[MACHINE_TEXT_MAX];
    struct machine machine = {0};
    (void)state;
    machine_text(&machine_default, ',', text);
    assert_non_null(strstr(text, "nodes=1,cores_per_node=8,mhz=3200,l1=32768:8:4,"));
    char *rest = NULL;
    for (char *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest))
        set(&machine, word);
    assert_memory_equal(&machine, &machine_default, sizeof machine);

    /* The longest there is. */
    memset(&machine, 0xff, sizeof machine);
    machine_text(&machine, ' ', text);
    assert_true(strlen(text) + 1 < MACHINE_TEXT_MAX);
    struct machine copy = {0};
    for (char *word = strtok_r(strcpy(again, text), " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest))
        set(&copy, word);
    machine_text(&copy, ' ', again);
    assert_string_equal(text, again);
}

static void words(void **state)
{
    static const char *const bad[] = {
        "",
        "=",
        "nodes",
        "nodes=",
        "nodes=x",
        "nodes=-1",
        "nodes=+1",
        "nodes= 1",
        "nodes=1 ",
        "nodes=1:2",
        "nodes=0x4",
        "nodes=4294967296",
        "node=1",
        "nodesx=1",
        "Nodes=1",
        "l1=",
        "l1=32768",
        "l1=32768:8",
        "l1=32768:8:",
        "l1=32768:8:4:1",
        "l1=:8:4",
        "l1=32768::4",
        "l1=18446744073709551616:8:4",
        "l1=32768:4294967296:4",
        "l1=32K:8:4",
    };
    struct machine machine = machine_default;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        why[0] = '\0';
        if (machine_set(&machine, bad[i], why))
            fail_msg("'%s' passes", bad[i]);
        assert_true(why[0] != '\0');
        assert_null(strchr(why, '\n'));
        assert_memory_equal(&machine, &machine_default, sizeof machine);
    }
    /* A word of any length is reported in room. */
    char long_word[2000];
    memset(long_word, 'x', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_false(machine_set(&machine, long_word, why));
    memcpy(long_word, "l1=", 3);
    assert_false(machine_set(&machine, long_word, why));
    assert_true(strlen(why) < MACHINE_WHY_MAX);

    set(&machine, "l2=0");
    assert_int_equal(machine.l2.size, 0);
    set(&machine, "l1=49152:12:5");
    assert_int_equal(machine.l1.size, 49152);
    assert_int_equal(machine.l1.ways, 12);
    assert_int_equal(machine.l1.latency, 5);
}

/* Words upon the default, which make a machine that can be, or else a wrong key. */
static void what_can_be(void **state)
{
    static const struct {
        const char *words, *key;
    } cases[] = {
        {"nodes=4 cores_per_node=16", NULL},
        {"nodes=8 cores_per_node=16", NULL},
        {"nodes=1 cores_per_node=128", NULL},
        {"cores_per_node=1", NULL},
        {"l2=0", NULL},
        {"l2=0:0:0", NULL},
        {"l1=49152:12:5", NULL},
        {"l1=64:1:1", NULL},
        {"l1=4096:64:1", NULL},
        {"cache_remote=0 memory_remote=0", NULL}, /* one node: there are none */
        {"nodes=0", "nodes"},
        {"nodes=9 cores_per_node=1", "nodes"},
        {"nodes=4294967295 cores_per_node=1", "nodes"},
        {"cores_per_node=0", "cores_per_node"},
        {"cores_per_node=129", "cores_per_node"},
        {"nodes=8 cores_per_node=17", "cores_per_node"},
        {"nodes=2 cores_per_node=2147483649", "cores_per_node"},
        {"mhz=0", "mhz"},
        {"l1=0:8:4", "l1"},
        {"l1=32768:0:4", "l1"},
        {"l1=32768:65:4", "l1"},
        {"l1=32768:7:4", "l1"},
        {"l1=32800:8:4", "l1"},
        {"l1=49152:8:4", "l1"},
        {"l1=32768:8:0", "l1"},
        {"l2=32768:8:12", "l2"},
        {"l2=1:8:12", "l2"},
        {"l2=524288:8:4", "l2"},
        {"l2=524288:0:12", "l2"},
        {"l3=0", "l3"},
        {"l3=524288:16:46", "l3"},
        {"l2=0 l3=32768:16:46", "l3"},
        {"l3=16777216:16:12", "l3"},
        {"l3=18446744073709551552:1:46", "l3"},
        {"l3=2147483648:16:46", "l3"},
        {"cache_local=45", "cache_local"},
        {"memory_local=46", "memory_local"},
        {"nodes=2 cache_remote=63", "cache_remote"},
        {"nodes=2 memory_remote=319", "memory_remote"},
        {"memory_local=1000000", NULL},
        {"memory_local=1000001", "memory_local"},
        {"l1=32768:8:4294967292 l2=524288:8:4294967293 l3=16777216:16:4294967294", "l1"},
        {"nodes=2 memory_remote=4294967295", "memory_remote"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct machine machine = machine_default;
        char text[128], *rest = NULL;
        const char *key = NULL;
        snprintf(text, sizeof text, "%s", cases[i].words);
        for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
            set(&machine, word);
        why[0] = '\0';
        bool can = machine_check(&machine, &key, why);
        if (can != (cases[i].key == NULL))
            fail_msg("'%s': %s", cases[i].words, can ? "passes" : why);
        if (can)
            continue;
        assert_string_equal(key, cases[i].key);
        assert_true(strlen(why) > 0 && strlen(why) < MACHINE_WHY_MAX && strchr(why, '\n') == NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_can_be),
        cmocka_unit_test(text_both_ways),
        cmocka_unit_test(words),
        cmocka_unit_test(what_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
