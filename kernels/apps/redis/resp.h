/*
 * resp.h - a client of redis: commands as words, replies item by item.
 *
 * An array is a reply whose number says how many replies follow. Commands may be put ahead of the replies, which
 * come in the same order.
 */
#ifndef AK_RESP_H
#define AK_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct resp {
    FILE *in, *out;
    /* the last reply */
    char    kind;   /* '+' status, '-' error, ':' number, '$' text, '*' array */
    int64_t number; /* of ':'; the length of '$' and '*', -1 for none */
    char   *text;   /* of '+', '-' and '$', terminated; until the next reply */
    size_t  room;
};

/* Connect to a Unix socket. False with errno. */
bool resp_open(struct resp *, const char *path);
void resp_close(struct resp *);

/* Put a command of `count` words. */
bool resp_put(struct resp *, unsigned count, const char *const *words);
/* Send what was put and read one reply. False where the connection is lost or speaks something else. */
bool resp_get(struct resp *);
/* Both for one command; false too where the reply is an error (kind is '-' then). */
bool resp_ask(struct resp *, unsigned count, const char *const *words);
#define RESP_WORDS(...) sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), (const char *[]){ __VA_ARGS__ }

#endif
