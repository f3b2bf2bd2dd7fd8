/*
 * ak-item-load - the load beside the kernel item_store: requests over HTTP, each answer checked; and the check of the
 * rows that they left. Started by the kernel.
 *
 *   ak-item-load run CONTROL SERVER CONNECTIONS put|insert SEED   orders from CONTROL (load.h), until it closes
 *   ak-item-load check FOLDER SEED ITEMS WARM                     the rows in the database whose socket lies in FOLDER
 *
 * Exit status: 0, 1 where something is not as it must be, 2 usage, 3 no connection.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "drive.h"

enum { WELL, USAGE = 2, NO_CONNECTION = 3 };

static int control_open(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    fprintf(stderr, "ak-item-load: %s: %s\n", path, strerror(errno));
    return -1;
}

static int orders_do(int control)
{
    struct load_order order;
    ssize_t got;

    while ((got = recv(control, &order, sizeof order, 0)) == (ssize_t)sizeof order ||
           (got < 0 && errno == EINTR)) {
        if (got < 0)
            continue;
        struct load_report report = drive_order(&order);
        if (send(control, &report, sizeof report, MSG_NOSIGNAL) != (ssize_t)sizeof report)
            break;
    }
    return WELL;
}

static int run(char **argument)
{
    unsigned connections = (unsigned)strtoul(argument[2], NULL, 10);
    enum item_form form = strcmp(argument[3], "insert") == 0 ? ITEM_INSERT : ITEM_PUT;
    int control = control_open(argument[0]);

    if (control < 0 || drive_open(argument[1], connections, form, strtoull(argument[4], NULL, 10)) != 0)
        return NO_CONNECTION;
    return orders_do(control);
}

int main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "run") == 0)
        return run(argv + 2);
    if (argc == 6 && strcmp(argv[1], "check") == 0)
        return check_rows(argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10),
                          strtoull(argv[5], NULL, 10));
    fputs("usage: ak-item-load run CONTROL SERVER CONNECTIONS put|insert SEED\n"
          "       ak-item-load check FOLDER SEED ITEMS WARM\n"
          "Started by the kernel item_store.\n",
          stderr);
    return USAGE;
}
