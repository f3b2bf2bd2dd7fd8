/* blocks.h - what the harness itself checks of live blocks; what kernels may ask is in kernel.h. */
#ifndef AK_BLOCKS_H
#define AK_BLOCKS_H

/* The live blocks of all threads are aligned, as large as asked for by the allocator's own word, and do not overlap.
 * 0, or 1 after ak_fail. All threads parked; costs n log n and 16 bytes a slot. */
int blocks_check(void);

#endif
