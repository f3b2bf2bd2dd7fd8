/*
 * item_store - a store of items with DynamoDB's interface over PostgreSQL: this process is the server under test.
 *
 * Each op is one item accepted. A thread of the pool reads a request over HTTP (libmicrohttpd, a Unix socket), parses
 * its JSON (jansson), variant put: PutItem on the condition that there is no such key; variant insert:
 * ExecuteStatement, whose PartiQL INSERT is parsed in turn; checks the item's types, writes it as text, inserts it
 * through a pool of connections (libpq, a prepared statement that does nothing where the key is there), and answers
 * in JSON. All of these allocate, and free before the next request: about 180 blocks an op.
 *
 * Beside it, without the allocator under test: a PostgreSQL of this launch (item_store/database.h), and a load
 * (item_store/load) that keeps `in_flight` requests under way, each on a connection of its own, with unique keys, in
 * a closed loop. Their CPU time is not in the row, the server's is, and nothing else of this process runs meanwhile.
 *
 * The timed region is cut into `windows`, with metrics each (item_store/windows.h). Verified: every answer; then,
 * outside the timed region, that items which are there and wrong requests are refused by name, and that the rows in
 * PostgreSQL are the items that were sent, no more and no fewer, attribute by attribute.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "item_store/database.h"
#include "item_store/items.h"
#include "item_store/load.h"
#include "item_store/server.h"
#include "item_store/store.h"
#include "item_store/windows.h"
#include "kernel.h"
#include "service.h"

#define LOAD_PROGRAM  "ak-item-load"
#define BYTES_AN_ITEM 3000u /* in PostgreSQL, with its log, roughly */
#define PATH_BYTES    120
#define CONNECT_MS    10000
#define CHECK_MS      3600000
#define STOP_MS       2000
#define WRONG_NUMBER  UINT64_MAX

struct state {
    struct database database;
    struct service load;
    int control;             /* to the load; -1: none */
    struct load_report last; /* of the last order */
    uint64_t accepted, refused, wrong;
    struct window window[WINDOWS_MAX];
    unsigned windows;
    char load_log[PATH_BYTES];
};

static const struct param params[] = {
    {"in_flight", PARAM_INT, "32", "count", 1, 1000, NULL,
     "requests under way, each on a connection of its own"},
    {"server_threads", PARAM_INT, "8", "count", 1, 256, NULL, "threads of the server's pool"},
    {"db_connections", PARAM_INT, "8", "count", 1, 256, NULL, "connections to PostgreSQL that they share"},
    {"windows", PARAM_INT, "3", "count", 1, WINDOWS_MAX, NULL,
     "parts of the timed region with metrics of their own"},
    {"warm_items", PARAM_INT, "256", "count", 0, 1000000, NULL, "items sent before the timed region"},
    {"duplicates_every", PARAM_INT, "100", "count", 1, 1000000, NULL,
     "after it, each so many-th item is sent again"},
    {"fsync", PARAM_WORD, "off", "", 0, 0, "off|on",
     "PostgreSQL waits for the disk: fsync, synchronous_commit, full_page_writes"},
    {0},
};

/* Of the one thread. */
static uint64_t items_asked(void)
{
    return param_int("ops_total") ? param_int("ops_total") : param_int("ops");
}

static const char *refuse(void)
{
    if (param_int("threads") != 1)
        return "--threads: takes one, which waits; the server's are --server_threads";
    if (strcmp(param_word("placement"), "none") != 0)
        return "--placement: none alone; the server's threads and the programs beside it run on every CPU";
    if (items_asked() < param_int("windows"))
        return "--windows: more than --ops; each takes one item at least";
    return NULL;
}

/* ---- the programs beside it ---- */

/* The load generator: beside this program where both were built, or installed. */
static const char *load_program(void)
{
    static const char *const places[] = {"/../bin/", "/../../../bin/"};
    static char path[4096];
    char own[3900];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

    if (length <= 0)
        return NULL;
    own[length] = '\0';
    *strrchr(own, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s%s" LOAD_PROGRAM, own, places[i]);
        if (service_find(path, NULL) != NULL)
            return path;
    }
    return NULL;
}

