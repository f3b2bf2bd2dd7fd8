/* emit.h - the result of a launch, as JSON or for a person. */
#ifndef AK_EMIT_H
#define AK_EMIT_H

#include "provenance.h"

/* Who and where, known before a launch ran. */
struct identity {
    struct provenance provenance;
    char machine_id[17];
    unsigned long env_bytes;
    double load;
};

void identity_find(struct identity *id, const char *expect, const char *version_call);

/* Print the result on stdout. `status` is ok, verify_failed, oom, crash, skipped or wrong_allocator; anything but ok carries no
 * measured number. */
void emit_json(const struct identity *id, const char *status, const char *detail);
void emit_text(const struct identity *id, const char *status, const char *detail);
void emit_probe(const struct identity *id, bool json);

#endif
