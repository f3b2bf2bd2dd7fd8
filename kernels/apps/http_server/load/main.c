/*
 * ak-http-load - an open loop: requests at a constant rate to a server of the tree (tree.h), every byte of the
 * answers checked.
 *
 * Request i is due at start + i / rate, whatever the server does, and belongs to connection i modulo the number of
 * those. One whose connection still waits for an answer is sent as soon as that has come, and its latency counts from
 * when it was due all the same: a server that stalls makes all of them late, as it would make users wait (no
 * coordinated omission). Since a generator that gets no CPU would look like a slow server, it also tells how late it
 * sent what it could have sent in time.
 *
 * Prints lines "ak NAME VALUE", as load.h says. Exit status 1: an answer was wrong; 2: wrong usage; 3: no connection.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "../client.h"
#include "../tree.h"
#include "histogram.h"

#define NS_PER_S 1000000000u
#define GRACE_NS (30ull * NS_PER_S) /* after the last was due, for those that wait */
#define LEAD_NS  50000000u          /* from the last connection to the first request */
#define EVENTS   64
#define HEAD_MAX 1024u
#define PIECE    65536u

/* Owner: one thread. due: requests whose time has come; sent, done: of them. file: of the one under way, while
 * sent > done. */
struct connection {
    int      fd;      /* -1: it broke */
    unsigned number;
    uint64_t due, sent, done;
    unsigned file;
    size_t   head_have; /* of the answer under way; the body begins where the head ends */
    bool     in_body;
    size_t   body_at;
    char     head[HEAD_MAX + 1];
};

struct thread {
    pthread_t thread;
    unsigned  first, connections; /* numbers first, first + threads, ... */
    struct connection *connection;
    struct hist latency, late;    /* ns */
    double    sum_us, squares_us;
    uint64_t  requests, bytes, broken, refused;
    char      wrong[CLIENT_WHY];  /* the first answer that was wrong */
};

/* What all threads read. */
static struct {
    unsigned port, connections, threads;
    uint64_t seconds, rate, seed, requests, start_ns;
    uint8_t  order[TREE_CYCLE];
    char     text[TREE_FILES][512];
    size_t   text_length[TREE_FILES];
    char    *body[TREE_FILES];
} plan;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t due_ns(uint64_t request)
{
    return plan.start_ns + request / plan.rate * NS_PER_S + request % plan.rate * NS_PER_S / plan.rate;
}

static unsigned file_of(uint64_t request)
{
    return plan.order[(request + request / plan.connections) % TREE_CYCLE];
}

static void broke(struct thread *t, struct connection *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    t->broken++;
}

static void is_wrong(struct thread *t, struct connection *c, const char *what)
{
    if (t->wrong[0] == '\0')
        snprintf(t->wrong, sizeof t->wrong, "GET %s: %s", tree_file[c->file].path, what);
    broke(t, c);
}

/* The next that is due, if the connection is free. */
static void request_send(struct thread *t, struct connection *c, bool was_free)
{
    if (c->fd < 0 || c->sent == c->due || c->sent > c->done)
        return;
    uint64_t request = c->sent++ * plan.connections + c->number, now = now_ns(), due = due_ns(request);
    c->file = file_of(request);
    c->head_have = c->body_at = 0;
    c->in_body = false;
    if (was_free)
        hist_add(&t->late, now > due ? now - due : 0);
    size_t length = plan.text_length[c->file];
    if (send(c->fd, plan.text[c->file], length, MSG_NOSIGNAL) != (ssize_t)length)
        broke(t, c);
}

static void answer_done(struct thread *t, struct connection *c)
{
    uint64_t due = due_ns(c->done++ * plan.connections + c->number), now = now_ns(), ns = now > due ? now - due : 0;

    hist_add(&t->latency, ns);
    t->sum_us += (double)ns / 1e3;
    t->squares_us += (double)ns / 1e3 * ((double)ns / 1e3);
    t->requests++;
    request_send(t, c, false);
}

/* The head is whole: is it of the file that was asked for? */
static void head_take(struct thread *t, struct connection *c)
{
    const char *length = strcasestr(c->head, "\r\nContent-Length:");

    c->in_body = true;
    if (strncmp(c->head, "HTTP/1.1 200 ", 13) != 0) {
        t->refused++;
        is_wrong(t, c, "not status 200");
    } else if (length == NULL || strtoul(length + 17, NULL, 10) != tree_file[c->file].size) {
        is_wrong(t, c, "not the length of the file");
    }
}

