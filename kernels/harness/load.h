/*
 * load.h - a program that drives the one under test, run to its end while both are watched.
 */
#ifndef AK_LOAD_H
#define AK_LOAD_H

#include <stdint.h>

#include "service.h"

struct load_looks {
    uint64_t rss;    /* the largest of the looks, one every 100 ms while the load ran; 0: none */
    const char *why; /* where there was none */
};

/* Run it on the thread that called. 0 where it exited with status 0; else 1, the launch having failed: a server that ended
 * is a crash, a load that fails or still runs after timeout_ms a failure. It takes a file for its errors (request.err). */
int load_run(struct service *server, const struct service_request *, uint64_t timeout_ms, struct load_looks *);

/* Sleep for `ms`. 0, or 1 after the launch failed: the server ended meanwhile. */
int load_rest(struct service *server, uint64_t ms);

/* True, with the launch failed, where the server has ended. `when` is for people: "under load". */
bool load_crashed(struct service *server, const char *when);

#endif
