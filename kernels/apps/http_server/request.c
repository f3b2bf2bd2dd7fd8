#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "pool.h"
#include "request.h"

/* A run of bytes that is not terminated. */
struct text { const char *at; size_t length; };

static bool text_is(struct text t, const char *word)
{
    return t.length == strlen(word) && memcmp(t.at, word, t.length) == 0;
}

/* RFC 9110, 5.6.2 */
static bool is_token(struct text t)
{
    for (size_t i = 0; i < t.length; i++)
        if (!isalnum((unsigned char)t.at[i]) && (t.at[i] == '\0' || strchr("!#$%&'*+-.^_`|~", t.at[i]) == NULL))
            return false;
    return t.length > 0;
}

/* What lies before `mark`; then *rest begins behind it. A length of SIZE_MAX: there is no mark. */
static struct text cut(struct text *rest, const char *mark)
{
    struct text before = { rest->at, SIZE_MAX };
    const char *found = memmem(rest->at, rest->length, mark, strlen(mark));

    if (found != NULL) {
        before.length = (size_t)(found - rest->at);
        rest->length -= before.length + strlen(mark);
        rest->at = found + strlen(mark);
    }
    return before;
}

/* No end has come: 0 where it still can. */
static long unfinished(const char *bytes, size_t length)
{
    struct text rest = { bytes, length };
    size_t line = cut(&rest, "\r\n").length;

    for (size_t i = 0; i < length; i++)
        if (bytes[i] == '\0' || (bytes[i] == '\n' && (i == 0 || bytes[i - 1] != '\r')))
            return -400;
    if (length > 0 && !is_token((struct text){ bytes, 1 }) && bytes[0] != '\r')
        return -400;
    if ((line == SIZE_MAX ? length : line) > REQUEST_LINE_MAX)
        return -414;
    return length < REQUEST_HEAD_MAX ? 0 : -431;
}

