/*
 * redis - redis-server under the allocator under test, driven by redis-benchmark: a real program, lists of short
 * values.
 *
 * One op is one command of the variant, over a Unix socket. lpush grows one list by a value; lrange_N reads the
 * first N values of a list that stands; set writes, and get reads, one of `elements` keys at random. The server
 * keeps nothing on disk and starts as it comes, but for jemalloc's background thread, which it would start under
 * jemalloc alone.
 *
 * What the row tells of memory, time and faults is the server's. Debian's is linked with jemalloc: under glibc, too,
 * the allocator is preloaded. It keeps the library all the same, idle, a little resident memory in every row; and
 * what it calls its allocator's statistics (allocator_frag_*) are that library's, so none of those is reported.
 */
#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "drive.h"
#include "memory.h"
#include "redis/resp.h"
#include "redis/table.h"
#include "service.h"

#define READY_MS   10000
#define STOP_MS    5000
#define ALIVE_MS   600000 /* the longest load: a server that answers nothing must not hang the launch */
#define TICK_MS    200    /* INFO tells of memory as it was at the last of its ticks, 100 ms apart */
#define BATCH      1000   /* commands put ahead of their replies while filling */
#define LOOK_AT    100    /* values looked at by verify */
#define VALUE_MAX  65536

static const struct param params[] = {
    { "connections", PARAM_INT, "50", "count", 1, 10000, NULL, "clients of redis-benchmark" },
    { "load_threads", PARAM_INT, "1", "count", 1, 64, NULL, "threads of redis-benchmark" },
    { "pipeline", PARAM_INT, "16", "count", 1, 1000, NULL, "commands in flight a client" },
    { "elements", PARAM_INT, "10000", "count", 500, 100000000, NULL, "length of the list that is read, or keys" },
    { "value_bytes", PARAM_SIZE, "3", "bytes", 1, VALUE_MAX, NULL, "length of a value" },
    { "rest_s", PARAM_INT, "10", "s", 0, 3600, NULL, "rest before rss_after_bytes" },
    { 0 },
};

static struct service server;
static char folder[101], socket_path[128];
static struct resp client;
static char value[VALUE_MAX + 1];
static uint64_t requests;
static uint64_t rss_rest, rss_load, rss_after, used_memory;
static char fragmentation[32];
static char *table; /* what redis-benchmark printed */
static size_t table_length;

/* N of lrange_N; 0 for the other variants. */
static unsigned range(void)
{
    unsigned n = 0;
    return sscanf(param_word("variant"), "lrange_%u", &n) == 1 ? n : 0;
}

static const char *command(void)
{
    return range() > 0 ? "lrange" : param_word("variant");
}

/* ---- talking to it ---- */

static int lost(const char *what)
{
    if (service_wait(&server, STOP_MS) == 0)
        return ak_crashed("redis-server ended at %s: %s", what, service_end(&server));
    return ak_fail("redis-server does not answer %s: %s", what, client.kind == '-' ? client.text : "no reply");
}

#define ASK(...) resp_ask(&client, RESP_WORDS(__VA_ARGS__))

/* A number that the server tells in a section of INFO: the one behind `key`, which may hold a colon. */
static bool info_number(const char *section, const char *key, uint64_t *number)
{
    if (!ASK("INFO", section))
        return false;
    const char *at = strstr(client.text, key);
    char *end = NULL;
    if (at != NULL)
        *number = strtoull(at + strlen(key), &end, 10);
    return end != NULL && end > at + strlen(key);
}

/* ---- before ---- */

/* Value number i of the list that is read: all of it digits. */
static void value_set(uint64_t i)
{
    size_t bytes = param_int("value_bytes");
    for (size_t at = bytes; at-- > 0; i /= 10)
        value[at] = (char)('0' + i % 10);
    value[bytes] = '\0';
}

static int fill(void)
{
    uint64_t elements = param_int("elements");
    char key[32];

    for (uint64_t i = 0, got = 0; got < elements;) {
        for (; i < elements && i < got + BATCH; i++) {
            snprintf(key, sizeof key, "key:%012llu", (unsigned long long)i); /* as redis-benchmark's __rand_int__ */
            if (range() > 0)
                value_set(i);
            if (!(range() > 0 ? resp_put(&client, RESP_WORDS("RPUSH", "list", value))
                              : resp_put(&client, RESP_WORDS("SET", key, value))))
                return lost("what fills it");
        }
        for (; got < i; got++)
            if (!resp_get(&client) || client.kind == '-')
                return lost("what fills it");
    }
    return 0;
}

