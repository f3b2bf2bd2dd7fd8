/* provenance.h - which object serves malloc in this process, and what it says of itself. */
#ifndef AK_PROVENANCE_H
#define AK_PROVENANCE_H

#include <stdbool.h>
#include <stdint.h>

struct provenance {
    char path[4096];    /* realpath of the object that malloc resolved to */
    char build_id[65];  /* ELF build-id, hexadecimal; "" where the object has none */
    char version[128];  /* by --version-call; "" where not asked or not answered */
    char trouble[4400]; /* why this is not the allocator that was expected; "" if it is */
};

/* Resolve malloc, free, calloc, realloc, aligned_alloc and malloc_usable_size as the kernel's calls do, into `served`,
 * with tlfl_lock_times where the library has it, and fill the facts. `expect` is "" (anything goes), "libc" or a path;
 * `version_call` as in docs/kernel-interface.md. Trouble is set where the expected object does not serve the first four; the last two are NULL where another does. */
void provenance_find(struct provenance *p, const char *expect, const char *version_call);

/* Bytes that the serving allocator spends on its own books, as it says itself, or -1 where it cannot be asked. `how` is
 * "" or as --metadata-call in docs/kernel-interface.md. Threads must be parked. */
int64_t provenance_metadata(const struct provenance *p, const char *how);

#endif