static void answer_take(struct thread *t, struct connection *c, const char *piece, size_t length)
{
    while (length > 0 && c->fd >= 0) {
        if (c->sent == c->done) {
            is_wrong(t, c, "more bytes than the answer has");
        } else if (!c->in_body) {
            if (c->head_have == HEAD_MAX) {
                is_wrong(t, c, "a head that does not end");
                return;
            }
            c->head[c->head_have++] = *piece++;
            length--;
            if (c->head_have >= 4 && memcmp(c->head + c->head_have - 4, "\r\n\r\n", 4) == 0) {
                c->head[c->head_have] = '\0';
                head_take(t, c);
            }
        } else {
            size_t size = tree_file[c->file].size, part = size - c->body_at < length ? size - c->body_at : length;
            if (memcmp(plan.body[c->file] + c->body_at, piece, part) != 0) {
                is_wrong(t, c, "not the bytes of the file");
                return;
            }
            piece += part, length -= part;
            if ((c->body_at += part) == size)
                answer_done(t, c);
        }
    }
}

static void connection_read(struct thread *t, struct connection *c, char *piece)
{
    ssize_t got = c->fd < 0 ? 0 : recv(c->fd, piece, PIECE, 0);

    if (got > 0) {
        t->bytes += (uint64_t)got;
        answer_take(t, c, piece, (size_t)got);
    } else if (c->fd >= 0 && (got == 0 || (errno != EAGAIN && errno != EINTR))) {
        broke(t, c);
    }
}

/* How many requests there are for a connection. */
static uint64_t share_of(const struct connection *c)
{
    return plan.requests / plan.connections + (c->number < plan.requests % plan.connections);
}

static bool waits(const struct thread *t)
{
    for (unsigned i = 0; i < t->connections; i++)
        if (t->connection[i].fd >= 0 && t->connection[i].done < share_of(&t->connection[i]))
            return true;
    return false;
}

static void *thread_main(void *argument)
{
    struct thread *t = argument;
    struct epoll_event event[EVENTS];
    char *piece = malloc(PIECE);
    int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct epoll_event tick = { .events = EPOLLIN, .data.ptr = NULL };
    uint64_t end = due_ns(plan.requests) + GRACE_NS, round = 0, fired;
    unsigned next = 0; /* in time order: `next` of the connections, in `round` */

    bool ready = piece != NULL && epoll >= 0 && timer >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &tick) == 0;
    for (unsigned i = 0; ready && i < t->connections; i++) {
        struct epoll_event e = { .events = EPOLLIN, .data.ptr = &t->connection[i] };
        ready = epoll_ctl(epoll, EPOLL_CTL_ADD, t->connection[i].fd, &e) == 0;
    }
    if (!ready)
        snprintf(t->wrong, sizeof t->wrong, "a thread of the load cannot begin: %s", strerror(errno));
    while (ready && waits(t) && now_ns() < end) {
        uint64_t request = 0;
        for (uint64_t now = now_ns();;) { /* what is due by now */
            struct connection *c = &t->connection[next];
            request = round * plan.connections + c->number;
            if (request >= plan.requests || due_ns(request) > now)
                break;
            bool was_free = c->sent == c->due && c->sent == c->done;
            c->due++;
            request_send(t, c, was_free);
            if (++next == t->connections)
                next = 0, round++;
        }
        uint64_t at = request < plan.requests ? due_ns(request) : end;
        const struct itimerspec when = { .it_value = { (time_t)(at / NS_PER_S), (long)(at % NS_PER_S) } };
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
        int n = epoll_wait(epoll, event, EVENTS, -1);
        for (int i = 0; i < n; i++)
            if (event[i].data.ptr != NULL)
                connection_read(t, event[i].data.ptr, piece);
            else if (read(timer, &fired, sizeof fired) < 0)
                continue; /* it was set anew since */
    }
    free(piece);
    if (epoll >= 0)
        close(epoll);
    if (timer >= 0)
        close(timer);
    return NULL;
}

/* ---- the whole ---- */

static int refuse(int status, const char *why)
{
    fprintf(stderr, "ak-http-load: %s\n", why);
    return status;
}

static bool number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *value >= least && *value <= most;
}

