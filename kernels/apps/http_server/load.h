/*
 * load.h - what drives a server of the tree (tree.h): wrk, the generator of this suite (load/main.c), or any program.
 *
 *   wrk      a closed loop: each connection asks again as soon as it has its answer, so that the server sets the pace
 *   rate     an open loop: requests are due at a constant rate, and their latency counts from when they were due
 *   PROGRAM  a path with a slash; it is given the address, http://127.0.0.1:PORT, and the folder that is served
 *
 * Each prints lines "ak NAME VALUE" (LOAD_LINES below) on its output; of a PROGRAM they are not asked for.
 */
#ifndef HTTP_LOAD_H
#define HTTP_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "service.h"

struct load_plan {
    const char *how;
    uint16_t port;
    unsigned connections, threads, seconds;
    uint64_t rate; /* requests a second, of `rate` */
    uint64_t seed;
    const char *site;   /* the folder that is served */
    const char *folder; /* for files of the load */
};

/* In microseconds. Whatever was not told is NAN. */
enum load_value { LOAD_REQUESTS, LOAD_BYTES, LOAD_SECONDS, LOAD_ERRORS, LOAD_REFUSED, LOAD_MEAN, LOAD_STDEV, LOAD_P50,
                  LOAD_P75, LOAD_P90, LOAD_P99, LOAD_MAX, LOAD_LATE_P99, LOAD_VALUES };
/* Their names in the output: requests answered, bytes received with heads, seconds driven, errors of sockets, answers
 * other than 2xx and 3xx; then of latency; and how late requests were sent that were due. */
extern const char *const load_name[LOAD_VALUES];

struct load_result { double value[LOAD_VALUES]; };

/* Parameters of every kernel that is driven so, behind its `load`. */
#define LOAD_PARAMS \
    { "connections", PARAM_INT, "500", "count", 1, 60000, NULL, "connections of the load" }, \
    { "load_threads", PARAM_INT, "12", "count", 1, 1024, NULL, "threads of the load" }, \
    { "seconds", PARAM_INT, "5", "s", 1, 3600, NULL, "how long the load lasts" }, \
    { "rate", PARAM_INT, "0", "1/s", 0, 10000000, NULL, "with --load rate: requests a second" }, \
    { "rest_s", PARAM_INT, "10", "s", 0, 3600, NULL, "from the load's end to the last look at resident memory" }, \
    { "port", PARAM_INT, "0", "", 0, 65535, NULL, "where to listen; 0: where nobody does" }

/* Why those do not go together, or NULL. */
const char *load_refuse(void);
/* Metrics of what it told: request_*_ms, load_late_p99_ms, load_requests_per_s. */
void load_report(const struct load_result *);

/* The path of its program, or NULL where it is not here. */
const char *load_program(const char *how);
/* Run it to its end. 0; or -1 with `why`. `give_up` is asked now and then; once it is true the load is stopped. */
int load_run(const struct load_plan *, bool (*give_up)(void), struct load_result *, char why[SERVICE_WHY]);

#endif
