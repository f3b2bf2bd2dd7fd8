#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

#define CACHE_BYTES_MAX (UINT64_C(1) << 30)
#define CACHE_WAYS_MAX  64
#define LATENCY_MAX     1000000 /* cycles: no memory is as slow, and sums of a few stay far from 2^32 */

/*
 * A laptop with an AMD Ryzen 7 5800H (Zen 3, 8 cores, 3.2 GHz base clock; geometry as in AMD's product data). Cycles
 * of L1, L2 and L3: Software Optimization Guide for AMD Family 19h Processors, publication 56665. A line from another
 * core and one from memory, 20 ns and 100 ns, are round figures for this class. The remote ones are unused: one node.
 */
const struct machine machine_default = {
    .nodes = 1,
    .cores_per_node = 8,
    .mhz = 3200,
    .l1 = {.size = 32 << 10, .ways = 8, .latency = 4},
    .l2 = {.size = 512 << 10, .ways = 8, .latency = 12},
    .l3 = {.size = 16 << 20, .ways = 16, .latency = 46},
    .cache_local = 64,
    .cache_remote = 64,
    .memory_local = 320,
    .memory_remote = 320,
};

/* Members by name: a cache, of three numbers, or a number. The order is that of the text form. */
static const struct member {
    const char *key;
    bool cache;
    size_t offset;
} members[] = {
    {"nodes", false, offsetof(struct machine, nodes)},
    {"cores_per_node", false, offsetof(struct machine, cores_per_node)},
    {"mhz", false, offsetof(struct machine, mhz)},
    {"l1", true, offsetof(struct machine, l1)},
    {"l2", true, offsetof(struct machine, l2)},
    {"l3", true, offsetof(struct machine, l3)},
    {"cache_local", false, offsetof(struct machine, cache_local)},
    {"cache_remote", false, offsetof(struct machine, cache_remote)},
    {"memory_local", false, offsetof(struct machine, memory_local)},
    {"memory_remote", false, offsetof(struct machine, memory_remote)},
};
#define MEMBERS (sizeof members / sizeof members[0])

