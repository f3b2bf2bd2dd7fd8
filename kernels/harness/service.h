/*
 * service.h - programs that a kernel starts beside itself: what drives it, what it stores into, or the server under test.
 *
 * Each is started by its path or by a name in PATH, never through a shell, with a short environment of its own, and ends
 * with the thread that started it, whatever ends that thread. So start and stop it on the same one. Only the one under test
 * keeps that thread's CPUs; the others have all that this process was given. A folder for its files
 * is gone when the launch is over; where a launch was killed, the next one removes what it left.
 *
 * None of this belongs into the timed region: it forks, and what it reads back it maps.
 */
#ifndef AK_SERVICE_H
#define AK_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVICE_WHY 512 /* bytes of a reason */

struct service {
    pid_t pid; /* 0: none, or it has ended and was waited for */
    int   status; /* as waitpid has it, once it has ended */
};

struct service_request {
    const char *const *argv;  /* NULL-terminated; argv[0] is a path, or a name that is looked up in PATH */
    const char *const *env;   /* NAME=VALUE in place of this process's, beside PATH, HOME, LANG=C and TMPDIR; NULL: no more */
    const char *directory;    /* where it starts; NULL: here */
    const char *out, *err;    /* files for its output; NULL: /dev/null */
    bool  under_test;         /* this process's LD_PRELOAD is its own, and what tunes allocators: the allocator under test serves it */
    uid_t user;               /* 0: as this process runs; else, where this is root's, the user and group it becomes */
    gid_t group;
};

/* The path of a program: `name` itself where it has a slash, else what PATH or one of `more` (folders; NULL-terminated, or
 * NULL) has of that name. NULL where there is none. The text lasts until the next call on this thread. */
const char *service_find(const char *name, const char *const *more);

/* Start it. 0, or -1 with `why`: it could not be executed. */
int service_start(struct service *, const struct service_request *, char why[SERVICE_WHY]);

/* True once it has ended; then `status` is set. Does not wait. */
bool service_ended(struct service *);

/* Wait for its end, no longer than timeout_ms. 0, or -1 if it still runs. */
int service_wait(struct service *, uint64_t timeout_ms);

/* End it by `signal`, after grace_ms by SIGKILL. 0 where it had ended by itself or did at the signal; -1 where it took
 * SIGKILL. */
int service_stop(struct service *, int signal, uint64_t grace_ms);

/* How it ended, in words: "exit status 3", "signal 11". Lasts until the next call on this thread. */
const char *service_end(const struct service *);

/* Ask every few milliseconds whether it can be connected to (a TCP port on loopback, or, where `path` is not NULL, a Unix
 * socket), for timeout_ms. 0, or -1 with `why`: it ended before, or does not answer. */
int service_listens(struct service *, const char *path, uint16_t port, uint64_t timeout_ms, char why[SERVICE_WHY]);

/* A port on loopback that nobody uses at this moment, or 0. */
uint16_t service_port(void);

/* A new folder of this launch for files of services, at most 100 bytes long: Unix sockets lie in it. 0, or -1 with `why`.
 * It is removed at exit. */
int service_folder(char path[101], uid_t user, gid_t group, char why[SERVICE_WHY]);

/* Read a file whole into mapped memory: terminated, *length without the terminator. NULL where it cannot be read. */
char *service_text(const char *path, size_t *length);
/* What a service complained of in a file, cut to `size`: the first line that names a fatal error, for what comes after it
 * are its consequences; else the last line that says anything. "" where there is none. */
void service_complaint(const char *path, char *line, size_t size);

#endif
