/*
 * request.h - one HTTP/1.x request, out of the bytes that a connection sent.
 *
 * Blocks of a request: itself, one for each header (name and value), and its path: two and the number of headers.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#define REQUEST_HEAD_MAX    8192u /* bytes of a request line and its headers: more is 431 */
#define REQUEST_LINE_MAX    4096u /* bytes of a request line: more is 414 */
#define REQUEST_HEADERS_MAX 64u   /* more is 431 */

struct header {
    struct header *next;
    const char    *value; /* in the same block, behind the name */
    char           name[];  /* in small letters */
};

struct request {
    bool           head;       /* HEAD; else GET */
    bool           keep_alive; /* what the client wants */
    char          *path;       /* decoded, from the root on, without a query; never with a ".." in it */
    struct header *first;      /* in their order */
};

/* Parse the request at the start of `length` bytes. The number of bytes that it took, with *request made; 0 where its
 * end has not come yet; else the negative status to refuse it by, 500 where there is no memory. */
long request_parse(const char *bytes, size_t length, struct request **request);
void request_free(struct request *);

#endif
