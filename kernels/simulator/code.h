/*
 * code.h - what an x86-64 instruction is, told by its bytes.
 *
 * Only as much as the simulator asks, and only of bytes that are an instruction: nothing is decoded to its end.
 */
#ifndef AK_SIM_CODE_H
#define AK_SIM_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Has a lock prefix, or is an exchange, which is locked without one where it is with memory. */
bool code_is_atomic(const uint8_t *code, size_t size);
bool code_is_pause(const uint8_t *code, size_t size);
/* A jump, conditional or not, a call or a return. */
bool code_is_branch(const uint8_t *code, size_t size);
bool code_is_call(const uint8_t *code, size_t size);
/* Names fs, by which x86-64 reaches thread-local storage. */
bool code_is_thread_local(const uint8_t *code, size_t size);
/* The call that it marks (enum sim_watched), or 0: it is no mark of protocol.h. */
unsigned code_mark(const uint8_t *code, size_t size);
/* The mark around a timed call that it is (SIM_BEGINS and those after it), or 0. */
unsigned code_time_mark(const uint8_t *code, size_t size);

#endif
