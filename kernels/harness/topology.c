#include <errno.h>
#include <hwloc.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"
#include "options.h"
#include "topology.h"

const char *const distance_name[DISTANCES] = { "smt", "l3", "package", "remote" };

/* What the child sends back. */
struct plan {
    struct placement placement;
    int  failed;
    char why[256];
};

static int ancestor_index(hwloc_obj_t pu, hwloc_topology_t topology, hwloc_obj_type_t type)
{
    hwloc_obj_t up = hwloc_get_ancestor_obj_by_type(topology, type, pu);
    return up ? (int)up->logical_index : -1;
}

static void places_fill(hwloc_topology_t topology, hwloc_const_cpuset_t allowed, struct placement *p)
{
    hwloc_obj_t pu = NULL;
    while ((pu = hwloc_get_next_obj_inside_cpuset_by_type(topology, allowed, HWLOC_OBJ_PU, pu)) != NULL &&
           p->cpus < TOPOLOGY_CPUS_MAX) {
        int node = pu->nodeset ? hwloc_bitmap_first(pu->nodeset) : -1;
        p->place[p->cpus++] = (struct cpu_place){ (int)pu->os_index,
                                                  ancestor_index(pu, topology, HWLOC_OBJ_CORE),
                                                  ancestor_index(pu, topology, HWLOC_OBJ_L3CACHE),
                                                  ancestor_index(pu, topology, HWLOC_OBJ_PACKAGE), node };
    }
    p->nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
}

static int cpus_take_all(struct placement *p, int node, int *cpu)
{
    int n = 0;
    for (unsigned i = 0; i < p->cpus; i++)
        if (node < 0 || p->place[i].node == node)
            cpu[n++] = p->place[i].os;
    return n;
}

/* One CPU a thread, as far apart as the tree allows; hwloc_distrib spreads over packages, then caches, then cores. */
static int cpus_scatter(hwloc_topology_t topology, hwloc_const_cpuset_t allowed, unsigned n, int *cpu)
{
    static hwloc_cpuset_t set[TOPOLOGY_CPUS_MAX];
    hwloc_topology_restrict(topology, allowed, 0);
    hwloc_obj_t root = hwloc_get_root_obj(topology);
    if (hwloc_distrib(topology, &root, 1, set, n, INT_MAX, 0) != 0)
        return -1;
    for (unsigned i = 0; i < n; i++)
        cpu[i] = hwloc_bitmap_first(set[i]);
    return (int)n;
}

bool placement_is_word(const char *policy)
{
    uint64_t node;
    return strcmp(policy, "compact") == 0 || strcmp(policy, "scatter") == 0 || strcmp(policy, "none") == 0 ||
           (strncmp(policy, "node:", 5) == 0 && parse_number(policy + 5, 1000, 0, INT_MAX, &node) == 0);
}

static void plan_make(struct plan *plan, const char *policy, unsigned threads)
{
    struct placement *p = &plan->placement;
    static int order[TOPOLOGY_CPUS_MAX];
    hwloc_topology_t topology;
    hwloc_cpuset_t allowed = hwloc_bitmap_alloc();
    int n;

    plan->failed = 1;
    if (hwloc_topology_init(&topology) != 0 || hwloc_topology_load(topology) != 0 ||
        hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_PROCESS) != 0) {
        snprintf(plan->why, sizeof plan->why, "hwloc cannot read this machine: %s", strerror(errno));
        return;
    }
    hwloc_bitmap_and(allowed, allowed, hwloc_topology_get_allowed_cpuset(topology));
    places_fill(topology, allowed, p);
    if (p->cpus == 0) {
        snprintf(plan->why, sizeof plan->why, "hwloc finds no CPU that this process may use");
        return;
    }
    if (threads == 0)
        threads = p->cpus;

    uint64_t node;
    if (strcmp(policy, "none") == 0) {
        plan->failed = 0;
        return;
    } else if (strcmp(policy, "compact") == 0) {
        n = cpus_take_all(p, -1, order);
    } else if (strcmp(policy, "scatter") == 0) {
        n = cpus_scatter(topology, allowed, threads < p->cpus ? threads : p->cpus, order);
    } else if (strncmp(policy, "node:", 5) == 0 && parse_number(policy + 5, 1000, 0, INT_MAX, &node) == 0) {
        n = cpus_take_all(p, (int)node, order);
        if (n == 0) {
            snprintf(plan->why, sizeof plan->why, "--placement %s: that node has no CPU that this process may use",
                     policy);
            return;
        }
    } else {
        snprintf(plan->why, sizeof plan->why, "--placement %s: expected compact, scatter, none or node:N", policy);
        return;
    }
    if (n <= 0) {
        snprintf(plan->why, sizeof plan->why, "--placement %s: hwloc cannot distribute %u threads", policy, threads);
        return;
    }
    p->threads = threads < TOPOLOGY_CPUS_MAX ? threads : TOPOLOGY_CPUS_MAX;
    for (unsigned i = 0; i < p->threads; i++)
        p->cpu[i] = order[i % (unsigned)n];
    plan->failed = 0;
}

const struct placement *placement_plan(const char *policy, unsigned threads, char *why, size_t why_size)
{
    struct plan *plan = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (plan == MAP_FAILED) {
        snprintf(why, why_size, "no memory for the placement plan: %s", strerror(errno));
        return NULL;
    }
    plan->failed = 1;
    snprintf(plan->why, sizeof plan->why, "the process that reads the topology ended early");
    pid_t child = fork();
    if (child == 0) {
        plan_make(plan, policy, threads);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        snprintf(why, why_size, "cannot fork to read the topology: %s", strerror(errno));
        return NULL;
    }
    if (WIFSIGNALED(status))
        snprintf(plan->why, sizeof plan->why, "reading the topology ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    if (plan->failed || WIFSIGNALED(status)) {
        snprintf(why, why_size, "%s", plan->why);
        return NULL;
    }
    return &plan->placement;
}

static const struct cpu_place *place_of(const struct placement *p, int os)
{
    for (unsigned i = 0; i < p->cpus; i++)
        if (p->place[i].os == os)
            return &p->place[i];
    return NULL;
}

enum distance cpu_distance(const struct placement *p, int a, int b)
{
    const struct cpu_place *x = place_of(p, a), *y = place_of(p, b);
    if (x == NULL || y == NULL || x->package != y->package)
        return DISTANCE_REMOTE;
    if (x->core >= 0 && x->core == y->core)
        return DISTANCE_SMT;
    if (x->l3 >= 0 && x->l3 == y->l3)
        return DISTANCE_L3;
    return DISTANCE_PACKAGE;
}
