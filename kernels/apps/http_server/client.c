#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "client.h"

#define PATIENCE_S 20

int client_connect(uint16_t port)
{
    struct sockaddr_in there = { .sin_family = AF_INET, .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct timeval patience = { .tv_sec = PATIENCE_S };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
        connect(fd, (struct sockaddr *)&there, sizeof there) != 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

int client_say(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return -1;
        text += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

static ssize_t hear(int fd, char *to, size_t most)
{
    ssize_t got;
    while ((got = recv(fd, to, most, 0)) < 0 && errno == EINTR)
        ;
    return got;
}

/* The value of a header, or "". */
static const char *header_of(const char *head, const char *name)
{
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            return line + strlen(name) + 1 + strspn(line + strlen(name) + 1, " ");
    }
    return "";
}

int client_hear(int fd, int head, struct answer *a)
{
    size_t have = 0;

    a->head_length = a->body_length = 0;
    /* A byte at a time up to the body, so that nothing of the next answer is taken. */
    while (have < 4 || memcmp(a->head + have - 4, "\r\n\r\n", 4) != 0)
        if (have == sizeof a->head - 1 || hear(fd, a->head + have++, 1) <= 0)
            return -1;
    a->head[a->head_length = have] = '\0';
    if (strncmp(a->head, "HTTP/1.1 ", 9) != 0)
        return -1;
    a->status = atoi(a->head + 9);
    a->content_length = strtoull(header_of(a->head, "content-length"), NULL, 10);
    while (!head && a->body_length < a->content_length) {
        if (a->content_length > sizeof a->body)
            return -1;
        ssize_t got = hear(fd, a->body + a->body_length, a->content_length - a->body_length);
        if (got <= 0)
            return -1;
        a->body_length += (size_t)got;
    }
    return 0;
}

/* 0, or -1 with `why`. */
static int ask(int fd, const char *method, const char *path, int status, struct answer *a, char *why)
{
    char text[512];
    int length = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: localhost\r\n\r\n", method, path);

    if (client_say(fd, text, (size_t)length) != 0 || client_hear(fd, method[0] == 'H', a) != 0) {
        snprintf(why, CLIENT_WHY, "%s %s: no whole answer", method, path);
        return -1;
    }
    if (a->status != status) {
        snprintf(why, CLIENT_WHY, "%s %s: status %d, expected %d", method, path, a->status, status);
        return -1;
    }
    return 0;
}

static int file_check(int fd, uint64_t seed, unsigned file, struct answer *a, char *why)
{
    static char expected[TREE_SIZE_MAX];

    if (ask(fd, "GET", tree_file[file].path, 200, a, why) != 0)
        return -1;
    tree_fill(seed, file, expected);
    if (a->body_length == tree_file[file].size && memcmp(a->body, expected, a->body_length) == 0)
        return 0;
    snprintf(why, CLIENT_WHY, "GET %s: not the bytes of the file (%zu came, expected %u)", tree_file[file].path,
             a->body_length, tree_file[file].size);
    return -1;
}

int client_check(uint16_t port, uint64_t seed, struct answer *a, uint64_t size[TREE_FILES], unsigned *requests,
                 char why[CLIENT_WHY])
{
    int fd = client_connect(port), rc = -1;

    *requests = 0;
    if (fd < 0) {
        snprintf(why, CLIENT_WHY, "port %u: %s", port, strerror(errno));
        return -1;
    }
    for (unsigned file = 0; file < TREE_FILES; file++, ++*requests) {
        if (file_check(fd, seed, file, a, why) != 0)
            goto out;
        size[file] = a->head_length + a->body_length;
    }
    if (ask(fd, "HEAD", tree_file[0].path, 200, a, why) != 0)
        goto out;
    ++*requests;
    if (a->content_length != tree_file[0].size) {
        snprintf(why, CLIENT_WHY, "HEAD %s: %llu bytes, expected %u", tree_file[0].path,
                 (unsigned long long)a->content_length, tree_file[0].size);
        goto out;
    }
    rc = ask(fd, "GET", "/not-there", 404, a, why);
    ++*requests;
out:
    close(fd);
    return rc;
}
