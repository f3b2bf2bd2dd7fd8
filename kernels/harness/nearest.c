#include <stddef.h>
#include <string.h>

#include "nearest.h"

#define WORD_MAX 128

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

static unsigned edit_distance(const char *a, const char *b)
{
    size_t columns = strnlen(b, WORD_MAX);
    unsigned row[WORD_MAX + 1];

    for (unsigned j = 0; j <= columns; j++)
        row[j] = j;
    for (unsigned i = 0; i < WORD_MAX && a[i] != '\0'; i++) {
        unsigned diagonal = row[0];
        row[0] = i + 1;
        for (unsigned j = 0; j < columns; j++) {
            unsigned above = row[j + 1];
            row[j + 1] = least(above + 1, row[j] + 1, diagonal + (a[i] != b[j]));
            diagonal = above;
        }
    }
    return row[columns];
}

const char *nearest(const char *word, const char *const *names)
{
    const char *best = NULL;
    unsigned best_distance = (unsigned)(strnlen(word, WORD_MAX) + 1) / 2 + 1;

    for (; *names != NULL; names++) {
        unsigned distance = edit_distance(word, *names);
        if (distance < best_distance) {
            best_distance = distance;
            best = *names;
        }
    }
    return best;
}
