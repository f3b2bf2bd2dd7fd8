/*
 * machine.h - the geometry of a simulated machine: what experiments/machines/NAME.ini says.
 *
 * nodes x cores_per_node cores. Each core has an L1 and, unless its size is 0, an L2 of its own, which holds all
 * that the L1 holds; each node has an L3 and a part of the memory. One cycle is 1 / mhz microseconds.
 *
 * The runner reads the file and hands the numbers to the simulator as a text of words, KEY=NUMBER[:NUMBER...],
 * so that neither of the two needs the other's libraries.
 */
#ifndef AK_SIM_MACHINE_H
#define AK_SIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_CORES_MAX 128
#define MACHINE_NODES_MAX 8
#define MACHINE_LINE      64 /* bytes; the only size of a line there is */
#define MACHINE_TEXT_MAX  512
#define MACHINE_WHY_MAX   256

/* A cache: `size` bytes in sets of `ways` lines, least recently used first out; a hit costs `latency`. */
struct machine_cache {
    uint64_t size; /* bytes; a power of two times ways * MACHINE_LINE */
    uint32_t ways;
    uint32_t latency; /* cycles from issue to use */
};

struct machine {
    uint32_t nodes, cores_per_node;
    uint32_t mhz;
    struct machine_cache l1, l2, l3; /* l2.size 0: none */
    /* Cycles of a load that is served by: another core's cache of the same node, of another node; the memory of the
     * own node, of another. */
    uint32_t cache_local, cache_remote, memory_local, memory_remote;
};

static inline uint32_t machine_cores(const struct machine *machine)
{
    return machine->nodes * machine->cores_per_node;
}

/* A laptop: what is used where no file is named. */
extern const struct machine machine_default;

/* Sets one member from a word of the text form, such as "nodes=4" or "l1=32768:8:4" (size, ways, latency).
 * False with `why` for an unknown key or what is no number. */
bool machine_set(struct machine *machine, const char *word, char why[MACHINE_WHY_MAX]);

/* Whether such a machine can be: false with `key`, the member that is wrong, and `why`. */
bool machine_check(const struct machine *machine, const char **key, char why[MACHINE_WHY_MAX]);

/* The text form of all members, by `separator`. machine_set takes every word of it. */
void machine_text(const struct machine *machine, char separator, char text[MACHINE_TEXT_MAX]);

#endif
