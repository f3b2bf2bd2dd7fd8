#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernel.h"
#include "memory.h"
#include "options.h"
#include "sizes.h"

_Static_assert(SIZE_TABLE_ENTRIES == SIZE_TABLE_MASK + 1, "kernels index with the mask");

#define FILE_BYTES   (1u << 20)
#define FILE_ENTRIES 65536u

/* A distribution given as a file: sizes and their cumulated weights. */
struct weighted { uint32_t size; double up_to; };

static double uniform_draw(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

static int weight_line(const char *line, uint32_t *size, double *weight)
{
    char *end;
    if (!isdigit((unsigned char)line[0]))
        return -1;
    errno = 0;
    unsigned long long s = strtoull(line, &end, 10);
    if (errno != 0 || s == 0 || s > 1u << 30 || !isblank((unsigned char)*end))
        return -1;
    *weight = strtod(end, &end);
    while (isspace((unsigned char)*end))
        end++;
    *size = (uint32_t)s;
    return *end == '\0' && isfinite(*weight) && *weight > 0 ? 0 : -1;
}

static int file_load(const char *path, struct weighted *entry, size_t *count, char *text, char *why, size_t why_size)
{
    struct stat facts;
    bool regular = stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
    long length = regular ? proc_read(path, text, FILE_BYTES) : -1;
    const char *trouble = regular && length < 0 ? strerror(errno) : length < 0 ? "no such file, or not a plain one"
                        : (size_t)length == FILE_BYTES - 1 ? "longer than 1 MiB"
                        : memchr(text, '\0', (size_t)length) != NULL ? "holds a NUL byte" : NULL;
    if (trouble != NULL) {
        snprintf(why, why_size, "%s: %s", path, trouble);
        return EXIT_USAGE;
    }
    double total = 0;
    unsigned line_number = 0;
    *count = 0;
    for (char *line = text, *next; line != NULL && *line != '\0'; line = next) {
        line_number++;
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        line += strspn(line, " \t\r");
        if (*line == '\0' || *line == '#')
            continue;
        double weight;
        if (*count == FILE_ENTRIES || weight_line(line, &entry[*count].size, &weight) != 0 || !isfinite(total + weight)) {
            snprintf(why, why_size, "%s:%u: expected 'size weight' (1 to 2^30 bytes, a positive number)", path, line_number);
            return EXIT_USAGE;
        }
        entry[(*count)++].up_to = total += weight;
    }
    if (*count == 0) {
        snprintf(why, why_size, "%s:%u: no 'size weight' line", path, line_number);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < *count; i++)
        entry[i].up_to /= total;
    return 0;
}

static uint32_t weighted_at(const struct weighted *entry, size_t count, double q)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (entry[middle].up_to > q)
            high = middle;
        else
            low = middle + 1;
    }
    return entry[low].size;
}

int sizes_fill(uint32_t table[SIZE_TABLE_ENTRIES], const char *dist, uint64_t min, uint64_t max, uint64_t seed, char *why,
               size_t why_size)
{
    struct rng rng = { seed ^ 0x512e5u };
    struct weighted *entry = NULL;
    char *text = NULL;
    size_t count = 0;
    bool from_file = strncmp(dist, "file:", 5) == 0;

    if (strcmp(dist, "loguniform") != 0 && strcmp(dist, "uniform") != 0 && strcmp(dist, "fixed") != 0 && !from_file) {
        snprintf(why, why_size, "--size_dist %s: expected loguniform, uniform, fixed or file:PATH", dist);
        return EXIT_USAGE;
    }
    if (min > max && strcmp(dist, "fixed") != 0) {
        snprintf(why, why_size, "--size_min %llu is above --size_max %llu", (unsigned long long)min,
                 (unsigned long long)max);
        return EXIT_USAGE;
    }
    int rc = 0;
    if (from_file) {
        entry = ak_map(FILE_ENTRIES * sizeof *entry);
        text = ak_map(FILE_BYTES);
        rc = file_load(dist + 5, entry, &count, text, why, why_size);
    }
    for (uint32_t i = 0; i < SIZE_TABLE_ENTRIES && rc == 0; i++) {
        double q = (i + uniform_draw(&rng)) / SIZE_TABLE_ENTRIES;
        if (from_file)
            table[i] = weighted_at(entry, count, q);
        else if (strcmp(dist, "fixed") == 0)
            table[i] = (uint32_t)min;
        else if (strcmp(dist, "uniform") == 0)
            table[i] = (uint32_t)(min + (uint64_t)(q * (double)(max - min + 1)));
        else
            table[i] = (uint32_t)((double)min * pow((double)max / (double)min, q));
    }
    for (uint32_t i = SIZE_TABLE_ENTRIES - 1; i > 0 && rc == 0; i--) {
        uint32_t j = rng_below(rng_next(&rng), i + 1), swap = table[i];
        table[i] = table[j];
        table[j] = swap;
    }
    if (from_file) {
        ak_unmap(entry, FILE_ENTRIES * sizeof *entry);
        ak_unmap(text, FILE_BYTES);
    }
    return rc;
}
