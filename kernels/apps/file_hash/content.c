#include "content.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

/* Bytes drawn at once: another number than a reader takes at once, so that both cut elsewhere. A multiple of 8. */
#define BLOCK_BYTES 49224u

struct hashing {
    XXH3_state_t *xxh3;
    EVP_MD_CTX *sha256;
};

static void hashing_free(struct hashing *h)
{
    XXH3_freeState(h->xxh3);
    EVP_MD_CTX_free(h->sha256);
    free(h);
}

struct hashing *hashing_begin(void)
{
    struct hashing *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->xxh3 = XXH3_createState();
    h->sha256 = EVP_MD_CTX_new();
    if (h->xxh3 != NULL && XXH3_64bits_reset(h->xxh3) == XXH_OK && h->sha256 != NULL &&
        EVP_DigestInit_ex(h->sha256, EVP_sha256(), NULL) == 1)
        return h;
    hashing_free(h);
    return NULL;
}

bool hashing_add(struct hashing *h, const void *bytes, size_t length)
{
    return XXH3_64bits_update(h->xxh3, bytes, length) == XXH_OK && EVP_DigestUpdate(h->sha256, bytes, length) == 1;
}

bool hashing_end(struct hashing *h, struct hashes *hashes)
{
    bool good = hashes != NULL && EVP_DigestFinal_ex(h->sha256, hashes->sha256, NULL) == 1;
    if (good)
        hashes->xxh3 = XXH3_64bits_digest(h->xxh3);
    hashing_free(h);
    return good;
}

/* ---- the file ---- */

static void draw_block(uint64_t *state, void *block)
{
    uint64_t *word = block;
    for (size_t i = 0; i < BLOCK_BYTES / sizeof *word; i++) { /* splitmix64 */
        uint64_t z = *state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        word[i] = z ^ (z >> 31);
    }
}

static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t wrote = write(fd, bytes, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        bytes += wrote;
        length -= (size_t)wrote;
    }
    return true;
}

static int open_deleted(const char *folder)
{
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd;
    if (strlen(folder) + sizeof "/ak-hash-XXXXXX" > sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcat(strcpy(path, folder), "/ak-hash-XXXXXX");
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* Write it, and hash what is written. */
static bool fill(int fd, uint64_t bytes, uint64_t seed, void *block, struct hashing *h)
{
    uint64_t state = seed;
    for (uint64_t left = bytes; left > 0;) {
        size_t length = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
        draw_block(&state, block);
        if (!hashing_add(h, block, length)) {
            errno = ENOMEM;
            return false;
        }
        if (!write_all(fd, block, length))
            return false;
        left -= length;
    }
    return true;
}

int content_file(const char *folder, uint64_t bytes, uint64_t seed, struct hashes *expected, const char **what)
{
    signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error of write, not a death */
    int fd = open_deleted(folder);
    *what = "open a file there";
    if (fd < 0)
        return -1;
    *what = "write it";
    struct hashing *h = NULL;
    void *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* Asked for at once, so that a disk without room says so before anything is written. */
    bool room = fallocate(fd, 0, 0, (off_t)bytes) == 0 || errno == EOPNOTSUPP;
    bool good = block != MAP_FAILED && room && (h = hashing_begin()) != NULL && fill(fd, bytes, seed, block, h) &&
                fdatasync(fd) == 0;
    int error = errno;
    if (h != NULL && !hashing_end(h, good ? expected : NULL))
        good = false;
    if (block != MAP_FAILED)
        munmap(block, BLOCK_BYTES);
    if (good)
        return fd;
    close(fd);
    errno = error;
    return -1;
}
