/*
 * output.h - a file that a command makes: there as a whole, or not at all.
 *
 * It is written under another name beside the old one and renamed at the end. What is no regular file (a device, a
 * pipe) is written as it comes, as is standard output.
 */
#ifndef AK_OUTPUT_H
#define AK_OUTPUT_H

#include "arena.h"
#include "fault.h"
#include "text.h"

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *file;
    const char *path;      /* as it was given; for messages */
    const char *target;    /* what is to be replaced; NULL: written as it comes */
    const char *temporary; /* beside it */
};

/* `path` NULL: standard output. False with AK_USAGE or AK_ENVIRONMENT. */
bool output_open(struct arena *, struct output *, const char *path, struct fault *);
/* Write the buffer and empty it. */
bool output_write(struct output *, struct buffer *, struct fault *);
/* The file stands from now on; or nothing of it remains. Either may follow a failed open. */
bool output_commit(struct output *, struct fault *);
void output_discard(struct output *);

#endif