/* A path as a word of redis.conf: it may hold blanks. */
static void quote(FILE *f, const char *path)
{
    fputc('"', f);
    for (const unsigned char *at = (const unsigned char *)path; *at != '\0'; at++)
        fprintf(f, isalnum(*at) || strchr("/-_.", *at) != NULL ? "%c" : "\\x%02x", *at);
    fputc('"', f);
}

static int configure(char path[160])
{
    snprintf(path, 160, "%s/redis.conf", folder);
    snprintf(socket_path, sizeof socket_path, "%s/socket", folder);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return ak_lacks("%s cannot be written", path);
    fputs("unixsocket ", f);
    quote(f, socket_path);
    fputs("\ndir ", f);
    quote(f, folder);
    fputs("\nport 0\nunixsocketperm 700\ndaemonize no\nsave \"\"\nappendonly no\ndatabases 1\nloglevel warning\n"
          "maxclients 10100\njemalloc-bg-thread no\n",
          f);
    return fclose(f) == 0 ? 0 : ak_lacks("%s cannot be written", path);
}

static int setup(struct ctx *c)
{
    static char out[128];
    char why[SERVICE_WHY], conf[160];
    (void)c;

    if (service_find("redis-server", NULL) == NULL || service_find("redis-benchmark", NULL) == NULL)
        return ak_lacks("no redis-server or redis-benchmark: install redis-server and redis-tools (make deps-apps)");
    if (service_folder(folder, 0, 0, why) != 0)
        return ak_lacks("%s", why);
    const char *const *env = ak_subject_env();
    if (env == NULL || configure(conf) != 0)
        return 1;
    snprintf(out, sizeof out, "%s/log", folder);
    const char *argv[] = { "redis-server", conf, NULL };
    const struct service_request request = { .argv = argv, .env = env, .out = out, .err = out, .under_test = true };
    if (service_start(&server, &request, why) != 0)
        return ak_lacks("redis-server: %s", why);
    if (service_listens(&server, socket_path, 0, READY_MS, why) != 0) {
        char last[256];
        service_complaint(out, last, sizeof last);
        return ak_lacks("redis-server %s%s%s", why, last[0] ? ": " : "", last);
    }
    if (ak_subject(server.pid) != 0)
        return 1;
    if (!resp_open(&client, socket_path))
        return lost("a connection");
    memset(value, 'x', param_int("value_bytes"));
    if ((range() > 0 || variant_is("get")) && fill() != 0)
        return 1;
    if (!ASK("CONFIG", "RESETSTAT"))
        return lost("CONFIG RESETSTAT");
    rss_rest = resident_now().rss;
    return 0;
}

/* ---- the load ---- */

static int run(struct ctx *c, uint64_t iters)
{
    static char out[128], err[128];
    char n[24], clients[24], threads[24], pipeline[24], elements[24], last[24];
    const char *argv[32];
    unsigned a = 0;
    (void)c;

    snprintf(out, sizeof out, "%s/load", folder);
    snprintf(err, sizeof err, "%s/load-errors", folder);
    snprintf(n, sizeof n, "%llu", (unsigned long long)iters);
    snprintf(clients, sizeof clients, "%llu", (unsigned long long)param_int("connections"));
    snprintf(threads, sizeof threads, "%llu", (unsigned long long)param_int("load_threads"));
    snprintf(pipeline, sizeof pipeline, "%llu", (unsigned long long)param_int("pipeline"));
    snprintf(elements, sizeof elements, "%llu", (unsigned long long)param_int("elements"));
    snprintf(last, sizeof last, "%u", range() - 1);

    const char *const always[] = { "redis-benchmark", "-s", socket_path, "-n", n, "-c", clients, "-P", pipeline,
                                   "--csv" };
    for (; a < sizeof always / sizeof always[0]; a++)
        argv[a] = always[a];
    if (param_int("load_threads") > 1)
        argv[a++] = "--threads", argv[a++] = threads;
    if (variant_is("set") || variant_is("get"))
        argv[a++] = "-r", argv[a++] = elements;
    argv[a++] = command();
    argv[a++] = variant_is("set") || variant_is("get") ? "key:__rand_int__" : "list";
    if (range() > 0)
        argv[a++] = "0", argv[a++] = last;
    else if (!variant_is("get"))
        argv[a++] = value;
    argv[a] = NULL;

    const struct service_request load = { .argv = argv, .out = out, .err = err };
    if (drive_run(&server, &load, ALIVE_MS) != 0)
        return 1;
    rss_load = resident_high_water();
    requests += iters;
    table = service_text(out, &table_length);
    return 0;
}

