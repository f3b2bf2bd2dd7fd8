/*
 * store.h - the items in PostgreSQL: a pool of connections, each with one prepared statement that inserts where the
 * key is not there yet. store_insert may be called by any number of threads; the others by one, before and after.
 */
#ifndef AK_STORE_H
#define AK_STORE_H

#include <stdbool.h>

#define STORE_WHY 256

enum stored { STORE_INSERTED, STORE_EXISTS, STORE_FAILED };

/* Connect to the database whose socket lies in `folder`, and make the table. 0, or -1 with `why`. */
int store_open(const char *folder, unsigned connections, char why[STORE_WHY]);

/* Insert an item, typed JSON, under its key. Waits for a connection that nobody uses. */
enum stored store_insert(const char *key, const char *item);

/* What the database said of the first insert that failed, or "". */
const char *store_complaint(void);
/* True where that was a full disk. */
bool store_disk_full(void);

/* The database's version, as 150018 for 15.18; 0 where it is not connected. */
int store_version(void);

void store_close(void);

#endif
