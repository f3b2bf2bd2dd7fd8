/* held.c - a shared object that holds blocks: from its constructor, of each thread that came by, and ones it gives away.
 * Loaded and unloaded by tests/conformance/loading.c.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OWN = 50 };

static char *own[OWN];

/* Thread-local storage that is allocated at the first access, by the dynamic loader. */
static __thread char *thread_block;
static __thread char thread_room[20000];

int held_visit(void);
char *held_give(size_t size, char tag);

__attribute__((constructor)) static void held_begin(void)
{
    for (int i = 0; i < OWN; i++)
        memset(own[i] = malloc(100 + (size_t)i * 300), i, 100 + (size_t)i * 300);
}

__attribute__((destructor)) static void held_end(void)
{
    for (int i = 0; i < OWN; i++)
        free(own[i]);
}

/* 1 when the thread and the plugin still have what is theirs. */
int held_visit(void)
{
    if (thread_block == NULL)
        thread_block = strdup("held by a thread");
    thread_room[sizeof thread_room - 1]++;
    bool good = thread_block != NULL && strcmp(thread_block, "held by a thread") == 0;
    for (int i = 0; i < OWN; i++)
        good &= own[i][0] == (char)i && own[i][99 + i * 300] == (char)i;
    free(thread_block);
    thread_block = NULL;
    return good;
}

/* A block that the program frees, after this object is gone. */
char *held_give(size_t size, char tag)
{
    char *block = malloc(size);
    if (block != NULL)
        memset(block, tag, size);
    return block;
}
