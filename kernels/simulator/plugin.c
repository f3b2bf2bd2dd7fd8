/*
 * plugin.c - the simulated machine as a plugin of QEMU user mode: what each instruction is hooked to.
 *
 *   qemu-x86_64 -plugin simulator.so,WORDS OF THE MACHINE,mode=weave,quantum=1000,seed=1 PROGRAM
 *
 * Words: those of machine.h; mode, weave or timed; quantum, accesses a turn (weave) or cycles of slack (timed); seed;
 * watch, the file of anatomy.h. A wrong word ends QEMU before the program starts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anatomy.h"
#include "calls.h"
#include "code.h"
#include "guest.h"
#include "latency.h"
#include "pinned.h"
#include "qemu_plugin.h"
#include "quantum.h"
#include "timed.h"
#include "weave.h"

__attribute__((visibility("default"))) int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static uint64_t instructions; /* of all threads: one runs at a time */
static const struct mode *mode = &weave_mode;

/* ---- threads ---- */

/* QEMU numbers a new thread above all that live, so that numbers grow where some die and others live; ours do not. */
#define VCPUS (1 << 20)
static uint16_t thread_of[VCPUS];
static bool taken[TURNS_MAX];

static unsigned thread_take(unsigned vcpu)
{
    unsigned thread = 0;
    while (thread < TURNS_MAX && taken[thread])
        thread++;
    if (thread == TURNS_MAX || vcpu >= VCPUS) {
        fprintf(stderr, "simulator: more than %d threads at a time, or number %d in all\n", TURNS_MAX, VCPUS);
        _Exit(3);
    }
    taken[thread] = true;
    thread_of[vcpu] = (uint16_t)thread;
    return thread;
}

/* ---- whose turn it is ---- */

/* A thread that has to wait for its turn before it goes on, as after a fork, does so here. */
static __attribute__((noinline)) bool gets_turn(unsigned thread)
{
    if (!turns_begun() || !turns_astray(thread))
        return false;
    mode->join(thread);
    return turns_running() == thread;
}

/* What happens in a thread is only seen if it is the one that runs. */
static inline bool runs(unsigned thread)
{
    return __builtin_expect(turns_running() == thread, 1) || gets_turn(thread);
}

/* ---- accesses ---- */

/* What QEMU says of an access comes in few values: its answers about each are kept, as log2 of the size plus
 * INFO_STORE or INFO_LOAD. 0: not asked yet. */
#define INFO_VALUES (1 << 18)
enum { INFO_LOAD = 8, INFO_STORE = 16 };
static uint8_t answers[INFO_VALUES];

static __attribute__((noinline)) uint8_t info_ask(qemu_plugin_meminfo_t info)
{
    uint8_t answer = (uint8_t)(qemu_plugin_mem_size_shift(info) |
                               (qemu_plugin_mem_is_store(info) ? INFO_STORE : INFO_LOAD));
    if (info < INFO_VALUES)
        answers[info] = answer;
    return answer;
}

static inline uint8_t info_answer(qemu_plugin_meminfo_t info)
{
    uint8_t answer = info < INFO_VALUES ? answers[info] : 0;
    return __builtin_expect(answer != 0, 1) ? answer : info_ask(info);
}

static void weave_plain(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *user)
{
    (void)user;
    uint8_t answer = info_answer(info);
    if (runs(thread_of[vcpu]))
        weave_access(thread_of[vcpu], answer & INFO_STORE ? MODEL_STORE : MODEL_LOAD, answer & 7, address);
}

/* Flagged as a store, once. */
static void weave_atomic(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *user)
{
    (void)user;
    if (runs(thread_of[vcpu]))
        weave_access(thread_of[vcpu], MODEL_ATOMIC, info_answer(info) & 7, address);
}

static void timed_plain(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *user)
{
    (void)user;
    uint8_t answer = info_answer(info);
    if (runs(thread_of[vcpu]))
        timed_access(thread_of[vcpu], answer & INFO_STORE ? MODEL_STORE : MODEL_LOAD, answer & 7, address);
}

static void timed_atomic(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *user)
{
    (void)user;
    if (runs(thread_of[vcpu]))
        timed_access(thread_of[vcpu], MODEL_ATOMIC, info_answer(info) & 7, address);
}

static qemu_plugin_mem_cb *access_hook(bool atomic)
{
    bool timed = mode == &timed_mode;
    return atomic ? (timed ? timed_atomic : weave_atomic) : timed ? timed_plain : weave_plain;
}

