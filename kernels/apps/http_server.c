/*
 * http_server - a static file server under load: this process is the server, its workers are the server's threads.
 *
 * It serves a small tree (http_server/tree.h: eight files of 200 B to 64 KiB, 4.9 KB a request in the mean) over
 * HTTP/1.1 on loopback, and allocates as servers of its kind do: each request is parsed into blocks of its own, its
 * answer is built in a buffer that grows, and its body passes through a third. With the four headers that the loads
 * here send, an op is 10 malloc, 2 realloc (the first makes the block) and 11 free, of 12 B to 32 KiB, all in the op
 * but for a line of the log, which lives for 256 more answers; a connection has its state and an input buffer besides.
 * Variant malloc: straight from the allocator. Variant pool: from a pool that all threads share (http_server/pool.h),
 * so that the allocator has next to nothing to do: a case where it must not matter.
 *
 * An op is one request answered with a file. The timed region is the life of the load, a program beside this process,
 * with its start (some 10 ms): `seconds` of wrk, or of the generator of this suite, or what another program takes.
 * Threads, CPU time and faults are the server's alone; requests a second and latency are of both, where they share
 * CPUs. --ops means nothing.
 *
 * Verified: every file, byte by byte, before and after the load; that the load saw no error and no other status, and
 * lost no connection; that what it got, in requests and in bytes, is what was sent. The generator checks each byte;
 * wrk, which stops with requests under way, must have got, within those, as many bytes as its requests have by the
 * known sizes.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "drive.h"
#include "kernel.h"
#include "memory.h"
#include "service.h"
#include "http_server/client.h"
#include "http_server/load.h"
#include "http_server/pool.h"
#include "http_server/server.h"
#include "http_server/tree.h"

#define WORKERS_MAX  4096 /* as many threads as a launch may have */
#define SETTLE_MS    5000u /* for the last answers to be counted */
#define FILES_BESIDE 64u   /* open files that are neither connections nor of the threads */
#define FILES_THREAD 4u    /* epoll, eventfd, and a file that is sent */

static const struct param params[] = {
    { "load", PARAM_WORD, "wrk", "", 0, 0, NULL, "wrk (a closed loop), rate (an open one), or a program's path" },
    LOAD_PARAMS,
    { "idle_ms", PARAM_INT, "60000", "ms", 1, 3600000, NULL, "a connection without a request for so long is closed" },
    { 0 },
};

/* The launch goes from phase to phase when the director says so; workers serve in all but the first and the last.
 * PREPARE: the first worker sets the site up. CHECK: files are checked, in setup. LOAD: in the timed region. REST: in
 * verify. */
enum phase { PREPARE, CHECK, LOAD, REST, END };

/* What the launch has once. Owner: the first worker up to CHECK, then the director; workers read phase and server. */
static struct site {
    atomic_uint phase;
    atomic_uint up, driven, resting; /* workers that have come so far */
    struct server server;
    _Atomic(struct worker *) worker[WORKERS_MAX];
    char     folder[101], root[128]; /* root: what is served, below it */
    pthread_t director;
    bool     directed;               /* there is one to join */
    atomic_bool directs;             /* it may still wake workers */
    struct answer answer;            /* of the client that checks */
    uint64_t size[TREE_FILES];       /* of whole answers, heads too */
    unsigned checks;                 /* requests of the client that checks */
    struct load_result load;
    uint64_t rss_rest, rss_load, rss_after;
} site;

struct state {
    struct worker worker;
    bool     open;
    uint64_t before; /* requests answered before the load */
    uint64_t done;   /* and under it */
};

/* ---- the director: a thread that checks, drives and looks, and is no part of the server ---- */

static void nap(void)
{
    static const struct timespec ms = { 0, 1000000 };
    nanosleep(&ms, NULL);
}

/* Until that many have come. False where the launch failed. */
static bool come(const atomic_uint *counter, unsigned threads)
{
    while (atomic_load(counter) < threads && !ak_failed())
        nap();
    return !ak_failed();
}

static void phase_begin(enum phase phase)
{
    atomic_store(&site.phase, phase);
    for (unsigned t = 0; t < site.server.workers; t++) {
        struct worker *w = atomic_load(&site.worker[t]);
        if (w != NULL)
            worker_wake(w);
    }
}

