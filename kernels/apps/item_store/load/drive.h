/*
 * drive.h - a closed loop over HTTP: each connection has one request under way, and sends its next when the answer is
 * there and was checked. One thread.
 */
#ifndef AK_LOAD_DRIVE_H
#define AK_LOAD_DRIVE_H

#include "../items.h"
#include "../load.h"

/* Connect so many times to the server's socket. 0, or 1 with a line on stderr. */
int drive_open(const char *path, unsigned connections, enum item_form form, uint64_t seed);

/* Do an order, on all connections, and say what it came to. */
struct load_report drive_order(const struct load_order *);

#endif
