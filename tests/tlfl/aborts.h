/* aborts.h - whether a body ends its process with the line that it should. */
#ifndef ABORTS_H
#define ABORTS_H

#include "../conformance/tap.h"

#include <signal.h>

/* Runs a body in a child: true when it aborted after one line that ends in `why`. */
static bool aborts(void (*body)(void), const char *why)
{
    int said[2], status = 0;
    char text[512];
    size_t length = 0;
    ssize_t got;
    if (pipe(said) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        dup2(said[1], STDERR_FILENO);
        body();
        _exit(0);
    }
    close(said[1]);
    while ((got = read(said[0], text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    close(said[0]);
    waitpid(child, &status, 0);
    const char *end = strchr(text, '\n');
    size_t why_length = strlen(why);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && end == text + length - 1 &&
           length > why_length && strncmp(end - why_length, why, why_length) == 0;
}

#endif
