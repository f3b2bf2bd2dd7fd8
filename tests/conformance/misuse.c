/* Misuse: what tlfl notices ends the process with one line that names the call and the address. */
#include "tap.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

/* The compiler must not see that these are called with what it knows to be wrong. */
static void (*volatile do_free)(void *) = free;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static size_t (*volatile do_usable)(void *) = malloc_usable_size;

/* A misuse sets this just before its last call. */
static void *bad_address;
static int bad_pipe;

static void *bad(void *address)
{
    if (write(bad_pipe, &address, sizeof address) != sizeof address)
        _exit(2);
    return address;
}

static void free_stack(void)
{
    char block[64];
    do_free(bad(block));
}

static void free_static(void)
{
    do_free(bad(&bad_address));
}

static void free_mapped(void)
{
    do_free(bad(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
}

static void free_wild(void)
{
    do_free(bad((void *)(uintptr_t)0xdead000000000010));
}

static void free_low(void)
{
    do_free(bad((void *)(uintptr_t)0x10));
}

static void free_misaligned(void)
{
    char *block = malloc(100);
    do_free(bad(block + 8));
}

static void free_inside_large(void)
{
    char *block = malloc(200000);
    do_free(bad(block + 64));
}

static void free_inside_huge(void)
{
    char *block = malloc(20000000);
    do_free(bad(block + 32));
}

static void twice(size_t size)
{
    void *block = malloc(size);
    do_free(block);
    do_free(bad(block));
}

static void twice_smallest(void)
{
    twice(1);
}

static void twice_small(void)
{
    twice(200);
}

static void twice_medium(void)
{
    twice(40000);
}

static void twice_large(void)
{
    twice(400000);
}

static void twice_huge(void)
{
    twice(40000000);
}

static void twice_after_others(void)
{
    void *blocks[1000];
    for (int i = 0; i < 1000; i++)
        blocks[i] = malloc(64);
    for (int i = 0; i < 1000; i++)
        do_free(blocks[i]);
    do_free(bad(blocks[500]));
}

static void *free_body(void *block)
{
    do_free(block);
    return NULL;
}

static void twice_other_first(void)
{
    pthread_t thread;
    void *block = malloc(100);
    pthread_create(&thread, NULL, free_body, block);
    pthread_join(thread, NULL);
    do_free(bad(block));
}

static void twice_other_second(void)
{
    pthread_t thread;
    void *block = malloc(100);
    do_free(block);
    pthread_create(&thread, NULL, free_body, bad(block));
    pthread_join(thread, NULL);
}

static void twice_both_others(void)
{
    pthread_t thread;
    void *block = malloc(100);
    for (int i = 0; i < 2; i++) {
        if (i == 1)
            bad(block);
        pthread_create(&thread, NULL, free_body, block);
        pthread_join(thread, NULL);
    }
}

/* Threads that have allocated many such blocks: tlfl-packed lets them keep those that they free. */
static void *busy_block(void)
{
    void *blocks[200];
    for (int i = 0; i < 200; i++)
        blocks[i] = malloc(100);
    for (int i = 1; i < 200; i++)
        do_free(blocks[i - 1]);
    return blocks[199];
}

static void *busy_free_body(void *block)
{
    do_free(busy_block());
    do_free(block);
    return NULL;
}

static void *busy_twice_body(void *block)
{
    busy_free_body(block);
    do_free(bad(block));
    return NULL;
}

static void twice_busy(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, busy_twice_body, busy_block());
    pthread_join(thread, NULL);
}

static pthread_barrier_t freed;

static void *keep_body(void *block)
{
    busy_free_body(block);
    pthread_barrier_wait(&freed);
    pause();
    return NULL;
}

/* Does something to a block that a thread freed which goes on, and keeps what it has. */
static void after_keeper(void *(*body)(void *))
{
    pthread_t thread;
    void *block = busy_block();
    pthread_barrier_init(&freed, NULL, 2);
    pthread_create(&thread, NULL, keep_body, block);
    pthread_barrier_wait(&freed);
    pthread_create(&thread, NULL, body, bad(block));
    pthread_join(thread, NULL);
}

static void twice_two_busy(void)
{
    after_keeper(busy_free_body);
}

static void *realloc_body(void *block)
{
    do_realloc(block, 1000);
    return NULL;
}

static void realloc_kept(void)
{
    after_keeper(realloc_body);
}

static void realloc_foreign(void)
{
    char block[64];
    do_realloc(bad(block), 100);
}

static void realloc_freed(void)
{
    void *block = malloc(100);
    do_free(block);
    do_realloc(bad(block), 1000);
}

static void realloc_inside(void)
{
    char *block = malloc(100);
    do_realloc(bad(block + 16), 1000);
}

static void usable_foreign(void)
{
    char block[64];
    do_usable(bad(block));
}

static const struct {
    void (*body)(void);
    const char *call, *name;
} misuses[] = {
    {free_stack, "free", "free of the stack"},
    {free_static, "free", "free of a static variable"},
    {free_mapped, "free", "free of a mapping"},
    {free_wild, "free", "free of an address that cannot be"},
    {free_low, "free", "free of a low address"},
    {free_misaligned, "free", "free of a misaligned pointer"},
    {free_inside_large, "free", "free inside a large block"},
    {free_inside_huge, "free", "free inside a huge block"},
    {twice_smallest, "free", "double free of 1 byte"},
    {twice_small, "free", "double free of a small block"},
    {twice_medium, "free", "double free of 40,000 bytes"},
    {twice_large, "free", "double free of a large block"},
    {twice_huge, "free", "double free of a huge block"},
    {twice_after_others, "free", "double free after 500 others"},
    {twice_other_first, "free", "double free, the first by another thread"},
    {twice_other_second, "free", "double free, the second by another thread"},
    {twice_both_others, "free", "double free, both by other threads"},
    {twice_busy, "free", "double free, both by a thread that allocates, too"},
    {twice_two_busy, "free", "double free, by two threads that allocate, too"},
    {realloc_kept, "realloc", "realloc of a block that another thread freed"},
    {realloc_foreign, "realloc", "realloc of the stack"},
    {realloc_freed, "realloc", "realloc of a freed block"},
    {realloc_inside, "realloc", "realloc inside a block"},
    {usable_foreign, "malloc_usable_size", "malloc_usable_size of the stack"},
};
#define MISUSES (sizeof misuses / sizeof *misuses)

/* Runs one in a child: true when it aborted and said one line "tlfl: CALL(ADDRESS): WHY". */
static bool aborts(void (*body)(void), const char *call)
{
    int said[2], address[2];
    if (pipe(said) != 0 || pipe(address) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        dup2(said[1], STDERR_FILENO);
        bad_pipe = address[1];
        body();
        _exit(0);
    }
    close(said[1]);
    close(address[1]);
    char text[1024], start[128];
    size_t length = 0;
    ssize_t got;
    while ((got = read(said[0], text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    void *at = NULL;
    bool known = read(address[0], &at, sizeof at) == sizeof at;
    close(said[0]);
    close(address[0]);
    int status = 0;
    waitpid(child, &status, 0);
    snprintf(start, sizeof start, "tlfl: %s(0x%zx): ", call, (size_t)at);
    char *end = strchr(text, '\n');
    return known && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
           strncmp(text, start, strlen(start)) == 0 && strlen(text) > strlen(start) + 5 &&
           end == text + length - 1;
}

/* tlfl, but for the variant without checks. */
static bool allocator_checks(void)
{
    const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "tlfl_version");
    return version != NULL && strstr(version(), "unchecked") == NULL;
}

int main(void)
{
    tap_start(60);
    for (size_t i = 0; i < MISUSES; i++)
        if (allocator_checks())
            tap_ok(aborts(misuses[i].body, misuses[i].call), "%s", misuses[i].name);
        else
            tap_skip(misuses[i].name, "a promise of tlfl");
    /* What must not be taken for misuse: a block whose user wrote what free blocks hold. */
    char *a = malloc(64), *b = malloc(64), copy[64];
    memcpy(copy, a, 64);
    free(a);
    memcpy(b, copy, 64);
    void *c = malloc(64);
    memcpy(c, copy, 64);
    free(b);
    free(c);
    tap_ok(malloc_usable_size(a = malloc(64)) >= 64, "copies of old contents are no misuse");
    free(a);
    return tap_done();
}
