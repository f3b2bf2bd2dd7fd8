/* marks.c - where the code of an allocator that is linked into a static program begins and ends.
 * join.ld puts one before and one after it; kernels/harness/linked.h says what for. */
void ak_linked_begin(void) __attribute__((section(".ak_begin"), used));
void ak_linked_end(void) __attribute__((section(".ak_end"), used));

void ak_linked_begin(void)
{
}

void ak_linked_end(void)
{
}
