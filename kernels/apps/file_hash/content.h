/*
 * content.h - a file of drawn bytes that nobody else sees, and hashes of those bytes.
 */
#ifndef AK_FILE_HASH_CONTENT_H
#define AK_FILE_HASH_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32

/* Both hashes of some bytes. */
struct hashes {
    uint64_t xxh3;
    unsigned char sha256[SHA256_BYTES];
};

/* Hashes of bytes that come part by part. NULL: no memory, of malloc or of the libraries'. */
struct hashing;
struct hashing *hashing_begin(void);
bool hashing_add(struct hashing *, const void *bytes, size_t length);
bool hashing_end(struct hashing *, struct hashes *); /* frees it; with NULL it is given up */

/* A file of `bytes` drawn from `seed` in `folder`, written to the disk whole and already deleted: it is gone when its
 * descriptor is closed, whatever ends the process. *expected is what its bytes hash to, taken as they were drawn. -1 with
 * errno and *what was tried. */
int content_file(const char *folder, uint64_t bytes, uint64_t seed, struct hashes *expected, const char **what);

#endif