static bool plan_make(char **argument)
{
    uint64_t port, connections, threads;

    if (!number(argument[0], 1, 65535, &port) || !number(argument[1], 1, 1000000, &connections) ||
        !number(argument[2], 1, connections, &threads) || !number(argument[3], 1, 86400, &plan.seconds) ||
        !number(argument[4], 1, 10000000, &plan.rate) || !number(argument[5], 0, UINT64_MAX, &plan.seed))
        return false;
    plan.port = (unsigned)port;
    plan.connections = (unsigned)connections;
    plan.threads = (unsigned)threads;
    plan.requests = plan.rate * plan.seconds;
    tree_order(plan.seed, plan.order);
    for (unsigned file = 0; file < TREE_FILES; file++) {
        plan.body[file] = malloc(tree_file[file].size);
        if (plan.body[file] == NULL)
            return false;
        tree_fill(plan.seed, file, plan.body[file]);
        plan.text_length[file] = (size_t)snprintf(plan.text[file], sizeof plan.text[file],
                                                  "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                                                  "User-Agent: ak-http-load\r\n"
                                                  "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n"
                                                  "Accept-Encoding: identity\r\n\r\n",
                                                  tree_file[file].path, plan.port);
    }
    return true;
}

static bool thread_connect(struct thread *t, unsigned first)
{
    t->first = first;
    t->connections = plan.connections / plan.threads + (first < plan.connections % plan.threads);
    t->connection = calloc(t->connections, sizeof *t->connection);
    for (unsigned i = 0; t->connection != NULL && i < t->connections; i++) {
        struct connection *c = &t->connection[i];
        c->number = first + i * plan.threads;
        c->fd = client_connect((uint16_t)plan.port);
        if (c->fd < 0 || fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0)
            return false;
    }
    return t->connection != NULL;
}

static void tell(const char *name, double value)
{
    printf("ak %s %.3f\n", name, value);
}

static void result_print(const struct thread *whole, uint64_t ended_ns)
{
    double n = (double)whole->requests, mean = n > 0 ? whole->sum_us / n : 0;
    double variance = n > 1 ? (whole->squares_us - n * mean * mean) / (n - 1) : 0;
    static const unsigned percent[] = { 50, 75, 90, 99 };
    char name[16];

    tell("requests", n);
    tell("bytes", (double)whole->bytes);
    tell("seconds", (double)(ended_ns - plan.start_ns) / 1e9);
    /* Those that nobody answered too. */
    tell("errors", (double)(whole->broken + (plan.requests - whole->requests)));
    tell("refused", (double)whole->refused);
    if (whole->requests > 0) {
        tell("mean_us", mean);
        tell("stdev_us", sqrt(variance > 0 ? variance : 0));
        for (unsigned i = 0; i < sizeof percent / sizeof percent[0]; i++) {
            snprintf(name, sizeof name, "p%u_us", percent[i]);
            tell(name, hist_quantile(&whole->latency, percent[i] / 100.0) / 1e3);
        }
        tell("max_us", (double)whole->latency.max / 1e3);
    }
    if (whole->late.samples > 0)
        tell("late_p99_us", hist_quantile(&whole->late, 0.99) / 1e3);
}

int main(int argc, char **argv)
{
    static struct thread sum, *thread;
    struct thread *whole = &sum;
    if (argc != 7 || !plan_make(argv + 1))
        return refuse(2, "usage: ak-http-load PORT CONNECTIONS THREADS SECONDS RATE SEED (threads <= connections)");
    thread = calloc(plan.threads, sizeof *thread);
    if (thread == NULL)
        return refuse(3, "out of memory");
    for (unsigned i = 0; i < plan.threads; i++)
        if (!thread_connect(&thread[i], i))
            return refuse(3, strerror(errno));
    plan.start_ns = now_ns() + LEAD_NS;
    for (unsigned i = 0; i < plan.threads; i++)
        if (pthread_create(&thread[i].thread, NULL, thread_main, &thread[i]) != 0)
            return refuse(3, "no thread can be started");
    for (unsigned i = 0; i < plan.threads; i++) {
        const struct thread *t = &thread[i];
        pthread_join(t->thread, NULL);
        hist_merge(&whole->latency, &t->latency);
        hist_merge(&whole->late, &t->late);
        whole->sum_us += t->sum_us, whole->squares_us += t->squares_us;
        whole->requests += t->requests, whole->bytes += t->bytes;
        whole->broken += t->broken, whole->refused += t->refused;
        if (t->wrong[0] != '\0' && whole->wrong[0] == '\0')
            snprintf(whole->wrong, sizeof whole->wrong, "%s", t->wrong);
    }
    result_print(whole, now_ns());
    if (fflush(stdout) != 0 || ferror(stdout))
        return refuse(3, "the result cannot be written");
    return whole->wrong[0] != '\0' ? refuse(1, whole->wrong) : 0;
}
