/* threads.c - births and joins of threads, which are order between their events too. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "calls.h"
#include "journal.h"

#define EXPORTED __attribute__((visibility("default")))

/* What a thread is to do, until it has begun. */
struct start {
    void *(*body)(void *);
    void *argument;
    struct birth birth;
};

static void *begin(void *argument)
{
    struct start start = *(struct start *)argument;
    calls_own_free(argument);
    journal_born(&start.birth);
    return start.body(start.argument);
}

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    static create_fn *create;
    struct start start = { body, argument, { 0 } }, *kept;
    if (create == NULL)
        create = (create_fn *)dlsym(RTLD_NEXT, "pthread_create");
    if (!journal_birth(&start.birth))
        return create(thread, attributes, body, argument);
    if ((kept = calls_own(sizeof *kept)) == NULL)
        return EAGAIN;
    *kept = start;
    int error = create(thread, attributes, begin, kept);
    if (error != 0)
        calls_own_free(kept);
    else
        journal_named(start.birth.thread, (uintptr_t)*thread);
    return error;
}

static void joined(uint32_t thread)
{
    struct journal *j = journal_enter();
    struct event e = { .kind = EVENT_JOIN, .thread = thread };
    if (j == NULL)
        return;
    if (thread != j->thread)
        journal_add(j, &e);
    journal_leave(j);
}

/* Looked up before: afterwards its name can be another thread's. */
EXPORTED int pthread_join(pthread_t thread, void **result)
{
    static int (*join)(pthread_t, void **);
    uint32_t number = journal_recording ? journal_take_name((uintptr_t)thread) : UINT32_MAX;
    if (join == NULL)
        join = (int (*)(pthread_t, void **))dlsym(RTLD_NEXT, "pthread_join");
    int error = join(thread, result);
    if (error == 0 && number != UINT32_MAX)
        joined(number);
    else if (number != UINT32_MAX)
        journal_named(number, (uintptr_t)thread);
    return error;
}
