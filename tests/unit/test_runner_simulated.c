/* What the runner makes of a machine to simulate: its file, the plan's cells, the row. */
#include "result.h"
#include "simmachine.h"
#include "simulator/machine.h"
#include "simulator/quantum.h"
#include "test_runner_fixture.h"
#include "trust.h"

#define GEOMETRY                                                                                             \
    "[machine]\nwhat = w\nnodes = %s\ncores_per_node = 2\nmhz = 1000\n"                                      \
    "[l1]\nsize = %s\nways = 8\nlatency = 4\n[l2]\nsize = 256K\nways = 8\nlatency = 12\n"                    \
    "[l3]\nsize = 1M\nways = 16\nlatency = 40\n"
#define FAR  "[cache]\nlocal = 50\nremote = 100\n[memory]\nlocal = 200\nremote = 300\n"
#define NEAR "[cache]\nlocal = 50\n[memory]\nlocal = 200\n"

static char *machine(struct fixture *x, const char *name, const char *nodes, const char *size,
                     const char *rest)
{
    char *text = arena_printf(&x->arena, GEOMETRY "%s", nodes, size, rest);
    x->fault = (struct fault){0};
    return fixture_write(x, arena_printf(&x->arena, "%s.ini", name), text);
}

static void machines(void **state)
{
    struct fixture *x = *state;
    struct simmachine *m = simmachine_read(&x->arena, machine(x, "two", "2", "32K", FAR), &x->fault);
    assert_non_null(m);
    assert_string_equal(m->name, "two");
    assert_int_equal(m->cores, 4);
    assert_string_equal(m->words,
                        "nodes=2,cores_per_node=2,mhz=1000,l1=32768:8:4,l2=262144:8:12,l3=1048576:16:40,"
                        "cache_local=50,cache_remote=100,memory_local=200,memory_remote=300");
    assert_non_null(
        simmachine_read(&x->arena, machine(x, "one", "1", "32K", NEAR), &x->fault)); /* nothing is remote */
    char *two =
        fixture_write(x, "l1.ini",
                      "[machine]\nnodes = 1\ncores_per_node = 1\nmhz = 1\nline = 64\n[l1]\nsize = 512\n"
                      "ways = 8\nlatency = 1\n[l3]\nsize = 1K\nways = 16\nlatency = 9\n" NEAR);
    m = simmachine_read(&x->arena, two, &x->fault);
    assert_non_null(m);
    assert_has(m->words, ",l2=0:0:0,");
}

