#include <pthread.h>

#include "crc32.h"

#define REFLECTED 0xedb88320u

static uint32_t table[256];

static void table_make(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ REFLECTED : value >> 1;
        table[i] = value;
    }
}

uint32_t crc32_of(uint32_t crc, const void *bytes, size_t length)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const unsigned char *at = bytes;

    pthread_once(&once, table_make);
    crc = ~crc;
    for (size_t i = 0; i < length; i++)
        crc = table[(crc ^ at[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}
