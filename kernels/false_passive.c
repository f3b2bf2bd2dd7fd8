/*
 * false_passive - false sharing that the allocator inherits: one thread allocates blocks side by side and hands them
 * out; each thread frees its own and allocates again, and may get the same line back. Work and control: false_sharing.h.
 */
#include "false_sharing.h"

static size_t shared_bytes(void)
{
    return param_int("blocks") * param_int("threads") * sizeof(void *);
}

/* c->shared: block i of thread t lies at i * threads + t, in the order of allocation by thread 0. */
static int setup(struct ctx *c)
{
    void **block = c->shared;
    int rc = 0;

    sharing_init(c);
    if (c->thread == 0)
        for (uint64_t i = 0; i < c->live.slots * c->threads; i++)
            block[i] = c->malloc(param_int("object"));
    ak_barrier(c);
    for (uint64_t slot = 0; slot < c->live.slots && rc == 0; slot++)
        rc = sharing_place(c, slot, block[slot * c->threads + c->thread]);
    return rc;
}

const struct kernel kernel = {
    .name = "false_passive",
    .what = "false sharing that the allocator inherits: blocks handed over, freed, allocated again",
    .shared_bytes = shared_bytes,
    .setup = setup,
    SHARING_FIELDS,
};
