/* What an instruction is by its bytes, and what a call executes: paths, lines and counts of calls made up here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../kernels/simulator/anatomy.h"
#include "../../kernels/simulator/code.h"

/* ---- instructions ---- */

static void bytes_tell(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        uint8_t code[15];
        const char *is; /* a atomic, b branch, c call, t thread-local, p pause */
    } cases[] = {
        {"mov %fs:(%rcx),%rdi", 4, {0x64, 0x48, 0x8b, 0x39}, "t"},
        {"mov %rdi,%rsi", 3, {0x48, 0x89, 0xfe}, ""},
        {"ret", 1, {0xc3}, "b"},
        {"bnd ret", 2, {0xf2, 0xc3}, "b"},
        {"call rel32", 5, {0xe8, 1, 2, 3, 4}, "bc"},
        {"call *%rax", 2, {0xff, 0xd0}, "bc"},
        {"call *8(%r15)", 4, {0x41, 0xff, 0x57, 0x08}, "bc"},
        {"jmp *GOT(%rip)", 6, {0xff, 0x25, 1, 2, 3, 4}, "b"},
        {"notrack jmp *%rdx", 3, {0x3e, 0xff, 0xe2}, "b"},
        {"push 8(%rax)", 3, {0xff, 0x70, 0x08}, ""},
        {"incl (%rax)", 2, {0xff, 0x00}, ""},
        {"je rel8", 2, {0x74, 0x10}, "b"},
        {"jae rel32", 6, {0x0f, 0x83, 1, 2, 3, 4}, "b"},
        {"sete %al", 3, {0x0f, 0x94, 0xc0}, ""},
        {"loop", 2, {0xe2, 0xfe}, "b"},
        {"jmp rel8", 2, {0xeb, 0x00}, "b"},
        {"lock incl (%rax)", 3, {0xf0, 0xff, 0x00}, "a"},
        {"lock cmpxchg %rdx,(%rdi)", 5, {0xf0, 0x48, 0x0f, 0xb1, 0x17}, "a"},
        {"cmpxchg %rdx,(%rdi)", 4, {0x48, 0x0f, 0xb1, 0x17}, ""},
        {"xchg %eax,(%rdi)", 2, {0x87, 0x07}, "a"},
        {"xchg %r8,(%rdi)", 3, {0x4c, 0x87, 0x07}, "a"},
        {"lock cmpxchg %rdx,%fs:(%rdi)", 6, {0x64, 0xf0, 0x48, 0x0f, 0xb1, 0x17}, "at"},
        {"pause", 2, {0xf3, 0x90}, "p"},
        {"nop", 1, {0x90}, ""},
        {"a prefix alone", 1, {0x64}, "t"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char is[8];
        const uint8_t *code = cases[i].code;
        size_t size = cases[i].size;
        snprintf(is, sizeof is, "%s%s%s%s%s", code_is_atomic(code, size) ? "a" : "",
                 code_is_branch(code, size) ? "b" : "", code_is_call(code, size) ? "c" : "",
                 code_is_thread_local(code, size) ? "t" : "", code_is_pause(code, size) ? "p" : "");
        if (strcmp(is, cases[i].is) != 0)
            fail_msg("%s is '%s', expected '%s'", cases[i].text, is, cases[i].is);
    }
}

