/* crc32.h - the CRC of Ethernet, zip and PNG: polynomial 0x04c11db7, reflected, as RFC 1952 describes it. */
#ifndef AK_CRC32_H
#define AK_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Of `bytes`, going on from `crc`; a new one starts with 0. */
uint32_t crc32_of(uint32_t crc, const void *bytes, size_t length);

#endif
