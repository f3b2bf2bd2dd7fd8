/* meta.c - see meta.h. */
#include "meta.h"

#include "os.h"
#include "poison.h"

/* [at, end) is the unused rest of the newest mapping; older rests are smaller than one structure
 * and are given up. */
static struct {
    char *at, *end;
    size_t bytes;
} meta;

void *tlfl__meta_take(size_t bytes)
{
    bytes = size_round(bytes, LINE_PAIR);
    if ((size_t)(meta.end - meta.at) < bytes) {
        char *start = tlfl__os_map(META_STEP);
        if (start == NULL)
            return NULL;
        meta.at = start;
        meta.end = start + META_STEP;
        meta.bytes += META_STEP;
        poison_set(start, META_STEP);
    }
    void *taken = meta.at;
    meta.at += bytes;
    poison_lift(taken, bytes);
    return taken;
}

void tlfl__meta_count(size_t bytes)
{
    meta.bytes += bytes;
}

size_t tlfl__meta_bytes(void)
{
    return meta.bytes;
}
