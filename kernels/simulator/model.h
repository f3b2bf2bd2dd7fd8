/*
 * model.h - the caches, the coherence and the memory of a simulated machine. Knows nothing of QEMU: it is fed
 * accesses one by one, and says what each cost.
 *
 * The model. Private L1 and L2 (the L2 holds all that the L1 holds), an L3 per node that is filled by what its cores
 * fetch and what they evict dirty (it neither holds all that the private caches hold nor throws anything out of
 * them), all of them set-associative with true LRU. A directory knows for every line which cores hold it and which
 * one may have changed it (MESI). A page belongs to the node whose core touches it first, or to which it was bound.
 *
 * What a miss of the private caches is served by, and what is counted:
 *   a changed line in another core of the node   hitm_local           an L3 hit
 *   the node's L3, or a clean line in the node   (L3 hit)
 *   a changed line in a core of another node     hitm_remote          an L3 miss, cross_node
 *   memory of the own node, of another           dram_local/_remote   an L3 miss; the latter cross_node too
 * A store to a line that others hold takes it away from them: one invalidation each. (An upgrade, a store to a line
 * that the core holds in common, is no miss but costs a transfer's latency.)
 *
 * Coherence misses. A core that lost a line to another core's store and comes back for it has a coherence miss. It
 * counts as true sharing if, during the stay of the line that begins with it, the core touches a word (4 bytes) that
 * another core wrote since the line was lost, and as false sharing if the line is lost, evicted, or read out without
 * that. (M. Dubois et al., The detection and elimination of useless misses in multiprocessors, ISCA 1993.)
 *
 * Not modelled: instruction fetches, the TLB, prefetchers, several misses at a time, physical addresses (caches are
 * indexed by virtual ones), what the kernel does but for the zeroing of pages (model_fault).
 */
#ifndef AK_SIM_MODEL_H
#define AK_SIM_MODEL_H

#include "machine.h"

enum model_kind { MODEL_LOAD, MODEL_STORE, MODEL_ATOMIC }; /* ATOMIC: a locked read-modify-write; a store in all else */

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

struct model;

/* A machine with cold caches, or NULL with `why`. Memory comes from mmap, as it is needed. */
struct model *model_new(const struct machine *machine, char why[MACHINE_WHY_MAX]);
void model_free(struct model *model);

/* One access of `size` bytes (1 to 64); returns its latency in cycles. The caller says what order accesses have. */
uint32_t model_access(struct model *model, unsigned core, uint64_t address, unsigned size, enum model_kind kind);

/* Counting of a core on or off; off by default. Caches change all the same. */
void model_count(struct model *model, unsigned core, bool on);

/* The counts of a core. Unsettled coherence misses of it are settled first: as false sharing so far. */
const struct model_counts *model_counts(struct model *model, unsigned core);

/* The pages of a range are gone (munmap, MADV_DONTNEED): no cache holds a line of them, and the next touch
 * decides again where they are. */
void model_forget(struct model *model, uint64_t address, uint64_t bytes);

/* The pages of a range will be, at their first touch, on one of the nodes of `mask`, by turns page by page
 * (mbind); mask 0: where they are touched. Pages that have a home keep it. */
void model_bind(struct model *model, uint64_t address, uint64_t bytes, uint64_t mask);

/* Home node of a page, or -1: not touched yet. */
int model_home(const struct model *model, uint64_t address);

#endif
