/* rules.c - no misuse: one case for every way to end, named by the outcome that the driver must find. */
#include <fcntl.h>
#include <sys/mman.h>

#include "driver/misuse.h"

static void say(void)
{
    static const char text[] = "stopped\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(END_BROKEN);
}

static enum end plain(const struct misuse *m)
{
    return (enum end)m->at;
}

static enum end said(const struct misuse *m)
{
    say();
    return (enum end)m->at;
}

static enum end said_abort(const struct misuse *m)
{
    (void)m;
    say();
    abort();
}

static enum end silent_abort(const struct misuse *m)
{
    (void)m;
    abort();
}

static char *guarded(void)
{
    return mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static enum end own_fault(const struct misuse *m)
{
    (void)m;
    bad_write(guarded() + 64, 1);
    return END_MISSED;
}

/* The fault is beside what was announced: an allocator's, not the program's. */
static enum end other_fault(const struct misuse *m)
{
    char *page = guarded();
    access_begin(page + 64, 8);
    *(volatile char *)(page + m->at) = 1;
    return END_MISSED;
}

static enum end said_fault(const struct misuse *m)
{
    (void)m;
    say();
    *(volatile char *)guarded() = 1;
    return END_MISSED;
}

/* Stopped in the first run, not in the second. */
static enum end at_first(const struct misuse *m)
{
    int file = open(getenv("MISUSE_RULES_FILE"), O_CREAT | O_EXCL | O_WRONLY, 0600);
    return file < 0 ? END_MISSED : said_abort(m);
}

const struct misuse misuses[] = {
    {"missed", plain, 0, END_MISSED, 0, "", "the damage was found"},
    {"missed_said", said, 0, END_MISSED, 0, "", "a line, but the damage was found"},
    {"missed_once", at_first, 0, 0, 0, "", "caught in one run of two"},
    {"harmless", plain, 0, END_HARMLESS, 0, "", "no damage was found"},
    {"caught_went_on", said, 0, END_HARMLESS, 0, "", "a line, and no damage was found"},
    {"caught_prevented", plain, 0, END_PREVENTED, 0, "", "the hazard is absent"},
    {"absent", plain, 0, END_ABSENT, 0, "", "no such call"},
    {"broken", plain, 0, END_BROKEN, 0, "", "could not be set up"},
    {"caught_abort", said_abort, 0, 0, 0, "", "a line, then abort"},
    {"caught_exit", said, 0, 1, 0, "", "a line, then exit"},
    {"caught_fault", own_fault, 0, 0, 0, "", "a fault where the program had no right to write"},
    {"crashed_abort", silent_abort, 0, 0, 0, "", "abort without a line"},
    {"crashed_exit", plain, 0, 1, 0, "", "exit without a line"},
    {"crashed_fault", other_fault, 0, 128, 0, "", "a fault elsewhere"},
    {"crashed_said", said_fault, 0, 0, 0, "", "a fault elsewhere after a line"},
    {0}};
