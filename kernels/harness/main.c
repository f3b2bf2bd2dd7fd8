/*
 * main.c - the one main() of every kernel program.
 *
 * Order matters: whatever allocates (counter libraries) comes before launch_run takes its baseline, and JSON is
 * built only after the last sample.
 */
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "counters.h"
#include "emit.h"
#include "launch.h"
#include "linked.h"
#include "options.h"
#include "simclock.h"
#include "subject.h"

static void result_print(const struct identity *id, const char *status, const char *detail)
{
    if (options.json)
        emit_json(id, status, detail);
    else
        emit_text(id, status, detail);
    if (strcmp(status, "ok") != 0)
        fprintf(stderr, "%s: %s: %s\n", kernel.name, status, detail);
}

/* The kernel takes as many threads as there are CPUs. */
static bool threads_own(void)
{
    return kernel.own_threads && !option("threads")->given;
}

/* 0, or an exit code with `why`. */
static int threads_check(uint64_t threads, char *why, size_t why_size)
{
    unsigned least = kernel.min_threads ? kernel.min_threads : 1;

    if (threads >= least)
        return 0;
    snprintf(why, why_size, "--threads: needs at least %u threads%s", least,
             threads_own() ? " on as many CPUs, and this process may use fewer" : "");
    return threads_own() ? EXIT_ENVIRONMENT : EXIT_USAGE;
}

/* Events are counted on the threads of the launch; the simulated machine counts those that these make, too. Whose events are
 * not counted, or NULL. */
static const char *counters_miss(void)
{
    if (kernel.subject)
        return "events of the program under test are not counted: it is another process";
    return kernel.makes_threads && strcmp(param_word("counters"), "sim") != 0
               ? "events of the threads that this kernel makes are not counted"
               : NULL;
}

/* 0, or an exit code with `why`. */
static int counters_check(char *why, size_t why_size)
{
    const char *name = param_word("counters");

    if (counters_miss() == NULL || strcmp(name, "auto") == 0 || strcmp(name, "none") == 0)
        return 0;
    snprintf(why, why_size, "--counters %s: %s; use auto%s", name, counters_miss(),
             kernel.subject ? " or none" : ", none or sim");
    return EXIT_USAGE;
}

static bool passes_name(const char *pass)
{
    return strstr(param_word("passes"), pass) != NULL;
}

/* What holds on any machine. 0, or an exit code with `why`. */
static int options_check(char *why, size_t why_size)
{
    int rc = threads_own() ? 0 : threads_check(param_int("threads"), why, why_size);
    if (rc == 0 && launch.simulated && !passes_name("throughput") && !passes_name("latency")) {
        snprintf(why, why_size, "--counters sim runs the throughput pass and, in timed mode, the latency pass: "
                                "--passes leaves out both");
        return EXIT_USAGE;
    }
    if (rc == 0)
        rc = counters_check(why, why_size);
    return rc != 0 ? rc : launch_check(why, why_size);
}

/* Of a kernel that tells how many threads it takes. 0, or an exit code with `why`; launch.status where it lacks what it
 * would tell it by. */
static int threads_ask(char *why, size_t why_size)
{
    const char *refusal = kernel.refuse ? kernel.refuse() : NULL;

    if (refusal != NULL) {
        snprintf(why, why_size, "%s", refusal);
        return EXIT_USAGE;
    }
    option_threads_set(kernel.thread_count());
    return 0;
}

/* Threads and ops of the plan. 0 or an exit code. */
static int launch_plan(char *why, size_t why_size)
{
    bool counted = kernel.thread_count != NULL, own = threads_own() && !counted;
    int asked = counted ? threads_ask(why, why_size) : 0;

    if (asked != 0 || launch.status != NULL)
        return asked;
    launch.threads = (unsigned)param_int("threads");
    launch.placement = placement_plan(param_word("placement"), own ? 0 : launch.threads, why, why_size);
    if (launch.placement == NULL)
        return placement_is_word(param_word("placement")) ? EXIT_ENVIRONMENT : EXIT_USAGE;
    if (own)
        launch.threads = launch.placement->cpus;
    option_threads_set(launch.threads);
    int rc = threads_check(launch.threads, why, why_size);
    if (rc != 0)
        return rc;
    launch.oversubscribed = launch.threads > launch.placement->cpus;
    launch.no_alloc = options.no_alloc || kernel.no_alloc;
    uint64_t total = param_int("ops_total");
    launch.ops = total ? (total + launch.threads - 1) / launch.threads : param_int("ops");
    return 0;
}