static int hex(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* A segment "..", which would lead out. */
static bool leads_up(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/..")) != NULL; at += 3)
        if (at[3] == '/' || at[3] == '\0')
            return true;
    return false;
}

/* 0, or a negative status. */
static long path_take(struct request *r, struct text target)
{
    static const char index[] = "index.html";

    if (target.length > 7 && strncasecmp(target.at, "http://", 7) == 0) { /* as proxies are asked: skip the authority */
        target.at += 7, target.length -= 7;
        const char *slash = memchr(target.at, '/', target.length);
        if (slash == NULL)
            return -400;
        target.length -= (size_t)(slash - target.at);
        target.at = slash;
    }
    if (target.length == 0 || target.at[0] != '/')
        return -400;
    char *to = r->path = pool_get(target.length + sizeof index);
    if (to == NULL)
        return -500;
    for (size_t i = 0; i < target.length && target.at[i] != '?' && target.at[i] != '#'; i++) {
        char c = target.at[i];
        if (c == '%') {
            int high = i + 2 < target.length ? hex(target.at[i + 1]) : -1, low = high < 0 ? -1 : hex(target.at[i + 2]);
            if (low < 0)
                return -400;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if ((unsigned char)c <= ' ' || c == 0x7f)
            return -400;
        *to++ = c;
    }
    *to = '\0';
    if (leads_up(r->path))
        return -400;
    if (to[-1] == '/')
        memcpy(to, index, sizeof index);
    return 0;
}

/* "GET /path HTTP/1.1". 0, or a negative status. */
static long line_take(struct request *r, struct text line)
{
    static const char *const others[] = { "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE" };

    if (line.length > REQUEST_LINE_MAX)
        return -414;
    struct text method = cut(&line, " "), target = cut(&line, " ");
    if (method.length == SIZE_MAX || target.length == SIZE_MAX || !is_token(method) || line.length != 8 ||
        memcmp(line.at, "HTTP/", 5) != 0 || !isdigit((unsigned char)line.at[5]) || line.at[6] != '.' ||
        !isdigit((unsigned char)line.at[7]))
        return -400;
    if (line.at[5] != '1')
        return -505;
    r->keep_alive = line.at[7] != '0';
    r->head = text_is(method, "HEAD");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (text_is(method, others[i]))
            return -405;
    if (!r->head && !text_is(method, "GET"))
        return -501;
    return path_take(r, target);
}

static struct text trimmed(struct text t)
{
    while (t.length > 0 && (t.at[0] == ' ' || t.at[0] == '\t'))
        t.at++, t.length--;
    while (t.length > 0 && (t.at[t.length - 1] == ' ' || t.at[t.length - 1] == '\t'))
        t.length--;
    return t;
}

/* "Name: value" into a block behind *last. 0, or a negative status. */
static long header_take(struct header ***last, struct text line)
{
    struct text name = cut(&line, ":"), value = trimmed(line);

    if (name.length == SIZE_MAX || !is_token(name)) /* nor a line that goes on: it begins with a blank */
        return -400;
    for (size_t i = 0; i < value.length; i++)
        if ((unsigned char)value.at[i] < ' ' && value.at[i] != '\t')
            return -400;
    struct header *h = pool_get(sizeof *h + name.length + value.length + 2);
    if (h == NULL)
        return -500;
    for (size_t i = 0; i < name.length; i++)
        h->name[i] = (char)tolower((unsigned char)name.at[i]);
    h->name[name.length] = '\0';
    char *copy = h->name + name.length + 1;
    memcpy(copy, value.at, value.length);
    copy[value.length] = '\0';
    h->value = copy;
    h->next = NULL;
    **last = h;
    *last = &h->next;
    return 0;
}

/* A word of a list by commas, in whatever case. */
static bool list_has(const char *list, const char *word)
{
    while (*list != '\0') {
        struct text one = trimmed((struct text){ list, strcspn(list, ",") });
        if (one.length == strlen(word) && strncasecmp(one.at, word, one.length) == 0)
            return true;
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return false;
}

/* What the headers together say. 0, or a negative status. */
static long headers_heed(struct request *r)
{
    unsigned hosts = 0, lengths = 0;
    bool body = false, chunked = false;

    for (const struct header *h = r->first; h != NULL; h = h->next)
        if (strcmp(h->name, "host") == 0) {
            hosts++;
        } else if (strcmp(h->name, "connection") == 0) {
            r->keep_alive = list_has(h->value, "close") ? false : r->keep_alive || list_has(h->value, "keep-alive");
        } else if (strcmp(h->name, "transfer-encoding") == 0) {
            chunked = true;
        } else if (strcmp(h->name, "content-length") == 0) {
            if (h->value[0] == '\0' || h->value[strspn(h->value, "0123456789")] != '\0')
                return -400;
            body = body || h->value[strspn(h->value, "0")] != '\0';
            lengths++;
        }
    if (hosts > 1 || lengths > 1 || (chunked && lengths > 0))
        return -400;
    return body || chunked ? -413 : (long)hosts;
}

long request_parse(const char *bytes, size_t length, struct request **request)
{
    size_t skipped = 0;
    while (skipped + 2 <= length && memcmp(bytes + skipped, "\r\n", 2) == 0) /* RFC 9112, 2.2: lines before a request */
        skipped += 2;
    struct text rest = { bytes + skipped, length - skipped };
    struct text head = cut(&rest, "\r\n\r\n");
    if (head.length == SIZE_MAX)
        return unfinished(bytes + skipped, length - skipped);

    struct request *r = *request = pool_get(sizeof *r);
    if (r == NULL)
        return -500;
    *r = (struct request){ 0 };
    struct header **last = &r->first;
    unsigned headers = 0;
    head.length += 2; /* so that every line has its end */
    struct text line = cut(&head, "\r\n");
    bool newer = line.length > 0 && line.at[line.length - 1] != '0';
    long rc = line_take(r, line);
    while (rc == 0 && head.length > 0)
        rc = ++headers > REQUEST_HEADERS_MAX ? -431 : header_take(&last, cut(&head, "\r\n"));
    if (rc == 0 && (rc = headers_heed(r)) == 0 && newer)
        rc = -400; /* HTTP/1.1 without a host */
    if (rc < 0) {
        request_free(r);
        *request = NULL;
        return rc;
    }
    return (long)(rest.at - bytes);
}

void request_free(struct request *r)
{
    if (r == NULL)
        return;
    for (struct header *h = r->first, *next; h != NULL; h = next) {
        next = h->next;
        pool_put(h);
    }
    pool_put(r->path);
    pool_put(r);
}
