/* tap.h - what the conformance tests share.
 *
 * The tests run under whatever allocator is preloaded, so nothing here allocates. Results are TAP
 * on stdout, the plan at the end. A test that hangs is killed by the alarm that tap_start sets.
 */
#ifndef TAP_H
#define TAP_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAP_UNUSED __attribute__((unused))

static int tap_count, tap_failed;

static TAP_UNUSED void tap_say(const char *text)
{
    size_t length = strlen(text);
    if (write(STDOUT_FILENO, text, length) != (ssize_t)length)
        _exit(1);
}

/* Whether the long forms of the tests are wanted: CONFORMANCE_LONG in the environment. */
static TAP_UNUSED bool tap_long(void)
{
    return getenv("CONFORMANCE_LONG") != NULL;
}

static TAP_UNUSED void tap_start(unsigned seconds)
{
    alarm(tap_long() ? seconds * 20 : seconds);
}

/* Whether the allocator that serves this process exports `name`. */
static TAP_UNUSED bool allocator_has(const char *name)
{
    Dl_info malloc_in, name_in;
    void *found = dlsym(RTLD_DEFAULT, name);
    return found != NULL && dladdr(dlsym(RTLD_DEFAULT, "malloc"), &malloc_in) != 0 &&
           dladdr(found, &name_in) != 0 && malloc_in.dli_fbase == name_in.dli_fbase;
}

static TAP_UNUSED bool allocator_is_tlfl(void)
{
    return allocator_has("tlfl_version");
}

/* Whether tlfl-hardened serves, which needs more memory: heads, canaries, guard pages, and what its quarantine holds. */
static TAP_UNUSED bool allocator_is_hardened(void)
{
    const char *(*version)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "tlfl_version");
    return version != NULL && strstr(version(), "-hardened") != NULL;
}

/* Lets go of what the quarantine of tlfl-hardened holds, so that what was freed can be handed out again. */
static TAP_UNUSED void quarantine_empty(void)
{
    int (*trim)(size_t) = (int (*)(size_t))dlsym(RTLD_DEFAULT, "malloc_trim");
    if (allocator_is_hardened() && trim != NULL)
        trim(0);
}

/* Whether another allocator than the C library's and tlfl serves: where it differs, that is not our failure. */
static TAP_UNUSED bool allocator_is_rival(void)
{
    return !allocator_is_tlfl() && !allocator_has("fputs");
}

static TAP_UNUSED void tap_skip(const char *name, const char *reason)
{
    char line[512];
    snprintf(line, sizeof line, "ok %d - %s # SKIP %s\n", ++tap_count, name, reason);
    tap_say(line);
}

/* A result. What is not good under a rival is a skip. */
__attribute__((format(printf, 2, 3))) static TAP_UNUSED bool tap_ok(bool good, const char *name, ...)
{
    char line[512], text[400];
    va_list list;
    va_start(list, name);
    vsnprintf(text, sizeof text, name, list);
    va_end(list);
    if (!good && allocator_is_rival()) {
        tap_skip(text, "this allocator differs");
        return false;
    }
    snprintf(line, sizeof line, "%s %d - %s\n", good ? "ok" : "not ok", ++tap_count, text);
    tap_say(line);
    tap_failed += !good;
    return good;
}

/* What tlfl promises and others may keep as well: where they do not, that is no failure. */
__attribute__((format(printf, 2, 3))) static TAP_UNUSED bool tap_promise(bool good, const char *name, ...)
{
    char text[400];
    va_list list;
    va_start(list, name);
    vsnprintf(text, sizeof text, name, list);
    va_end(list);
    if (good || allocator_is_tlfl())
        return tap_ok(good, "%s", text);
    tap_skip(text, "a promise of tlfl");
    return true;
}

/* The tests of promises that only tlfl makes: true where they apply, else says so as a skip. */
static TAP_UNUSED bool tap_tlfl(const char *name)
{
    if (allocator_is_tlfl())
        return true;
    tap_skip(name, "a promise of tlfl");
    return false;
}

/* A line for the reader of the log: a figure that no assertion holds. */
__attribute__((format(printf, 1, 2))) static TAP_UNUSED void tap_note(const char *format, ...)
{
    char line[512] = "# ";
    va_list list;
    va_start(list, format);
    vsnprintf(line + 2, sizeof line - 3, format, list);
    va_end(list);
    strcat(line, "\n");
    tap_say(line);
}

/* Prints the plan; the exit status of main. */
static TAP_UNUSED int tap_done(void)
{
    char line[32];
    snprintf(line, sizeof line, "1..%d\n", tap_count);
    tap_say(line);
    return tap_failed != 0;
}

/* A figure of tlfl's own books, (size_t)-1 under another allocator. */
static TAP_UNUSED size_t tlfl_books(const char *name)
{
    size_t (*stat)(const char *) = (size_t(*)(const char *))dlsym(RTLD_DEFAULT, "tlfl_stat");
    return stat != NULL ? stat(name) : SIZE_MAX;
}

/* Lines of /proc/self/maps; 0 when it cannot be read. */
static TAP_UNUSED size_t mapping_count(void)
{
    static char text[1 << 16];
    size_t lines = 0;
    ssize_t got;
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (file >= 0 && (got = read(file, text, sizeof text)) > 0)
        for (ssize_t i = 0; i < got; i++)
            lines += text[i] == '\n';
    if (file >= 0)
        close(file);
    return lines;
}

/* A figure of /proc/self/statm in bytes: 0 is the address space, 1 what is resident. */
static TAP_UNUSED size_t memory_now(int field)
{
    char text[256];
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    if (got <= 0)
        return 0;
    text[got] = '\0';
    char *at = text;
    size_t pages = strtoul(at, &at, 10);
    while (field-- > 0)
        pages = strtoul(at, &at, 10);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static TAP_UNUSED size_t resident_now(void)
{
    return memory_now(1);
}

/* A generator of its own: rand() takes a lock and may differ between machines. */
static TAP_UNUSED uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

/* 1 to 2^bits bytes, every order of magnitude alike. */
static TAP_UNUSED size_t random_size(uint64_t *state, unsigned bits)
{
    size_t top = (size_t)1 << (random_next(state) % bits);
    return top + random_next(state) % top;
}

/* Fills a block, or checks that it is as filled, by a tag: every byte of short ones, the ends and
 * a sample of long ones. */
static TAP_UNUSED size_t content_step(size_t size)
{
    return size <= 4096 ? 1 : 509;
}

static TAP_UNUSED void content_fill(void *block, size_t size, unsigned tag)
{
    unsigned char *bytes = (unsigned char *)block;
    for (size_t i = 0; i < size; i += content_step(size))
        bytes[i] = (unsigned char)(tag + i * 7);
    if (size != 0)
        bytes[size - 1] = (unsigned char)(tag ^ 0x5a);
}

/* Checks the first `keep` of a block that was filled with `size` bytes. */
static TAP_UNUSED bool content_good(const void *block, size_t size, size_t keep, unsigned tag)
{
    const unsigned char *bytes = (const unsigned char *)block;
    for (size_t i = 0; i < keep; i += content_step(size))
        if (i != size - 1 && bytes[i] != (unsigned char)(tag + i * 7))
            return false;
    return keep < size || size == 0 || bytes[size - 1] == (unsigned char)(tag ^ 0x5a);
}

static TAP_UNUSED bool all_zero(const void *block, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)block;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static TAP_UNUSED bool aligned_to(const void *block, size_t align)
{
    return ((uintptr_t)block & (align - 1)) == 0;
}

/* Waits for a child; true when it exited with 0. */
static TAP_UNUSED bool child_good(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#endif
