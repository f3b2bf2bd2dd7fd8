#include "trust.h"

#include <stddef.h>
#include <string.h>

#define NO_WAITING                                                                                           \
    "in weave mode nobody waits for a lock or a line, so time is no sum of anything: use timed mode"
#define NO_CLOCK "weave mode has no clock, and nobody waits there: use timed mode"
#define LOCK_LINES                                                                                           \
    "in weave mode the lines of contended locks move less often the larger sim_quantum is; lines of data "   \
    "do not"
#define LOCK_SPINS "in weave mode spinning on a lock is a matter of sim_quantum"

const struct trust_metric trust_metrics[] = {
    {"instructions", TRUST_LIMIT, TRUST_FULL, LOCK_SPINS},
    {"cycles", TRUST_NONE, TRUST_FULL, NO_WAITING},
    {"l1d_access", TRUST_LIMIT, TRUST_FULL, LOCK_SPINS},
    {"l1d_miss", TRUST_LIMIT, TRUST_FULL, LOCK_LINES},
    {"l3_access", TRUST_LIMIT, TRUST_FULL, LOCK_LINES},
    {"l3_miss", TRUST_LIMIT, TRUST_FULL, LOCK_LINES},
    {"l3_miss_ratio", TRUST_LIMIT, TRUST_FULL, LOCK_LINES},
    {"hitm_local", TRUST_LIMIT, TRUST_FULL, LOCK_LINES},
    {"hitm_remote", TRUST_LIMIT, TRUST_FULL, LOCK_LINES},
    {"sim_true_sharing", TRUST_LIMIT, TRUST_FULL, LOCK_LINES},
    {"sim_false_sharing", TRUST_FULL, TRUST_FULL, ""},
    {"sim_invalidations", TRUST_LIMIT, TRUST_FULL, LOCK_LINES},
    {"sim_cross_node", TRUST_LIMIT, TRUST_FULL, LOCK_LINES},
    {"sim_dram_local", TRUST_FULL, TRUST_FULL, ""},
    {"sim_dram_remote", TRUST_FULL, TRUST_FULL, ""},
    {"sim_cycles_per_op", TRUST_NONE, TRUST_FULL, NO_WAITING},
    {"sim_upgrades", TRUST_LIMIT, TRUST_FULL, LOCK_LINES},
    {"sim_zeroed", TRUST_FULL, TRUST_FULL, ""},
    {"sim_stirred", TRUST_FULL, TRUST_FULL, ""},
    {"lock_contended", TRUST_NONE, TRUST_FULL, NO_WAITING},
    {"sim_ops_per_s", TRUST_NONE, TRUST_FULL, NO_CLOCK},
    {"sim_lat_*", TRUST_NONE, TRUST_FULL, NO_CLOCK},
    {NULL, TRUST_NONE, TRUST_NONE, NULL},
};

const char *const trust_words[] = {[TRUST_NONE] = "no", [TRUST_LIMIT] = "limited", [TRUST_FULL] = "yes"};

const struct trust_metric *trust_find(const char *name)
{
    for (const struct trust_metric *m = trust_metrics; m->name; m++) {
        size_t length = strlen(m->name);
        bool star = m->name[length - 1] == '*';
        if (star ? strncmp(m->name, name, length - 1) == 0 : strcmp(m->name, name) == 0)
            return m;
    }
    return NULL;
}

enum trust trust_in(const struct trust_metric *metric, const char *mode)
{
    return strcmp(mode, "weave") == 0 ? metric->weave : metric->timed;
}