static int control_listen(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%.107s", path);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Wait for the load to connect, in steps, so that its end is seen. */
static int control_accept(struct state *s, int listener)
{
    struct timeval step = {0, 100000};

    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &step, sizeof step);
    for (unsigned waited = 0; waited < CONNECT_MS / 100 && !service_ended(&s->load); waited++) {
        s->control = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (s->control >= 0)
            return 0;
    }
    return ak_fail("the load did not connect: %s", s->load.pid == 0 ? service_end(&s->load) : "it hangs");
}

static int load_start(struct state *s)
{
    char control[PATH_BYTES], server[PATH_BYTES], number[24], seed[24], why[SERVICE_WHY];
    const char *const argv[] = {
        load_program(), "run", control, server, number, variant_is("insert") ? "insert" : "put", seed, NULL};
    struct service_request request = {.argv = argv, .err = s->load_log};

    snprintf(control, sizeof control, "%s/order", s->database.folder);
    snprintf(server, sizeof server, "%s/http", s->database.folder);
    snprintf(s->load_log, sizeof s->load_log, "%s/load.log", s->database.folder);
    snprintf(number, sizeof number, "%u", (unsigned)param_int("in_flight"));
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)param_int("seed"));
    if (server_start(server, (unsigned)param_int("server_threads"), (unsigned)param_int("in_flight"), why) !=
        0)
        return ak_lacks("the server cannot listen: %s", why);
    int listener = control_listen(control);
    if (listener < 0)
        return ak_lacks("%s: %s", control, strerror(errno));
    int rc = service_start(&s->load, &request, why) != 0 ? ak_lacks("%s", why) : control_accept(s, listener);
    close(listener);
    return rc;
}

/* ---- orders ---- */

static int load_failed(struct state *s)
{
    char line[200];

    if (store_disk_full())
        return ak_lacks("the disk is full: %s (set TMPDIR to a folder on a larger one)", store_complaint());
    service_complaint(s->load_log, line, sizeof line);
    const char *own = s->last.trouble[0] ? s->last.trouble : line[0] ? line : "it ended";
    return ak_fail("the load: %s%s%s", own, *store_complaint() ? "; PostgreSQL: " : "", store_complaint());
}

/* 0 where the load did the order and every answer was as it must be. `count` may be WRONG_NUMBER: as many as it has. */
static int order(struct state *s, enum load_what what, uint64_t first, uint64_t step, uint64_t count)
{
    struct load_order o = {what, first, step, count};
    ssize_t got;

    s->last = (struct load_report){0};
    if (send(s->control, &o, sizeof o, MSG_NOSIGNAL) != (ssize_t)sizeof o)
        return load_failed(s);
    while ((got = recv(s->control, &s->last, sizeof s->last, 0)) < 0 && errno == EINTR)
        ;
    bool done = got == (ssize_t)sizeof s->last && s->last.trouble[0] == '\0';
    return done && (count == WRONG_NUMBER || s->last.answered == count) ? 0 : load_failed(s);
}

/* ---- the kernel ---- */

/* 15.18 of 150018. */
static double version_number(int version)
{
    int major = version / 10000;
    return major + (version - major * 10000) / 100.0;
}

static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    unsigned connections = (unsigned)param_int("db_connections");
    uint64_t items = items_asked() + param_int("warm_items");
    char why[SERVICE_WHY];

    s->control = -1;
    s->windows = (unsigned)param_int("windows");
    if (load_program() == NULL)
        return ak_lacks(LOAD_PROGRAM " is not beside this program: build it (make)");
    if (database_start(&s->database, connections, strcmp(param_word("fsync"), "on") == 0,
                       items * BYTES_AN_ITEM, why) != 0)
        return ak_lacks("%s", why);
    if (store_open(s->database.folder, connections, why) != 0)
        return ak_fail("PostgreSQL: %s", why);
    if (load_start(s) != 0)
        return 1;
    ak_metric("postgresql_version", "", version_number(store_version()), NULL);
    return order(s, LOAD_WARM_UP, ITEM_WARM, 1, param_int("warm_items"));
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    const struct family family = {s->load.pid, s->database.postmaster.pid};

    for (unsigned i = 0; i < s->windows; i++) {
        struct window *w = &s->window[i];
        uint64_t first = iters * i / s->windows, end = iters * (i + 1) / s->windows;
        w->from = i == 0 ? mark_now(&family) : s->window[i - 1].to;
        if (order(s, LOAD_INSERT, first, 1, end - first) != 0)
            return 1;
        w->to = mark_now(&family);
        w->requests = s->last.answered;
        s->accepted += s->last.answered;
    }
    return 0;
}

