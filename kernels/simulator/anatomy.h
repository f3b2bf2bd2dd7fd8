/*
 * anatomy.h - what one call executes: its instructions one by one, with what each did to memory.
 *
 * A program marks a call that it is about to make (SIM_WATCH in protocol.h). All that its thread executes from the first
 * instruction of what it calls to the return is a path. Calls that executed the same instructions in the same order took
 * the same path, and the path that most calls took is the fast one: the answer is about it, and says how many calls that
 * were. Only the thread that came first to its timed region is watched, and only there.
 *
 * An instruction counts as a load if it read memory, as a store if it wrote, as both if it did both; as an atomic one
 * instead if it was locked. A repeated string instruction counts once a repetition.
 *
 * Costs a call of ours an instruction, so it is only done where the plugin was started with the word watch=FILE.
 */
#ifndef AK_SIM_ANATOMY_H
#define AK_SIM_ANATOMY_H

#include "protocol.h"

/* From here on, calls are watched. The fast path of each call that the program asks for is written to `file`. False
 * where that cannot be made. */
bool anatomy_open(const char *file);
bool anatomy_watches(void);

/* An instruction that has been translated: what the two functions below are told it by. */
struct anatomy_code;
struct anatomy_code *anatomy_code(uint64_t address, const uint8_t *bytes, size_t size);
bool anatomy_is_atomic(const struct anatomy_code *code);

/* A thread is about to execute an instruction; one has made an access. */
void anatomy_execute(unsigned thread, const struct anatomy_code *code);
void anatomy_access(unsigned thread, const struct anatomy_code *code, enum model_kind kind, uint64_t address,
                    unsigned size);

/* A thread's timed region starts or stops. */
void anatomy_region(unsigned thread, bool start);

/* All of `path` but its call is filled in. A line of the file is an instruction:
 *   CALL STEP ADDRESS BYTES WHAT OFFSET OBJECT
 * CALL malloc or free; ADDRESS, BYTES and OFFSET (in the file OBJECT) hexadecimal; WHAT letters, `l` load, `s` store,
 * `a` atomic, `t` thread-local, `b` branch, or a dash. Code of no file has OFFSET 0 and OBJECT `-`. */
void anatomy_answer(struct sim_path *path);

#endif