/* Digits up to `max`; what follows them is left in *text. */
static bool number(const char **text, uint64_t max, uint64_t *value)
{
    const char *at = *text;
    uint64_t n = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (n > (max - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    if (at == *text)
        return false;
    *text = at;
    *value = n;
    return true;
}

bool machine_set(struct machine *machine, const char *word, char why[MACHINE_WHY_MAX])
{
    size_t length = strcspn(word, "=");
    const struct member *member = members;
    while (member < members + MEMBERS &&
           !(strlen(member->key) == length && strncmp(member->key, word, length) == 0))
        member++;
    if (member == members + MEMBERS || word[length] == '\0') {
        int n = snprintf(why, MACHINE_WHY_MAX, "'%.40s': expected KEY=NUMBER, with a key of", word);
        for (size_t i = 0; i < MEMBERS; i++)
            n += snprintf(why + n, MACHINE_WHY_MAX - (size_t)n, " %s", members[i].key);
        return false;
    }

    const char *at = word + length + 1;
    void *target = (char *)machine + member->offset;
    uint64_t size = 0, ways = 0, latency = 0;
    if (!member->cache) {
        if (!number(&at, UINT32_MAX, &size) || *at != '\0') {
            snprintf(why, MACHINE_WHY_MAX, "'%.80s': expected %s=NUMBER", word, member->key);
            return false;
        }
        *(uint32_t *)target = (uint32_t)size;
        return true;
    }
    bool good = number(&at, UINT64_MAX, &size);
    if (good && !(size == 0 && *at == '\0'))
        good = *at++ == ':' && number(&at, UINT32_MAX, &ways) && *at++ == ':' &&
               number(&at, UINT32_MAX, &latency) && *at == '\0';
    if (!good) {
        snprintf(why, MACHINE_WHY_MAX, "'%.80s': expected %s=SIZE:WAYS:LATENCY in bytes, lines a set, cycles",
                 word, member->key);
        return false;
    }
    *(struct machine_cache *)target = (struct machine_cache){size, (uint32_t)ways, (uint32_t)latency};
    return true;
}

void machine_text(const struct machine *machine, char separator, char text[MACHINE_TEXT_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < MEMBERS; i++) {
        const void *from = (const char *)machine + members[i].offset;
        if (i > 0)
            text[n++] = separator;
        if (members[i].cache) {
            const struct machine_cache *cache = from;
            n += (size_t)snprintf(text + n, MACHINE_TEXT_MAX - n, "%s=%" PRIu64 ":%" PRIu32 ":%" PRIu32,
                                  members[i].key, cache->size, cache->ways, cache->latency);
        } else {
            n += (size_t)snprintf(text + n, MACHINE_TEXT_MAX - n, "%s=%" PRIu32, members[i].key,
                                  *(const uint32_t *)from);
        }
    }
}

static bool refuse(const char **key, const char *wrong, char *why, const char *text)
{
    *key = wrong;
    snprintf(why, MACHINE_WHY_MAX, "%s", text);
    return false;
}

static bool cache_check(const struct machine_cache *cache, const char *name, const char **key, char *why)
{
    *key = name;
    if (cache->ways < 1 || cache->ways > CACHE_WAYS_MAX) {
        snprintf(why, MACHINE_WHY_MAX, "%" PRIu32 " ways: expected 1 to %d", cache->ways, CACHE_WAYS_MAX);
        return false;
    }
    uint64_t set = (uint64_t)cache->ways * MACHINE_LINE;
    uint64_t sets = cache->size / set;
    if (cache->size == 0 || cache->size > CACHE_BYTES_MAX || cache->size % set != 0 ||
        (sets & (sets - 1)) != 0) {
        snprintf(why, MACHINE_WHY_MAX,
                 "%" PRIu64 " bytes: expected a power of two times %" PRIu64 " (%" PRIu32
                 " ways of %d bytes), at most %" PRIu64,
                 cache->size, set, cache->ways, MACHINE_LINE, CACHE_BYTES_MAX);
        return false;
    }
    return true;
}

/* What a member has to exceed, or at least to reach. */
struct order {
    const char *key;
    uint64_t value;
    const char *than; /* or NULL */
    uint64_t bound;
    bool equal; /* may be as large */
};

static bool order_check(const struct order *orders, size_t count, const char *what, const char **key,
                        char *why)
{
    for (const struct order *o = orders; o < orders + count; o++) {
        if (o->value > o->bound || (o->equal && o->value == o->bound))
            continue;
        *key = o->key;
        snprintf(why, MACHINE_WHY_MAX, "%s of %" PRIu64 ": expected %s %" PRIu64 "%s%s", what, o->value,
                 o->equal ? "at least" : "more than", o->bound, o->than != NULL ? ", that of " : "",
                 o->than != NULL ? o->than : "");
        return false;
    }
    return true;
}

bool machine_check(const struct machine *machine, const char **key, char why[MACHINE_WHY_MAX])
{
    const struct machine *m = machine;
    bool two = m->l2.size != 0;

    if (m->nodes < 1 || m->nodes > MACHINE_NODES_MAX) {
        *key = "nodes";
        snprintf(why, MACHINE_WHY_MAX, "%" PRIu32 " nodes: expected 1 to %d", m->nodes, MACHINE_NODES_MAX);
        return false;
    }
    if (m->cores_per_node < 1 || m->cores_per_node > MACHINE_CORES_MAX / m->nodes) {
        *key = "cores_per_node";
        snprintf(why, MACHINE_WHY_MAX,
                 "%" PRIu32 " cores a node: expected 1 to %" PRIu32 ", in all at most %d", m->cores_per_node,
                 MACHINE_CORES_MAX / m->nodes, MACHINE_CORES_MAX);
        return false;
    }
    if (m->mhz < 1 || m->mhz > 100000)
        return refuse(key, "mhz", why, "no such clock: expected 1 to 100000");
    if (!cache_check(&m->l1, "l1", key, why) || (two && !cache_check(&m->l2, "l2", key, why)) ||
        !cache_check(&m->l3, "l3", key, why))
        return false;

    const struct machine_cache *inner = two ? &m->l2 : &m->l1;
    const char *inner_name = two ? "l2" : "l1";
    const struct order sizes[] = {
        {"l3", m->l3.size, inner_name, inner->size, false},
        {"l2", two ? m->l2.size : UINT64_MAX, "l1", m->l1.size, false},
    };
    const struct order latencies[] = {
        {"l1", m->l1.latency, NULL, 0, false},
        {"l2", two ? m->l2.latency : UINT64_MAX, "l1", m->l1.latency, false},
        {"l3", m->l3.latency, inner_name, inner->latency, false},
        {"cache_local", m->cache_local, "l3", m->l3.latency, true},
        {"memory_local", m->memory_local, "l3", m->l3.latency, false},
        {"cache_remote", m->nodes > 1 ? m->cache_remote : UINT64_MAX, "cache_local", m->cache_local, true},
        {"memory_remote", m->nodes > 1 ? m->memory_remote : UINT64_MAX, "memory_local", m->memory_local,
         true},
    };
    if (!order_check(sizes, sizeof sizes / sizeof sizes[0], "size", key, why))
        return false;
    for (size_t i = 0; i < sizeof latencies / sizeof latencies[0]; i++)
        if (latencies[i].value > LATENCY_MAX && latencies[i].value != UINT64_MAX) {
            *key = latencies[i].key;
            snprintf(why, MACHINE_WHY_MAX, "latency of %" PRIu64 ": expected at most %d", latencies[i].value,
                     LATENCY_MAX);
            return false;
        }
    return order_check(latencies, sizeof latencies / sizeof latencies[0], "latency", key, why);
}
