/*
 * request.h - what a request is answered, as a store with DynamoDB's interface would: two operations, PutItem with the
 * condition attribute_not_exists on the key, and ExecuteStatement with a PartiQL INSERT, into one table.
 *
 * Every block is the allocator's under test: this is the work that the kernel measures.
 */
#ifndef AK_REQUEST_H
#define AK_REQUEST_H

#include <stddef.h>

struct answer {
    unsigned status; /* of HTTP */
    char *text;      /* JSON; whoever has the answer frees it. NULL: no memory */
};

/* `target` is the header X-Amz-Target, or NULL. Any number of threads at a time. */
struct answer request_answer(const char *target, const char *body, size_t length);

#endif