static void bad_machines(void **state)
{
    struct fixture *x = *state;
    static const struct {
        const char *nodes, *size, *rest, *line, *what;
    } cases[] = {
        {"2", "33K", FAR, ":6:", "l1: 33792 bytes: expected a power of two times 512"},
        {"2", "512K", FAR, ":10:", "l2: size of 262144: expected more than 524288"},
        {"100", "32K", FAR, ":3:", "nodes: 100 nodes: expected 1 to"},
        {"two", "32K", FAR, ":3:", "nodes = 'two', expected a whole number"},
        {"2", "32", FAR, ":6:", "l1"},
        {"2", "32K", NEAR, ":18:", "no 'remote' in [cache]"},
        {"2", "32K", "[cache]\nlocal = 50\nremote = 100\n[memory]\nlocal = 200\nremote = 4294967295\n",
         ":23:", "memory_remote: latency of 4294967295: expected at most 1000000"},
        {"2", "32K", FAR "[tlb]\nsize = 1\n", ":24:", "section [tlb]"},
        {"2", "32K", FAR "wayz = 1\n", ":24:", "'wayz' in [memory]"},
        {"2", "32K", "[cache]\nlocal = 10\nremote = 100\n[memory]\nlocal = 200\nremote = 300\n",
         ":19:", "cache_local"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = machine(x, "bad", cases[i].nodes, cases[i].size, cases[i].rest);
        assert_null(simmachine_read(&x->arena, path, &x->fault));
        assert_int_equal(x->fault.code, AK_USAGE);
        assert_has(x->fault.text, arena_printf(&x->arena, "%s%s", path, cases[i].line));
        assert_has(x->fault.text, cases[i].what);
    }
    char *path = fixture_write(x, "line.ini", "[machine]\nline = 128\n");
    x->fault = (struct fault){0};
    assert_null(simmachine_read(&x->arena, path, &x->fault));
    assert_has(x->fault.text, "line.ini:2: line = 128, expected 64");
    assert_null(simmachine_read(&x->arena, machine(x, "a b", "2", "32K", FAR), &(struct fault){0}));
    x->fault = (struct fault){0};
    assert_null(simmachine_read(&x->arena, machine(x, ".", "2", "32K", FAR), &x->fault));
    assert_has(x->fault.text, "..ini: the name begins with '.'");
}

/* The source tree that this test was built in. */
static char *shipped(struct fixture *x)
{
    char path[4096] = "";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    for (char *slash; length > 0 && (slash = strrchr(path, '/'));) {
        *slash = '\0';
        char *folder = arena_printf(&x->arena, "%s/experiments", path);
        if (access(arena_printf(&x->arena, "%s/machines/laptop.ini", folder), R_OK) == 0)
            return folder;
    }
    fail_msg("no experiments/machines above this program");
    return NULL;
}

/* What comes with the suite can be, and the machine that the simulator has of its own is the laptop's file. */
static void shipped_machines(void **state)
{
    struct fixture *x = *state;
    struct paths paths = {.experiments = shipped(x)};
    struct words names = simmachine_names(&x->arena, &paths);
    assert_true(names.count >= 4);
    for (size_t i = 0; i < names.count; i++) {
        const char *path = simmachine_locate(&x->arena, &paths, ".", names.word[i]);
        struct simmachine *m = simmachine_read(&x->arena, path, &x->fault);
        if (!m)
            fail_msg("%s", x->fault.text);
        assert_true(*m->what != '\0');
        struct machine read = {.nodes = 0}, own = machine_default;
        struct words list = text_list(&x->arena, m->words);
        char why[MACHINE_WHY_MAX];
        for (size_t w = 0; w < list.count; w++)
            assert_true(machine_set(&read, list.word[w], why));
        own.cache_remote = own.memory_remote = 0; /* the file names none: it has one node */
        if (strcmp(m->name, "laptop") == 0)
            assert_memory_equal(&read, &own, sizeof own);
    }
}

#define SWEEP "kernel = churn\nallocators = aa\ncounters = sim\nops = 10\n"

static void use_shipped(struct fixture *x)
{
    mkdir(arena_printf(&x->arena, "%s/machines", x->folder), 0777);
    machine(x, "machines/small", "1", "32K", NEAR);
    machine(x, "machines/big", "2", "32K", FAR);
    machine(x, "machines/also", "2", "32K", FAR);
}

static void cells(void **state)
{
    struct fixture *x = *state;
    struct sweep s;
    struct plan p;
    use_shipped(x);
    assert_true(fixture_plan(x, SWEEP "threads = 1, 2\n", "smoke", &s, &p));
    assert_string_equal(block_option(p.block, "machine"), "small"); /* the smallest that has the cores */
    assert_string_equal(block_option(p.block, "sim_mode"), "weave");
    assert_string_equal(block_option(p.block, "sim_quantum"), "1000");
    assert_true(fixture_plan(x, SWEEP "threads = 1, 3\n", "smoke", &s, &p));
    assert_int_equal(p.blocks, 2);
    assert_string_equal(block_option(&p.block[0], "machine"), "also"); /* one for the whole sweep */
    assert_null(p.block[1].member[0].skip);
    assert_true(fixture_plan(x, SWEEP "threads = 1, 5\n", "smoke", &s, &p));
    assert_string_equal(block_option(&p.block[1], "machine"), "also");
    assert_has(p.block[1].member[0].skip,
               "the simulated machine also has 4 cores, and 5 threads are asked for");
    assert_true(fixture_plan(x, SWEEP "machine = big, small\nsim_mode = weave, timed\nsim_quantum = 1, 2K\n",
                             "smoke", &s, &p));
    assert_int_equal(p.blocks, 2 * 2 * 2);
    assert_int_equal(p.machines, 2);
    assert_true(fixture_plan(x, SWEEP "machine = bad\n", "smoke", &s, &p) == false);
    assert_has(x->fault.text, "test.sweep:5: machine = 'bad', neither a machine of the suite nor a file");
    machine(x, "near", "1", "32K", NEAR);
    assert_true(fixture_plan(x, SWEEP "machine = near.ini\nsim_mode = timed\n", "smoke", &s,
                             &p)); /* beside the sweep */
    assert_string_equal(block_option(p.block, "machine"), "near");
    assert_string_equal(block_option(p.block, "sim_quantum"), arena_printf(&x->arena, "%d", TIMED_QUANTUM));
    struct words argv = {0};
    block_arguments(&x->arena, p.block, &argv);
    assert_true(words_have(&argv, "--counters"));
    for (size_t i = 0; i < argv.count; i++)
        assert_true(strncmp(argv.word[i], "--sim", 5) != 0 && strcmp(argv.word[i], "--machine") != 0);
    /* without sim they are idle */
    assert_true(fixture_plan(x, "kernel = churn\nallocators = aa\nmachine = near.ini\nsim_mode = timed\n",
                             "smoke", &s, &p));
    assert_string_equal(block_option(p.block, "machine"), "");
    assert_int_equal(p.machines, 0);
}

/* ---- rows ---- */

#define PATH "/lib/liba.so"
#define ROW(more)                                                                                            \
    "{\"schema\": 1, \"row\": {\"kernel\": \"churn\", \"threads\": 2, \"cpus\": 2, \"allocator_path\": "     \
    "\"" PATH "\", \"allocator_build_id\": \"\", \"status\": \"ok\", \"ops\": 20, \"counters\": \"sim\", "   \
              "\"cycles\": 500, "                                                                            \
    "\"l1d_miss\": 7, \"sim_false_sharing\": 3, \"sim_cycles_per_op\": 25.0" more "}"
#define STIRRED(times)                                                                                       \
    ", \"metrics\": [{\"name\": \"sim_stirred\", \"unit\": \"count\", \"value\": " times                     \
    ", \"reason\": null}, {\"name\": \"sim_lat_malloc_p50_ns\", \"unit\": \"ns\", \"value\": 12.5, "           \
    "\"reason\": null}]}"

static void take_end(struct fixture *x, enum child_end end, const char *mode, const char *out, struct result *r)
{
    static const struct run_facts facts = {"run-1", "test", "machine", 1};
    static struct plan p; /* the result points into it */
    struct sweep s;
    struct child_outcome o = {.end = end};
    use_shipped(x);
    assert_true(fixture_plan(x, arena_printf(&x->arena, SWEEP "threads = 2\nsim_mode = %s\n", mode), "smoke",
                             &s, &p));
    struct allocator *al = p.block[0].member[0].allocator;
    al->found = true;
    al->real = PATH;
    al->build_id = "";
    buffer_add(&o.out, out, strlen(out));
    buffer_add(&o.err, "", 0);
    result_begin(&x->arena, &facts, &p.row[0], "2026-01-01T00:00:00Z", r);
    result_take(&x->arena, r, &p.row[0], &o, 0);
    result_simulated(&x->arena, r, 2);
    child_outcome_free(&o);
}

static void take(struct fixture *x, const char *mode, const char *out, struct result *r)
{
    take_end(x, CHILD_EXITED, mode, out, r);
}

static const char *value(const struct result *r, const char *column)
{
    const char *text = r->value[column_find(column)];
    return text ? text : "";
}

static void rows(void **state)
{
    struct fixture *x = *state;
    struct result r;
    take(x, "timed", ROW("") STIRRED("0"), &r);
    assert_has(r.side[SIDE_METRICS].data, ",sim_lat_malloc_p50_ns,ns,12.5,\n");
    assert_int_equal(r.status, STATUS_OK);
    assert_string_equal(value(&r, "cpus"), "2"); /* the machine's, not the host's one */
    assert_string_equal(value(&r, "oversubscribed"), "0");
    assert_string_equal(value(&r, "cycles"), "500");
    assert_string_equal(value(&r, "sim_cycles_per_op"), "25.000");
    assert_string_equal(value(&r, "sim_mode"), "timed");
    assert_string_equal(value(&r, "sim_quantum"), arena_printf(&x->arena, "%d", TIMED_QUANTUM));
    assert_string_equal(value(&r, "sim_retries"), "2");
    assert_string_equal(r.detail, "");
    assert_has(r.side[SIDE_METRICS].data, ",param.machine,,small,\n");
    assert_has(r.side[SIDE_METRICS].data, ",sim_machine,,\"nodes=1,");
    result_free(&r);

    take(x, "weave", ROW("") STIRRED("4"), &r);
    assert_int_equal(r.status, STATUS_OK);
    assert_string_equal(value(&r, "cycles"), "");
    assert_string_equal(value(&r, "sim_cycles_per_op"), "");
    assert_string_equal(value(&r, "sim_false_sharing"), "3");
    assert_string_equal(value(&r, "l1d_miss"), "7");
    assert_has(r.side[SIDE_METRICS].data, ",cycles,,,\"in weave mode nobody waits");
    assert_true(r.stirred == 4);
    assert_has(r.side[SIDE_METRICS].data, ",sim_lat_malloc_p50_ns,ns,,\"weave mode has no clock");
    assert_null(strstr(r.side[SIDE_METRICS].data, "12.5"));
    assert_has(r.detail, "counts may differ from run to run: 4 times");
    result_free(&r);

    take(x, "weave", "{\"schema\": 1, \"row\": {\"status\": \"ok\", \"cpus\": 4}}",
         &r); /* not the machine asked for */
    assert_int_equal(r.status, STATUS_ERROR);
    assert_has(r.detail, "answered for cpus '4', planned was '2'");
    assert_string_equal(value(&r, "sim_mode"), "weave");
    assert_string_equal(value(&r, "sim_retries"), "2");
    result_free(&r);
}

/* Only where threads wait for each other in simulated time a longer time may be all that it needs. */
static void timeouts(void **state)
{
    struct fixture *x = *state;
    struct result r;
    take_end(x, CHILD_TIMED_OUT, "timed", "", &r);
    assert_int_equal(r.status, STATUS_TIMEOUT);
    assert_has(r.detail, " s; timed mode may need more for 2 threads: --timeout gives it");
    result_free(&r);
    take_end(x, CHILD_TIMED_OUT, "weave", "", &r);
    assert_int_equal(r.status, STATUS_TIMEOUT);
    assert_null(strstr(r.detail, "--timeout"));
    result_free(&r);
}

/* The table speaks of what there is, and says why wherever it does not trust. */
static void trust(void **state)
{
    (void)state;
    assert_string_equal(trust_find("sim_lat_free_max_ns")->name, "sim_lat_*");
    assert_string_equal(trust_find("sim_ops_per_s")->name, "sim_ops_per_s");
    assert_null(trust_find("sim_lat"));
    assert_null(trust_find("lat_p50_ns"));
    for (const struct trust_metric *m = trust_metrics; m->name; m++) {
        bool full = m->weave == TRUST_FULL && m->timed == TRUST_FULL;
        assert_true(full == (*m->why == '\0'));
        bool is_metric = strcmp(m->name, "sim_upgrades") == 0 || strcmp(m->name, "sim_zeroed") == 0 ||
                         strcmp(m->name, "sim_stirred") == 0 || strcmp(m->name, "sim_ops_per_s") == 0 ||
                         strcmp(m->name, "sim_lat_*") == 0 || strcmp(m->name, "lock_contended") == 0;
        assert_true(is_metric || column_find(m->name) >= 0);
    }
    for (size_t i = 0; i < column_count; i++) {
        bool told = columns[i].role != ROLE_MEASURED || strncmp(columns[i].name, "sim_", 4) != 0;
        assert_true(told || trust_find(columns[i].name));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(machines, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(bad_machines, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(shipped_machines, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(cells, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(rows, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(timeouts, fixture_open, fixture_close),
        cmocka_unit_test(trust),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
