#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "drive.h"
#include "histogram.h"

#define CONNECTIONS_MAX 1024
#define SILENCE_MS      30000 /* without any answer */
#define ANSWER_MAX      4096
#define REQUEST_MAX     (ITEM_BODY_MAX + 512)
#define BAD_REQUEST     400
#define DONE            200

struct connection {
    int fd;
    uint64_t sent_ns;
    size_t got;
    char answer[ANSWER_MAX];
};

/* What an answer must be: the status, and text that its body holds. */
struct expected {
    unsigned status;
    const char *text;
};

/* A request that must be refused, and as what. */
struct wrong {
    const char *operation, *body, *fault;
};

#define PUT(table, condition, item)                                                                          \
    "{\"TableName\":\"" table "\",\"ConditionExpression\":\"" condition "\",\"Item\":" item "}"
#define NEW_KEY         "attribute_not_exists(pk)"
#define ITEM            "{\"pk\":{\"S\":\"wrong\"}}"
#define STATEMENT(text) "{\"Statement\":\"" text "\"}"

static const struct wrong wrongs[] = {
    {"PutItem", "", "SerializationException"},
    {"PutItem", "{\"TableName\":\"items\"", "SerializationException"},
    {"PutItem", "[1, 2]", "SerializationException"},
    {"PutItem", PUT("items", NEW_KEY, "{\"pk\":{\"S\":\"wrong\"},\"pk\":{\"S\":\"twice\"}}"),
     "SerializationException"},
    {"PutItem", PUT("items", NEW_KEY, "{\"pk\":{\"S\":\"not \xff UTF-8\"}}"), "SerializationException"},
    {"DescribeNothing", "{}", "UnknownOperationException"},
    {"PutItem", PUT("others", NEW_KEY, ITEM), "ResourceNotFoundException"},
    {"PutItem", "{\"TableName\":\"items\",\"Item\":" ITEM "}", "ValidationException"},
    {"PutItem", PUT("items", "attribute_exists(pk)", ITEM), "ValidationException"},
    {"PutItem", PUT("items", "attribute_not_exists(name)", ITEM), "ValidationException"},
    {"PutItem", PUT("items", NEW_KEY, "{\"name\":{\"S\":\"no key\"}}"), "ValidationException"},
    {"PutItem", PUT("items", NEW_KEY, "{\"pk\":{\"N\":\"1\"}}"), "ValidationException"},
    {"PutItem", PUT("items", NEW_KEY, "{\"pk\":{\"S\":\"wrong\"},\"n\":{\"N\":\"1.2.3\"}}"),
     "ValidationException"},
    {"PutItem", PUT("items", NEW_KEY, "{\"pk\":{\"S\":\"wrong\"},\"n\":{\"N\":\"1\",\"S\":\"1\"}}"),
     "ValidationException"},
    {"PutItem", PUT("items", NEW_KEY, "{\"pk\":{\"S\":\"wrong\"},\"n\":{\"X\":\"1\"}}"),
     "ValidationException"},
    {"ExecuteStatement", "{}", "ValidationException"},
    {"ExecuteStatement", STATEMENT("SELECT * FROM items"), "ValidationException"},
    {"ExecuteStatement", STATEMENT("INSERT INTO \\\"items\\\" VALUE {'pk': 'wrong'"), "ValidationException"},
    {"ExecuteStatement", STATEMENT("INSERT INTO \\\"items\\\" VALUE {'pk': ?}"), "ValidationException"},
    {"ExecuteStatement", STATEMENT("INSERT INTO \\\"items\\\" VALUE {'pk': 5}"), "ValidationException"},
    {"ExecuteStatement", STATEMENT("INSERT INTO \\\"others\\\" VALUE {'pk': 'wrong'}"),
     "ResourceNotFoundException"},
};
#define WRONGS (sizeof wrongs / sizeof wrongs[0])

static struct connection connection[CONNECTIONS_MAX];
static unsigned connections;
static int events = -1; /* epoll */
static enum item_form form;
static uint64_t seed;
static struct hist latency; /* ns */

/* The order under way. */
static struct load_order order;
static uint64_t sent;
static struct load_report report;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The first is told. */
static void trouble(const char *what, const char *more)
{
    if (report.trouble[0] == '\0')
        snprintf(report.trouble, sizeof report.trouble, "%.80s: %.150s", what, more);
}

int drive_open(const char *path, unsigned wanted, enum item_form by, uint64_t of_seed)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    form = by;
    seed = of_seed;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    events = epoll_create1(EPOLL_CLOEXEC);
    for (connections = 0; connections < wanted && connections < CONNECTIONS_MAX; connections++) {
        struct connection *c = &connection[connections];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
            epoll_ctl(events, EPOLL_CTL_ADD, c->fd, &event) != 0) {
            fprintf(stderr, "ak-item-load: %s: %s\n", path, strerror(errno));
            return 1;
        }
    }
    return 0;
}

/* ---- requests ---- */

static uint64_t item_of(uint64_t index)
{
    return order.first + index * order.step;
}

