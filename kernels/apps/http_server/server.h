/*
 * server.h - a static file server on loopback: HTTP/1.1, GET and HEAD, keep-alive, one request of a connection at a
 * time.
 *
 * Each thread has an epoll of its own. All wait for the one listening socket; whoever accepts a connection gives it
 * to the threads in turn, so that each has as many whatever the load. A connection belongs to that thread until it
 * ends.
 *
 * Memory, all by pool.h: of a connection, its state and an input buffer that grows; of a request, request.h and
 * response.h; and of each thread the lines of its last LOG_LINES answers, which outlive many requests.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "response.h"

#define LOG_LINES 256u

struct worker;

/* One for all threads. */
struct server {
    int         listener;
    uint16_t    port;
    const char *root;    /* the folder that is served */
    uint64_t    idle_ns; /* a connection that gets no request through for so long is closed */
    _Atomic(struct worker *) *worker; /* `workers` of them; NULL where one is not up yet */
    unsigned    workers;
    atomic_uint turn;    /* who gets the next connection */
    atomic_bool no_memory, no_files; /* it ran out of them: some requests were not answered */
};

/* What a thread did. Written by it alone, read by anybody. answered: with status 200; refused: with any other; bytes:
 * of answers that were sent whole. */
struct counts {
    atomic_ullong connections, answered, refused, bytes;
};

/* Owner: its thread, but for `first` and `counts`. */
struct worker {
    struct server *server;
    int      epoll, wake; /* wake: an eventfd */
    uint64_t now_ns, scanned_ns; /* as of the last return from epoll_wait */
    int64_t  date_seconds;
    char     date[RESPONSE_DATE];
    char    *log[LOG_LINES];
    unsigned logged;
    pthread_mutex_t lock; /* of `first`: others add connections, only the owner removes them */
    struct connection *first;
    struct counts counts;
};

/* Listen on loopback; port 0: any that is free. 0, or -1 with errno. */
int server_open(struct server *, uint16_t port);
void server_close(struct server *);
/* The worker of that number. It gets connections from then on. 0, or -1 with errno. */
int worker_open(struct worker *, struct server *, unsigned number);
/* Serve until *phase is at least `until`; worker_wake makes it look. */
void worker_serve(struct worker *, const atomic_uint *phase, unsigned until);
void worker_wake(struct worker *);
/* Close its connections and free what it has. */
void worker_close(struct worker *);

#endif
