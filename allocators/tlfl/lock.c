/* lock.c - see lock.h. */
#include "lock.h"

#include "clocked.h"
#include "os.h"

/* Hand-over through the kernel costs microseconds, critical sections here last tens to hundreds of
 * nanoseconds: a spin pays off while the holder runs. So many pauses in all, of 40 to 140 cycles each by the
 * processor, end it where the holder does not. */
#define LOCK_SPINS 2000

/* Pauses between two looks at the lock: twice as many each time, up to this. All who see it free at once take
 * its line from the holder of the next moment, so that a hand-over costs more the more wait; those who look
 * seldom do not. */
#define LOCK_BACKOFF 256

static struct lock central;

/* How often this thread has entered the central lock without leaving it. */
static TLFL_TLS unsigned central_depth;

static void lock_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static TLFL_NOINLINE void lock_wait(struct lock *lock)
{
    unsigned wait = 1;
    for (int i = 0; i < LOCK_SPINS; i += wait) {
        uint32_t unheld = 0;
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_weak_explicit(&lock->word, &unheld, 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return;
        wait = wait < LOCK_BACKOFF ? 2 * wait : wait;
        for (unsigned pauses = 0; pauses < wait; pauses++)
            lock_pause();
    }
    while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
        tlfl__os_wait(&lock->word, 2);
}

bool tlfl__lock_take(struct lock *lock)
{
    uint32_t unheld = 0;
    if (TLFL_LIKELY(atomic_compare_exchange_strong_explicit(&lock->word, &unheld, 1, memory_order_acquire,
                                                            memory_order_relaxed)))
        return false;
    lock_wait(lock);
    return true;
}

void tlfl__lock_drop(struct lock *lock)
{
    if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2)
        tlfl__os_wake(&lock->word);
}

void tlfl__central_enter(void)
{
    if (central_depth++ == 0)
        clocked_take(&central);
}

void tlfl__central_leave(void)
{
    if (--central_depth == 0)
        clocked_drop(&central);
}

bool tlfl__central_held(void)
{
    return central_depth != 0;
}

void tlfl__central_reset(void)
{
    central_depth = 0;
    clocked_reset();
    atomic_store_explicit(&central.word, 0, memory_order_release);
}
