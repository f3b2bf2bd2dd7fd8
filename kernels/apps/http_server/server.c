#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pool.h"
#include "server.h"

#define EVENTS      64
#define BACKLOG     4096
#define INPUT_FIRST 512u
#define SCAN_NS     200000000u /* how often a thread looks for idle connections */
#define SCAN_MS     200

/* ready: bytes of the input that came and no request has taken yet. */
struct connection {
    struct connection *next, **back; /* of its worker's list */
    int      fd;
    bool     writes; /* it waits until the socket takes more */
    bool     leaving; /* our side is shut: what still comes is thrown away */
    uint64_t since_ns; /* its last request was answered, or it came */
    char    *input;
    size_t   ready, room;
    struct response *response; /* NULL: none under way */
    char     peer[INET_ADDRSTRLEN + 6];
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void count(atomic_ullong *what, uint64_t more)
{
    atomic_store_explicit(what, atomic_load_explicit(what, memory_order_relaxed) + more, memory_order_relaxed);
}

/* ---- connections ---- */

static void connection_close(struct worker *w, struct connection *c)
{
    pthread_mutex_lock(&w->lock);
    *c->back = c->next;
    if (c->next != NULL)
        c->next->back = c->back;
    pthread_mutex_unlock(&w->lock);
    close(c->fd);
    response_free(c->response);
    pool_put(c->input);
    pool_put(c);
}

static void no_memory(struct worker *w, struct connection *c)
{
    atomic_store(&w->server->no_memory, true);
    if (c != NULL)
        connection_close(w, c);
}

static bool watch(int epoll, int operation, struct connection *c, bool writes)
{
    struct epoll_event e = { .events = writes ? EPOLLOUT : EPOLLIN, .data.ptr = c };
    c->writes = writes;
    return epoll_ctl(epoll, operation, c->fd, &e) == 0;
}

static void connection_make(struct worker *w, int fd, const struct sockaddr_in *peer)
{
    struct server *s = w->server;
    struct worker *to;
    struct connection *c = pool_get(sizeof *c);
    char address[INET_ADDRSTRLEN] = "";

    while ((to = atomic_load(&s->worker[atomic_fetch_add(&s->turn, 1) % s->workers])) == NULL)
        ; /* w is one */
    if (c == NULL) {
        no_memory(w, NULL);
        close(fd);
        return;
    }
    *c = (struct connection){ .fd = fd, .since_ns = w->now_ns };
    inet_ntop(AF_INET, &peer->sin_addr, address, sizeof address);
    snprintf(c->peer, sizeof c->peer, "%s:%u", address, (unsigned)ntohs(peer->sin_port));
    count(&w->counts.connections, 1);
    pthread_mutex_lock(&to->lock);
    c->next = to->first;
    c->back = &to->first;
    if (c->next != NULL)
        c->next->back = &c->next;
    to->first = c;
    pthread_mutex_unlock(&to->lock);
    /* From here on it is the other thread's. */
    if (!watch(to->epoll, EPOLL_CTL_ADD, c, false))
        atomic_store(&s->no_files, true);
}

static void accept_all(struct worker *w)
{
    static const struct timespec nap = { 0, 1000000 };
    int yes = 1, fd;

    for (;;) {
        struct sockaddr_in peer = { 0 };
        socklen_t length = sizeof peer;
        fd = accept4(w->server->listener, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
            connection_make(w, fd, &peer);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            atomic_store(&w->server->no_files, true);
            nanosleep(&nap, NULL); /* it stays ready */
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

/* ---- requests ---- */

/* "127.0.0.1:40000 /path 200 612": the lines of the last answers are kept. */
static void log_answer(struct worker *w, const struct connection *c, const struct request *request,
                       const struct response *r)
{
    char text[256];
    int length = snprintf(text, sizeof text, "%s %s %s %d %llu", c->peer, w->date, request ? request->path : "-",
                          r->status, (unsigned long long)r->size);
    size_t size = length < 0 ? 0 : (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    char **line = &w->log[w->logged++ % LOG_LINES];

    pool_put(*line);
    *line = pool_get(size + 1);
    if (*line == NULL) {
        no_memory(w, NULL);
        return;
    }
    memcpy(*line, text, size);
    (*line)[size] = '\0';
}

/* The next request of the input. False where none is whole; then none is lost. */
static bool request_begin(struct worker *w, struct connection *c)
{
    struct request *request = NULL;
    long took = request_parse(c->input, c->ready, &request);

    if (took == 0)
        return false;
    c->response = took == -500 ? NULL : response_make(took < 0 ? (int)-took : 0, request, w->server->root, w->date);
    if (c->response == NULL) {
        request_free(request);
        no_memory(w, NULL);
        return false;
    }
    if (took > 0) {
        c->ready -= (size_t)took;
        memmove(c->input, c->input + took, c->ready);
    }
    if (c->response->status == 500)
        atomic_store(&w->server->no_files, true);
    log_answer(w, c, request, c->response);
    request_free(request);
    return true;
}

/* More input, for as much as there is room for; the buffer doubles up to what a head may have. What recv returned. */
static ssize_t input_read(struct worker *w, struct connection *c)
{
    if (c->ready == c->room && c->room < REQUEST_HEAD_MAX) {
        size_t larger = c->room ? 2 * c->room : INPUT_FIRST;
        char *grown = pool_grow(c->input, larger);
        if (grown == NULL) {
            no_memory(w, NULL);
            errno = ENOMEM;
            return -1;
        }
        c->input = grown;
        c->room = larger;
    }
    return recv(c->fd, c->input + c->ready, c->room - c->ready, 0);
}

/* After a last answer: shut our side, and take what comes until the other side has shut too. To close at once, with
 * bytes that nobody has read, would make the system throw the answer away. */
static void connection_leave(struct worker *w, struct connection *c)
{
    c->leaving = true;
    c->ready = 0;
    shutdown(c->fd, SHUT_WR);
    if (!watch(w->epoll, EPOLL_CTL_MOD, c, false))
        connection_close(w, c);
}

/* Send. False where nothing is left to do for now, or the connection is gone. */
static bool response_go_on(struct worker *w, struct connection *c)
{
    struct response *r = c->response;
    enum sent sent = response_send(r, c->fd);

    if (sent == SENT_SOME) {
        if (!c->writes && !watch(w->epoll, EPOLL_CTL_MOD, c, true))
            connection_close(w, c);
        return false;
    }
    if (sent == SENT_BROKEN) {
        connection_close(w, c);
        return false;
    }
    count(&w->counts.bytes, r->head_length + (r->chunk != NULL ? r->size : 0));
    count(r->status == 200 ? &w->counts.answered : &w->counts.refused, 1);
    bool last = r->close;
    c->since_ns = w->now_ns;
    c->response = NULL;
    response_free(r);
    if (last) {
        connection_leave(w, c);
        return false;
    }
    if (c->writes && !watch(w->epoll, EPOLL_CTL_MOD, c, false)) {
        connection_close(w, c);
        return false;
    }
    return true;
}

/* A connection has input, or takes output. One recv for each event: what still waits makes another. */
static void connection_serve(struct worker *w, struct connection *c)
{
    char thrown[4096];

    if (c->leaving) {
        ssize_t got = recv(c->fd, thrown, sizeof thrown, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            connection_close(w, c);
        return;
    }
    if (c->response != NULL && !response_go_on(w, c))
        return;
    for (bool read = false;;) {
        bool begun = c->ready > 0 && request_begin(w, c);
        if (begun && response_go_on(w, c))
            continue;
        if (begun)
            return;
        if (atomic_load_explicit(&w->server->no_memory, memory_order_relaxed)) {
            connection_close(w, c);
            return;
        }
        if (read)
            return;
        ssize_t got = input_read(w, c);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            connection_close(w, c);
            return;
        }
        c->ready += (size_t)got;
        read = true;
    }
}

/* ---- the thread ---- */

static void idle_close(struct worker *w)
{
    struct connection *c, *next;

    w->scanned_ns = w->now_ns;
    pthread_mutex_lock(&w->lock);
    c = w->first; /* what others add from here on comes before it */
    pthread_mutex_unlock(&w->lock);
    for (; c != NULL; c = next) {
        next = c->next;
        if (w->now_ns > c->since_ns && w->now_ns - c->since_ns > w->server->idle_ns)
            connection_close(w, c);
    }
}

static void clocks_read(struct worker *w)
{
    int64_t seconds = (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000000u);

    w->now_ns = clock_ns(CLOCK_MONOTONIC);
    if (seconds != w->date_seconds) {
        w->date_seconds = seconds;
        response_date(w->date, seconds);
    }
}

void worker_serve(struct worker *w, const atomic_uint *phase, unsigned until)
{
    struct epoll_event event[EVENTS];

    while (atomic_load(phase) < until) {
        int n = epoll_wait(w->epoll, event, EVENTS, SCAN_MS);
        clocks_read(w);
        for (int i = 0; i < n; i++) {
            uint64_t woken;
            if (event[i].data.ptr == w->server)
                accept_all(w);
            else if (event[i].data.ptr != w)
                connection_serve(w, event[i].data.ptr);
            else if (read(w->wake, &woken, sizeof woken) < 0)
                continue; /* somebody else's wake was read before */
        }
        if (w->now_ns - w->scanned_ns > SCAN_NS)
            idle_close(w);
    }
}

void worker_wake(struct worker *w)
{
    const uint64_t one = 1;
    while (write(w->wake, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

int worker_open(struct worker *w, struct server *s, unsigned number)
{
    w->server = s;
    pthread_mutex_init(&w->lock, NULL);
    clocks_read(w);
    w->scanned_ns = w->now_ns;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event wake = { .events = EPOLLIN, .data.ptr = w },
                       listen = { .events = EPOLLIN | EPOLLEXCLUSIVE, .data.ptr = s };
    if (w->epoll < 0 || w->wake < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->wake, &wake) != 0 ||
        epoll_ctl(w->epoll, EPOLL_CTL_ADD, s->listener, &listen) != 0)
        return -1;
    atomic_store(&s->worker[number], w);
    return 0;
}

void worker_close(struct worker *w)
{
    while (w->first != NULL)
        connection_close(w, w->first);
    for (unsigned i = 0; i < LOG_LINES; i++) {
        pool_put(w->log[i]);
        w->log[i] = NULL;
    }
    if (w->epoll >= 0)
        close(w->epoll);
    if (w->wake >= 0)
        close(w->wake);
}

/* ---- the socket ---- */

int server_open(struct server *s, uint16_t port)
{
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof here;
    int yes = 1;

    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* So that a port can be had again whose connections ended a moment ago; not while another listens there. */
    if (s->listener < 0 || setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(s->listener, (struct sockaddr *)&here, sizeof here) != 0 || listen(s->listener, BACKLOG) != 0 ||
        getsockname(s->listener, (struct sockaddr *)&here, &length) != 0) {
        int error = errno;
        server_close(s);
        errno = error;
        return -1;
    }
    s->port = ntohs(here.sin_port);
    return 0;
}

void server_close(struct server *s)
{
    if (s->listener >= 0)
        close(s->listener);
    s->listener = -1;
}
