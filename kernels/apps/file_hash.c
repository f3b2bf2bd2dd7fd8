/*
 * file_hash - hash a large file: a program that the allocator should make no difference to.
 *
 * One op is one pass over the file: XXH3 and SHA-256 of its bytes, read `chunk` bytes at a time into one block of that size.
 * Besides that block some small ones for the libraries' states, so about ten calls of malloc a pass, whatever the file's size.
 * The time is that of SHA-256 (1.5 GB/s where the processor has instructions for it, a quarter of it else), XXH3 and read.
 *
 * The allocator matters all the same where a processor copies slower to blocks that begin within a cache line, as glibc's of
 * 128 KiB and more do (16 bytes past a page), and others' do not: the copy is read's. `align` = 64 takes that away.
 *
 * Setup writes the file, of drawn bytes, and sees it onto the disk; it is in the page cache then where memory is enough. Its
 * hashes are taken from the bytes as they are drawn, cut in other places than the reader does, and must agree.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel.h"
#include "file_hash/content.h"

static const struct param params[] = {
    { "file_bytes", PARAM_SIZE, "64M", "bytes", 1, (uint64_t)1 << 40, NULL, "length of the file" },
    { "chunk", PARAM_SIZE, "1M", "bytes", 1, (uint64_t)1 << 30, NULL, "bytes read at once" },
    { "align", PARAM_INT, "1", "bytes", 1, 1u << 20, NULL, "boundary at which the block begins, a power of two; 1: malloc's own" },
    { "folder", PARAM_WORD, "/var/tmp", "", 0, 0, NULL, "where the file lies, best on a disk; it is deleted as soon as it is open" },
    { 0 },
};

/* A thread's passes. */
struct state {
    uint64_t passes;   /* that came to the expected hashes */
    struct hashes last;
};

static int file = -1;
static struct hashes expected;

/* Thread 0 makes the file for all. */
static int setup(struct ctx *c)
{
    int rc = 0;
    if (c->thread == 0) {
        const char *what;
        errno = 0;
        file = content_file(param_word("folder"), param_int("file_bytes"), param_int("seed"), &expected, &what);
        if (file < 0)
            rc = ak_lacks("a file of %llu bytes in %s: cannot %s: %s; make room, or name another place with folder",
                          (unsigned long long)param_int("file_bytes"), param_word("folder"), what, strerror(errno));
    }
    ak_barrier(c);
    return rc;
}

/* Hash the whole file. 0, or the failure that was told. */
static int hash_file(char *chunk, size_t chunk_bytes, struct hashing *h)
{
    uint64_t bytes = param_int("file_bytes");
    for (uint64_t at = 0; at < bytes;) {
        ssize_t got = pread(file, chunk, chunk_bytes, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return ak_fail("the file ends or cannot be read at %llu: %s", (unsigned long long)at, strerror(errno));
        if (!hashing_add(h, chunk, (size_t)got))
            return ak_fail("a hash failed at %llu", (unsigned long long)at);
        at += (uint64_t)got;
    }
    return 0;
}

static void *block_of(size_t bytes)
{
    size_t align = param_int("align");
    return align > 1 ? aligned_alloc(align, (bytes + align - 1) / align * align) : malloc(bytes);
}

static int pass(struct state *s)
{
    size_t chunk_bytes = param_int("chunk");
    char *chunk = block_of(chunk_bytes);
    struct hashing *h = chunk != NULL ? hashing_begin() : NULL;
    int rc = h != NULL ? hash_file(chunk, chunk_bytes, h) : ak_no_memory(chunk_bytes);
    if (h != NULL && !hashing_end(h, rc == 0 ? &s->last : NULL) && rc == 0)
        rc = ak_fail("the hash could not be ended");
    free(chunk);
    return rc;
}

static const char *refuse(void)
{
    uint64_t align = param_int("align");
    return (align & (align - 1)) == 0 ? NULL : "--align: expected a power of two";
}

static int run(struct ctx *c, uint64_t iters)
{
    struct state *s = c->priv;
    for (uint64_t i = 0; i < iters; i++) {
        if (pass(s) != 0)
            return 1;
        s->passes += memcmp(&s->last, &expected, sizeof expected) == 0;
    }
    return 0;
}

static int verify(struct ctx *c)
{
    const struct state *s = c->priv;
    if (s->passes != c->iters_done)
        return ak_fail("%llu of %llu passes came to the hashes of what was written", (unsigned long long)s->passes,
                       (unsigned long long)c->iters_done);
    return 0;
}

const struct kernel kernel = {
    .name = "file_hash",
    .what = "hash a large file by XXH3 and SHA-256: few large blocks",
    .params = params,
    .op = "one pass over the file",
    .app = true,
    .sizes = SIZES_NONE,
    .default_ops = 1,
    .start_s = 0.1, /* measured with glibc: 4 MiB 0.09 s, 64 MiB twice 0.5 s, 512 MiB 3.2 s, writing included */
    .op_ns = 3.5,
    .op_times = "file_bytes",
    .priv_bytes = sizeof(struct state),
    .refuse = refuse,
    .setup = setup,
    .run = run,
    .verify = verify,
};
