/*
 * subject.h - the process under test, where it is another one than the kernel's: a server that the kernel started.
 *
 * Which object serves it, it tells itself: a witness (experiments/witness) is preloaded beside the allocator, and
 * writes a line as the program begins. A process without such a line, or with another object in it, is not measured.
 */
#ifndef AK_SUBJECT_H
#define AK_SUBJECT_H

#include <stdbool.h>
#include <sys/types.h>

#include "accounting.h"
#include "provenance.h"

/* What serves this process has to serve those under test too. Before any other call. */
void subject_expect(const struct provenance *);
/* What the last process that ak_subject was told of says of its allocator; NULL before. */
const struct provenance *subject_provenance(void);

/* The processes under test; none before ak_subject. */
const pid_t *subject_pids(unsigned *count);
/* Their accounts, added up. `known` is false where one is gone. Its switches are of the threads that it has now. The clock is
 * exact; user and system time are in the OS's ticks, until subject_parts has divided what is between two accounts. */
struct thread_account subject_account(bool *known);
void subject_parts(struct thread_account *used);

#endif
