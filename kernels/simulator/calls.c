/* calls.c - see calls.h. */
#include "calls.h"

#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest.h"
#include "pinned.h"
#include "turns.h"

#define PAGE_BYTES  4096
#define ADDRESS_END (UINT64_C(1) << 47) /* of a program's addresses */
#define WAIT_MAX_S  31536000            /* a year: no wait that was meant to end is longer */

/* Of the program. */
struct thread {
    int64_t number; /* of the call it is in */
    uint64_t argument[6];
    struct { /* memory that is changed for the length of the call */
        uint64_t at;
        size_t bytes; /* 0: none */
        unsigned char was[sizeof(struct timespec)];
    } change;
    uint32_t core;
    bool pinned; /* it asked for the core, or whoever made it did */
    bool in_call, outside, forks;
    uint64_t policy;               /* nodes of its new memory, 0: where it is touched */
    const volatile uint32_t *gone; /* zeroed by QEMU when it has ended */
};

static struct {
    struct thread thread[TURNS_MAX];
    struct machine machine;
    const struct mode *mode;
    struct sim_hello hello;
    uint32_t cores_given;
    bool handled[NSIG];     /* signals that the program wants to see itself */
    struct sigaction fault; /* QEMU's own, of SIGSEGV */
    unsigned
        cpu; /* of the host: all threads of the program are there, since between two CPUs a turn costs ten times more */
} calls;

static _Thread_local struct thread *current; /* in a call */

void calls_init(const struct machine *machine, const struct mode *mode, const struct sim_hello *hello)
{
    calls.machine = *machine;
    calls.mode = mode;
    calls.hello = *hello;
}

/* ---- the end of the program ---- */

/* QEMU ends a program only when all its threads have come out of what they do, and those whose turn it is not never would.
 * So what ends it is done here: an exit, and two signals without a handler, of abort and of an address that is not there. */

static void end_by_signal(int number)
{
    sigset_t set;
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
}

/* QEMU has pages that are there and protected; those are for its own handler. */
static void on_fault(int number, siginfo_t *about, void *context)
{
    if (about->si_code == SEGV_MAPERR && !calls.handled[SIGSEGV])
        end_by_signal(SIGSEGV);
    else
        calls.fault.sa_sigaction(number, about, context);
}

static void end_watch(void)
{
    sigaction(SIGSEGV, NULL, &calls.fault);
    struct sigaction mine = calls.fault;
    mine.sa_sigaction = on_fault;
    if (calls.fault.sa_flags & SA_SIGINFO)
        sigaction(SIGSEGV, &mine, NULL);
}

static void end_before(int64_t call, const uint64_t argument[6])
{
    uint64_t number = call == SYS_tgkill ? argument[2] : argument[1];
    if (call == SYS_exit_group)
        syscall(SYS_exit_group, argument[0]);
    if ((call == SYS_tgkill || call == SYS_tkill || call == SYS_kill) && number == SIGABRT &&
        (call == SYS_tkill || argument[0] == (uint64_t)getpid()) && !calls.handled[SIGABRT])
        end_by_signal(SIGABRT);
}

/* A program that wants to see a signal itself; its first word of the action is the handler. */
static void signal_before(const uint64_t argument[6])
{
    uint64_t handler;
    if (argument[0] < NSIG && guest_read(argument[1], &handler, sizeof handler))
        calls.handled[argument[0]] = handler != (uintptr_t)SIG_DFL;
}

/* ---- memory of the program, changed for the length of a call ---- */

static bool change(struct thread *thread, uint64_t at, const void *to, size_t bytes)
{
    if (!guest_read(at, thread->change.was, bytes) || !guest_write(at, to, bytes))
        return false;
    thread->change.at = at;
    thread->change.bytes = bytes;
    return true;
}

static void change_back(struct thread *thread)
{
    if (thread->change.bytes != 0)
        guest_write(thread->change.at, thread->change.was, thread->change.bytes);
    thread->change.bytes = 0;
}