/* ---- what it holds ---- */

/* One reply of `n` values: those of the list from `first` on, or all the one that was pushed. */
static int values_check(const char *start, const char *end, uint64_t n, bool numbered, uint64_t first)
{
    if (!ASK("LRANGE", "list", start, end) || client.kind != '*')
        return lost("LRANGE");
    if (client.number != (int64_t)n)
        return ak_fail("redis: LRANGE %s %s has %lld values, expected %llu", start, end, (long long)client.number,
                       (unsigned long long)n);
    for (uint64_t i = 0; i < n; i++) {
        if (numbered)
            value_set(first + i);
        if (!resp_get(&client))
            return lost("LRANGE");
        if (client.kind != '$' || strcmp(client.text, value) != 0)
            return ak_fail("redis: value %llu behind %s is '%.40s', expected '%.40s'", (unsigned long long)i, start,
                           client.kind == '$' ? client.text : "nothing", value);
    }
    return 0;
}

static int length_check(const char *ask, const char *key, uint64_t least, uint64_t most)
{
    if (!(key != NULL ? ASK(ask, key) : ASK(ask)) || client.kind != ':')
        return lost(ask);
    if (client.number < (int64_t)least || client.number > (int64_t)most)
        return ak_fail("redis: %s is %lld, expected %llu to %llu", ask, (long long)client.number,
                       (unsigned long long)least, (unsigned long long)most);
    return 0;
}

/* LOOK_AT keys, drawn by the server; those of `set` were written by the load, those of `get` before. */
static int keys_check(void)
{
    for (unsigned i = 0; i < LOOK_AT; i++) {
        char key[64];
        if (!ASK("RANDOMKEY") || client.kind != '$' || client.number < 0)
            return lost("RANDOMKEY");
        snprintf(key, sizeof key, "%s", client.text);
        if (strncmp(key, "key:", 4) != 0 || !ASK("GET", key) || client.kind != '$')
            return ak_fail("redis: the key '%.40s' is not one of the load's", key);
        if (strcmp(client.text, value) != 0)
            return ak_fail("redis: %.40s holds '%.40s', expected '%.40s'", key, client.text, value);
    }
    return 0;
}

static int contents_check(void)
{
    uint64_t elements = param_int("elements");
    char end[24];

    if (variant_is("lpush")) {
        uint64_t n = requests < LOOK_AT ? requests : LOOK_AT;
        return length_check("LLEN", "list", requests, requests) != 0 || values_check("0", "99", n, false, 0) != 0 ||
               values_check("-100", "-1", n, false, 0) != 0;
    }
    if (range() > 0) {
        snprintf(end, sizeof end, "%u", range() - 1);
        return length_check("LLEN", "list", elements, elements) != 0 || values_check("0", end, range(), true, 0) != 0 ||
               values_check("-100", "-1", LOOK_AT, true, elements - LOOK_AT) != 0;
    }
    uint64_t least = variant_is("get") ? elements : 1;
    return length_check("DBSIZE", NULL, least, elements) != 0 || keys_check() != 0;
}

/* A number in the line of this variant's command among the server's counts; 0 where there is none. */
static uint64_t count_of(const char *what)
{
    char key[64];
    snprintf(key, sizeof key, "cmdstat_%s:", command());
    const char *line = strstr(client.text, key), *at = line != NULL ? strstr(line, what) : NULL;
    return at != NULL && at < line + strcspn(line, "\r") ? strtoull(at + strlen(what), NULL, 10) : 0;
}

