/* os.h - everything that is asked of the operating system.
 *
 * os.c is the only file that makes system calls. They go through syscall(2) and not through mmap()
 * and its like: a program or another preloaded library may interpose those and allocate in the
 * wrapper. No function here changes errno.
 */
#ifndef TLFL_OS_H
#define TLFL_OS_H

#include "base.h"

/* Page size in bytes; a power of two. */
size_t tlfl__os_page(void);

/* Maps `bytes` (a multiple of the page size) of private zeroed memory; NULL when refused. */
void *tlfl__os_map(size_t bytes);

/* As tlfl__os_map, with the start aligned to `align`, a power of two of at least a page. Maps
 * align - page more for a moment. NULL when refused or when the sum overflows. */
void *tlfl__os_map_aligned(size_t bytes, size_t align);

/* Unmaps. When the kernel refuses (splitting a mapping can exceed vm.max_map_count) the pages are
 * purged instead, so that at least the memory goes back. */
void tlfl__os_unmap(void *start, size_t bytes);

/* Resizes a mapping of its own, moving it where it has to; NULL when refused, the old mapping then
 * is as before. */
void *tlfl__os_remap(void *start, size_t old_bytes, size_t new_bytes);

/* Gives the pages back; they read as zero afterwards. False when the kernel refused, the contents
 * then are as before. */
bool tlfl__os_purge(void *start, size_t bytes);

/* Makes whole pages accessible, or a guard that faults. False when the kernel refused, a part then may be as wanted. */
bool tlfl__os_protect(void *start, size_t bytes, bool open);

/* Random bytes from the kernel, without waiting for it to have enough of them. */
void tlfl__os_random(void *to, size_t bytes);

/* Number of CPUs that this process may run on, when it was first asked for; at least 1. */
unsigned tlfl__os_cpus(void);

/* Number of NUMA nodes that this process may have memory of: 1 where the kernel does not tell. */
unsigned tlfl__os_nodes(void);

/* Node of the CPU this thread is on, modulo NODES; 0 where there is one. */
unsigned tlfl__os_node(void);

/* Variant `remote`: has fresh memory that a thread on `node` is to use placed on another node. */
void tlfl__os_home(void *start, size_t bytes, unsigned node);

/* Milliseconds of the coarse monotonic clock: no system call, steps of a few milliseconds. */
uint64_t tlfl__os_ms(void);

/* Number of this process and of this thread, asked anew each time: memory that was copied to a child, or is shared with
 * one, does not tell who runs. */
uint32_t tlfl__os_process(void);
uint32_t tlfl__os_thread(void);

/* Whether a thread of this process has ended, whatever it said on the way; false where the kernel does not tell. */
bool tlfl__os_thread_gone(uint32_t process, uint32_t thread);

/* Sleeps while *word == value (may wake early); wakes one sleeper. */
void tlfl__os_wait(_Atomic uint32_t *word, uint32_t value);
void tlfl__os_wake(_Atomic uint32_t *word);

/* Writes to standard error; a short or failed write is not retried. */
void tlfl__os_say(const char *text, size_t length);

#endif
