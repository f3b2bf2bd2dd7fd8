/*
 * kernel.h - all that a microkernel sees.
 *
 * A kernel isolates one cost of malloc/free. It is a file in kernels/ that defines `const struct kernel
 * kernel`; the harness owns main(), threads, pinning, loop counts, warm-up, clocks, counters, memory
 * sampling and the result. Start from skeleton.c.
 *
 * Life of a launch, on every worker thread (| is a barrier at which all threads are quiescent and the
 * harness may sample resident memory):
 *
 *   baseline | setup | warm-up run | throughput run | batch runs | latency run | memory runs | verify | teardown |
 *
 * `run` is called many times, and must go on from the state that the last call left. It must allocate
 * through c->malloc, c->free and their like only: those are the allocator under test (throughput, memory), the same
 * with randomly sampled timing (latency), or a stub (--no-alloc, and the null kernel).
 */
#ifndef AK_KERNEL_H
#define AK_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CACHE_LINE  64
#define CACHE_SECTOR 128 /* what adjacent-line prefetchers move; false sharing shows at this grain too */
#define PAGE_BYTES  4096

/* ---- parameters: command-line options, sweep keys and columns (or metrics) alike ---- */
enum param_type { PARAM_INT, PARAM_SIZE, PARAM_WORD };

struct param {
    const char     *name;     /* as in --name and as in a sweep; underscores, not dashes */
    enum param_type type;     /* PARAM_SIZE takes the suffixes K, M, G (1024-based) */
    const char     *fallback; /* the default, as text */
    const char     *unit;     /* "bytes", "count", "" for words */
    uint64_t        min, max; /* inclusive range of a number */
    const char     *words;    /* PARAM_WORD: the admissible words, "a|b|c"; NULL: any text */
    const char     *what;     /* one line */
};

/* ---- what a thread has ---- */
struct rng { uint64_t state; };

/* The live set of one thread, in harness memory. The harness walks it at barriers to know the requested
 * and the usable bytes that are live; a kernel that keeps blocks elsewhere cannot claim an RSS overhead.
 * Invariant at a barrier: block[i] is NULL or a live block of size[i] requested bytes. */
struct live_set {
    void    **block;
    uint32_t *size;
    uint64_t  slots;
};

struct ctx {
    /* the allocator under test, as this pass calls it */
    void *(*malloc)(size_t);
    void  (*free)(void *);
    void *(*realloc)(void *, size_t);
    void *(*calloc)(size_t, size_t);
    void *(*aligned_alloc)(size_t align, size_t size); /* NULL where the allocator has none of its own */
    /* who this thread is */
    unsigned thread, threads;
    bool     no_alloc; /* the stub serves: blocks overlap, contents cannot be verified */
    size_t   reach;    /* all ones; under --no-alloc the mask of offsets that lie inside the stub's pool, for kernels
                        * whose blocks may be larger than size_max or than what a stub should hold */
    struct rng rng;    /* seeded by --seed and the thread's number */
    /* harness memory (mmap, zeroed, pre-faulted, line-aligned), sized by the kernel's *_bytes fields */
    void *priv;        /* this thread's */
    void *shared;      /* one for all threads */
    struct live_set live;
    /* sizes to allocate: size_table[draw & SIZE_TABLE_MASK], drawn beforehand from --size-dist */
    const uint32_t *size_table;
    uint64_t iters_done; /* sum of iters of the completed run calls */
};

#define SIZE_TABLE_MASK 4095u

/* ---- the kernel ---- */
/* SIZES_FIXED: every block has size_min bytes; SIZES_RANGE: sizes come from size_table. */
enum sizes { SIZES_NONE, SIZES_FIXED, SIZES_RANGE };