/* 0 or an exit code. */
static int counters_plan(char why[COUNTER_REASON_MAX])
{
    if (linked_statically()) {
        const char *name = param_word("counters");
        counters_none("a static program can load no counters");
        if (strcmp(name, "auto") == 0 || strcmp(name, "none") == 0)
            return 0;
        snprintf(why, COUNTER_REASON_MAX, "--counters %s: a static program can load no counters; use auto or none", name);
        return EXIT_ENVIRONMENT;
    }
    if (counters_miss() == NULL)
        return -counters_choose(param_word("counters"), launch.threads, why);
    counters_none(counters_miss());
    return counters_check(why, COUNTER_REASON_MAX);
}

/* What only the simulated machine itself can say, once it has begun. 0 or an exit code. */
static int simulation_plan(char *why, size_t why_size)
{
    simclock_find();
    if (simclock.there || passes_name("throughput"))
        return 0;
    snprintf(why, why_size, "--passes: a latency pass needs timed mode, since weave mode has no clock");
    return EXIT_USAGE;
}

static int refuse(const char *why, int code)
{
    fprintf(stderr, "%s: %s\n", kernel.name, why);
    return code;
}

/* A result that could not be written is no result. */
static int finish(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return refuse("the result cannot be written to stdout", EXIT_ENVIRONMENT);
    return code;
}

static int kernel_main(int argc, char **argv)
{
    static struct identity id;
    char why[COUNTER_REASON_MAX] = "";

    int rc = options_parse(argc, argv);
    if (rc != 0)
        return rc;
    if (options.help || options.describe) {
        if (options.help)
            options_print_help();
        else
            options_print_description();
        return EXIT_DONE;
    }
    launch.simulated = strcmp(param_word("counters"), "sim") == 0;
    if (options.check)
        return (rc = options_check(why, sizeof why)) != 0 ? refuse(why, rc) : EXIT_DONE;

    identity_find(&id, param_word("expect"), param_word("version_call"));
    bool wrong = id.provenance.trouble[0] != '\0';
    if (options.probe) {
        emit_probe(&id, options.json);
        return wrong ? EXIT_MEASURED_FAILURE : EXIT_DONE;
    }
    if (wrong) {
        launch.threads = (unsigned)param_int("threads");
        launch.ops = param_int("ops");
        result_print(&id, "wrong_allocator", id.provenance.trouble);
        return EXIT_MEASURED_FAILURE;
    }

    if (!launch.simulated)
        clock_init();
    if ((rc = memory_policy(param_word("numa"), why, sizeof why)) != 0)
        return refuse(why, rc);
    if ((rc = launch_plan(why, sizeof why)) != 0)
        return refuse(why, rc);
    if (launch.status != NULL) {
        result_print(&id, launch.status, launch.failure);
        return EXIT_ENVIRONMENT;
    }
    if (launch.no_alloc) {
        served.malloc = stub_malloc;
        served.free = stub_free;
        served.realloc = stub_realloc;
        served.calloc = stub_calloc;
        served.aligned_alloc = stub_aligned_alloc;
    }
    if ((rc = counters_plan(why)) != 0)
        return refuse(why, rc);
    if (launch.simulated && (rc = simulation_plan(why, sizeof why)) != 0)
        return refuse(why, rc);
    if ((rc = launch_run(&id.provenance, why, sizeof why)) != 0)
        return refuse(why, rc);

    if (subject_provenance() != NULL)
        id.provenance = *subject_provenance();
    const char *status = launch.status != NULL ? launch.status : "ok";
    result_print(&id, status, launch.failure);
    return strcmp(status, "ok") == 0 ? EXIT_DONE : strcmp(status, "skipped") == 0 ? EXIT_ENVIRONMENT : EXIT_MEASURED_FAILURE;
}

int main(int argc, char **argv)
{
    return finish(kernel_main(argc, argv));
}
