#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel.h"
#include "load.h"
#include "tree.h"

#define LATE_MS  60000u /* how much longer than asked for a load may take */
#define SLICE_MS 50u
#define GRACE_MS 2000u
#define UP_MOST  4 /* folders above a kernel: PREFIX/lib/alloc-kernels/musl/NAME is the deepest */

const char *const load_name[LOAD_VALUES] = { "requests", "bytes",  "seconds", "errors", "refused", "mean_us",
                                             "stdev_us", "p50_us", "p75_us",  "p90_us", "p99_us",  "max_us",
                                             "late_p99_us" };

/* The generator that was built with this program, or one in PATH. */
static const char *generator_find(void)
{
    static const char name[] = "ak-http-load";
    static char path[4096 + 64];
    char own[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

    own[length > 0 ? length : 0] = '\0';
    for (int up = 0; up <= UP_MOST && strrchr(own, '/') != NULL; up++) {
        *strrchr(own, '/') = '\0';
        snprintf(path, sizeof path, "%s/bin/%s", own, name);
        if (access(path, X_OK) == 0)
            return path;
    }
    return service_find(name, NULL);
}

const char *load_program(const char *how)
{
    return strcmp(how, "rate") == 0 ? generator_find() : service_find(how, NULL);
}

/* What wrk is to ask for, and what it is to print: its own text is rounded. */
static int script_write(const struct load_plan *plan, const char *path)
{
    uint8_t order[TREE_CYCLE];
    FILE *f = fopen(path, "we");

    if (f == NULL)
        return -1;
    tree_order(plan->seed, order);
    fprintf(f, "local paths = {");
    for (unsigned i = 0; i < TREE_CYCLE; i++)
        fprintf(f, " \"%s\",", tree_file[order[i]].path);
    fprintf(f, " }\nlocal requests, at, threads = {}, 0, 0\n"
               "wrk.headers[\"User-Agent\"] = \"wrk\"\n"
               "wrk.headers[\"Accept\"] = \"text/html,application/xhtml+xml,*/*;q=0.8\"\n"
               "wrk.headers[\"Accept-Encoding\"] = \"identity\"\n"
               "function setup(thread)\n  thread:set(\"first\", threads * 5)\n  threads = threads + 1\nend\n"
               "function init(args)\n"
               "  for i, path in ipairs(paths) do requests[i] = wrk.format(\"GET\", path) end\n"
               "  at = first %% #requests\nend\n"
               "function request()\n  at = at %% #requests + 1\n  return requests[at]\nend\n"
               "local function say(name, value) io.write(string.format(\"ak %%s %%.3f\\n\", name, value)) end\n"
               "function done(summary, latency)\n"
               "  local e = summary.errors\n"
               "  say(\"requests\", summary.requests)\n  say(\"bytes\", summary.bytes)\n"
               "  say(\"seconds\", summary.duration / 1e6)\n"
               "  say(\"errors\", e.connect + e.read + e.write + e.timeout)\n  say(\"refused\", e.status)\n"
               "  say(\"mean_us\", latency.mean)\n  say(\"stdev_us\", latency.stdev)\n"
               "  for _, p in ipairs({ 50, 75, 90, 99 }) do say(\"p\" .. p .. \"_us\", latency:percentile(p)) end\n"
               "  say(\"max_us\", latency.max)\nend\n");
    bool well = !ferror(f);
    return fclose(f) == 0 && well ? 0 : -1;
}

static void result_read(const char *path, struct load_result *result)
{
    size_t length;
    char *text = service_text(path, &length);

    for (unsigned i = 0; i < LOAD_VALUES; i++)
        result->value[i] = NAN;
    if (text == NULL)
        return;
    for (char *line = text; line != NULL; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        for (unsigned i = 0; strncmp(line, "ak ", 3) == 0 && i < LOAD_VALUES; i++) {
            size_t name = strlen(load_name[i]);
            if (strncmp(line + 3, load_name[i], name) == 0 && line[3 + name] == ' ')
                result->value[i] = strtod(line + 3 + name, NULL);
        }
    ak_unmap(text, length + 1);
}

/* To its end, or ours. 0 or -1 with `why`. */
static int await(struct service *s, const struct load_plan *plan, bool (*give_up)(void), const char *err, char *why)
{
    for (uint64_t ms = 0; service_wait(s, SLICE_MS) != 0; ms += SLICE_MS)
        if (give_up() || ms > plan->seconds * 1000u + LATE_MS) {
            service_stop(s, SIGTERM, GRACE_MS);
            snprintf(why, SERVICE_WHY, "the load (%s) did not end in time", plan->how);
            return -1;
        }
    if (s->status == 0)
        return 0;
    char last[200];
    service_complaint(err, last, sizeof last);
    snprintf(why, SERVICE_WHY, "the load (%s): %s%s%s", plan->how, service_end(s), last[0] ? ": " : "", last);
    return -1;
}

int load_run(const struct load_plan *plan, bool (*give_up)(void), struct load_result *result, char why[SERVICE_WHY])
{
    char program[4096], script[160], out[160], err[160], url[64], number[6][24];
    const char *found = load_program(plan->how), *argv[20];
    unsigned n = 0;
    struct service s;

    snprintf(program, sizeof program, "%s", found ? found : plan->how);
    snprintf(script, sizeof script, "%s/wrk.lua", plan->folder);
    snprintf(out, sizeof out, "%s/load.out", plan->folder);
    snprintf(err, sizeof err, "%s/load.err", plan->folder);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", plan->port);
    const uint64_t values[6] = { plan->port, plan->connections, plan->threads, plan->seconds, plan->rate, plan->seed };
    for (unsigned i = 0; i < 6; i++)
        snprintf(number[i], sizeof number[i], "%llu", (unsigned long long)values[i]);

    argv[n++] = program;
    if (strcmp(plan->how, "wrk") == 0) {
        if (script_write(plan, script) != 0) {
            snprintf(why, SERVICE_WHY, "%s cannot be written", script);
            return -1;
        }
        const char *const more[] = { "-t", number[2], "-c", number[1], "-d", number[3], "--latency",
                                     "--timeout", "20s", "-s", script, url };
        for (unsigned i = 0; i < sizeof more / sizeof more[0]; i++)
            argv[n++] = more[i];
    } else if (strcmp(plan->how, "rate") == 0) {
        for (unsigned i = 0; i < 6; i++)
            argv[n++] = number[i];
    } else {
        argv[n++] = url;
        argv[n++] = plan->site;
    }
    argv[n] = NULL;
    const struct service_request request = { .argv = argv, .directory = plan->folder, .out = out, .err = err };
    if (service_start(&s, &request, why) != 0)
        return -1;
    int rc = await(&s, plan, give_up, err, why);
    result_read(out, result);
    return rc;
}

/* ---- what a kernel says of it ---- */

#define BEYOND_LEAST 100 /* requests beyond a quantile */

const char *load_refuse(void)
{
    bool rate = strcmp(param_word("load"), "rate") == 0;

    if (param_int("load_threads") > param_int("connections"))
        return "--load-threads: each thread of the load needs a connection, see --connections";
    if (rate != (param_int("rate") > 0))
        return rate ? "--load rate needs --rate" : "--rate is for --load rate";
    return NULL;
}

void load_report(const struct load_result *load)
{
    static const struct { const char *name; enum load_value value; double quantile; } times[] = {
        { "request_mean_ms", LOAD_MEAN, 0 },  { "request_stdev_ms", LOAD_STDEV, 0 },
        { "request_p50_ms", LOAD_P50, 0.5 },  { "request_p75_ms", LOAD_P75, 0.75 },
        { "request_p90_ms", LOAD_P90, 0.9 },  { "request_p99_ms", LOAD_P99, 0.99 },
        { "request_max_ms", LOAD_MAX, 0 },    { "load_late_p99_ms", LOAD_LATE_P99, 0.99 },
    };
    double requests = load->value[LOAD_REQUESTS], rate = requests / load->value[LOAD_SECONDS];

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        double us = load->value[times[i].value], beyond = requests * (1 - times[i].quantile);
        if (times[i].value == LOAD_LATE_P99 && isnan(us)) /* a closed loop is never late */
            continue;
        ak_metric(times[i].name, "ms", us / 1e3,
                  isnan(us)                       ? "the load does not tell it"
                  : beyond + 0.5 < BEYOND_LEAST ? "too few requests for this quantile"
                                                  : NULL);
    }
    ak_metric("load_requests_per_s", "1/s", rate, isnan(rate) ? "the load does not tell it" : NULL);
}