/* Seen by the anatomy first, then as ever. */
static void watched_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *user)
{
    const struct anatomy_code *code = user;
    bool atomic = anatomy_is_atomic(code);
    uint8_t answer = info_answer(info);
    anatomy_access(thread_of[vcpu], code,
                   atomic                ? MODEL_ATOMIC
                   : answer & INFO_STORE ? MODEL_STORE
                                         : MODEL_LOAD,
                   address, 1u << (answer & 7));
    access_hook(atomic)(vcpu, info, address, NULL);
}

/* ---- instructions ---- */

static void on_watched(unsigned vcpu, void *user)
{
    anatomy_execute(thread_of[vcpu], user);
}

static void on_pause(unsigned vcpu, void *user)
{
    (void)user;
    if (runs(thread_of[vcpu]))
        mode->idle(thread_of[vcpu]);
}

static void on_atomic_next(unsigned vcpu, void *user)
{
    (void)user;
    if (runs(thread_of[vcpu]))
        timed_meet(thread_of[vcpu]);
}

/* `user` is where(). */
static void on_time_mark(unsigned vcpu, void *user)
{
    if (runs(thread_of[vcpu]))
        latency_mark(thread_of[vcpu], (uintptr_t)user & 0xff, (uintptr_t)user >> 8);
}

/* A time mark, and how many instructions of its block come after it: they are counted when the block begins. */
static void *where(unsigned mark, size_t ahead)
{
    return (void *)((uintptr_t)ahead << 8 | mark);
}

static unsigned time_mark(const struct qemu_plugin_tb *tb, size_t i)
{
    const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
    return code_time_mark(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
}

static size_t count_instructions(const struct qemu_plugin_tb *tb, size_t n)
{
    size_t counted = n;
    for (size_t i = 0; i < n; i++)
        counted -= time_mark(tb, i) != 0;
    return counted;
}

/* The first instructions of a new thread follow a system call. */
static void on_call_done(unsigned vcpu, void *user)
{
    (void)user;
    runs(thread_of[vcpu]);
}

/* Whether the instruction before `address` is a system call, of which no byte is on another page. */
static bool follows_call(uint64_t address)
{
    const uint8_t *before = (const uint8_t *)address - 2;
    return (address & 0xfff) >= 2 && before[0] == 0x0f && before[1] == 0x05;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    size_t n = qemu_plugin_tb_n_insns(tb);
    if (follows_call(qemu_plugin_tb_vaddr(tb)))
        qemu_plugin_register_vcpu_tb_exec_cb(tb, on_call_done, QEMU_PLUGIN_CB_NO_REGS, NULL);
    size_t ahead = count_instructions(tb, n);
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &instructions, ahead);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        const uint8_t *code = qemu_plugin_insn_data(insn);
        size_t size = qemu_plugin_insn_size(insn);
        struct anatomy_code *watched = NULL;
        if (anatomy_watches()) {
            watched = anatomy_code(qemu_plugin_insn_vaddr(insn), code, size);
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_watched, QEMU_PLUGIN_CB_NO_REGS, watched);
        }
        unsigned mark = time_mark(tb, i);
        if (mark != 0) {
            if (mode == &timed_mode)
                qemu_plugin_register_vcpu_insn_exec_cb(insn, on_time_mark, QEMU_PLUGIN_CB_NO_REGS,
                                                       where(mark, ahead));
            continue;
        }
        ahead--;
        if (code_is_pause(code, size)) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_pause, QEMU_PLUGIN_CB_NO_REGS, NULL);
            continue;
        }
        bool atomic = code_is_atomic(code, size);
        if (atomic && mode == &timed_mode)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_atomic_next, QEMU_PLUGIN_CB_NO_REGS, NULL);
        /* One hook for loads and stores: of two, QEMU 7.2 calls the second one for both. */
        qemu_plugin_register_vcpu_mem_cb(insn, watched ? watched_access : access_hook(atomic),
                                         QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, watched);
    }
}

/* ---- system calls and threads ---- */

static void anatomy_call(unsigned thread, uint64_t op, uint64_t argument)
{
    struct sim_path path;
    if (op == SIM_START || op == SIM_STOP)
        anatomy_region(thread, op == SIM_START);
    else if (op == SIM_PATH && guest_read(argument, &path, sizeof path)) {
        anatomy_answer(&path);
        guest_write(argument, &path, sizeof path);
    }
}

