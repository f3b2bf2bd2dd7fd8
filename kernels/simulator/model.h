/*
 * model.h - the caches, the coherence and the memory of a simulated machine. Knows nothing of QEMU: it is fed
 * accesses one by one, and says what each cost.
 *
 * The model. Private L1 and L2 (the L2 holds all that the L1 holds), an L3 per node that is filled by what its cores
 * fetch and what they write back, evicted or asked for by another core (it neither holds all that the private caches
 * hold nor throws anything out of them; memory is written at once, so that what one node's L3 holds is no news to
 * another), all of them set-associative with true LRU. A directory knows for every line which cores hold it and which
 * one may have changed it (MESI). A page belongs to the node whose core touches it first, or to which it was bound.
 *
 * What a miss of the private caches is served by, and what is counted:
 *   a changed line in another core of the node   hitm_local           an L3 hit
 *   the node's L3, or a clean line in the node   (L3 hit)
 *   a changed line in a core of another node     hitm_remote          an L3 miss, cross_node
 *   memory of the own node, of another           dram_local/_remote   an L3 miss; the latter cross_node too
 * A store to a line that others hold takes it away from them: one invalidation each, and it waits for the farthest of
 * them. (An upgrade, a store to a line that the core holds in common, is no miss but costs a transfer's latency, or
 * that of the L3 if all others have evicted the line meanwhile.) Copies in the L3 of other nodes go without a count.
 *
 * Coherence misses. A core that lost a line to another core's store and comes back for it has a coherence miss. It
 * counts as true sharing if, during the stay of the line that begins with it, the core touches a word (4 bytes) that
 * another core wrote since the line was lost, and as false sharing if the line is lost, evicted, or read out without
 * that. (M. Dubois et al., The detection and elimination of useless misses in multiprocessors, ISCA 1993.)
 *
 * The first touch of a page counts the lines that the kernel clears there; it takes no time and leaves the caches as
 * they are, so that misses stay comparable with those of tools that see no kernel.
 *
 * Not modelled: instruction fetches, the TLB, prefetchers, several misses at a time, physical addresses (caches are
 * indexed by virtual ones), and all else that the kernel does.
 */
#ifndef AK_SIM_MODEL_H
#define AK_SIM_MODEL_H

#include "machine.h"

enum model_kind {
    MODEL_LOAD,
    MODEL_STORE,
    MODEL_ATOMIC /* a locked read-modify-write; a store in all but its count */
};

/* What one core did while it was counted. */
struct model_counts {
    uint64_t loads, stores, atomics; /* accesses by lines: one that crosses a line counts for each */
    uint64_t l1_miss, l2_miss;       /* without an L2 the same */
    uint64_t l3_miss;
    uint64_t hitm_local, hitm_remote;
    uint64_t true_sharing, false_sharing;
    uint64_t invalidations; /* copies that this core's stores took away from others */
    uint64_t upgrades;
    uint64_t cross_node;
    uint64_t dram_local, dram_remote;
    uint64_t zeroed; /* lines that the kernel cleared at a first touch */
    uint64_t cycles; /* sum of what model_access returned */
};

struct model; /* below */

/* A machine with cold caches, or NULL with `why`. Memory comes from mmap, as it is needed. */
struct model *model_new(const struct machine *machine, char why[MACHINE_WHY_MAX]);
void model_free(struct model *model);

/* One access of `size` bytes (1 to 64); returns its latency in cycles. One that crosses a line is two, one after the
 * other. The caller says what order accesses have. */
static inline uint32_t model_access(struct model *model, unsigned core, uint64_t address, unsigned size,
                                    enum model_kind kind);

/* Counting of a core on or off; off by default. Caches change all the same. */
void model_count(struct model *model, unsigned core, bool on);

/* Who is counted on core `from` goes to `to`, and takes along what was counted so far, and that counting is on or off. */
void model_move(struct model *model, unsigned from, unsigned to);

/* The counts of a core, good until the next call for it. Its coherence misses that are not settled yet are settled
 * first, as false sharing so far. */
const struct model_counts *model_counts(struct model *model, unsigned core);

/* The pages of a range are gone (munmap, MADV_DONTNEED): no cache holds a line of them, and the next touch
 * decides again where they are. Bindings stay, as MADV_DONTNEED leaves them: after munmap, bind to 0 too. */
void model_forget(struct model *model, uint64_t address, uint64_t bytes);

/* The pages of a range will be, at their first touch, on one of the nodes of `mask`, by turns page by page
 * (mbind); mask 0: where they are touched. Pages that have a home keep it. */
void model_bind(struct model *model, uint64_t address, uint64_t bytes, uint64_t mask);

/* Home node of a page, or -1: not touched yet. */
int model_home(const struct model *model, uint64_t address);

/*
 * The fast path, which nine of ten accesses take: the line is one of the two of its set that were used last, and
 * nothing is left to do but to count. It is here so that a caller's loop can hold it whole.
 *
 * A line in an L1 is one word, its address, whose low bits are flags (cache.h); two of these say that a load or that
 * a store may pass: MODEL_PASS_STORE is set in lines that the core has changed already, and neither is in one for
 * which sharing has to be looked at (model.c). The words of a set lie in order of use.
 */
#define MODEL_PASS_LOAD  UINT64_C(4)
#define MODEL_PASS_STORE UINT64_C(8)
#define MODEL_FLAGS      ((uint64_t)MACHINE_LINE - 1)

/* The L1 of a core, and where its accesses are counted now, by kind. */
struct model_front {
    uint64_t *tags; /* [sets][ways] and one more */
    uint64_t mask;  /* sets - 1 */
    uint64_t ways;
    uint64_t *accesses;
};

/* What the fast path sees; the rest lies behind it (model.c). */
struct model {
    struct model_front front[MACHINE_CORES_MAX];
    uint32_t hit; /* cycles */
};

/* What the fast path does not do. */
uint32_t model_access_slow(struct model *model, unsigned core, uint64_t address, unsigned size,
                           enum model_kind kind);

static inline uint64_t *model_set(const struct model_front *front, uint64_t address)
{
    return front->tags + (address / MACHINE_LINE & front->mask) * front->ways;
}

static inline uint32_t model_access(struct model *model, unsigned core, uint64_t address, unsigned size,
                                    enum model_kind kind)
{
    const struct model_front *front = &model->front[core];
    uint64_t *set = model_set(front, address);
    uint64_t pass = kind == MODEL_LOAD ? MODEL_PASS_LOAD : MODEL_PASS_STORE;
    uint64_t look = ~MODEL_FLAGS | pass;
    uint64_t want = (address & ~MODEL_FLAGS) | pass;

    if (__builtin_expect(address % MACHINE_LINE + size <= MACHINE_LINE, 1)) {
        uint64_t first = set[0];
        if (__builtin_expect((first & look) == want, 1)) {
            front->accesses[kind]++;
            return model->hit;
        }
        /* Of a single way, the word after it is of another set, and so no match. */
        uint64_t second = set[1];
        if (__builtin_expect((second & look) == want, 1)) {
            set[0] = second;
            set[1] = first;
            front->accesses[kind]++;
            return model->hit;
        }
    }
    return model_access_slow(model, core, address, size, kind);
}

#endif
