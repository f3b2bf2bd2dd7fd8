/*
 * http_foreign - a web server of Debian's under the allocator under test: lighttpd, or nginx as one process, serving
 * the same small tree (http_server/tree.h) on loopback as http_server does, to the same loads.
 *
 * An op is one request answered with a file. The timed region is the life of the load, a program beside, with its
 * start (some 10 ms): --ops means nothing. Both servers run with the settings that they come with, and keep memory
 * of their own for connections and requests that they use again: how little then is left to the allocator is the
 * point.
 *
 * What the row tells of memory, time and faults is the server's. Verified: every file, byte by byte, before the load
 * and after the rest; that the load saw no error and no other status than 200; and that it got as many bytes as its
 * requests have by the known sizes, but for what was under way when it stopped.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drive.h"
#include "http_foreign/configure.h"
#include "http_server/client.h"
#include "http_server/load.h"
#include "http_server/tree.h"
#include "kernel.h"
#include "memory.h"
#include "service.h"

#define READY_MS     10000
#define STOP_MS      5000
#define FILES_BESIDE 128 /* open files of server and load beside two for each connection */

static const struct param params[] = {
    { "load", PARAM_WORD, "wrk", "", 0, 0, "wrk|rate", "a closed loop, or requests at a constant rate" },
    LOAD_PARAMS,
    { 0 },
};

static struct service server;
static char folder[101], root[128];
static uint16_t port;
static struct answer answer;
static uint64_t size[TREE_FILES]; /* of whole answers, heads too */
static struct load_result load;
static uint64_t rss_rest, rss_load, rss_after;

/* ---- before ---- */

/* Server and load inherit the limit. */
static int files_allow(void)
{
    struct rlimit limit;
    rlim_t want = 2 * (rlim_t)param_int("connections") + FILES_BESIDE;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want)
        return 0;
    if (limit.rlim_max < want)
        return ak_lacks("%llu connections take %llu open files, and no more than %llu are allowed: ulimit -Hn",
                        (unsigned long long)param_int("connections"), (unsigned long long)want,
                        (unsigned long long)limit.rlim_max);
    limit.rlim_cur = want;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : ak_lacks("open files: %s", strerror(errno));
}

static bool port_is_free(uint16_t number)
{
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(number),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bool is_free = fd >= 0 && bind(fd, (struct sockaddr *)&here, sizeof here) == 0 && listen(fd, 1) == 0;
    if (fd >= 0)
        close(fd);
    return is_free;
}

static int port_choose(void)
{
    port = (uint16_t)param_int("port");
    if (port != 0 && !port_is_free(port))
        return ak_lacks("port %u is in use or not allowed: give another one above 1023 by --port, or 0 for any", port);
    if (port == 0 && (port = service_port()) == 0)
        return ak_lacks("no port on loopback is free");
    return 0;
}

/* It did not come up: what it says. */
static int not_up(const char *name, const char *why, const char *out)
{
    char errors[128], last[256];
    snprintf(errors, sizeof errors, "%s/errors", folder);
    service_complaint(errors, last, sizeof last);
    if (last[0] == '\0')
        service_complaint(out, last, sizeof last);
    return ak_lacks("%s %s%s%s", name, why, last[0] ? ": " : "", last);
}

static int server_start(const char *program, const char *const *env)
{
    static char conf[128], out[128];
    const char *name = param_word("variant"), *argv[CONFIGURE_ARGS + 1] = { program };
    const struct site site = { folder, root, port, (unsigned)param_int("connections") };
    char why[SERVICE_WHY];

    snprintf(conf, sizeof conf, "%s/%s.conf", folder, name);
    snprintf(out, sizeof out, "%s/out", folder);
    if (configure(name, &site, conf, argv + 1) != 0)
        return ak_lacks("%s: %s", conf, strerror(errno));
    const struct service_request request = { .argv = argv, .env = env, .out = out, .err = out, .under_test = true };
    if (service_start(&server, &request, why) != 0)
        return ak_lacks("%s: %s", name, why);
    if (service_listens(&server, NULL, port, READY_MS, why) != 0)
        return not_up(name, why, out);
    return 0;
}

static bool check(const char *when)
{
    char why[CLIENT_WHY];
    unsigned requests;

    if (client_check(port, param_int("seed"), &answer, size, &requests, why) == 0)
        return true;
    if (!drive_crashed(&server, when))
        ak_fail("%s, %s: %s", param_word("variant"), when, why);
    return false;
}