/* ---- threads ---- */

/* Where the system will write that a thread is gone; NULL where it cannot. */
static const volatile uint32_t *gone_word(uint64_t address)
{
    return guest_can_write(address, sizeof(uint32_t)) ? (const volatile uint32_t *)address : NULL;
}

void calls_born(unsigned thread)
{
    struct thread *born = &calls.thread[thread];
    bool pinned = current != NULL && current->pinned;
    *born =
        (struct thread){.core = pinned ? current->core : calls.cores_given++ % machine_cores(&calls.machine),
                        .pinned = pinned};
    if (current != NULL && current->number == SYS_clone && (current->argument[0] & CLONE_CHILD_CLEARTID) != 0)
        born->gone = gone_word(current->argument[3]);
    if (current != NULL)
        born->policy = current->policy;
    if (turns_begun())
        calls.mode->born(thread, born->core);
}

void calls_died(unsigned thread)
{
    if (!turns_begun())
        return;
    const volatile uint32_t *gone = calls.thread[thread].gone;
    calls.mode->wake(thread, (uintptr_t)gone, UINT32_MAX, UINT32_MAX);
    calls.mode->died(thread, gone);
}

/* Threads that the caller starts are there too. */
static void pin_host_thread(unsigned cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void thread_begin(unsigned thread)
{
    calls.cpu = (unsigned)sched_getcpu();
    calls.thread[thread].core = 0;
    calls.cores_given = 1;
    pin_host_thread(calls.cpu);
    calls.mode->begin(thread, calls.cpu);
    end_watch();
}

/* A thread that asks for a core gets it, or for several, the first of them. */
static void thread_pin(unsigned thread, uint64_t bytes, uint64_t address)
{
    unsigned char mask[MACHINE_CORES_MAX / 8];
    bytes = bytes < sizeof mask ? bytes : sizeof mask;
    if (!guest_read(address, mask, bytes))
        return;
    for (unsigned core = 0; core < machine_cores(&calls.machine) && core / 8 < bytes; core++)
        if (mask[core / 8] & 1 << core % 8) {
            calls.thread[thread].core = core;
            calls.thread[thread].pinned = true;
            calls.mode->move(thread, core);
            return;
        }
}

/* ---- futexes ---- */

static bool is_time(const struct timespec *time)
{
    return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < 1000000000;
}

/* The simulated time at which a wait ends. False for a time that the kernel will refuse. */
static bool end_of_wait(unsigned thread, uint64_t address, bool absolute, uint64_t *end_ns)
{
    struct timespec time;
    if (!guest_read(address, &time, sizeof time) || !is_time(&time))
        return false;
    uint64_t now_ns = calls.mode->now_ns(thread);
    if (time.tv_sec > WAIT_MAX_S && !absolute)
        time.tv_sec = WAIT_MAX_S;
    uint64_t ns =
        absolute ? pinned_ns(&time) : now_ns + (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
    *end_ns =
        ns < now_ns + WAIT_MAX_S * UINT64_C(1000000000) ? ns : now_ns + WAIT_MAX_S * UINT64_C(1000000000);
    return true;
}

static void go_outside(unsigned thread)
{
    calls.thread[thread].outside = true;
    calls.mode->go_outside(thread);
}

static bool still_has(uint64_t address, uint32_t value)
{
    uint32_t word;
    return guest_read(address, &word, sizeof word) && word == value;
}

static void futex_wait(unsigned thread, const uint64_t argument[6], uint32_t mask, bool absolute)
{
    uint64_t word = argument[0], time = argument[3], end = TURNS_NEVER;
    uint32_t value = (uint32_t)argument[2], other = ~value;
    if (word % sizeof value != 0 || mask == 0 || !still_has(word, value) ||
        (time != 0 && !end_of_wait(thread, time, absolute, &end)))
        return; /* the kernel will say so */
    if (!guest_can_write(word, sizeof value))
        go_outside(thread);
    else if (!calls.mode->wait(thread, word, mask, end))
        change(&calls.thread[thread], time, &(struct timespec){0}, sizeof(struct timespec));
    else if (still_has(word, value))
        change(&calls.thread[thread], word, &other, sizeof other);
}

static void futex_before(unsigned thread, const uint64_t argument[6])
{
    uint32_t value = (uint32_t)argument[2];
    switch (argument[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
        futex_wait(thread, argument, UINT32_MAX, false);
        break;
    case FUTEX_WAIT_BITSET:
        futex_wait(thread, argument, (uint32_t)argument[5], true);
        break;
    case FUTEX_WAKE:
        calls.mode->wake(thread, argument[0], UINT32_MAX, value);
        break;
    case FUTEX_WAKE_BITSET:
        calls.mode->wake(thread, argument[0], (uint32_t)argument[5], value);
        break;
    case FUTEX_REQUEUE: /* waking all is allowed: they look again */
    case FUTEX_CMP_REQUEUE:
        calls.mode->wake(thread, argument[0], UINT32_MAX, UINT32_MAX);
        break;
    default:
        break;
    }
}

/* A sleep is a wait for nothing. */
static void sleep_before(unsigned thread, uint64_t time, bool absolute)
{
    uint64_t end;
    if (!end_of_wait(thread, time, absolute, &end))
        return; /* the kernel will say so */
    if (!guest_can_write(time, sizeof(struct timespec))) {
        go_outside(thread);
        return;
    }
    calls.mode->wait(thread, 0, 0, end);
    change(&calls.thread[thread], time, &(struct timespec){0}, sizeof(struct timespec));
}

/* ---- processes ---- */

static bool is_fork(int64_t call, const uint64_t argument[6])
{
    return call == SYS_fork || call == SYS_vfork ||
           (call == SYS_clone && ((argument[0] & CLONE_VM) == 0 || (argument[0] & CLONE_VFORK) != 0));
}

static bool between_instructions(unsigned thread)
{
    return !calls.thread[thread].in_call;
}

/* ---- memory ---- */

/* The nodes that a policy names; 0: none in particular. */
static uint64_t policy_nodes(uint64_t mode, uint64_t mask)
{
    mode &= ~(uint64_t)MPOL_MODE_FLAGS;
    uint64_t nodes = ((uint64_t)1 << calls.machine.nodes) - 1, named;
    return mode == MPOL_DEFAULT || mode == MPOL_LOCAL || !guest_read(mask, &named, sizeof named)
               ? 0
               : named & nodes;
}

/* What the kernel will not refuse. */
static bool is_range(uint64_t address, uint64_t bytes)
{
    return address % PAGE_BYTES == 0 && bytes <= ADDRESS_END && address <= ADDRESS_END - bytes;
}

static void memory_before(unsigned thread, int64_t number, const uint64_t argument[6])
{
    bool range = is_range(argument[0], argument[1]);
    switch (number) {
    case SYS_munmap:
    case SYS_mremap:
        if (range)
            calls.mode->forget(thread, argument[0], argument[1]);
        break;
    case SYS_madvise:
        if (range && (argument[2] == MADV_DONTNEED || argument[2] == MADV_REMOVE))
            calls.mode->forget(thread, argument[0], argument[1]);
        break;
    case SYS_mbind:
        if (range)
            calls.mode->bind(thread, argument[0], argument[1], policy_nodes(argument[2], argument[3]));
        break;
    case SYS_set_mempolicy:
        calls.thread[thread].policy = policy_nodes(argument[0], argument[1]);
        break;
    default:
        break;
    }
}

static void memory_mapped(unsigned thread, uint64_t address, uint64_t bytes, uint64_t flags)
{
    if (flags & MAP_FIXED)
        calls.mode->forget(thread, address, bytes);
    if (calls.thread[thread].policy != 0)
        calls.mode->bind(thread, address, bytes, calls.thread[thread].policy);
}

/* ---- the protocol ---- */

static void sim_call(unsigned thread, const uint64_t argument[6])
{
    static struct sim_times times; /* large */
    struct sim_reading reading;
    if (argument[0] == SIM_HELLO)
        guest_write(argument[1], &calls.hello, sizeof calls.hello);
    else if (argument[0] == SIM_BEGIN && !turns_begun())
        thread_begin(thread);
    if (!turns_begun())
        return;
    switch (argument[0]) {
    case SIM_START:
        calls.mode->region(thread, true);
        break;
    case SIM_STOP:
        calls.mode->region(thread, false);
        break;
    case SIM_TIMES:
        if (calls.mode->times == NULL)
            break;
        calls.mode->times(&times);
        guest_write(argument[1], &times, sizeof times);
        break;
    case SIM_READ:
        calls.mode->read(thread, &reading);
        guest_write(argument[1], &reading, sizeof reading);
        break;
    default:
        break;
    }
}

/* ---- calls that may block in the kernel ---- */

static bool file_blocks(uint64_t fd)
{
    struct stat about;
    return fstat((int)fd, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

static bool call_blocks(int64_t number, const uint64_t argument[6])
{
    switch (number) {
    case SYS_read:
    case SYS_readv:
        return file_blocks(argument[0]);
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_epoll_pwait:
    case SYS_epoll_wait:
    case SYS_flock:
    case SYS_msgrcv:
    case SYS_pause:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_select:
    case SYS_semop:
    case SYS_wait4:
    case SYS_waitid:
        return true;
    default:
        return false;
    }
}

/* ---- before and after ---- */

void calls_before(unsigned number, int64_t call, const uint64_t argument[6])
{
    struct thread *thread = current = &calls.thread[number];
    thread->in_call = true;
    while (turns_astray(number))
        calls.mode->join(number);
    thread->number = call;
    memcpy(thread->argument, argument, sizeof thread->argument);
    if (call == SIM_CALL) {
        sim_call(number, argument);
        return;
    }
    if (call == SYS_rt_sigaction)
        signal_before(argument);
    if (call == SYS_set_tid_address)
        thread->gone = gone_word(argument[0]);
    if (turns_begun() || call == SYS_set_mempolicy)
        memory_before(number, call, argument);
    if (!turns_begun())
        return;
    end_before(call, argument);
    if (call == SYS_futex)
        futex_before(number, argument);
    else if (call == SYS_sched_setaffinity && argument[0] == 0)
        thread_pin(number, argument[1], argument[2]);
    else if (call == SYS_sched_yield)
        calls.mode->idle(number);
    else if (call == SYS_nanosleep)
        sleep_before(number, argument[0], false);
    else if (call == SYS_clock_nanosleep)
        sleep_before(number, argument[2], (argument[1] & TIMER_ABSTIME) != 0);
    else if (is_fork(call, argument)) {
        thread->forks = true;
        turns_fork(number, between_instructions);
    } else if (call_blocks(call, argument))
        go_outside(number);
}

void calls_after(unsigned number, int64_t call, int64_t result)
{
    struct thread *thread = &calls.thread[number];
    if (thread->outside) {
        calls.mode->come_back(number);
        thread->outside = false;
    }
    if (thread->forks)
        turns_forked(number, result == 0);
    thread->forks = false;
    change_back(thread);
    if (turns_begun() && call == SYS_mmap && result > 0)
        memory_mapped(number, (uint64_t)result, thread->argument[1], thread->argument[3]);
    if (turns_begun() && call == SYS_sched_setaffinity && result >= 0)
        pin_host_thread(calls.cpu);
    pinned_answer(call, thread->argument, result, thread->core,
                  turns_begun() ? calls.mode->now_ns(number) : 0);
    current = NULL;
    thread->in_call = false;
}
