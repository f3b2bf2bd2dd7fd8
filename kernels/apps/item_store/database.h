/*
 * database.h - a PostgreSQL of this launch alone, made anew and thrown away: in a folder of the service, as an
 * unprivileged user where this process is root's, on a Unix socket there and no port. It is not under test.
 *
 * Nothing of it outlives the launch, whatever ends it: its shared memory is in the folder or marked to go with its
 * last process, and its server processes end once the first of them is gone, which ends with the thread that started
 * it. Where it ends while initdb runs, the server that initdb has at work ends with its input, a moment later.
 */
#ifndef AK_DATABASE_H
#define AK_DATABASE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "service.h"

struct database {
    struct service postmaster; /* all of its server processes are its children */
    char folder[101];          /* the socket's, and of all else */
};

/* Make it and start it; `bytes`: what will be written, roughly. With `fsync` it waits for the disk as it does by
 * default, else it never does. 0, or -1 with `why`. Start and stop on the same thread. */
int database_start(struct database *, unsigned connections, bool fsync, uint64_t bytes,
                   char why[SERVICE_WHY]);

/* At once, without a look at what it holds. */
void database_stop(struct database *);

#endif
