/* acts.c - what the bodies of the misuse programs are made of; see misuse.h. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "misuse.h"

void *(*volatile do_malloc)(size_t) = malloc;
void *(*volatile do_calloc)(size_t, size_t) = calloc;
void *(*volatile do_realloc)(void *, size_t) = realloc;
void *(*volatile do_aligned)(size_t, size_t) = aligned_alloc;
void (*volatile do_free)(void *) = free;
size_t (*volatile do_usable)(void *) = malloc_usable_size;
void *(*volatile do_memset)(void *, int, size_t) = memset;
char *(*volatile do_strcpy)(char *, const char *) = strcpy;

/* ---- threads ---- */

void in_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0)
        _exit(END_BROKEN);
    pthread_join(thread, NULL);
}

static void *free_body(void *block)
{
    do_free(block);
    return NULL;
}

void free_in_thread(void *block)
{
    in_thread(free_body, block);
}

static void *malloc_body(void *argument)
{
    void **block = argument;
    *block = do_malloc((size_t)*block);
    return NULL;
}

void *malloc_in_thread(size_t size)
{
    void *block = (void *)size; /* in: the size; out: the block */
    in_thread(malloc_body, &block);
    return block;
}

/* ---- bad accesses ---- */

static volatile uintptr_t access_low, access_high;

/* Async-signal-safe. A fault elsewhere ends the process as if there were no handler. */
static void access_fault(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    uintptr_t at = (uintptr_t)info->si_addr;
    if (at >= access_low && at < access_high)
        _exit(END_TRAPPED);
    signal(signal_number, SIG_DFL);
}

