#include <stdio.h>
#include <unistd.h>

#include "directory.h"

#define LEAF_BYTES (LEAF_PAGES * sizeof(struct page *))
#define TOP_BYTES  (TOP_LEAVES * sizeof(struct page **))

bool directory_open(struct directory *directory, unsigned cores)
{
    pool_open(&directory->pages, sizeof(struct page));
    pool_open(&directory->sharings, sharing_bytes(cores));
    directory->leaves = memory_map(TOP_BYTES);
    return directory->leaves != NULL;
}

void directory_close(struct directory *directory)
{
    if (directory->leaves == NULL)
        return;
    for (uint64_t top = 0; top < TOP_LEAVES; top++)
        if (directory->leaves[top] != NULL)
            memory_unmap(directory->leaves[top], LEAF_BYTES);
    memory_unmap(directory->leaves, TOP_BYTES);
    pool_close(&directory->pages);
    pool_close(&directory->sharings);
}

struct page *directory_add(struct directory *directory, uint64_t address)
{
    uint64_t number = (address & ADDRESS_MASK) / PAGE_SIZE;
    struct page ***leaf = &directory->leaves[number / LEAF_PAGES];
    if (*leaf == NULL)
        *leaf = memory_need(LEAF_BYTES);
    struct page *page = pool_get(&directory->pages);
    for (unsigned i = 0; i < PAGE_LINES; i++)
        page->line[i].owner = NO_OWNER;
    (*leaf)[number % LEAF_PAGES] = page;
    return page;
}

void directory_remove(struct directory *directory, uint64_t address)
{
    uint64_t number = (address & ADDRESS_MASK) / PAGE_SIZE;
    struct page **at = &directory->leaves[number / LEAF_PAGES][number % LEAF_PAGES];
    for (unsigned i = 0; i < PAGE_LINES; i++)
        if ((*at)->line[i].sharing != NULL)
            pool_put(&directory->sharings, (*at)->line[i].sharing);
    pool_put(&directory->pages, *at);
    *at = NULL;
}

struct page *directory_next(const struct directory *directory, uint64_t *address, uint64_t end)
{
    uint64_t number = *address / PAGE_SIZE;
    uint64_t last = (end + PAGE_SIZE - 1) / PAGE_SIZE; /* one past */
    while (number < last) {
        struct page **leaf = directory->leaves[number / LEAF_PAGES];
        if (leaf == NULL) {
            number = (number / LEAF_PAGES + 1) * LEAF_PAGES;
        } else if (leaf[number % LEAF_PAGES] == NULL) {
            number++;
        } else {
            *address = number * PAGE_SIZE;
            return leaf[number % LEAF_PAGES];
        }
    }
    return NULL;
}