static int setup(struct ctx *c)
{
    static const char *const folders[] = { "/usr/sbin", "/usr/local/sbin", NULL };
    const char *name = param_word("variant"), *found = service_find(name, folders);
    char program[4096], why[SERVICE_WHY];
    (void)c;

    if (found == NULL)
        return ak_lacks("no %s: install it (make deps-apps), or take another variant", name);
    snprintf(program, sizeof program, "%s", found);
    if (load_program(param_word("load")) == NULL)
        return ak_lacks("no %s", strcmp(param_word("load"), "wrk") == 0 ? "wrk: install it (make deps-apps)"
                                                                       : "ak-http-load beside this program: run make");
    if (files_allow() != 0 || port_choose() != 0)
        return 1;
    if (service_folder(folder, 0, 0, why) != 0)
        return ak_lacks("%s", why);
    snprintf(root, sizeof root, "%s/site", folder);
    if (mkdir(root, 0755) != 0)
        return ak_lacks("%s: %s", root, strerror(errno));
    if (tree_make(root, param_int("seed"), why, sizeof why) != 0)
        return ak_lacks("%s", why);
    const char *const *env = ak_subject_env();
    if (env == NULL || server_start(program, env) != 0 || ak_subject(server.pid) != 0 || !check("before the load"))
        return 1;
    rss_rest = resident_now().rss;
    return 0;
}

/* ---- the load ---- */

static bool give_up(void)
{
    return service_ended(&server);
}

static int run(struct ctx *c, uint64_t iters)
{
    const struct load_plan plan = {
        .how = param_word("load"), .port = port, .connections = (unsigned)param_int("connections"),
        .threads = (unsigned)param_int("load_threads"), .seconds = (unsigned)param_int("seconds"),
        .rate = param_int("rate"), .seed = param_int("seed"), .site = root, .folder = folder,
    };
    char why[SERVICE_WHY];
    (void)c, (void)iters;

    int rc = load_run(&plan, give_up, &load, why);
    rss_load = resident_high_water();
    if (drive_crashed(&server, "under load"))
        return 1;
    return rc != 0 ? ak_fail("%s", why) : 0;
}

static uint64_t ops(const struct ctx *c, uint64_t iters)
{
    (void)c, (void)iters;
    return isnan(load.value[LOAD_REQUESTS]) ? 0 : (uint64_t)load.value[LOAD_REQUESTS];
}

/* What the load got against what it asked for. Each of its threads goes through the files in cycles, the last one
 * not whole; what was under way at its end it got in part. */
static int load_check(void)
{
    const double *told = load.value;
    double threads = (double)param_int("load_threads"), connections = (double)param_int("connections");
    double cycle = 0, largest = 0;
    double wanted = (double)param_int("rate") * (double)param_int("seconds");
    bool rate = strcmp(param_word("load"), "rate") == 0;

    for (unsigned file = 0; file < TREE_FILES; file++) {
        cycle += (double)size[file] * tree_file[file].weight;
        largest = (double)size[file] > largest ? (double)size[file] : largest;
    }
    if (isnan(told[LOAD_REQUESTS]) || isnan(told[LOAD_BYTES]) || isnan(told[LOAD_ERRORS]) || isnan(told[LOAD_REFUSED]))
        return ak_fail("the load did not say what it got");
    if (told[LOAD_ERRORS] > 0)
        return ak_fail("%.0f requests of the load failed or were not answered", told[LOAD_ERRORS]);
    if (told[LOAD_REFUSED] > 0)
        return ak_fail("%.0f requests of the load got another status than 200", told[LOAD_REFUSED]);
    if (told[LOAD_REQUESTS] < 1 || (rate && told[LOAD_REQUESTS] != wanted))
        return ak_fail("%.0f requests were answered, expected %.0f", told[LOAD_REQUESTS], rate ? wanted : 1);
    if (fabs(told[LOAD_BYTES] - told[LOAD_REQUESTS] * cycle / TREE_CYCLE) > threads * cycle + connections * largest)
        return ak_fail("the load got %.0f bytes in %.0f requests, of %.0f bytes in the mean", told[LOAD_BYTES],
                       told[LOAD_REQUESTS], cycle / TREE_CYCLE);
    return 0;
}

static int verify(struct ctx *c)
{
    (void)c;
    if (load_check() != 0 || drive_rest(&server, param_int("rest_s") * 1000) != 0)
        return 1;
    rss_after = resident_now().rss;
    if (!check("after the load"))
        return 1;
    return drive_crashed(&server, "after the load");
}

static void teardown(struct ctx *c)
{
    (void)c;
    service_stop(&server, SIGTERM, STOP_MS);
}

/* ---- what is told ---- */

static void report(void)
{
    load_report(&load);
    drive_resident("rss_rest_bytes", rss_rest);
    drive_resident("rss_load_bytes", rss_load);
    drive_resident("rss_after_bytes", rss_after);
}

const struct kernel kernel = {
    .name = "http_foreign",
    .what = "lighttpd or nginx serving a small tree of files to wrk",
    .variants = "lighttpd|nginx",
    .params = params,
    .op = "one request answered",
    .timed = true,
    .default_ops = 1,
    .start_s = 0.2, /* measured with lighttpd: 1.2 s with --seconds 1 --rest-s 0 */
    .app = true,
    .subject = true,
    .refuse = load_refuse,
    .setup = setup,
    .run = run,
    .ops = ops,
    .verify = verify,
    .teardown = teardown,
    .report = report,
};
