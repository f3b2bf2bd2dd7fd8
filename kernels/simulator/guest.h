/*
 * guest.h - memory of the program, by addresses that it handed over and that may lead nowhere: what natively ends in
 * EFAULT must not end the simulator. (Addresses of the program are addresses here: QEMU user mode maps x86-64 onto itself.)
 */
#ifndef AK_SIM_GUEST_H
#define AK_SIM_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False where not all of it is there, or may be written. */
bool guest_read(uint64_t address, void *to, size_t bytes);
bool guest_write(uint64_t address, const void *from, size_t bytes);

/* Whether it may be written; it stays as it is. */
bool guest_can_write(uint64_t address, size_t bytes);

#endif