void access_begin(const void *start, size_t length)
{
    struct sigaction action = {.sa_sigaction = access_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    access_low = (uintptr_t)start;
    access_high = (uintptr_t)start + length;
}

void access_end(void)
{
    access_low = access_high = 0;
}

void bad_fill(void *start, int byte, size_t length)
{
    access_begin(start, length);
    do_memset(start, byte, length);
    access_end();
}

void bad_write(void *start, uintptr_t word)
{
    access_begin(start, sizeof word);
    memcpy(start, &word, sizeof word);
    access_end();
}

uintptr_t bad_read(const void *start)
{
    uintptr_t word;
    bad_copy(&word, start, sizeof word);
    return word;
}

void bad_copy(void *to, const void *start, size_t length)
{
    access_begin(start, length);
    const volatile char *from = start;
    for (size_t i = 0; i < length; i++)
        ((char *)to)[i] = from[i];
    access_end();
}

/* ---- what is live ---- */

#define KEPT_MAX 4096

static struct {
    uintptr_t start, end;
} kept[KEPT_MAX];
static int kept_count;

static bool kept_overlaps(const void *start, size_t length)
{
    uintptr_t low = (uintptr_t)start, high = low + length;
    for (int i = 0; i < kept_count; i++)
        if (low < kept[i].end && kept[i].start < high)
            return true;
    return false;
}

void keep(const void *start, size_t length)
{
    if (kept_count == KEPT_MAX)
        _exit(END_BROKEN);
    kept[kept_count].start = (uintptr_t)start;
    kept[kept_count++].end = (uintptr_t)start + length;
}

/* ---- rows ---- */

#define ROW_SMALL 4096 /* above it a row is short */
#define ROW_SHORT 4

char *row[ROW_MAX];
int row_count;
static size_t row_size;

static int row_byte(int i)
{
    return 0x80 | i; /* never BAD_BYTE or 0 */
}

void row_make(size_t size)
{
    row_size = size;
    row_count = size <= ROW_SMALL ? ROW_MAX : ROW_SHORT;
    for (int i = 0; i < row_count; i++) {
        row[i] = do_malloc(size);
        if (row[i] == NULL)
            _exit(END_BROKEN);
        memset(row[i], row_byte(i), size);
    }
}

void row_closest(int *lower, int *upper)
{
    size_t best = SIZE_MAX;
    for (int i = 0; i < row_count; i++)
        for (int j = 0; j < row_count; j++)
            if ((uintptr_t)row[j] > (uintptr_t)row[i] && (uintptr_t)row[j] - (uintptr_t)row[i] < best) {
                best = (uintptr_t)row[j] - (uintptr_t)row[i];
                *lower = i;
                *upper = j;
            }
}

bool row_changed(int except)
{
    for (int i = 0; i < row_count; i++)
        for (size_t b = 0; i != except && row[i] != NULL && b < row_size; b++)
            if (((volatile unsigned char *)row[i])[b] != row_byte(i))
                return true;
    return false;
}

void row_free(void)
{
    for (int i = 0; i < row_count; i++) {
        do_free(row[i]);
        row[i] = NULL;
    }
}

/* ---- afterwards ---- */

#define AFTER_EDGE 64 /* bytes written at each end of a block */

static struct {
    const char *place;
    size_t length;
    char was[sizeof(uintptr_t)];
    bool seen;
} watched;

void watch(const void *place, size_t length)
{
    watched.length = length < sizeof watched.was ? length : sizeof watched.was;
    watched.place = (const char *)place + length - watched.length;
    bad_copy(watched.was, watched.place, watched.length);
}

/* A block that was just handed out. */
static void watch_look(const char *block, size_t size)
{
    if (block <= watched.place && watched.place + watched.length <= block + size)
        watched.seen |= memcmp(watched.was, watched.place, watched.length) == 0;
}

static bool after_blocks(size_t size, int count)
{
    for (int i = 0; i < count; i++) {
        char *block = do_malloc(size);
        if (block == NULL)
            continue;
        watch_look(block, size);
        if (watched.seen || kept_overlaps(block, size))
            return true;
        keep(block, size);
        size_t edge = size < AFTER_EDGE ? size : AFTER_EDGE;
        do_memset(block, 0xee, edge);
        do_memset(block + size - edge, 0xee, edge);
    }
    return false;
}

bool aftermath(size_t size)
{
    int count = size <= 4096 ? 1200 : size <= 65536 ? 64 : 4;
    int others = size <= 4096 ? 64 : 4;
    for (int i = 0; i < row_count; i++)
        if (row[i] != NULL)
            keep(row[i], row_size);
    return after_blocks(size, count) || after_blocks(size / 2 + 1, others) ||
           after_blocks(size + 16, others) || after_blocks(size * 2, others) ||
           after_blocks(size * 4, others);
}

void churn(size_t size)
{
    int count = size <= 4096 ? 20000 : size <= 65536 ? 500 : 20;
    for (int i = 0; i < count; i++) {
        char *block = do_malloc(size);
        watch_look(block, size);
        do_free(block);
    }
}

/* ---- secrets ---- */

#define SECRET_RUN     3         /* words in a row: fewer may be a register that was saved */
#define SECRET_PAGES   (1 << 18) /* asked for at once */
#define SECRET_MAPPING (1 << 24) /* pages; a mapping beyond is address space that a tool has set aside */

static volatile uintptr_t secret_seed = (uintptr_t)0x1d872b41c3e5f697;

static uintptr_t secret_word(void)
{
    return ~secret_seed;
}

void secret_fill(void *block, size_t size)
{
    uintptr_t *words = block;
    for (size_t i = 0; i < size / sizeof *words; i++)
        words[i] = secret_word();
}

bool secret_in(const void *start, size_t length)
{
    const volatile uintptr_t *words = (const void *)(((uintptr_t)start + sizeof *words - 1) & -sizeof *words);
    const volatile uintptr_t *end = (const void *)((uintptr_t)start + length);
    int run = 0;
    for (; words + 1 <= end; words++) {
        run = *words == secret_word() ? run + 1 : 0;
        if (run == SECRET_RUN)
            return true;
    }
    return false;
}

/* Only pages that are resident: untouched ones need not be made. */
static bool secret_in_mapping(char *start, char *end)
{
    static unsigned char resident[SECRET_PAGES];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if ((size_t)(end - start) / page > SECRET_MAPPING)
        return false;
    while (start < end) {
        size_t pages = (size_t)(end - start) / page;
        pages = pages < SECRET_PAGES ? pages : SECRET_PAGES;
        if (mincore(start, pages * page, resident) == 0)
            for (size_t i = 0; i < pages; i++)
                if ((resident[i] & 1) != 0 && secret_in(start + i * page, page))
                    return true;
        start += pages * page;
    }
    return false;
}

bool secret_anywhere(void)
{
    static char text[1 << 17];
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t got;
    if (file < 0)
        _exit(END_BROKEN);
    while ((got = read(file, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    close(file);
    text[length] = '\0';
    for (char *line = text; *line != '\0';) {
        char *at, *next = strchr(line, '\n');
        uintptr_t low = strtoull(line, &at, 16), high = strtoull(at + 1, &at, 16);
        if (strncmp(at, " rw", 3) == 0 && secret_in_mapping((char *)low, (char *)high))
            return true;
        if (next == NULL)
            break;
        line = next + 1;
    }
    return false;
}
