/*
 * false_active - false sharing that the allocator makes: threads take turns at malloc, and an allocator that cuts
 * their blocks from one place puts them side by side on a line. Work and control: false_sharing.h.
 */
#include "false_sharing.h"

struct turns { _Alignas(CACHE_SECTOR) atomic_uint_fast64_t turn; };

static size_t shared_bytes(void)
{
    return sizeof(struct turns);
}

/* Block i of thread t is allocated at turn i * threads + t. */
static int setup(struct ctx *c)
{
    struct turns *shared = c->shared;
    int rc = 0;

    sharing_init(c);
    for (uint64_t slot = 0; slot < c->live.slots; slot++) {
        uint64_t mine = slot * c->threads + c->thread;
        unsigned spins = 0;
        while (atomic_load_explicit(&shared->turn, memory_order_acquire) != mine)
            ak_relax(&spins); /* a thread that fails passes its turns on */
        if (rc == 0)
            rc = sharing_place(c, slot, c->malloc(param_int("object")));
        atomic_store_explicit(&shared->turn, mine + 1, memory_order_release);
    }
    return rc;
}

const struct kernel kernel = {
    .name = "false_active",
    .what = "false sharing that the allocator makes: blocks that threads allocate side by side",
    .shared_bytes = shared_bytes,
    .setup = setup,
    SHARING_FIELDS,
};
