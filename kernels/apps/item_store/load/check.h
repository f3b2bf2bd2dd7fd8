/* check.h - the rows in PostgreSQL, each beside the item that was sent. */
#ifndef AK_LOAD_CHECK_H
#define AK_LOAD_CHECK_H

#include <stdint.h>

/* Are items 0 to `items` and those of a warm-up of `warm`, each equal in every attribute, all that there is? Prints
 * their number. 0, 1 with a line on stderr, or 3 where the database does not answer. */
int check_rows(const char *folder, uint64_t seed, uint64_t items, uint64_t warm);

#endif
