/*
 * bench_model - how many accesses a second the model of the simulated machine takes, stream by stream.
 *
 *   bench_model [RUNS]    of RUNS runs of each stream (5) the fastest is shown, in CPU time of the process
 *
 * A stream is made beforehand, its cores by turns. Each core first reads all of its memory, from its end; that and the
 * first half of the stream do not count. `churn` has the shares of the kernel churn under glibc: first way of the L1
 * 83 %, L1 misses 5.8 %, L2 misses 0.4 %, stores 35 %.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "../../kernels/simulator/model.h"

#define KIB      UINT64_C(1024)
#define ACCESSES ((size_t)8000000) /* that count */

/* An access in one word. */
#define AT_CORE 56
#define AT_KIND 48

static const struct machine machine = {
    .nodes = 4,
    .cores_per_node = 16,
    .mhz = 2450,
    .l1 = {32 * KIB, 8, 4},
    .l2 = {1024 * KIB, 16, 14},
    .l3 = {32 * 1024 * KIB, 16, 50},
    .cache_local = 60,
    .cache_remote = 300,
    .memory_local = 240,
    .memory_remote = 400,
};

static uint64_t dice = 1;

static uint64_t roll(uint64_t sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (dice >> 20) % sides;
}

/* A core's own memory: its first bytes are a stack and a loop's data, then come a heap's books, then blocks. */
#define OWN_BYTES (1664 * KIB)

static uint64_t own(unsigned core)
{
    return (core + UINT64_C(1)) << 32;
}

/* The address of a core's next access. */

static uint64_t scan_l1(unsigned core, size_t turn)
{
    return own(core) | turn * 8 % (16 * KIB);
}

static uint64_t scan_l2(unsigned core, size_t turn)
{
    return own(core) | turn * 64 % (512 * KIB);
}

static uint64_t churn(unsigned core, size_t turn)
{
    uint64_t share = roll(1000);
    if (share < 760)
        return own(core) + turn / 7 % 12 * 64 + roll(16) * 4;
    if (share < 945)
        return own(core) + 4 * KIB + roll(14 * KIB) / 4 * 4;
    if (share < 990)
        return own(core) + 64 * KIB + roll(256 * KIB) / 4 * 4;
    return own(core) + roll(OWN_BYTES) / 4 * 4;
}

/* One access in a hundred is to one of a thousand lines that all cores have in common. */
static uint64_t sharing(unsigned core, size_t turn)
{
    return roll(100) == 0 ? roll(64 * KIB) / 4 * 4 : churn(core, turn);
}

static uint64_t one_line(unsigned core, size_t turn)
{
    (void)turn;
    return core % 16 * 4;
}

static const struct stream {
    const char *name;
    unsigned cores;
    uint64_t (*next)(unsigned core, size_t turn);
} streams[] = {
    {"L1 resident", 8, scan_l1},
    {"L2 resident", 8, scan_l2},
    {"churn", 1, churn},
    {"churn", 8, churn},
    {"churn", 64, churn},
    {"churn, 1 % shared", 8, sharing},
    {"churn, 1 % shared", 64, sharing},
    {"words of one line", 8, one_line},
    {"words of one line", 64, one_line},
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void make(const struct stream *stream, uint64_t *access)
{
    for (size_t i = 0; i < 2 * ACCESSES; i++) {
        uint64_t core = i % stream->cores, kind = roll(100) < 35 ? MODEL_STORE : MODEL_LOAD;
        access[i] = core << AT_CORE | kind << AT_KIND | stream->next((unsigned)core, i / stream->cores);
    }
}

static void play(struct model *model, const uint64_t *access, size_t n)
{
    for (size_t i = 0; i < n; i++)
        model_access(model, (unsigned)(access[i] >> AT_CORE), access[i] & ((UINT64_C(1) << AT_KIND) - 1), 4,
                     (enum model_kind)(access[i] >> AT_KIND & 3));
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? atoi(argv[1]) : 5;
    uint64_t *access =
        mmap(NULL, 2 * ACCESSES * sizeof *access, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (runs < 1 || access == MAP_FAILED) {
        fprintf(stderr, "bench_model: expected a number of runs, and %zu bytes of memory\n",
                2 * ACCESSES * sizeof *access);
        return runs < 1 ? 2 : 3;
    }
    printf("%-18s %5s %12s %8s %8s %8s\n", "stream", "cores", "M accesses/s", "l1_miss", "l2_miss",
           "sharing");
    for (size_t s = 0; s < sizeof streams / sizeof streams[0]; s++) {
        double best = 0, l1 = 0, l2 = 0, shared = 0;
        make(&streams[s], access);
        for (int run = 0; run < runs; run++) {
            char why[MACHINE_WHY_MAX];
            struct model *model = model_new(&machine, why);
            if (model == NULL) {
                fprintf(stderr, "bench_model: %s\n", why);
                return 3;
            }
            for (unsigned core = 0; core < streams[s].cores; core++)
                for (uint64_t at = OWN_BYTES; at > 0; at -= MACHINE_LINE)
                    model_access(model, core, own(core) + at - MACHINE_LINE, 4, MODEL_LOAD);
            play(model, access, ACCESSES);
            for (unsigned core = 0; core < streams[s].cores; core++)
                model_count(model, core, true);
            double start = seconds();
            play(model, access + ACCESSES, ACCESSES);
            double rate = (double)ACCESSES / (seconds() - start) / 1e6;
            best = rate > best ? rate : best;
            l1 = l2 = shared = 0;
            for (unsigned core = 0; core < streams[s].cores; core++) {
                const struct model_counts *counts = model_counts(model, core);
                l1 += (double)counts->l1_miss / (double)ACCESSES;
                l2 += (double)counts->l2_miss / (double)ACCESSES;
                shared += (double)(counts->true_sharing + counts->false_sharing) / (double)ACCESSES;
            }
            model_free(model);
        }
        printf("%-18s %5u %12.1f %7.2f%% %7.2f%% %7.2f%%\n", streams[s].name, streams[s].cores, best,
               100 * l1, 100 * l2, 100 * shared);
        fflush(stdout);
    }
    return 0;
}
