/* os.c - see os.h. */
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OS_CPUS 8192 /* at least the kernel's own limit */

/* syscall(2) with errno put back: free() has to leave errno alone. -1 is the only failure. */
static long os_call(long number, long a, long b, long c, long d, long e, long f)
{
    int before = errno;
    long result = syscall(number, a, b, c, d, e, f);
    errno = before;
    return result;
}

size_t tlfl__os_page(void)
{
    static _Atomic size_t page;
    size_t known = atomic_load_explicit(&page, memory_order_relaxed);
    if (TLFL_UNLIKELY(known == 0)) {
        known = getauxval(AT_PAGESZ);
        atomic_store_explicit(&page, known, memory_order_relaxed);
    }
    return known;
}

void *tlfl__os_map(size_t bytes)
{
#ifdef SYS_mmap2 /* 32 bits */
    long number = SYS_mmap2;
#else
    long number = SYS_mmap;
#endif
    long start = os_call(number, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start == -1 ? NULL : (void *)start;
}

void *tlfl__os_map_aligned(size_t bytes, size_t align)
{
    size_t slack = align - tlfl__os_page();
    if (bytes > (size_t)PTRDIFF_MAX - slack)
        return NULL;
    char *start = tlfl__os_map(bytes + slack);
    if (start == NULL)
        return NULL;
    size_t head = -(uintptr_t)start & (align - 1);
    if (head != 0)
        tlfl__os_unmap(start, head);
    if (slack != head)
        tlfl__os_unmap(start + head + bytes, slack - head);
    return start + head;
}

void tlfl__os_unmap(void *start, size_t bytes)
{
    if (os_call(SYS_munmap, (long)start, (long)bytes, 0, 0, 0, 0) == -1)
        tlfl__os_purge(start, bytes);
}

void *tlfl__os_remap(void *start, size_t old_bytes, size_t new_bytes)
{
    long moved = os_call(SYS_mremap, (long)start, (long)old_bytes, (long)new_bytes, MREMAP_MAYMOVE, 0, 0);
    return moved == -1 ? NULL : (void *)moved;
}

bool tlfl__os_purge(void *start, size_t bytes)
{
    return os_call(SYS_madvise, (long)start, (long)bytes, MADV_DONTNEED, 0, 0, 0) == 0;
}

bool tlfl__os_protect(void *start, size_t bytes, bool open)
{
    return os_call(SYS_mprotect, (long)start, (long)bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE, 0, 0,
                   0) == 0;
}

/* Where the call is not there or refused, what the kernel gave the process at its start. */
void tlfl__os_random(void *to, size_t bytes)
{
    const size_t at_start = 16; /* bytes at AT_RANDOM */
    char *out = to;
    if (os_call(SYS_getrandom, (long)to, (long)bytes, GRND_NONBLOCK, 0, 0, 0) == (long)bytes)
        return;
    const char *from = (const char *)getauxval(AT_RANDOM);
    for (size_t i = 0; from != NULL && i < bytes; i++)
        out[i] = (char)(from[i % at_start] + (int)i);
}

unsigned tlfl__os_cpus(void)
{
    static _Atomic unsigned cpus;
    unsigned known = atomic_load_explicit(&cpus, memory_order_relaxed);
    if (TLFL_UNLIKELY(known == 0)) {
        unsigned long mask[OS_CPUS / (8 * sizeof(long))];
        long bytes = os_call(SYS_sched_getaffinity, 0, sizeof mask, (long)mask, 0, 0, 0);
        for (long i = 0; i < bytes / (long)sizeof *mask; i++)
            known += (unsigned)__builtin_popcountl(mask[i]);
        known = known == 0 ? 1 : known;
        atomic_store_explicit(&cpus, known, memory_order_relaxed);
    }
    return known;
}

/* ---- NUMA ---- */

#define OS_MASK_BITS 1024 /* at least the kernel's own limit, or the call fails */

/* Nodes, a bit each; all zero where nobody tells. */
struct os_mask {
    unsigned long word[OS_MASK_BITS / (8 * sizeof(long))];
};

/* Enters what a list such as "0-3,8" names. */
static void os_mask_list(struct os_mask *mask, const char *list)
{
    const unsigned bits = 8 * sizeof(long);
    unsigned number = 0, first = 0;
    bool range = false;
    for (; *list != '\0'; list++)
        if (*list >= '0' && *list <= '9') {
            number = number * 10 + (unsigned)(*list - '0');
        } else {
            for (unsigned i = range ? first : number; i <= number && i < OS_MASK_BITS; i++)
                mask->word[i / bits] |= 1ul << i % bits;
            range = *list == '-';
            first = number;
            number = 0;
        }
}

/* All that have memory: for sandboxes and emulators that refuse to tell which of them are allowed. */
static struct os_mask os_existing(void)
{
    struct os_mask mask = {{0}};
    char list[256] = "";
    long file = os_call(SYS_openat, AT_FDCWD, (long)"/sys/devices/system/node/has_memory", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0)
        return mask;
    if (os_call(SYS_read, file, (long)list, sizeof list - 1, 0, 0, 0) > 0)
        os_mask_list(&mask, list);
    os_call(SYS_close, file, 0, 0, 0, 0, 0);
    return mask;
}

static struct os_mask os_allowed(void)
{
    struct os_mask mask = {{0}};
    if (os_call(SYS_get_mempolicy, 0, (long)mask.word, OS_MASK_BITS, 0, MPOL_F_MEMS_ALLOWED, 0) != 0)
        return os_existing();
    return mask;
}

unsigned tlfl__os_nodes(void)
{
    static _Atomic unsigned nodes;
    unsigned known = atomic_load_explicit(&nodes, memory_order_relaxed);
    if (TLFL_UNLIKELY(known == 0)) {
        struct os_mask mask = os_allowed();
        for (size_t i = 0; i < sizeof mask.word / sizeof *mask.word; i++)
            known += (unsigned)__builtin_popcountl(mask.word[i]);
        known = known == 0 ? 1 : known;
        atomic_store_explicit(&nodes, known, memory_order_relaxed);
    }
    return known;
}

unsigned tlfl__os_node(void)
{
    unsigned node = 0;
    if (tlfl__os_nodes() == 1 || os_call(SYS_getcpu, 0, (long)&node, 0, 0, 0, 0) != 0)
        return 0;
    return node % NODES;
}

#ifdef TLFL_REMOTE

/* The next allowed node after `node`, going round. */
static unsigned os_other_node(unsigned node, struct os_mask *mask)
{
    const unsigned bits = 8 * sizeof(long);
    unsigned other = node;
    do
        other = (other + 1) % OS_MASK_BITS;
    while (other != node && (mask->word[other / bits] >> other % bits & 1) == 0);
    *mask = (struct os_mask){{0}};
    mask->word[other / bits] = 1ul << other % bits;
    return other;
}

void tlfl__os_home(void *start, size_t bytes, unsigned node)
{
    struct os_mask mask = os_allowed();
    if (tlfl__os_nodes() > 1 && os_other_node(node, &mask) != node)
        os_call(SYS_mbind, (long)start, (long)bytes, MPOL_PREFERRED, (long)mask.word, OS_MASK_BITS, 0);
}

#else

void tlfl__os_home(void *start, size_t bytes, unsigned node)
{
    (void)start, (void)bytes, (void)node;
}

#endif

uint64_t tlfl__os_ms(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint32_t tlfl__os_process(void)
{
    return (uint32_t)os_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

uint32_t tlfl__os_thread(void)
{
    return (uint32_t)os_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* Signal 0 is none: it is only asked whether there is a thread to take it. */
bool tlfl__os_thread_gone(uint32_t process, uint32_t thread)
{
    int before = errno;
    bool gone = syscall(SYS_tgkill, (long)process, (long)thread, 0l) == -1 && errno == ESRCH;
    errno = before;
    return gone;
}

void tlfl__os_wait(_Atomic uint32_t *word, uint32_t value)
{
    os_call(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, (long)value, 0, 0, 0);
}

void tlfl__os_wake(_Atomic uint32_t *word)
{
    os_call(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

void tlfl__os_say(const char *text, size_t length)
{
    os_call(SYS_write, STDERR_FILENO, (long)text, (long)length, 0, 0, 0);
}
