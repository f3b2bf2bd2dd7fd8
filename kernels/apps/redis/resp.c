#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "resp.h"

bool resp_open(struct resp *r, const char *path)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };

    *r = (struct resp){ 0 };
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        close(fd);
        return false;
    }
    int other = dup(fd);
    r->in = fdopen(fd, "r");
    r->out = fdopen(other, "w");
    return r->in != NULL && r->out != NULL;
}

void resp_close(struct resp *r)
{
    if (r->in != NULL)
        fclose(r->in);
    if (r->out != NULL)
        fclose(r->out);
    free(r->text);
    *r = (struct resp){ 0 };
}

bool resp_put(struct resp *r, unsigned count, const char *const *words)
{
    bool well = r->out != NULL && fprintf(r->out, "*%u\r\n", count) > 0;
    for (unsigned i = 0; well && i < count; i++)
        well = fprintf(r->out, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]) > 0;
    return well;
}

static bool room_for(struct resp *r, size_t bytes)
{
    if (bytes <= r->room)
        return true;
    char *grown = realloc(r->text, bytes);
    if (grown == NULL)
        return false;
    r->text = grown;
    r->room = bytes;
    return true;
}

bool resp_get(struct resp *r)
{
    if (r->in == NULL || fflush(r->out) != 0)
        return false;
    ssize_t length = getline(&r->text, &r->room, r->in);
    if (length < 4 || strcmp(r->text + length - 2, "\r\n") != 0)
        return false;
    r->kind = r->text[0];
    r->number = strtoll(r->text + 1, NULL, 10);
    r->text[length - 2] = '\0';
    memmove(r->text, r->text + 1, (size_t)length - 2);
    if (r->kind != '$' || r->number < 0)
        return strchr("+-:*$", r->kind) != NULL;
    size_t bytes = (size_t)r->number;
    if (!room_for(r, bytes + 3) || fread(r->text, 1, bytes + 2, r->in) != bytes + 2)
        return false;
    r->text[bytes] = '\0';
    return true;
}

bool resp_ask(struct resp *r, unsigned count, const char *const *words)
{
    return resp_put(r, count, words) && resp_get(r) && r->kind != '-';
}
