/*
 * configure.h - configuration files for the servers that Debian has: one process, one port on loopback, files of one
 * folder.
 */
#ifndef HTTP_FOREIGN_CONFIGURE_H
#define HTTP_FOREIGN_CONFIGURE_H

#include <stdint.h>

struct site {
    const char *folder; /* for the server's own files */
    const char *root;   /* what is served */
    uint16_t    port;
    unsigned    connections; /* that it must hold at a time */
};

#define CONFIGURE_ARGS 12

/* Write the file of `server` (lighttpd or nginx) to `path`, and set the arguments behind the program's name that
 * make it run in the foreground, NULL at the end. They point into `path` and the site. 0, or -1 with errno. */
int configure(const char *server, const struct site *, const char *path, const char *args[CONFIGURE_ARGS]);

#endif
