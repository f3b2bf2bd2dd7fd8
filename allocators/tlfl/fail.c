/* fail.c - see fail.h. */
#include "fail.h"

#include <stdlib.h>

#include "os.h"

#define FAIL_LINE 160

static size_t fail_text(char *line, size_t at, const char *text)
{
    while (*text != '\0' && at < FAIL_LINE - 1)
        line[at++] = *text++;
    return at;
}

static size_t fail_hex(char *line, size_t at, uintptr_t value)
{
    int shift = (int)sizeof value * 8 - 4;
    while (shift > 0 && (value >> shift) == 0)
        shift -= 4;
    for (; shift >= 0 && at < FAIL_LINE - 1; shift -= 4)
        line[at++] = "0123456789abcdef"[(value >> shift) & 15];
    return at;
}

TLFL_COLD _Noreturn void tlfl__fail(const char *call, const void *address, const char *why)
{
    char line[FAIL_LINE];
    size_t at = fail_text(line, 0, "tlfl: ");
    at = fail_text(line, at, call);
    at = fail_text(line, at, "(0x");
    at = fail_hex(line, at, (uintptr_t)address);
    at = fail_text(line, at, "): ");
    at = fail_text(line, at, why);
    line[at++] = '\n'; /* one write, so that lines of several threads do not mix */
    tlfl__os_say(line, at);
    abort();
}
