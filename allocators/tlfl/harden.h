/* harden.h - the variant `hardened`: a layer above the plain library that catches more misuse, for more time and memory.
 *
 * With -DTLFL_HARDENED the family of api.c has other names (api.h), and harden.c exports malloc and its like. It asks the
 * family below for more than it was asked for, and keeps what it needs for its checks around the user's bytes. The
 * sources below are the same, with all their checks; without the macro harden.c is empty.
 *
 * A small block (up to HARDEN_SMALL_MAX) within a block of the family below:
 *
 *     start          pointer - 16    pointer           pointer + size        end
 *       | gap, often empty | head    | the user's bytes     | tail, 8 bytes at least |
 *
 *   gap, tail  hold the pattern: a random word of this process without a zero byte or a letter in it, so that
 *              neither the end of a text nor a text matches it. Checked by free, realloc and malloc_usable_size. Which part
 *              of the spare room is the gap is random
 *   head       the size asked for, the alignment, the length of the gap; and a seal: a hash of these, the address, the
 *              state (live or freed) and random keys. What a free is given must carry the seal of a live block, so
 *              no pointer but one from malloc is taken; a write before the block breaks it. A free swaps the seal
 *              for the freed one: of two frees at the same time one sees that
 *
 * malloc zeroes the user's bytes, free covers them with the pattern: nothing old is ever seen.
 *
 *   stock       malloc takes one of up to 32 blocks of its class at random and puts a fresh one in its place: blocks that
 *               follow each other in time do not in space. 16 stocks, a thread keeps to one: threads share no lines
 *   quarantine  a freed block first takes the place of a random one of its class, and that one waits in a queue until as
 *               many others as the queue is long came after it. When it leaves, all of it must be as free left it,
 *               or a write after free is reported. Each half has up to 256 blocks or HARDEN_HELD_BYTES, two
 *               at least: at most about 3 MiB a process, if it frees blocks of every class
 *
 * A large block is a run of pages of a block of the family below, which is aligned to a granule:
 *
 *     base       base + front                                                        record (the last page)
 *       | guard: 1 to 8 pages | filler, the user's bytes, filler | guard: 1 page or more | struct harden_large |
 *
 *   guards  PROT_NONE: any access faults. The user's bytes end where the guard begins, but for their alignment, and the
 *           filler holds the pattern. What is aligned to more than a page starts right behind the guard in front, and
 *           above HARDEN_ALIGN_MAX it has none. Not more than HARDEN_GUARDED_MAX blocks have guards, since each takes
 *           two or three mappings out of the 65,530 that Linux allows
 *   free    gives the pages back and makes all of them a guard until HARDEN_FAR_KEEP large blocks were freed, or
 *           HARDEN_FAR_BYTES: a use after free faults
 *
 * Sizes that free_sized, free_aligned_sized and operator delete(void *, size_t) are told are compared.
 * malloc_usable_size is the size asked for (1 for 0), all of it may be written. malloc_trim gives back stocks and quarantines
 * too, and so does a refusal of memory.
 *
 * There is no lock: stocks and quarantines are arrays of which a slot changes by one exchange. What another thread has in
 * its hands while a thread forks is lost to the child, all else is whole.
 *
 * Not caught: reads past a small block (they show the pattern, then a neighbour); a write over a neighbour that skips all
 * that lies between; a use after free of a block that has left the quarantine.
 */
#ifndef TLFL_HARDEN_H
#define TLFL_HARDEN_H

#include "class.h"

#define HARDEN_SMALL_MAX   ((size_t)32 << 10)
#define HARDEN_ALIGN_MAX   (GRANULE_SIZE / 2) /* of blocks that lie behind a guard */
#define HARDEN_CANARY      8                  /* bytes of the tail, at least */
#define HARDEN_STOCKS      16
#define HARDEN_STOCK       32 /* blocks of a class, at most */
#define HARDEN_STOCK_BYTES ((size_t)16 << 10)
#define HARDEN_STOCK_MIN   4
#define HARDEN_HELD        256 /* blocks of a class in each half of the quarantine, at most */
#define HARDEN_HELD_BYTES  ((size_t)32 << 10)
#define HARDEN_HELD_MIN    2
#define HARDEN_GUARDED_MAX 8192
#define HARDEN_FRONT_PAGES 8
#define HARDEN_FAR_KEEP    64
#define HARDEN_FAR_BYTES   ((size_t)64 << 20)

_Static_assert(HARDEN_SMALL_MAX < CLASS_MAX, "a small block with its head and tail is of a class");
_Static_assert(HARDEN_STOCK_MIN <= HARDEN_STOCK && HARDEN_HELD_MIN <= HARDEN_HELD,
               "the arrays hold the least");

#endif
