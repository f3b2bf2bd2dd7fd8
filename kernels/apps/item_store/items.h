/*
 * items.h - the items that the load sends: each is made from the seed and its number alone, so that whoever reads
 * them back can make them again. About 520 bytes of typed JSON: a key, numbers, strings with quotes and letters
 * outside ASCII, a list and a map. No allocation.
 */
#ifndef AK_ITEMS_H
#define AK_ITEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ITEM_TABLE    "items"
#define ITEM_KEY      "pk"
#define ITEM_KEY_MAX  40           /* bytes of a key, with its terminator */
#define ITEM_BODY_MAX 8192         /* bytes of a request's body, with its terminator */
#define ITEM_WARM     (1ull << 48) /* numbers from here on are of the warm-up */

enum item_form {
    ITEM_PUT,    /* PutItem, on the condition that there is no such key */
    ITEM_INSERT, /* ExecuteStatement with a PartiQL INSERT */
};

/* The key of item n: digits drawn by the seed, so that neighbours lie far apart in the index, then those of n. */
void item_key(char key[ITEM_KEY_MAX], uint64_t seed, uint64_t n);

/* The number in a key. False where no item of this seed has that key. */
bool item_number(const char *key, uint64_t seed, uint64_t *n);

/* Item n as typed JSON, {"pk":{"S":"..."},...}: its length. */
size_t item_json(char text[ITEM_BODY_MAX], uint64_t seed, uint64_t n);

/* The body of the request that inserts item n: its length. */
size_t item_body(char text[ITEM_BODY_MAX], enum item_form form, uint64_t seed, uint64_t n);

#endif