static void on_call(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                    uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
    (void)id, (void)g, (void)h;
    if (number == SIM_CALL && anatomy_watches())
        anatomy_call(thread_of[vcpu], a, b);
    calls_before(thread_of[vcpu], number, (uint64_t[6]){a, b, c, d, e, f});
}

static void on_return(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result)
{
    (void)id;
    calls_after(thread_of[vcpu], number, result);
}

static void on_born(qemu_plugin_id_t id, unsigned vcpu)
{
    (void)id;
    calls_born(thread_take(vcpu));
}

static void on_died(qemu_plugin_id_t id, unsigned vcpu)
{
    (void)id;
    taken[thread_of[vcpu]] = false; /* whoever may take it needs the turn, which this one still has */
    calls_died(thread_of[vcpu]);
}

/* ---- install ---- */

struct setting {
    struct machine machine;
    uint64_t quantum, seed;
    const char *watch; /* NULL: nothing is watched */
};

static bool number_of(const char *text, uint64_t most, uint64_t *number)
{
    char *end;
    if (*text < '0' || *text > '9') /* strtoull would take a sign, and blanks */
        return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return *end == '\0' && errno == 0 && *number <= most;
}

static bool setting_word(struct setting *setting, const char *word, char why[MACHINE_WHY_MAX])
{
    if (strncmp(word, "quantum=", 8) == 0) {
        snprintf(why, MACHINE_WHY_MAX, "expected 1 to %d", QUANTUM_MAX);
        return number_of(word + 8, QUANTUM_MAX, &setting->quantum) && setting->quantum >= 1;
    }
    if (strncmp(word, "mode=", 5) == 0) {
        snprintf(why, MACHINE_WHY_MAX, "expected weave or timed");
        mode = strcmp(word + 5, timed_mode.name) == 0 ? &timed_mode : &weave_mode;
        return strcmp(word + 5, mode->name) == 0;
    }
    if (strncmp(word, "seed=", 5) == 0) {
        snprintf(why, MACHINE_WHY_MAX, "expected a number");
        return number_of(word + 5, UINT64_MAX, &setting->seed);
    }
    if (strncmp(word, "watch=", 6) == 0) {
        setting->watch = word + 6;
        return true;
    }
    return machine_set(&setting->machine, word, why);
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
                                                               int argc, char **argv)
{
    struct setting setting = {.machine = machine_default, .seed = 1};
    char why[MACHINE_WHY_MAX] = "";
    const char *key = "";
    if (info->system_emulation || strcmp(info->target_name, "x86_64") != 0) {
        fprintf(stderr, "simulator: runs under qemu-x86_64 only, not for %s\n", info->target_name);
        return 1;
    }
    for (int i = 0; i < argc; i++)
        if (!setting_word(&setting, argv[i], why)) {
            fprintf(stderr, "simulator: '%s': %s\n", argv[i], why);
            return 1;
        }
    if (!machine_check(&setting.machine, &key, why)) {
        fprintf(stderr, "simulator: %s: %s\n", key, why);
        return 1;
    }
    struct model *model = model_new(&setting.machine, why);
    if (model == NULL) {
        fprintf(stderr, "simulator: %s\n", why);
        return 1;
    }
    if (setting.watch != NULL && !anatomy_open(setting.watch)) {
        fprintf(stderr, "simulator: %s: %s\n", setting.watch, strerror(errno));
        return 1;
    }
    bool timed = mode == &timed_mode;
    uint32_t quantum = setting.quantum != 0 ? (uint32_t)setting.quantum
                       : timed              ? TIMED_QUANTUM
                                            : WEAVE_QUANTUM;
    (timed ? timed_init : weave_init)(&(struct mode_setting){.machine = setting.machine,
                                                             .model = model,
                                                             .instructions = &instructions,
                                                             .quantum = quantum,
                                                             .seed = setting.seed});
    pinned_init(&setting.machine, setting.seed);
    calls_init(&setting.machine, mode,
               &(struct sim_hello){.version = SIM_VERSION,
                                   .cores = machine_cores(&setting.machine),
                                   .nodes = setting.machine.nodes,
                                   .mhz = setting.machine.mhz,
                                   .timed = timed,
                                   .quantum = quantum});
    qemu_plugin_register_vcpu_init_cb(id, on_born);
    qemu_plugin_register_vcpu_exit_cb(id, on_died);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_return);
    return 0;
}
