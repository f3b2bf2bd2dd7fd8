/* forklock.c - a shared object whose fork handlers take a lock of its own, registered by its constructor before anything
 * has been allocated. Preloaded by tests/conformance/loading.c.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

void forklock_take(void);
void forklock_drop(void);
bool forklock_wanted(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool wanted;

void forklock_take(void)
{
    pthread_mutex_lock(&lock);
}

void forklock_drop(void)
{
    pthread_mutex_unlock(&lock);
}

/* Whether a fork waits for the lock, or has had it. */
bool forklock_wanted(void)
{
    return wanted;
}

static void forklock_prepare(void)
{
    wanted = true;
    forklock_take();
}

__attribute__((constructor)) static void forklock_begin(void)
{
    pthread_atfork(forklock_prepare, forklock_drop, forklock_drop);
}
