#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <microhttpd.h>

#include "request.h"
#include "server.h"

#define BODY_MAX   (1u << 20)
#define BODY_FIRST 1024u

/* A request's body as it comes in; a block for each request. */
struct body {
    char *text;
    size_t length, room;
};

static struct MHD_Daemon *daemon_running;

/* Room for so many bytes more. False where there is no memory or the body is too long. */
static bool body_grow(struct body *b, size_t more)
{
    size_t room = b->room ? b->room : BODY_FIRST;

    if (b->length + more > BODY_MAX)
        return false;
    while (room < b->length + more)
        room *= 2;
    char *text = room > b->room ? realloc(b->text, room) : b->text;
    if (text == NULL)
        return false;
    b->text = text;
    b->room = room;
    return true;
}

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(text ? strlen(text) : 0, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", "application/x-amz-json-1.0");
    enum MHD_Result result = MHD_queue_response(connection, text ? status : 503, response);
    MHD_destroy_response(response);
    return result;
}

/* Called once with the headers, then with each part of the body, then once more at its end. */
static enum MHD_Result serve(void *nothing, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *part, size_t *length,
                             void **state)
{
    struct body *body = *state;
    (void)nothing, (void)url, (void)version;

    if (body == NULL)
        return (*state = calloc(1, sizeof *body)) != NULL ? MHD_YES : MHD_NO;
    if (*length > 0) {
        if (!body_grow(body, *length))
            return MHD_NO;
        memcpy(body->text + body->length, part, *length);
        body->length += *length;
        *length = 0;
        return MHD_YES;
    }
    if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
        return reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, strdup("{}"));
    const char *target = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "X-Amz-Target");
    struct answer answer = request_answer(target, body->length ? body->text : "", body->length);
    return reply(connection, answer.status, answer.text);
}

static void completed(void *nothing, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode code)
{
    struct body *body = *state;
    (void)nothing, (void)connection, (void)code;

    if (body != NULL)
        free(body->text);
    free(body);
    *state = NULL;
}

static int trouble(char why[SERVER_WHY], const char *path, const char *what)
{
    snprintf(why, SERVER_WHY, "%.150s: %.90s", path, what);
    return -1;
}

static int socket_listen(const char *path, unsigned connections, char why[SERVER_WHY])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return trouble(why, path, "too long for a Unix socket: set TMPDIR to a shorter folder");
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(fd, (int)connections) == 0)
        return fd;
    trouble(why, path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

int server_start(const char *path, unsigned threads, unsigned connections, char why[SERVER_WHY])
{
    int fd = socket_listen(path, connections, why);
    if (fd < 0)
        return -1;
    /* Each thread takes its share of the connections at most, so that none has more to do than another. */
    daemon_running =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, serve, NULL, MHD_OPTION_LISTEN_SOCKET,
                         fd, MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? threads : 0,
                         MHD_OPTION_CONNECTION_LIMIT, connections > threads ? connections : threads,
                         MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END);
    if (daemon_running != NULL)
        return 0;
    return trouble(why, path, "libmicrohttpd does not start");
}

void server_stop(void)
{
    if (daemon_running != NULL)
        MHD_stop_daemon(daemon_running);
    daemon_running = NULL;
}
