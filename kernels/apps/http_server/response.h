/*
 * response.h - one answer: a head in a buffer that grows, and a file that passes through a block of at most 32 KiB.
 *
 * Blocks of an answer: itself, its head, the file's full path (only until it is open), and what the body passes
 * through; the head grows once or twice. Of a HEAD, or where a request is refused, only the first two.
 */
#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "request.h"

#define RESPONSE_CHUNK 32768u

struct response {
    int      status;
    bool     close;  /* the connection ends with it */
    char    *head;   /* with the body of a refusal */
    size_t   head_length, head_room, head_sent;
    int      fd;     /* of the file, while some of it is to be read; else -1 */
    uint64_t unread; /* bytes of the file that were not read yet */
    char    *chunk;
    size_t   chunk_length, chunk_sent;
    uint64_t size;   /* bytes of the file */
};

enum sent { SENT_ALL, SENT_SOME, SENT_BROKEN };

/* Answer a request with a file below `root`, or refuse: `status` is a status to refuse it by, or 0. `date` is the text
 * of the header. NULL where there is no memory. */
struct response *response_make(int status, const struct request *, const char *root, const char *date);
/* Send as much as the socket takes. SENT_BROKEN: the connection is gone, or the file. */
enum sent response_send(struct response *, int socket);
void response_free(struct response *);
/* "Sun, 06 Nov 1994 08:49:37 GMT" */
#define RESPONSE_DATE 32
void response_date(char text[RESPONSE_DATE], int64_t seconds);

#endif
