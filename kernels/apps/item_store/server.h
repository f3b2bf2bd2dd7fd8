/* server.h - the HTTP in front of request.h, by libmicrohttpd: a pool of threads, each with connections of its own. */
#ifndef AK_SERVER_H
#define AK_SERVER_H

#include <stddef.h>

#define SERVER_WHY 256

/* Listen on a Unix socket at `path` with so many threads, which share `connections` evenly; no more are taken at a
 * time. 0, or -1 with `why`. */
int server_start(const char *path, unsigned threads, unsigned connections, char why[SERVER_WHY]);

/* Ends its threads. May be called without a start. */
void server_stop(void);

#endif
