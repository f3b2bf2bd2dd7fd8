#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pool.h"
#include "response.h"

#define HEAD_ROOM_FIRST 128u

static const char *reason_of(int status)
{
    switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 505: return "HTTP Version Not Supported";
    default: return "Internal Server Error";
    }
}

static const char *type_of(const char *path)
{
    static const struct { const char *end, *type; } types[] = {
        { ".html", "text/html; charset=utf-8" }, { ".css", "text/css" },    { ".js", "text/javascript" },
        { ".txt", "text/plain" },                { ".svg", "image/svg+xml" }, { ".jpg", "image/jpeg" },
    };
    const char *end = strrchr(path, '.');

    for (size_t i = 0; end != NULL && i < sizeof types / sizeof types[0]; i++)
        if (strcmp(end, types[i].end) == 0)
            return types[i].type;
    return "application/octet-stream";
}

/* By hand: strftime would ask for the time zone, and for the names of the user's language. */
void response_date(char text[RESPONSE_DATE], int64_t seconds)
{
    static const char day[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
    static const char month[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    time_t when = (time_t)seconds;
    struct tm t;

    gmtime_r(&when, &t);
    snprintf(text, RESPONSE_DATE, "%s, %02u %s %04u %02u:%02u:%02u GMT", day[t.tm_wday % 7], (unsigned)t.tm_mday % 100,
             month[t.tm_mon % 12], (unsigned)(t.tm_year + 1900) % 10000, (unsigned)t.tm_hour % 100,
             (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100);
}

/* Add to the head, which doubles where it is full. False where there is no memory. */
__attribute__((format(printf, 2, 3))) static bool head_add(struct response *r, const char *format, ...)
{
    for (;;) {
        va_list arguments;
        va_start(arguments, format);
        size_t room = r->head_room - r->head_length;
        int length = vsnprintf(r->head ? r->head + r->head_length : NULL, room, format, arguments);
        va_end(arguments);
        if (length < 0)
            return false;
        if ((size_t)length < room) {
            r->head_length += (size_t)length;
            return true;
        }
        size_t larger = r->head_room ? 2 * r->head_room : HEAD_ROOM_FIRST;
        char *grown = pool_grow(r->head, larger);
        if (grown == NULL)
            return false;
        r->head = grown;
        r->head_room = larger;
    }
}

/* The file of a path: 200 with it open, 404, or 500. */
static int file_open(struct response *r, const char *root, const char *path, int64_t *changed)
{
    size_t length = strlen(root);
    struct stat s;
    char *full = pool_get(length + strlen(path) + 1);
    if (full == NULL)
        return 500;
    memcpy(full, root, length);
    memcpy(full + length, path, strlen(path) + 1);
    r->fd = open(full, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int error = errno;
    pool_put(full);
    if (r->fd < 0)
        return error == EMFILE || error == ENFILE || error == ENOMEM ? 500 : 404;
    if (fstat(r->fd, &s) != 0 || !S_ISREG(s.st_mode))
        return 404;
    r->size = r->unread = (uint64_t)s.st_size;
    *changed = (int64_t)s.st_mtime;
    return 200;
}

static void file_close(struct response *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
    r->unread = 0;
}

/* Refusals say in a line what they are. */
static bool refusal_make(struct response *r, bool head, const char *date)
{
    const char *reason = reason_of(r->status);
    return head_add(r, "HTTP/1.1 %d %s\r\nServer: ak\r\nDate: %s\r\n%sContent-Type: text/plain\r\n"
                       "Content-Length: %zu\r\nConnection: %s\r\n\r\n",
                    r->status, reason, date, r->status == 405 ? "Allow: GET, HEAD\r\n" : "", strlen(reason) + 5,
                    r->close ? "close" : "keep-alive") &&
           (head || head_add(r, "%d %s\n", r->status, reason));
}

static bool answer_make(struct response *r, const struct request *request, const char *date, int64_t changed)
{
    char modified[RESPONSE_DATE];

    response_date(modified, changed);
    return head_add(r, "HTTP/1.1 200 OK\r\nServer: ak\r\nDate: %s\r\n", date) &&
           head_add(r, "Content-Type: %s\r\nContent-Length: %llu\r\n", type_of(request->path),
                    (unsigned long long)r->size) &&
           head_add(r, "Last-Modified: %s\r\nConnection: %s\r\n\r\n", modified, r->close ? "close" : "keep-alive");
}

struct response *response_make(int status, const struct request *request, const char *root, const char *date)
{
    int64_t changed = 0;
    struct response *r = pool_get(sizeof *r);

    if (r == NULL)
        return NULL;
    *r = (struct response){ .fd = -1 };
    r->status = status != 0 ? status : file_open(r, root, request->path, &changed);
    /* After a request that was not understood nobody knows where the next begins. */
    r->close = r->status != 200 && r->status != 404 ? true : !request->keep_alive;
    bool head = request != NULL && request->head;
    bool made = r->status == 200 ? answer_make(r, request, date, changed) : refusal_make(r, head, date);
    if (head || r->status != 200)
        file_close(r);
    if (made && r->unread > 0) {
        r->chunk = pool_get(r->unread < RESPONSE_CHUNK ? (size_t)r->unread : RESPONSE_CHUNK);
        made = r->chunk != NULL;
    }
    if (!made) {
        response_free(r);
        return NULL;
    }
    return r;
}

/* The next bytes of the file. False where they are not there any more. */
static bool chunk_read(struct response *r)
{
    size_t want = r->unread < RESPONSE_CHUNK ? (size_t)r->unread : RESPONSE_CHUNK;
    ssize_t got;

    while ((got = read(r->fd, r->chunk, want)) < 0 && errno == EINTR)
        ;
    if (got <= 0)
        return false;
    r->chunk_length = (size_t)got;
    r->chunk_sent = 0;
    r->unread -= (uint64_t)got;
    if (r->unread == 0)
        file_close(r);
    return true;
}

enum sent response_send(struct response *r, int socket)
{
    for (;;) {
        if (r->chunk_sent == r->chunk_length && r->unread > 0 && !chunk_read(r))
            return SENT_BROKEN;
        struct iovec parts[2] = { { r->head + r->head_sent, r->head_length - r->head_sent },
                                  { r->chunk + r->chunk_sent, r->chunk_length - r->chunk_sent } };
        if (parts[0].iov_len + parts[1].iov_len == 0)
            return SENT_ALL;
        bool skip = parts[0].iov_len == 0;
        const struct msghdr message = { .msg_iov = parts + skip, .msg_iovlen = 2 - skip };
        ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | (r->unread > 0 ? MSG_MORE : 0));
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? SENT_SOME : SENT_BROKEN;
        size_t of_head = (size_t)sent < parts[0].iov_len ? (size_t)sent : parts[0].iov_len;
        r->head_sent += of_head;
        r->chunk_sent += (size_t)sent - of_head;
    }
}

void response_free(struct response *r)
{
    if (r == NULL)
        return;
    file_close(r);
    pool_put(r->head);
    pool_put(r->chunk);
    pool_put(r);
}