/* The next request of the order as HTTP: its length. */
static size_t request_make(char text[REQUEST_MAX], uint64_t index)
{
    static char body[ITEM_BODY_MAX];
    const char *operation = form == ITEM_PUT ? "PutItem" : "ExecuteStatement";
    size_t length;

    if (order.what == LOAD_WRONG) {
        operation = wrongs[index].operation;
        length = strlen(wrongs[index].body);
        memcpy(body, wrongs[index].body, length);
    } else {
        length = item_body(body, form, seed, item_of(index));
    }
    int head = snprintf(text, REQUEST_MAX,
                        "POST / HTTP/1.1\r\nHost: item-store\r\nContent-Type: application/x-amz-json-1.0\r\n"
                        "X-Amz-Target: DynamoDB_20120810.%s\r\nContent-Length: %zu\r\n\r\n",
                        operation, length);
    memcpy(text + head, body, length);
    return (size_t)head + length;
}

static struct expected expected_of(uint64_t index)
{
    if (order.what == LOAD_WRONG)
        return (struct expected){BAD_REQUEST, wrongs[index].fault};
    if (order.what == LOAD_DUPLICATES)
        return (struct expected){BAD_REQUEST, form == ITEM_PUT ? "ConditionalCheckFailedException"
                                                               : "DuplicateItemException"};
    return (struct expected){DONE, form == ITEM_PUT ? "{}" : "{\"Items\":[]}"};
}

/* One request fits into the socket's buffer, which the server empties before it answers: no long wait. */
static void request_send(struct connection *c)
{
    static char text[REQUEST_MAX];
    size_t length = request_make(text, sent), done = 0;

    sent++;
    c->got = 0;
    c->sent_ns = now_ns();
    while (done < length) {
        ssize_t n = send(c->fd, text + done, length - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            trouble("a request cannot be sent", strerror(errno));
            return;
        }
        done += (size_t)n;
    }
}

/* ---- answers ---- */

/* The whole answer's body, once it is there; NULL before, or with trouble(). */
static const char *body_whole(const struct connection *c)
{
    const char *end = strstr(c->answer, "\r\n\r\n");
    if (end == NULL)
        return NULL;
    const char *header = strcasestr(c->answer, "\r\nContent-Length:");
    if (header == NULL || header > end) {
        trouble("an answer has no Content-Length", c->answer);
        return NULL;
    }
    size_t length = strtoul(header + sizeof "\r\nContent-Length:" - 1, NULL, 10);
    size_t have = c->got - (size_t)(end + 4 - c->answer);
    if (have > length)
        trouble("an answer is longer than it says", c->answer);
    return have == length ? end + 4 : NULL;
}

/* Each connection's request is known by its place in the order: at[] holds it. */
static uint64_t at[CONNECTIONS_MAX];

static void answer_check(const struct connection *c, const char *body)
{
    struct expected e = expected_of(at[c - connection]);
    unsigned status = 0;
    char what[80];

    if (sscanf(c->answer, "HTTP/1.1 %u", &status) == 1 && status == e.status &&
        (e.status == DONE ? strcmp(body, e.text) == 0 : strstr(body, e.text) != NULL)) {
        report.answered++;
        return;
    }
    snprintf(what, sizeof what, "expected %u with %s, the answer was %u", e.status, e.text, status);
    trouble(what, body);
}

static void next_send(struct connection *c)
{
    if (sent >= order.count || report.trouble[0] != '\0')
        return;
    at[c - connection] = sent;
    request_send(c);
}

static void answer_read(struct connection *c)
{
    ssize_t n = recv(c->fd, c->answer + c->got, sizeof c->answer - 1 - c->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        trouble("the server closed a connection", n < 0 ? strerror(errno) : "or an answer is too long");
        return;
    }
    c->got += (size_t)n;
    c->answer[c->got] = '\0';
    const char *body = body_whole(c);
    if (body == NULL)
        return;
    if (order.what == LOAD_INSERT)
        hist_add(&latency, now_ns() - c->sent_ns);
    answer_check(c, body);
    next_send(c);
}

static void latencies_report(void)
{
    report.latencies = latency.samples;
    if (latency.samples == 0)
        return;
    report.mean = (double)latency.sum / (double)latency.samples / 1e6;
    report.p50 = hist_quantile(&latency, 0.5) / 1e6;
    report.p90 = hist_quantile(&latency, 0.9) / 1e6;
    report.p99 = hist_quantile(&latency, 0.99) / 1e6;
    report.max = (double)latency.max / 1e6;
}

struct load_report drive_order(const struct load_order *o)
{
    struct epoll_event event[64];

    order = *o;
    order.count = o->what == LOAD_WRONG ? WRONGS : o->count;
    report = (struct load_report){0};
    sent = 0;
    for (unsigned i = 0; i < connections; i++)
        next_send(&connection[i]);
    while (report.answered < order.count && report.trouble[0] == '\0') {
        int ready = epoll_wait(events, event, 64, SILENCE_MS);
        if (ready == 0)
            trouble("the server is silent", "no answer for 30 s");
        for (int i = 0; i < ready; i++)
            answer_read(event[i].data.ptr);
    }
    latencies_report();
    return report;
}
