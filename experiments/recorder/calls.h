/* calls.h - malloc's family: ours, which record, and the next object's, which serve. */
#ifndef AK_CALLS_H
#define AK_CALLS_H

#include <stddef.h>

/* Look the next object's functions up. Again and again is harmless. */
void calls_find(void);
/* Address of the malloc that serves. */
const void *calls_served(void);
/* Memory of the recorder's own: unrecorded. */
void *calls_own(size_t size);
void  calls_own_free(void *);

void *malloc(size_t);

#endif
