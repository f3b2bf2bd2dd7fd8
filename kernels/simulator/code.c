/* code.c - see code.h. */
#include "code.h"

#include <string.h>

#include "protocol.h"

#define PREFIX_FS   0x64
#define PREFIX_LOCK 0xf0

static bool is_prefix(uint8_t byte)
{
    return byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e || byte == 0x3e ||
           byte == PREFIX_FS || byte == 0x65 || byte == 0x26 || byte == 0x36 || byte == PREFIX_LOCK;
}

static bool has_prefix(const uint8_t *code, size_t size, uint8_t wanted)
{
    for (size_t i = 0; i < size && is_prefix(code[i]); i++)
        if (code[i] == wanted)
            return true;
    return false;
}

/* Where the opcode is: after the prefixes and REX; `size` where there is none. */
static size_t opcode_at(const uint8_t *code, size_t size)
{
    size_t i = 0;
    while (i < size && is_prefix(code[i]))
        i++;
    return i < size && (code[i] & 0xf0) == 0x40 ? i + 1 : i;
}

bool code_is_atomic(const uint8_t *code, size_t size)
{
    size_t at = opcode_at(code, size);
    return has_prefix(code, size, PREFIX_LOCK) || (at < size && (code[at] == 0x86 || code[at] == 0x87));
}

bool code_is_pause(const uint8_t *code, size_t size)
{
    return size == 2 && code[0] == 0xf3 && code[1] == 0x90;
}

/* The operation of an opcode that has several, as the next byte tells. */
static unsigned extension(const uint8_t *code, size_t at, size_t size)
{
    return at + 1 < size ? code[at + 1] >> 3 & 7 : 0;
}

bool code_is_call(const uint8_t *code, size_t size)
{
    size_t at = opcode_at(code, size);
    if (at >= size)
        return false;
    return code[at] == 0xe8 ||
           (code[at] == 0xff && (extension(code, at, size) == 2 || extension(code, at, size) == 3));
}

bool code_is_branch(const uint8_t *code, size_t size)
{
    size_t at = opcode_at(code, size);
    if (at >= size)
        return false;
    uint8_t op = code[at];
    if (op == 0x0f)
        return at + 1 < size && (code[at + 1] & 0xf0) == 0x80;
    if (op == 0xff)
        return extension(code, at, size) >= 2 && extension(code, at, size) <= 5;
    return (op & 0xf0) == 0x70 || (op >= 0xe0 && op <= 0xe3) || op == 0xe8 || op == 0xe9 || op == 0xeb ||
           op == 0xc2 || op == 0xc3;
}

bool code_is_thread_local(const uint8_t *code, size_t size)
{
    return has_prefix(code, size, PREFIX_FS);
}
/* The number of a mark, or 0. */
static uint32_t mark_number(const uint8_t *code, size_t size)
{
    static const uint8_t nop[] = {0x0f, 0x1f, 0x84, 0x00}; /* nopl NUMBER(%rax,%rax,1) */
    uint32_t number;
    if (size != sizeof nop + sizeof number || memcmp(code, nop, sizeof nop) != 0)
        return 0;
    memcpy(&number, code + sizeof nop, sizeof number);
    return number - SIM_MARK_BASE < SIM_TIME_MARKS_END ? number - SIM_MARK_BASE : 0;
}

unsigned code_mark(const uint8_t *code, size_t size)
{
    uint32_t number = mark_number(code, size);
    return number <= SIM_WATCHED_MAX ? number : 0;
}

unsigned code_time_mark(const uint8_t *code, size_t size)
{
    uint32_t number = mark_number(code, size);
    return number >= SIM_BEGINS ? number : 0;
}
