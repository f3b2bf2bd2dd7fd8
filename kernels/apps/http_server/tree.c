#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tree.h"

/* Many small files and few large ones, as pages are: 4.9 KB a request in the mean. */
const struct tree_file tree_file[TREE_FILES] = {
    { "/robots.txt", 200, 6 },         { "/index.html", 612, 20 },     { "/images/logo.svg", 1400, 14 },
    { "/style.css", 4000, 12 },        { "/docs/page.html", 9000, 6 }, { "/app.js", 16384, 3 },
    { "/docs/manual.html", 32768, 2 }, { "/images/photo.jpg", TREE_SIZE_MAX, 1 },
};

static const char *const folders[] = { "/docs", "/images" };

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void tree_fill(uint64_t seed, unsigned file, char *bytes)
{
    static const char letter[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 \n";
    uint64_t state = seed * TREE_FILES + file, bits = 0;

    for (uint32_t i = 0; i < tree_file[file].size; i++) {
        bits = i % 8 == 0 ? draw(&state) : bits >> 8;
        bytes[i] = letter[bits & 63];
    }
}

static int trouble(char *why, size_t why_size, const char *path)
{
    snprintf(why, why_size, "%s: %s", path, strerror(errno));
    return -1;
}

static int file_write(const char *path, const char *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    ssize_t wrote = 0;

    for (size_t at = 0; fd >= 0 && at < size && wrote >= 0; at += wrote > 0 ? (size_t)wrote : 0)
        wrote = write(fd, bytes + at, size - at);
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return fd < 0 || wrote < 0 ? -1 : 0;
}

int tree_make(const char *folder, uint64_t seed, char *why, size_t why_size)
{
    static char bytes[TREE_SIZE_MAX];
    char path[512];

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s%s", folder, folders[i]);
        if (mkdir(path, 0755) != 0)
            return trouble(why, why_size, path);
    }
    for (unsigned file = 0; file < TREE_FILES; file++) {
        snprintf(path, sizeof path, "%s%s", folder, tree_file[file].path);
        tree_fill(seed, file, bytes);
        if (file_write(path, bytes, tree_file[file].size) != 0)
            return trouble(why, why_size, path);
    }
    return 0;
}

void tree_order(uint64_t seed, uint8_t order[TREE_CYCLE])
{
    uint64_t state = ~seed;
    unsigned n = 0;

    for (unsigned file = 0; file < TREE_FILES; file++)
        for (unsigned i = 0; i < tree_file[file].weight; i++)
            order[n++] = (uint8_t)file;
    while (n > 1) {
        unsigned other = (unsigned)(draw(&state) % n--);
        uint8_t moved = order[other];
        order[other] = order[n];
        order[n] = moved;
    }
}