/* The server counts the commands itself, and, from 6.2 on, those that failed. */
static int counts_check(void)
{
    uint64_t hits = requests;

    if (!ASK("INFO", "commandstats"))
        return lost("INFO commandstats");
    uint64_t calls = count_of(":calls="), failed = count_of(",failed_calls=") + count_of(",rejected_calls=");
    if (calls != requests || failed > 0)
        return ak_fail("redis: %llu commands, of which %llu failed, expected %llu", (unsigned long long)calls,
                       (unsigned long long)failed, (unsigned long long)requests);
    if (variant_is("get") && !info_number("stats", "keyspace_hits:", &hits))
        return lost("INFO stats");
    if (hits != requests)
        return ak_fail("redis: %llu of %llu reads found their key", (unsigned long long)hits,
                       (unsigned long long)requests);
    return 0;
}

static int verify(struct ctx *c)
{
    (void)c;

    uint64_t rest_ms = param_int("rest_s") * 1000;
    if (drive_rest(&server, rest_ms > TICK_MS ? rest_ms : TICK_MS) != 0)
        return 1;
    rss_after = resident_now().rss;
    if (!info_number("memory", "used_memory:", &used_memory))
        return lost("INFO memory");
    const char *ratio = strstr(client.text, "mem_fragmentation_ratio:");
    if (ratio != NULL)
        snprintf(fragmentation, sizeof fragmentation, "%.*s", (int)strcspn(ratio + 24, "\r"), ratio + 24);
    memset(value, 'x', param_int("value_bytes"));
    value[param_int("value_bytes")] = '\0';
    if (counts_check() != 0 || contents_check() != 0)
        return 1;
    return drive_crashed(&server, "while it was looked at");
}

static void teardown(struct ctx *c)
{
    (void)c;
    resp_close(&client);
    service_stop(&server, SIGTERM, STOP_MS);
}

static void report(void)
{
    static const struct { const char *column, *metric; } latencies[] = {
        { "avg_latency_ms", "request_mean_ms" }, { "p50_latency_ms", "request_p50_ms" },
        { "p95_latency_ms", "request_p95_ms" },  { "p99_latency_ms", "request_p99_ms" },
        { "max_latency_ms", "request_max_ms" },
    };
    const char *untold = "redis-benchmark does not tell it: 6.2 and later do";
    double v = 0;

    drive_resident("rss_rest_bytes", rss_rest);
    drive_resident("rss_load_bytes", rss_load);
    drive_resident("rss_after_bytes", rss_after);
    ak_metric("used_memory_bytes", "bytes", (double)used_memory, NULL);
    ak_metric("mem_fragmentation_ratio", "", strtod(fragmentation, NULL), fragmentation[0] ? NULL : "INFO has none");
    for (unsigned i = 0; i < sizeof latencies / sizeof latencies[0]; i++) {
        bool told = table != NULL && table_value(table, latencies[i].column, &v);
        ak_metric(latencies[i].metric, "ms", v, told ? NULL : untold);
    }
    bool told = table != NULL && table_value(table, "rps", &v);
    ak_metric("load_requests_per_s", "1/s", v, told ? NULL : untold);
}

static const char *refuse(void)
{
    uint64_t total = param_int("ops_total");
    if ((total > 0 ? total : param_int("ops")) % param_int("pipeline") != 0)
        return "--ops: the load sends whole pipelines, expected a multiple of --pipeline";
    if (param_int("load_threads") > param_int("connections"))
        return "--load-threads: each thread of the load needs a connection, see --connections";
    return NULL;
}

const struct kernel kernel = {
    .name = "redis",
    .what = "redis-server, driven by redis-benchmark: lists of short values pushed and read",
    .variants = "lpush|lrange_100|lrange_300|lrange_500|set|get",
    .params = params,
    .op = "one command",
    .app = true,
    .subject = true,
    .default_ops = 100000,
    .start_s = 0.35, /* measured with glibc and up to 10,000 elements; an op is 10 us (lpush) to 110 us (lrange_500) */
    .op_ns = 20e3,
    .refuse = refuse,
    .setup = setup,
    .run = run,
    .verify = verify,
    .teardown = teardown,
    .report = report,
};
