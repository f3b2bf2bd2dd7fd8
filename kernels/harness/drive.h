/*
 * drive.h - a program that drives the one under test, run to its end while both are watched.
 */
#ifndef AK_DRIVE_H
#define AK_DRIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "service.h"

/* Run it on the thread that called. 0 where it exited with status 0; else 1, the launch having failed: a server that
 * ended is a crash, a load that fails or still runs after timeout_ms a failure. It takes a file for its errors
 * (request.err). */
int drive_run(struct service *server, const struct service_request *, uint64_t timeout_ms);

/* Sleep for `ms`. 0, or 1 after the launch failed: the server ended meanwhile. */
int drive_rest(struct service *server, uint64_t ms);

/* True, with the launch failed, where the server has ended. `when` is for people: "under load". */
bool drive_crashed(struct service *server, const char *when);

/* A metric of resident bytes; 0: they cannot be read. */
void drive_resident(const char *name, uint64_t bytes);

#endif
