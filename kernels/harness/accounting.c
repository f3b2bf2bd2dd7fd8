#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "accounting.h"
#include "memory.h"

static int64_t nanoseconds(struct timeval t)
{
    return (int64_t)t.tv_sec * 1000000000 + (int64_t)t.tv_usec * 1000;
}

/* In this order: reading the clock brings the scheduler's sum up to date, which getrusage alone leaves at the last tick,
 * up to 4 ms ago. */
static void use_add(struct thread_account *a, clockid_t clock, int who)
{
    struct rusage use;
    struct timespec cpu;

    clock_gettime(clock, &cpu);
    getrusage(who, &use);
    a->user_ns = nanoseconds(use.ru_utime);
    a->sys_ns = nanoseconds(use.ru_stime);
    a->minor_faults = use.ru_minflt;
    a->major_faults = use.ru_majflt;
    a->voluntary = use.ru_nvcsw;
    a->involuntary = use.ru_nivcsw;
    a->cpu_ns = (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec;
}

struct thread_account account_now(void)
{
    struct thread_account a = { 0 };
    char text[128];

    if (proc_read("/proc/thread-self/schedstat", text, sizeof text) > 0) {
        char *second = strchr(text, ' ');
        if (second != NULL) {
            a.run_delay_ns = (int64_t)strtoull(second, NULL, 10);
            a.delay_known = true;
        }
    }
    use_add(&a, CLOCK_THREAD_CPUTIME_ID, RUSAGE_THREAD);
    return a;
}

struct thread_account account_of_process(void)
{
    struct thread_account a = { 0 };
    use_add(&a, CLOCK_PROCESS_CPUTIME_ID, RUSAGE_SELF);
    return a;
}

struct thread_account account_difference(struct thread_account after, struct thread_account before)
{
    after.user_ns -= before.user_ns;
    after.sys_ns -= before.sys_ns;
    after.cpu_ns -= before.cpu_ns;
    after.minor_faults -= before.minor_faults;
    after.major_faults -= before.major_faults;
    after.voluntary -= before.voluntary;
    after.involuntary -= before.involuntary;
    after.run_delay_ns -= before.run_delay_ns;
    after.delay_known = after.delay_known && before.delay_known;
    return after;
}

/* The first line of /proc/stat: user nice system idle iowait irq softirq steal (guest times are inside user). */
struct machine_account machine_account_now(void)
{
    struct machine_account a = { 0 };
    char text[256];

    if (proc_read("/proc/stat", text, sizeof text) <= 0 || strncmp(text, "cpu ", 4) != 0)
        return a;
    char *at = text + 4;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t ticks = strtoull(at, &at, 10);
        a.total += ticks;
        a.steal = ticks;
    }
    a.known = true;
    return a;
}

double load_one_minute(void)
{
    char text[128];
    return proc_read("/proc/loadavg", text, sizeof text) > 0 ? strtod(text, NULL) : -1.0;
}
