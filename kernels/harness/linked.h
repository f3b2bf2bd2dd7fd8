/*
 * linked.h - a static program's own names, where there is no loader to ask.
 *
 * A program that is linked statically holds its allocator: nothing can be preloaded into it, and dlsym and dladdr tell
 * nothing. What serves malloc there is proved by where its code lies: experiments/musl/join.sh joins the objects of an
 * allocator's archive into one, whose code stands between two functions, ak_linked_begin and ak_linked_end. The names come
 * from the program's own table of symbols, read from its file without allocating; a stripped program proves nothing.
 */
#ifndef AK_LINKED_H
#define AK_LINKED_H

#include <stdbool.h>

/* True in a program that has no loader. */
bool linked_statically(void);
/* The function or object of that name in this static program, or NULL. */
void *linked_symbol(const char *name);
/* True if the address is in the code of the allocator's archive; false everywhere in a program without one. */
bool linked_holds(const void *address);

#endif
