#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calls.h"
#include "journal.h"

#define THREADS_MAX 65535u
#define FILES_MAX   10000 /* images that one process id may execute */
#define ERA_BITS    8
#define PAGE_BYTES  4096

bool journal_recording;
uint32_t journal_era;
static volatile uint32_t never;
volatile uint32_t *journal_alive = &never;
__thread struct journal journal_self __attribute__((tls_model("initial-exec")));

static struct spool_control *control;
static struct spool_head *head; /* of this process; NULL: there is none, since something failed */
static char folder[3072], path[3200];
static char command[sizeof head->command];
static pthread_key_t at_exit_of_thread;
static uintptr_t *name_of; /* by number of thread: its pthread_t, 0 once joined */

static void fail(const char *what, int error)
{
    int none = 0;
    if (control != NULL && atomic_compare_exchange_strong(&control->error, &none, error ? error : EIO)) {
        atomic_store(&control->pid, (int)getpid());
        snprintf(control->what, sizeof control->what, "%s", what);
    }
}

/* A write past the limit of file sizes is an error here and no signal to the program. */
static int space_allocate(int fd, off_t offset, off_t length)
{
    sigset_t size, before, pending;
    sigemptyset(&size);
    sigaddset(&size, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &size, &before);
    int error;
    while ((error = posix_fallocate(fd, offset, length)) == EINTR)
        ;
    static const struct timespec now = { 0, 0 };
    if (error != 0 && !sigismember(&pending, SIGXFSZ))
        sigtimedwait(&size, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* Map some of the spool, its space allocated. By path each time: a program may close what it does not know. */
static void *spool_map(int flags, off_t offset, size_t length, int *error)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    void *memory = MAP_FAILED;
    *error = fd < 0 ? errno : space_allocate(fd, offset, (off_t)length);
    if (*error == 0) {
        if (flags & O_CREAT && geteuid() == 0)
            fchmod(fd, 0666); /* it may become another user */
        memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
        *error = memory == MAP_FAILED ? errno : 0;
    }
    if (fd >= 0)
        close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

static uint64_t unix_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool spool_begin(const char *served, bool own)
{
    int error = EEXIST;
    head = NULL;
    for (unsigned n = 0; n < FILES_MAX && error == EEXIST; n++) {
        snprintf(path, sizeof path, "%s/%d-%u", folder, (int)getpid(), n);
        head = spool_map(O_CREAT | O_EXCL, 0, SPOOL_HEAD_BYTES, &error);
    }
    if (head == NULL) {
        fail("a file for the events", error);
        return false;
    }
    head->pid = (uint32_t)getpid();
    head->parent = (uint32_t)getppid();
    head->started_unix_ns = unix_ns();
    head->started_tick = spool_ticks();
    head->own = own;
    snprintf(head->served, sizeof head->served, "%s", served);
    memcpy(head->command, command, sizeof head->command);
    atomic_thread_fence(memory_order_release);
    head->magic = SPOOL_MAGIC;
    return true;
}

static void slot_drop(struct journal *j)
{
    if (j->slot != NULL)
        munmap(j->slot, SPOOL_SLOT_BYTES);
    j->slot = NULL;
    j->at = j->limit = NULL;
}

/* Its slot only: frees that come still later take another one. */
static void thread_ends(void *argument)
{
    struct journal *j = argument;
    if (!j->busy && j->era == journal_era)
        slot_drop(j);
}

static const char *object_of(const void *address)
{
    Dl_info info;
    return address != NULL && dladdr(address, &info) && info.dli_fname ? info.dli_fname : "(nothing)";
}

static void command_keep(int argc, char **argv)
{
    size_t used = 0;
    for (int i = 0; i < argc && used < sizeof command - 1; i++)
        used += (size_t)snprintf(command + used, sizeof command - used, "%s%s", i ? " " : "", argv[i]);
}

static bool control_open(void)
{
    char name[sizeof path];
    snprintf(name, sizeof name, "%s/" SPOOL_CONTROL, folder);
    int fd = open(name, O_RDWR | O_CLOEXEC);
    void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (memory == MAP_FAILED) {
        dprintf(STDERR_FILENO, "ak record: process %d is not recorded: %s: %s\n", (int)getpid(), name, strerror(error));
        return false;
    }
    control = memory;
    return true;
}

static void *pages(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED)
        return memory;
    fail("memory of the recorder", errno);
    return NULL;
}

static bool parts_make(void)
{
    volatile uint32_t *alive = pages(PAGE_BYTES);
    name_of = pages(THREADS_MAX * sizeof *name_of);
    if (alive == NULL || name_of == NULL)
        return false;
    if (madvise((void *)(uintptr_t)alive, PAGE_BYTES, MADV_WIPEONFORK) != 0) {
        fail("MADV_WIPEONFORK (Linux 4.14)", errno);
        return false;
    }
    journal_alive = alive;
    *journal_alive = journal_era = 1;
    return pthread_key_create(&at_exit_of_thread, thread_ends) == 0;
}

void journal_begin(int argc, char **argv, char **environment)
{
    const char *where = NULL;
    for (; *environment != NULL && where == NULL; environment++)
        if (strncmp(*environment, SPOOL_ENV "=", sizeof SPOOL_ENV) == 0)
            where = *environment + sizeof SPOOL_ENV;
    if (where == NULL || snprintf(folder, sizeof folder, "%s", where) >= (int)sizeof folder)
        return;
    calls_find();
    command_keep(argc, argv);
    const void *ours = (const void *)(uintptr_t)malloc, *first = dlsym(RTLD_DEFAULT, "malloc");
    bool own = first != ours;
    if (!control_open() || !spool_begin(object_of(own ? first : calls_served()), own) || own || !parts_make())
        return;
    journal_recording = true;
}

/* A child of vfork shares all this, and ends for itself alone. */
void journal_end(uint32_t how)
{
    if (journal_recording && head != NULL && *journal_alive && head->pid == (uint32_t)getpid())
        atomic_store(&head->ended, how);
}

/* In the child of a fork, before its first event: one thread. */
static void renew(void)
{
    char served[sizeof head->served] = "";
    if (head != NULL) {
        memcpy(served, head->served, sizeof served);
        munmap(head, SPOOL_HEAD_BYTES);
    }
    journal_era = (journal_era & ((1u << ERA_BITS) - 1)) + 1;
    memset(name_of, 0, THREADS_MAX * sizeof *name_of);
    *journal_alive = journal_era;
    spool_begin(served, false);
}

static uint32_t number_take(void)
{
    uint32_t number = head != NULL ? atomic_fetch_add(&head->threads, 1) : 0;
    if (number < THREADS_MAX)
        return number;
    fail("more than 65535 threads", EOVERFLOW);
    return 0;
}

/* A number in this process, for a thread that has none: the first one, one that a fork left alone, or one that nobody saw
 * start. The slot of a parent is the parent's. */
static void thread_register(struct journal *j)
{
    if (!*journal_alive)
        renew();
    if (j->era == journal_era)
        return;
    slot_drop(j);
    j->made = j->events = j->tick = 0;
    j->born_by = UINT32_MAX;
    j->thread = number_take();
    j->era = journal_era;
}

bool journal_slot(struct journal *j)
{
    int error = 0;
    slot_drop(j);
    if (head == NULL || atomic_load_explicit(&control->error, memory_order_relaxed) != 0)
        return false;
    uint64_t number = atomic_fetch_add(&head->slots, 1);
    struct spool_slot *slot = spool_map(0, (off_t)(SPOOL_HEAD_BYTES + number * SPOOL_SLOT_BYTES), SPOOL_SLOT_BYTES, &error);
    if (slot == NULL) {
        fail("space for the events", error);
        return false;
    }
    j->tick = spool_ticks() >> SPOOL_TICK_SHIFT;
    slot->thread = j->thread;
    slot->born_by = j->born_by;
    slot->born_at = j->born_at;
    slot->made = j->made;
    slot->tick = j->tick;
    atomic_thread_fence(memory_order_release);
    slot->magic = SPOOL_MAGIC;
    j->slot = slot;
    j->at = (unsigned char *)(slot + 1);
    j->limit = (unsigned char *)slot + SPOOL_SLOT_BYTES - EVENT_BYTES_MAX;
    pthread_setspecific(at_exit_of_thread, j);
    return true;
}

/* What journal_enter finds unusual: nothing is recorded here; a handler's call in the middle of another one; a thread's first
 * call in this process. False where the call is not to be recorded. */
bool journal_admit(struct journal *j)
{
    if (!journal_recording)
        return false;
    if (j->busy) {
        if (head != NULL)
            atomic_fetch_add(&head->unseen, 1);
        return false;
    }
    j->busy = true;
    thread_register(j);
    return true;
}

/* A thread without events leaves no trace: what it starts was started by its own parent, then. */
bool journal_birth(struct birth *birth)
{
    struct journal *j = journal_enter();
    if (j == NULL)
        return false;
    birth->thread = number_take();
    birth->by = j->events > 0 ? j->thread : j->born_by;
    birth->at = j->events > 0 ? j->events : j->born_at;
    journal_leave(j);
    return true;
}

void journal_born(const struct birth *birth)
{
    struct journal *j = &journal_self;
    j->thread = birth->thread;
    j->born_by = birth->by;
    j->born_at = birth->at;
    j->era = journal_era;
}

void journal_named(uint32_t thread, uintptr_t name)
{
    name_of[thread] = name;
}

/* The newest of that name: older ones were detached, and have ended. */
uint32_t journal_take_name(uintptr_t name)
{
    uint32_t threads = head != NULL ? atomic_load(&head->threads) : 0;
    for (uint32_t t = threads < THREADS_MAX ? threads : THREADS_MAX; t-- > 0;)
        if (name_of[t] == name) {
            name_of[t] = 0;
            return t;
        }
    return UINT32_MAX;
}