static uint64_t ops(const struct ctx *c, uint64_t iters)
{
    const struct state *s = c->priv;
    (void)iters;
    return s->accepted;
}

/* The rows by another process: what it takes to look at them is not the server's. */
static int rows_check(struct state *s, uint64_t items)
{
    char seed[24], number[24], warm[24], log[PATH_BYTES], line[300], why[SERVICE_WHY];
    const char *const argv[] = {load_program(), "check", s->database.folder, seed, number, warm, NULL};
    struct service_request request = {.argv = argv, .err = log};
    struct service check;

    snprintf(seed, sizeof seed, "%llu", (unsigned long long)param_int("seed"));
    snprintf(number, sizeof number, "%llu", (unsigned long long)items);
    snprintf(warm, sizeof warm, "%llu", (unsigned long long)param_int("warm_items"));
    snprintf(log, sizeof log, "%s/check.log", s->database.folder);
    if (service_start(&check, &request, why) != 0)
        return ak_fail("%s", why);
    if (service_wait(&check, CHECK_MS) != 0) {
        service_stop(&check, SIGTERM, STOP_MS);
        return ak_fail("the check of the rows does not end");
    }
    service_complaint(log, line, sizeof line);
    return check.status == 0 ? 0 : ak_fail("the rows: %s", line[0] ? line : service_end(&check));
}

static int verify(struct ctx *c)
{
    struct state *s = c->priv;
    struct load_report measured = s->last;
    uint64_t step = param_int("duplicates_every"), again = (c->iters_done + step - 1) / step;

    if (s->accepted != c->iters_done)
        return ak_fail("%llu items were accepted, %llu sent", (unsigned long long)s->accepted,
                       (unsigned long long)c->iters_done);
    if (order(s, LOAD_DUPLICATES, 0, step, again) != 0)
        return 1;
    s->refused = s->last.answered;
    if (order(s, LOAD_WRONG, 0, 1, WRONG_NUMBER) != 0)
        return 1;
    s->wrong = s->last.answered;
    s->last = measured;
    return rows_check(s, c->iters_done);
}

static void teardown(struct ctx *c)
{
    struct state *s = c->priv;

    if (s->control >= 0)
        close(s->control);
    service_stop(&s->load, SIGTERM, STOP_MS);
    server_stop();
    store_close();
    database_stop(&s->database);
}

/* A quantile with 100 answers beyond it, as for all latencies. */
static void latency_report(const char *name, double ms, uint64_t answers, uint64_t needed)
{
    char why[96];
    snprintf(why, sizeof why, "%llu answers, %llu needed", (unsigned long long)answers,
             (unsigned long long)needed);
    ak_metric(name, "ms", ms, answers < needed ? why : NULL);
}

static void report(void)
{
    const struct state *s = ak_ctx(0)->priv;
    const struct load_report *r = &s->last;

    windows_report(s->window, s->windows);
    latency_report("request_mean_ms", r->mean, r->latencies, 1);
    latency_report("request_p50_ms", r->p50, r->latencies, 200);
    latency_report("request_p90_ms", r->p90, r->latencies, 1000);
    latency_report("request_p99_ms", r->p99, r->latencies, 10000);
    latency_report("request_max_ms", r->max, r->latencies, 1);
    ak_metric("duplicates_refused", "count", (double)s->refused, NULL);
    ak_metric("wrong_refused", "count", (double)s->wrong, NULL);
}

const struct kernel kernel = {
    .name = "item_store",
    .what = "an item store over HTTP and PostgreSQL: conditional inserts, the server under test",
    .variants = "put|insert",
    .params = params,
    .op = "one item accepted by a conditional insert",
    .app = true,
    .makes_threads = true,
    .sizes = SIZES_NONE,
    .default_ops = 2000,
    .start_s = 1.8, /* measured with glibc on two cores: 300 items 2.0 s, 2000 items 3.0 s */
    .op_ns = 600e3,
    .priv_bytes = sizeof(struct state),
    .refuse = refuse,
    .setup = setup,
    .run = run,
    .verify = verify,
    .ops = ops,
    .teardown = teardown,
    .report = report,
};
