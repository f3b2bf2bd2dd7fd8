/*
 * client.h - the client that checks what a server of the tree (tree.h) answers, byte by byte. It blocks, and is in no
 * hurry.
 *
 * No kernel.h: tests use it too.
 */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "tree.h"

#define CLIENT_WHY      256
#define CLIENT_HEAD_MAX 4096u

/* One answer. */
struct answer {
    int      status;
    size_t   head_length;    /* bytes up to the body */
    uint64_t content_length; /* as the head says */
    size_t   body_length;    /* bytes that came */
    char     head[CLIENT_HEAD_MAX];
    char     body[TREE_SIZE_MAX + 1];
};

/* A connection to loopback, each call on which gives up after some seconds; or -1. */
int client_connect(uint16_t port);
/* Send text. 0 or -1. */
int client_say(int fd, const char *text, size_t length);
/* Read one answer: `head` where it has no body. 0, or -1: none came whole. */
int client_hear(int fd, int head, struct answer *);

/* Get every file over one connection, ask for the head of one, and for one that is not there. 0, with the whole
 * sizes of the answers in size[] (heads too), or -1 with `why`. *requests: how many there were, the last for what is
 * not there. */
int client_check(uint16_t port, uint64_t seed, struct answer *, uint64_t size[TREE_FILES], unsigned *requests,
                 char why[CLIENT_WHY]);

#endif
