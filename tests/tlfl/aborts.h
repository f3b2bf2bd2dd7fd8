/* aborts.h - whether a body ends its process with the line that it should. */
#ifndef ABORTS_H
#define ABORTS_H

#include "../conformance/tap.h"

#include <signal.h>

#define ABORTS_TEXT (1 << 16)

/* Runs a body in a child, for 20 s at most: its status as waitpid has it, and all that it wrote to
 * standard error. 0 and no text where that cannot be had. */
static int ended(void (*body)(void), char text[ABORTS_TEXT])
{
    int said[2], status = 0;
    size_t length = 0;
    ssize_t got;
    text[0] = '\0';
    if (pipe(said) != 0)
        return 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        dup2(said[1], STDERR_FILENO);
        body();
        _exit(0);
    }
    close(said[1]);
    while ((got = read(said[0], text + length, ABORTS_TEXT - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    close(said[0]);
    waitpid(child, &status, 0);
    return status;
}

/* Whether a body aborts after one line that ends in `why`. */
static TAP_UNUSED bool aborts(void (*body)(void), const char *why)
{
    static char text[ABORTS_TEXT];
    int status = ended(body, text);
    const char *end = strchr(text, '\n');
    size_t why_length = strlen(why);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && end == text + strlen(text) - 1 &&
           strlen(text) > why_length && strncmp(end - why_length, why, why_length) == 0;
}

#endif