/* A mark as the compiler makes it is found in its own bytes. */
static void marks_are_seen(void **state)
{
    (void)state;
#if defined __x86_64__
    const uint8_t *malloc_mark, *free_mark;
    __asm__ volatile("lea 1f(%%rip), %0\n\tlea 2f(%%rip), %1\n1:" : "=r"(malloc_mark), "=r"(free_mark));
    SIM_WATCH(SIM_MALLOC);
    __asm__ volatile("2:");
    SIM_WATCH(SIM_FREE);
    assert_int_equal(free_mark - malloc_mark, 8);
    assert_int_equal(code_mark(malloc_mark, 8), SIM_MALLOC);
    assert_int_equal(code_mark(free_mark, 8), SIM_FREE);
    assert_int_equal(code_time_mark(free_mark, 8), 0);
    const uint8_t *begins, *ends;
    __asm__ volatile("lea 1f(%%rip), %0\n\tlea 2f(%%rip), %1\n1:" : "=r"(begins), "=r"(ends));
    SIM_CALL_BEGINS();
    __asm__ volatile("2:");
    SIM_CALL_ENDS(SIM_TIMED_FREE);
    assert_int_equal(code_time_mark(begins, 8), SIM_BEGINS);
    assert_int_equal(code_time_mark(ends, 8), SIM_ENDS + SIM_TIMED_FREE);
    assert_int_equal(code_mark(begins, 8), 0);
#endif
    static const uint8_t other[] = {0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
                         beyond[] = {0x0f, 0x1f, 0x84, 0x00, 0x03, 0x00, 0xa0, 0x51};
    assert_int_equal(code_mark(other, sizeof other), 0);
    assert_int_equal(code_mark(beyond, sizeof beyond), 0);
    assert_int_equal(code_mark(beyond, 5), 0);
    assert_int_equal(code_time_mark(beyond, sizeof beyond), 0);
}

/* ---- calls ---- */

#define CALLER UINT64_C(0x401000)
#define CALLEE UINT64_C(0x7000000010)   /* 16 bytes into a line */
#define STACK  UINT64_C(0x7fff00001000) /* where the return address stands, at the start of a line */
#define HEAP   UINT64_C(0x550000000000)

enum op { NOP, LOAD, STORE, UPDATE, LOCK, TLS, RETURN };

static struct anatomy_code *of(enum op op, uint64_t address)
{
    static const struct {
        size_t size;
        uint8_t code[8];
    } code[] = {
        [NOP] = {1, {0x90}},
        [LOAD] = {3, {0x48, 0x8b, 0x07}},
        [STORE] = {3, {0x48, 0x89, 0x07}},
        [UPDATE] = {3, {0x48, 0xff, 0x07}},
        [LOCK] = {4, {0xf0, 0x48, 0xff, 0x07}},
        [TLS] = {4, {0x64, 0x48, 0x8b, 0x07}},
        [RETURN] = {1, {0xc3}},
    };
    return anatomy_code(address, code[op].code, code[op].size);
}

static void does(unsigned thread, struct anatomy_code *code, enum op op, uint64_t where)
{
    anatomy_execute(thread, code);
    if (op == LOAD || op == TLS || op == UPDATE)
        anatomy_access(thread, code, MODEL_LOAD, where, 8);
    if (op == STORE || op == UPDATE)
        anatomy_access(thread, code, MODEL_STORE, where, 8);
    if (op == LOCK)
        anatomy_access(thread, code, MODEL_ATOMIC, where, 8);
    if (op == RETURN)
        anatomy_access(thread, code, MODEL_LOAD, STACK, 8);
}

/* A mark, the call, and in the callee the `ops` with their addresses, then a return to the caller. */
static void call(unsigned thread, enum sim_watched watched, size_t n, const enum op *ops,
                 const uint64_t *where)
{
    uint8_t mark[] = {0x0f, 0x1f, 0x84, 0x00, (uint8_t)watched, 0x00, 0xa0, 0x51};
    static const uint8_t call_code[] = {0xff, 0xd0};
    anatomy_execute(thread, anatomy_code(CALLER, mark, sizeof mark));
    does(thread, of(NOP, CALLER + 8), NOP, 0); /* an argument is put in place */
    struct anatomy_code *code = anatomy_code(CALLER + 9, call_code, sizeof call_code);
    anatomy_execute(thread, code);
    anatomy_access(thread, code, MODEL_STORE, STACK, 8);
    for (size_t i = 0; i < n; i++)
        does(thread, of(ops[i], CALLEE + 8 * i), ops[i], where[i]);
    does(thread, of(RETURN, CALLEE + 8 * n), RETURN, 0);
    does(thread, of(STORE, CALLER + 11), STORE, HEAP + 4096); /* the caller's again */
}

static char trace[] = "/tmp/anatomy-XXXXXX";

static void paths_are_told_apart(void **state)
{
    (void)state;
    static const enum op fast[] = {TLS, LOAD, UPDATE, STORE, LOCK}, slow[] = {NOP, LOCK};
    static const uint64_t where[] = {HEAP, HEAP + 64, HEAP + 72, STACK - 8, HEAP + 124},
                          nowhere[5] = {HEAP, HEAP};
    anatomy_region(7, true);
    for (int i = 0; i < 5; i++) {
        call(7, SIM_MALLOC, 5, fast, where);
        anatomy_region(8, i % 2 == 0);
        call(8, SIM_MALLOC, 2, slow, nowhere); /* another thread's */
    }
    for (int i = 0; i < 4; i++)
        call(7, SIM_MALLOC, 2, slow, nowhere);
    anatomy_region(7, false);
    call(7, SIM_MALLOC, 2, slow, nowhere); /* outside the region */

    struct sim_path path = {.watched = SIM_MALLOC};
    anatomy_answer(&path);
    assert_int_equal(path.calls, 9);
    assert_int_equal(path.taken, 5);
    assert_int_equal(path.paths, 2);
    assert_int_equal(path.executed, 5 * 6 + 4 * 3);
    assert_int_equal(path.instructions, 6);
    assert_int_equal(path.loads, 4);  /* TLS, load, update, return */
    assert_int_equal(path.stores, 2); /* update, store */
    assert_int_equal(path.atomics, 1);
    assert_int_equal(path.thread_locals, 1);
    assert_int_equal(path.branches, 1);
    assert_int_equal(path.lines, 3); /* the locked one is on two */
    assert_int_equal(path.stack_lines, 2);
    assert_int_equal(path.code_lines, 1);

    FILE *file = fopen(trace, "r");
    char line[512], text[4096] = "";
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        strncat(text, line, sizeof text - strlen(text) - 1);
    fclose(file);
    assert_string_equal(text, "malloc 1 7000000010 64488b07 lt 0 -\n"
                              "malloc 2 7000000018 488b07 l 0 -\n"
                              "malloc 3 7000000020 48ff07 ls 0 -\n"
                              "malloc 4 7000000028 488907 s 0 -\n"
                              "malloc 5 7000000030 f048ff07 a 0 -\n"
                              "malloc 6 7000000038 c3 lb 0 -\n");
}

/* What was never called is not answered, nor what there is not. */
static void nothing_is_said_of_nothing(void **state)
{
    (void)state;
    struct sim_path path = {.watched = SIM_FREE}, none = {.watched = SIM_WATCHED_MAX + 1, .calls = 3};
    anatomy_answer(&path);
    assert_int_equal(path.calls, 0);
    assert_int_equal(path.taken, 0);
    anatomy_answer(&none);
    assert_int_equal(none.calls, 3);
}

static int open_trace(void **state)
{
    (void)state;
    int fd = mkstemp(trace);
    return fd < 0 || close(fd) != 0 || !anatomy_open(trace);
}

static int remove_trace(void **state)
{
    (void)state;
    return unlink(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_tell),
        cmocka_unit_test(marks_are_seen),
        cmocka_unit_test(paths_are_told_apart),
        cmocka_unit_test(nothing_is_said_of_nothing),
    };
    return cmocka_run_group_tests(tests, open_trace, remove_trace);
}