static uint64_t total(size_t counter)
{
    uint64_t sum = 0;
    for (unsigned t = 0; t < site.server.workers; t++)
        sum += atomic_load((atomic_ullong *)(void *)((char *)&atomic_load(&site.worker[t])->counts + counter));
    return sum;
}
#define TOTAL(counter) total(offsetof(struct counts, counter))

static void check(const char *when)
{
    char why[CLIENT_WHY];
    unsigned requests;

    if (client_check(site.server.port, param_int("seed"), &site.answer, site.size, &requests, why) != 0)
        ak_fail("%s the load: %s", when, why);
    site.checks += requests;
}

/* Until so much was counted: a thread may lose its CPU between an answer and its count. */
static void settle(uint64_t answered, uint64_t refused)
{
    for (unsigned i = 0; i < SETTLE_MS && (TOTAL(answered) < answered || TOTAL(refused) < refused); i++)
        nap();
}

/* The most that the bytes of some requests in the order of a cycle are off their number times the mean. */
static double cycle_slack(double *mean)
{
    uint8_t order[TREE_CYCLE];
    double sum = 0, least = 0, most = 0;

    tree_order(param_int("seed"), order);
    for (unsigned i = 0; i < TREE_CYCLE; i++)
        sum += (double)site.size[order[i]];
    *mean = sum / TREE_CYCLE;
    sum = 0;
    for (unsigned i = 0; i < TREE_CYCLE; i++) {
        sum += (double)site.size[order[i]] - *mean;
        least = sum < least ? sum : least;
        most = sum > most ? sum : most;
    }
    return most - least;
}

/* What the server has counted at some moment. */
struct totals { uint64_t connections, answered, refused, bytes; };

static struct totals totals(void)
{
    return (struct totals){ TOTAL(connections), TOTAL(answered), TOTAL(refused), TOTAL(bytes) };
}

/* What the load got against what was sent since `before`. */
static void load_check(struct totals before)
{
    const double *told = site.load.value;
    double largest = 0, mean, slack = cycle_slack(&mean), connections = (double)param_int("connections");
    bool wrk = strcmp(param_word("load"), "wrk") == 0, rate = strcmp(param_word("load"), "rate") == 0;

    if (!wrk && !rate)
        return;
    if (isnan(told[LOAD_REQUESTS] + told[LOAD_BYTES] + told[LOAD_ERRORS] + told[LOAD_REFUSED])) {
        ak_fail("the load (%s) did not say what it got", param_word("load"));
        return;
    }
    for (unsigned file = 0; file < TREE_FILES; file++)
        largest = (double)site.size[file] > largest ? (double)site.size[file] : largest;
    settle((uint64_t)told[LOAD_REQUESTS] + before.answered, before.refused);
    struct totals now = totals();
    double answered = (double)(now.answered - before.answered), bytes = (double)(now.bytes - before.bytes);
    double wanted = (double)(param_int("rate") * param_int("seconds")), under_way = wrk ? connections : 0;
    uint64_t threads = param_int("load_threads"), each = param_int("connections") / threads;
    /* wrk's threads have as many each, and one more is made to see whether anybody is there. */
    uint64_t connected = wrk ? each * threads + 1 : param_int("connections");

    if (told[LOAD_ERRORS] > 0)
        ak_fail("%.0f requests of the load (%s) failed or were not answered", told[LOAD_ERRORS], param_word("load"));
    else if (told[LOAD_REFUSED] > 0 || now.refused > before.refused)
        ak_fail("%.0f requests of the load got another status than 200", told[LOAD_REFUSED]);
    else if (rate && told[LOAD_REQUESTS] != wanted)
        ak_fail("%.0f requests were answered, %.0f were asked", told[LOAD_REQUESTS], wanted);
    else if (answered < told[LOAD_REQUESTS] || answered > told[LOAD_REQUESTS] + under_way)
        ak_fail("the server answered %.0f requests, the load got %.0f", answered, told[LOAD_REQUESTS]);
    else if (rate && told[LOAD_BYTES] != bytes)
        ak_fail("the server sent %.0f bytes, the load got %.0f", bytes, told[LOAD_BYTES]);
    else if (told[LOAD_BYTES] < bytes - under_way * largest || told[LOAD_BYTES] > bytes + under_way * largest)
        ak_fail("the server sent %.0f bytes, the load got %.0f", bytes, told[LOAD_BYTES]);
    else if (wrk && fabs(told[LOAD_BYTES] - told[LOAD_REQUESTS] * mean) >
                        (double)param_int("load_threads") * slack + 2 * under_way * largest)
        ak_fail("the load got %.0f bytes in %.0f requests, of %.0f bytes in the mean", told[LOAD_BYTES],
                told[LOAD_REQUESTS], mean);
    else if (now.connections - before.connections != connected) /* wrk tells nothing of one that it makes anew */
        ak_fail("the load connected %llu times, expected %llu: the server closed some",
                (unsigned long long)(now.connections - before.connections), (unsigned long long)connected);
}