struct kernel {
    const char *name, *what;    /* one line; also the text of `ak list` and of the paper's table */
    const char *variants;       /* "pair|lifo|fifo", the first is the default; NULL: none */
    const struct param *params; /* ends with a NULL name; NULL: none */
    const char *op;             /* what one op is, if not "one malloc/free cycle" */
    unsigned min_threads;       /* 0 reads as 1 */
    bool     own_threads;       /* threads defaults to one per allowed CPU (c2c), or is thread_count's (replay) */
    bool     no_alloc;          /* never calls the allocator under test (null, c2c, chase) */
    bool     once;              /* only the throughput pass makes sense (c2c, chase) */
    bool     whole;             /* it plays something from its beginning (replay): no warm-up and no batches */
    bool     app;           /* a program's whole work, whose libraries call the allocator by themselves: only the throughput
                             * pass, no stub, and rss_peak_bytes is the largest resident size at any moment */
    bool     subject;       /* an app of one thread whose setup starts the program under test and names it by ak_subject: memory,
                             * times, faults and the allocator in the row are that program's; not pinned by default */
    bool     timed;             /* it works for a time, as a parameter says, and does as many ops as it can: --ops means nothing */
    bool     watched;           /* marks its calls: the simulated machine takes down what they execute (simulator/protocol.h) */
    bool     makes_threads;     /* run calls ak_thread, or it is an app whose libraries make threads, and not pinned by default: CPU
                             * times are then the process's; only sim counts events */
    enum sizes sizes;           /* which of size_min, size_max, size_dist it takes */
    uint64_t default_ops;       /* --ops where not given; 0: 1,000,000 */
    double   start_s, op_ns;    /* for the estimates of `ak run` alone: what a launch takes before and after its ops,
                                 * and then for each op of a thread, in order of magnitude; 0: as microkernels do */
    const char *op_times;       /* a parameter that op_ns is multiplied by (bytes of a file that each op reads); NULL: none */
    const char *default_size_min, *default_size_max; /* as text, with suffixes; NULL: 16, 65536 */
    size_t   priv_bytes;
    size_t (*shared_bytes)(void);                      /* after parameters and threads are known; optional */
    unsigned (*thread_count)(void);                    /* with own_threads: how many, whose work differs; after refuse;
                                                        * 0 after ak_lacks; optional */
    uint64_t (*live_slots)(void);                      /* slots of each thread's live set; optional */
    uint64_t (*size_least)(void);                      /* smallest size it can take; optional */
    const char *(*refuse)(void);                       /* why its parameters, each named as --name, do not go together, or NULL:
                                                        * on any machine, and before memory is mapped; optional */
    uint64_t (*grain)(void);                           /* ops of one timed batch, e.g. a LIFO batch; default 64 */
    uint64_t (*step)(const struct ctx *);              /* ops from here to where the memory pass should look next, the
                                                        * same on every thread; default: a share of --ops */
    int      (*setup)(struct ctx *);                   /* optional; non-zero fails the row */
    int      (*run)(struct ctx *, uint64_t iters);     /* required; the timed region of one thread */
    int      (*verify)(struct ctx *);                  /* required; non-zero fails the row */
    uint64_t (*ops)(const struct ctx *, uint64_t iters); /* work claimed; default: iters */
    void     (*teardown)(struct ctx *);                /* frees what is still live; optional */
    void     (*report)(void);                          /* on the main thread, after the workers: ak_metric(); optional */
};

extern const struct kernel kernel; /* defined once by the kernel's file */

/* ---- what the harness offers ---- */
/* Value of a parameter (of the kernel, or the common ones threads, ops, size_min, size_max). */
uint64_t    param_int(const char *name);
const char *param_word(const char *name);
/* True if --variant is `name`. */
bool        variant_is(const char *name);

/* Wait for all workers of this launch; spins where every thread has a CPU, sleeps otherwise. Not timed
 * apart: a kernel that needs it inside `run` pays for it under --no-alloc too. */
void ak_barrier(struct ctx *);
/* One step of a wait loop: PAUSE where every thread has a CPU, else yield it, and nap after some steps. `spins` counts
 * the steps of one wait; set it to 0 when the wait is over. */
void ak_relax(unsigned *spins);
/* True once any thread called ak_fail: a wait for that thread would never end. */
bool ak_failed(void);
/* Run body(c, n) on a thread of its own and wait for its end; 0 if it returned 0. Its calls through c are c's thread's:
 * sampled, counted and stubbed alike. The stack is harness memory, used again and again, so that no mapping of the C
 * library's stands in the way; what remains of it is one small calloc and one free by pthread_create and pthread_join,
 * the same under every allocator. Pinned where c's thread is. */
