/*
 * directory.h - what is known of every line and page of memory: who holds it, and where it is at home.
 *
 * A table of two levels by page number; pages exist from their first touch until they are forgotten. A page holds the
 * entries of its lines, so that lines which are used together lie together here too.
 */
#ifndef AK_SIM_DIRECTORY_H
#define AK_SIM_DIRECTORY_H

#include "pool.h"
#include "cores.h"
#include "sharing.h"

#define PAGE_SIZE    4096u
#define PAGE_LINES   (PAGE_SIZE / MACHINE_LINE)
#define ADDRESS_BITS 47 /* of a program; higher bits are ignored */
#define ADDRESS_MASK ((UINT64_C(1) << ADDRESS_BITS) - 1)
#define LEAF_BITS    17
#define LEAF_PAGES   (UINT64_C(1) << LEAF_BITS)
#define TOP_LEAVES   (UINT64_C(1) << (ADDRESS_BITS - 12 - LEAF_BITS))

#define NO_OWNER 0xff

/* Invariants: an owner is the only holder. With a record of sharing, no core is both holder and lost. */
struct entry {
    struct cores holders;    /* cores with a private copy */
    struct sharing *sharing; /* NULL: no core has ever lost it */
    uint8_t owner;           /* the core whose copy is exclusive or modified, or NO_OWNER */
    uint8_t l3;              /* nodes whose L3 has it, a bit each */
};

struct page {
    struct entry line[PAGE_LINES];
    uint8_t home; /* node */
    uint8_t pad[63];
};

_Static_assert(sizeof(struct entry) == 32, "two entries share a line of the host");
_Static_assert(sizeof(struct page) % 64 == 0, "pages keep entries aligned");
_Static_assert(MACHINE_NODES_MAX <= 8, "entry.l3 has a bit a node");
_Static_assert(MACHINE_CORES_MAX <= NO_OWNER, "entry.owner has a value a core");

struct directory {
    struct page ***leaves; /* [TOP_LEAVES] of [LEAF_PAGES] of pages; NULL: none */
    struct pool pages, sharings;
};

/* False where there is no memory. */
bool directory_open(struct directory *directory, unsigned cores);
void directory_close(struct directory *directory);

/* The page of an address, or NULL. */
static inline struct page *directory_page(const struct directory *directory, uint64_t address)
{
    uint64_t number = (address & ADDRESS_MASK) / PAGE_SIZE;
    struct page **leaf = directory->leaves[number / LEAF_PAGES];
    return leaf == NULL ? NULL : leaf[number % LEAF_PAGES];
}

/* The entry of a line whose page is there. */
static inline struct entry *directory_entry(const struct directory *directory, uint64_t line)
{
    return &directory_page(directory, line)->line[line / MACHINE_LINE % PAGE_LINES];
}

/* Makes the page of an address, which is not there. */
struct page *directory_add(struct directory *directory, uint64_t address);

/* Removes the page of an address, whose lines nobody holds, with what was known of sharing. */
void directory_remove(struct directory *directory, uint64_t address);

/* The first page at or after `address` and before `end`, or NULL; `address` becomes its own. */
struct page *directory_next(const struct directory *directory, uint64_t *address, uint64_t end);

#endif
