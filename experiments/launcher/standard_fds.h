/*
 * standard_fds.h - file descriptors 0 to 2 are taken before anything else is opened.
 *
 * Whoever starts a program may have closed them. The next file opened would then get such a number, and what
 * is printed would land in it.
 */
#ifndef AK_STANDARD_FDS_H
#define AK_STANDARD_FDS_H

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* Open /dev/null in place of those that are closed. False if that fails. */
static inline bool standard_fds_reserve(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

#endif
