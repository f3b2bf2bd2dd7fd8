/*
 * child.h - run a program through ak-launch and take in what it prints.
 *
 * Nothing that runs outlives ak, whatever kills ak. What a program prints is data: it is capped in size, and
 * never printed as it is.
 */
#ifndef AK_CHILD_H
#define AK_CHILD_H

#include "fault.h"
#include "text.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum child_end {
    CHILD_EXITED,    /* code: exit status */
    CHILD_SIGNALLED, /* code: signal */
    CHILD_TIMED_OUT,
    CHILD_STOPPED,  /* by interrupts */
    CHILD_OVERFLOW, /* printed more than out_max and was killed */
    CHILD_NO_EXEC,  /* code: errno */
    CHILD_LOST,     /* ak-launch ended without a report */
};

struct child_request {
    const char *const *argv; /* argv[0]: path of the program; NULL-terminated */
    char *const *env;        /* NULL-terminated; LD_PRELOAD is set by `preload` alone */
    const char *preload;     /* NULL or "": none */
    const char *directory;   /* NULL: here */
    uint64_t timeout_ms;     /* 0: none */
    size_t out_max;          /* bytes of stdout; more ends the program */
    bool out_dropped;        /* stdout is read and forgotten, however much it is */
    const char *in;          /* stdin; NULL: /dev/null */
    const char *out_file;    /* stdout and stderr go there, and not to the outcome; NULL: to the outcome */
    const char *err_file;
    int interrupts_max;      /* stop when that many interrupts came; 0: never; 1: with a fault */
    bool fixed_addresses;    /* the same ones in every run (ADDR_NO_RANDOMIZE) */
};

struct child_outcome {
    enum child_end end;
    int code;
    struct buffer out; /* stdout */
    struct buffer err; /* the last part of stderr, at most ERR_KEPT bytes */
    uint64_t wall_ns, user_us, system_us, maxrss_bytes;
    uint64_t minor_faults, major_faults, voluntary_switches, involuntary_switches;
    int pid; /* that it had; 0: not known */
};

/* A program that runs beside others. */
struct child;

#define CHILD_ERR_KEPT 16384

/* Interrupts (SIGINT, SIGTERM, SIGHUP) that reached ak since child_watch_interrupts. */
extern volatile sig_atomic_t child_interrupts;
/* From now on count them instead of dying. Those that whoever started ak had ignored (nohup, a shell's background) stay
 * ignored. */
void child_watch_interrupts(void);

/* Run to the end. False if ak-launch itself cannot be started (AK_ENVIRONMENT), or where interrupts_max is 1 and an
 * interrupt came (AK_FAILED). Free with child_outcome_free. */
bool child_run(const char *launcher, const struct child_request *, struct child_outcome *, struct fault *);
void child_outcome_free(struct child_outcome *);
/* The same in steps: start, wait for up to `ms` (true: it has ended), and take the end in, which waits for as long as it
 * takes. The request and the outcome must outlive the child. NULL as child_run's false. */
struct child *child_start(const char *launcher, const struct child_request *, struct child_outcome *, struct fault *);
bool child_wait(struct child *, uint64_t ms);
/* Send a signal to the program itself; false where it is gone. */
bool child_signal(struct child *, int signal_number);
/* Process id of the program while it runs; 0: there is none (any more). */
int child_pid(const struct child *);
/* `kill`: end it at once. Frees the child. False as child_run. */
bool child_finish(struct child *, bool kill, struct fault *);
/* The first line of what a program prints, or NULL where it did not end well. In the arena. */
char *child_line(struct arena *, const char *launcher, const char *const *argv);
/* How it ended, in words: "exit status 3", "signal 11 (Segmentation fault)". In the arena. */
const char *child_end_words(struct arena *, const struct child_outcome *);

/* The environment of kernels: a short fixed part (PATH, HOME, LANG=C) and those variables of ak's own that
 * tune allocators, loader and sanitizers (`kept`: their names). In the arena. */
char **child_environment(struct arena *, struct words *kept);
/* The same with `set` ("NAME=VALUE" each) in place of what has those names. */
char **child_environment_with(struct arena *, const struct words *set);

#endif
