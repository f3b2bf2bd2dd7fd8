/*
 * machine.h - the machine as far as it can be asked without privilege.
 *
 * Facts are a JSON object, name to value; what is not known is null, and `unknown` says why by name.
 * meta.json holds them as they are, `ak doctor` draws its conclusions from them.
 */
#ifndef AK_MACHINE_H
#define AK_MACHINE_H

#include "arena.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct machine {
    json_t *facts;   /* name: value or null */
    json_t *unknown; /* name: reason, for those that are null */
};

/* Ask for everything; a few tens of milliseconds. Free with machine_free. */
void machine_read(struct machine *);
void machine_free(struct machine *);

/* CPUs that this process may use, at least 1. */
unsigned machine_cpus(void);
/* The first line of a small file of /proc or /sys, trimmed; false if there is none. */
bool machine_line(const char *path, char *line, size_t size);
/* The value after "key" and ':' or blanks in a file like /proc/meminfo or /proc/cpuinfo. */
bool machine_value(const char *path, const char *key, char *value, size_t size);

/* Out-of-memory kills that were counted so far in this process's memory cgroup, else on the whole machine. */
bool cgroup_oom_kills(uint64_t *kills);
/* Limits of this process's cgroup as text ("max" or a number); false where there is no such file. */
bool cgroup_memory_limit(char *text, size_t size);
bool cgroup_cpu_limit(char *text, size_t size);

#endif