int ak_thread(struct ctx *, int (*body)(struct ctx *, uint64_t n), uint64_t n);
/* Nanoseconds of the harness clock; about 20 ns a call. In the simulated machine it stands still. */
double ak_now_ns(void);
/* A shared array of per-thread pointers to ctx, for `report` and for kernels that hand blocks over. */
struct ctx *ak_ctx(unsigned thread);
/* Say why verification failed: printf-style, kept once a launch, ends in status_detail. Returns 1. */
int ak_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a malloc(size) that returned NULL: ends in status oom. Returns 1. */
int ak_no_memory(size_t size);
/* For setup: this machine lacks what the kernel needs (a program, a library, room on the disk); printf-style, one line
 * that says what to do. The launch ends with status skipped and exit code 3. Returns 1. */
int ak_lacks(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* For kernels with `subject`, in setup, before the program under test is started: the variables that it takes
 * (service_request.env), by which the allocator under test serves it, one that is linked with another too, and by which it
 * tells so. NULL after the launch failed. */
const char *const *ak_subject_env(void);
/* In setup, once it is up: this process is under test. Again for each process that it forked. The look after setup is the
 * baseline of the row then, and rss_end_bytes is taken after verify, so that teardown may stop it. Returns 0, or 1 after the
 * launch failed: another allocator serves it (status wrong_allocator), or it does not say. */
int ak_subject(pid_t);
/* As ak_fail, for a program under test that ended by itself: ends in status crash. */
int ak_crashed(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A row of metrics.csv. `reason` explains an absent value (then `value` is ignored); else NULL. */
void ak_metric(const char *name, const char *unit, double value, const char *reason);
/* A look of this launch, as in timeline.csv; 0 is the baseline. For `report`. False after the last. */
struct look {
    uint64_t t_ns, rss, live, usable; /* rss: 0 where it cannot be read */
    bool     memory_pass;             /* after a step of the memory pass */
};
bool ak_look(unsigned index, struct look *);
/* Resident bytes now, of the program under test where that is another, less those given back lazily (MADV_FREE), or 0 with *why where they cannot be read. For `report`. */
uint64_t ak_resident(const char **why);
/* A little activity: 2000 blocks of 64 B and 64 KiB in turn, each freed at once. Allocators without a thread of their
 * own give memory back only when they are called. */
void ak_stir(struct ctx *);
/* A row of matrix.csv (c2c); cpu numbers are the OS's, the distance class of the pair is added. */
void ak_matrix(unsigned from_cpu, unsigned to_cpu, const char *state, double ns);
/* OS number of the CPU that a worker is pinned to, or -1. */
int ak_cpu(unsigned thread);
/* Bytes of memory of the harness: zeroed, pre-faulted, under the --numa policy. Ends the launch (exit 3) if refused. */
void *ak_map(size_t bytes);
void  ak_unmap(void *, size_t bytes);
/* The same, asking the kernel for transparent huge pages; whether it gave any shows in rss_huge_bytes. */
void *ak_map_huge(size_t bytes);
/* Lines of `line` bytes (a power of two) that hold live blocks, or ends of them, of at least two threads, by the
 * addresses in all live sets; *lines is the number of lines with any. While no thread changes its live set. */
uint64_t ak_lines_shared(size_t line, uint64_t *lines);
/* For verify: 64 blocks of `fixed` bytes, or of the table's sizes where it is 0, are filled over their whole length and must
 * hold what they were filled with. 0, or 1 after ak_fail. Not under --no-alloc, where blocks overlap. */
int ak_verify_blocks(struct ctx *, size_t fixed);
/* usable bytes of a live block, by the allocator's own malloc_usable_size; 0 under --no-alloc */
size_t ak_usable(void *block);

/* wyrand (Wang Yi): a Weyl step and one 64 x 64 bit multiplication, about 1 ns. */
static inline uint64_t rng_next(struct rng *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    __uint128_t product = (__uint128_t)r->state * (r->state ^ 0xd1b54a32d192ed03u);
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* A number below `bound` from the high half of a draw, by multiplication instead of division. */
static inline uint32_t rng_below(uint64_t draw, uint32_t bound)
{
    return (uint32_t)(((draw >> 32) * bound) >> 32);
}

#endif