static uint64_t resident(void)
{
    struct resident now = resident_now();
    return now.known ? now.rss : 0;
}

/* A worker's CPU is not the director's, nor the load's. */
static void unpin(void)
{
    cpu_set_t set;
    if (sched_getaffinity(getpid(), sizeof set, &set) == 0)
        sched_setaffinity(0, sizeof set, &set);
}

static void direct(void)
{
    const struct load_plan plan = {
        .how = param_word("load"), .port = site.server.port, .connections = (unsigned)param_int("connections"),
        .threads = (unsigned)param_int("load_threads"), .seconds = (unsigned)param_int("seconds"),
        .rate = param_int("rate"), .seed = param_int("seed"), .site = site.root, .folder = site.folder,
    };
    char why[SERVICE_WHY];
    unsigned threads = site.server.workers;

    if (!come(&site.up, threads))
        return;
    check("before");
    if (ak_failed())
        return;
    settle(site.checks - 1, 1); /* the last was for what is not there */
    const struct totals before = totals();
    site.rss_rest = resident();
    phase_begin(LOAD);
    if (!come(&site.driven, threads))
        return;
    if (load_run(&plan, ak_failed, &site.load, why) != 0)
        ak_fail("%s", why);
    /* Both are kept by CPU, and a little off. */
    uint64_t now = resident(), peak = resident_high_water();
    site.rss_load = peak > now ? peak : now;
    phase_begin(REST);
    if (!come(&site.resting, threads))
        return;
    load_check(before);
    for (uint64_t ms = 0; ms < 1000 * param_int("rest_s") && !ak_failed(); ms++)
        nap();
    site.rss_after = resident();
    if (!ak_failed())
        check("after");
    if (atomic_load(&site.server.no_files))
        ak_fail("the server ran out of files or sockets");
}

static void *director_main(void *argument)
{
    (void)argument;
    unpin();
    direct();
    phase_begin(END);
    atomic_store(&site.directs, false);
    return NULL;
}

/* ---- the workers ---- */

/* So many connections can be open at a time, of this process and, which gets the same limit, of the load. 0 or 1. */
static int files_allow(unsigned threads)
{
    struct rlimit limit;
    rlim_t want = param_int("connections") + (rlim_t)FILES_THREAD * threads + FILES_BESIDE;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want)
        return 0;
    if (limit.rlim_max < want)
        return ak_lacks("%llu connections take %llu open files, and no more than %llu are allowed: ulimit -Hn",
                        (unsigned long long)param_int("connections"), (unsigned long long)want,
                        (unsigned long long)limit.rlim_max);
    limit.rlim_cur = want;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? 0 : ak_lacks("open files: %s", strerror(errno));
}

