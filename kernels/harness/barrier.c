#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "barrier.h"

void barrier_init(struct barrier *b, unsigned threads, unsigned spins)
{
    atomic_store(&b->arrived, 0);
    atomic_store(&b->phase, 0);
    b->threads = threads;
    b->spins = spins;
}

void barrier_wait(struct barrier *b)
{
    unsigned phase = atomic_load(&b->phase);

    if (atomic_fetch_add(&b->arrived, 1) + 1 == b->threads) {
        atomic_store(&b->arrived, 0);
        atomic_store(&b->phase, phase + 1);
        syscall(SYS_futex, &b->phase, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        return;
    }
    for (unsigned i = 0; i < b->spins; i++) {
        if (atomic_load_explicit(&b->phase, memory_order_acquire) != phase)
            return;
        cpu_pause();
    }
    while (atomic_load(&b->phase) == phase)
        syscall(SYS_futex, &b->phase, FUTEX_WAIT_PRIVATE, phase, NULL, NULL, 0);
}
