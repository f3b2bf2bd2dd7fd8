#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define SHIFT_MIN  5u  /* 32 bytes */
#define CLASSES    13u /* up to 128 KiB, the head included */
#define HEAD_BYTES 16u /* before each block: its class; keeps malloc's alignment */
#define SLAB_BYTES (256u << 10)

struct slab { struct slab *next; uint64_t pad; };
struct block { struct block *next; }; /* while it is free, in place of the head */

/* Owner of a list: whoever holds its lock. Each class has a line of its own. */
static struct class {
    _Alignas(128) pthread_mutex_t lock;
    struct block *free;
    struct slab  *slabs;
} classes[CLASSES];
static bool shared;

void pool_choose(bool pool)
{
    shared = pool;
    for (unsigned i = 0; pool && i < CLASSES; i++)
        pthread_mutex_init(&classes[i].lock, NULL);
}

static unsigned class_of(size_t size)
{
    unsigned class = 0;
    while (class < CLASSES && ((size_t)1 << (SHIFT_MIN + class)) < size + HEAD_BYTES)
        class++;
    return class;
}

/* With the class's lock held. */
static bool class_grow(struct class *c, size_t bytes)
{
    struct slab *slab = malloc(sizeof *slab + SLAB_BYTES);
    if (slab == NULL)
        return false;
    slab->next = c->slabs;
    c->slabs = slab;
    for (size_t at = 0; at + bytes <= SLAB_BYTES; at += bytes) {
        struct block *b = (void *)((char *)(slab + 1) + at);
        b->next = c->free;
        c->free = b;
    }
    return true;
}

void *pool_get(size_t size)
{
    if (!shared)
        return malloc(size);
    unsigned class = class_of(size);
    if (class == CLASSES)
        return NULL;
    struct class *c = &classes[class];
    pthread_mutex_lock(&c->lock);
    struct block *b = c->free != NULL || class_grow(c, (size_t)1 << (SHIFT_MIN + class)) ? c->free : NULL;
    if (b != NULL)
        c->free = b->next;
    pthread_mutex_unlock(&c->lock);
    if (b == NULL)
        return NULL;
    *(unsigned *)(void *)b = class;
    return (char *)b + HEAD_BYTES;
}

void pool_put(void *block)
{
    if (!shared || block == NULL) {
        free(block);
        return;
    }
    struct block *b = (void *)((char *)block - HEAD_BYTES);
    struct class *c = &classes[*(unsigned *)(void *)b];
    pthread_mutex_lock(&c->lock);
    b->next = c->free;
    c->free = b;
    pthread_mutex_unlock(&c->lock);
}

void *pool_grow(void *block, size_t size)
{
    if (!shared)
        return realloc(block, size);
    size_t room = 0;
    if (block != NULL)
        room = ((size_t)1 << (SHIFT_MIN + *(unsigned *)(void *)((char *)block - HEAD_BYTES))) - HEAD_BYTES;
    if (block != NULL && size <= room)
        return block;
    void *grown = pool_get(size);
    if (grown == NULL)
        return NULL;
    if (block != NULL)
        memcpy(grown, block, room);
    pool_put(block);
    return grown;
}

void pool_end(void)
{
    for (unsigned i = 0; shared && i < CLASSES; i++)
        for (struct slab *s; (s = classes[i].slabs) != NULL;) {
            classes[i].slabs = s->next;
            free(s);
        }
}