static int prepare(const struct ctx *c)
{
    char why[SERVICE_WHY];
    const char *load = param_word("load");
    uint16_t port = (uint16_t)param_int("port");

    if (load_program(load) == NULL)
        return strcmp(load, "wrk") == 0 ? ak_lacks("wrk is not here: make deps-apps installs it")
               : strcmp(load, "rate") == 0 ? ak_lacks("ak-http-load is not beside this program: make builds it")
                                           : ak_lacks("the load %s is not here", load);
    if (files_allow(c->threads) != 0)
        return 1;
    if (service_folder(site.folder, 0, 0, why) != 0)
        return ak_lacks("%s", why);
    snprintf(site.root, sizeof site.root, "%s", site.folder);
    if (tree_make(site.root, param_int("seed"), why, sizeof why) != 0)
        return ak_lacks("%s", why);
    if (server_open(&site.server, port) != 0)
        return errno == EADDRINUSE ? ak_lacks("port %u is in use: give another one by --port, or 0 for any", port)
               : errno == EACCES   ? ak_lacks("port %u is not allowed: give one above 1023 by --port, or 0", port)
                                   : ak_lacks("port %u on loopback: %s", port, strerror(errno));
    site.server.root = site.root;
    site.server.idle_ns = param_int("idle_ms") * 1000000u;
    site.server.workers = c->threads;
    site.server.worker = site.worker;
    pool_choose(variant_is("pool"));
    atomic_store(&site.phase, CHECK);
    atomic_store(&site.directs, true);
    int rc = pthread_create(&site.director, NULL, director_main, NULL);
    site.directed = rc == 0;
    if (rc == 0)
        return 0;
    atomic_store(&site.directs, false);
    return ak_lacks("a thread cannot be started: %s", strerror(rc));
}

/* Workers wait for no one but the director, which looks whether any of them failed. */
static int setup(struct ctx *c)
{
    struct state *s = c->priv;
    unsigned spins = 0;

    if (c->thread == 0 && prepare(c) != 0)
        return 1;
    while (atomic_load(&site.phase) == PREPARE && !ak_failed())
        ak_relax(&spins);
    if (ak_failed())
        return 1;
    s->open = true;
    if (worker_open(&s->worker, &site.server, c->thread) != 0)
        return ak_lacks("epoll: %s", strerror(errno));
    atomic_fetch_add(&site.up, 1);
    worker_serve(&s->worker, &site.phase, LOAD);
    return ak_failed();
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;

    (void)iters;
    s->before = atomic_load(&s->worker.counts.answered);
    atomic_fetch_add(&site.driven, 1);
    worker_serve(&s->worker, &site.phase, REST);
    s->done = atomic_load(&s->worker.counts.answered) - s->before;
    return ak_failed();
}

static uint64_t ops(const struct ctx *c, uint64_t iters)
{
    (void)iters;
    return ((const struct state *)c->priv)->done;
}

static int verify(struct ctx *c)
{
    struct state *s = c->priv;

    atomic_fetch_add(&site.resting, 1);
    worker_serve(&s->worker, &site.phase, END);
    return atomic_load(&site.server.no_memory) ? ak_no_memory(0) : ak_failed();
}

static void teardown(struct ctx *c)
{
    struct state *s = c->priv;
    unsigned spins = 0;

    while (atomic_load(&site.directs))
        ak_relax(&spins);
    if (s->open)
        worker_close(&s->worker);
    if (c->thread == 0 && site.directed) {
        pthread_join(site.director, NULL);
        server_close(&site.server);
    }
}

/* ---- what is told ---- */

static void report(void)
{
    load_report(&site.load);
    drive_resident("rss_rest_bytes", site.rss_rest);
    drive_resident("rss_load_bytes", site.rss_load);
    drive_resident("rss_after_bytes", site.rss_after);
}

/* Why the parameters do not go together. */
static const char *refuse(void)
{
    bool rate = strcmp(param_word("load"), "rate") == 0;

    if (strcmp(param_word("counters"), "sim") == 0)
        return "--counters sim: the load is a program of its own, which the simulated machine does not run";
    if (load_refuse() != NULL)
        return load_refuse();
    if (strcmp(param_word("load"), "wrk") != 0 && !rate && strchr(param_word("load"), '/') == NULL)
        return "--load: expected wrk, rate, or the path of a program";
    return NULL;
}

const struct kernel kernel = {
    .name = "http_server",
    .what = "a static HTTP server under load, with its latency as the load sees it",
    .variants = "malloc|pool",
    .params = params,
    .op = "one request answered with a file",
    .app = true,
    .timed = true,
    .default_ops = 1,
    .start_s = 0.2, /* measured: 1.2 s with --seconds 1 --rest-s 0 */
    .priv_bytes = sizeof(struct state),
    .refuse = refuse,
    .setup = setup,
    .run = run,
    .ops = ops,
    .verify = verify,
    .teardown = teardown,
    .report = report,
};
