/* accounting.h - what the OS says of a worker, and of the machine, around the timed region. */
#ifndef AK_ACCOUNTING_H
#define AK_ACCOUNTING_H

#include <stdbool.h>
#include <stdint.h>

/* Running totals of one thread; the difference of two is what happened between. */
struct thread_account {
    int64_t user_ns, sys_ns, cpu_ns; /* user and sys split by getrusage, cpu by CLOCK_THREAD_CPUTIME_ID */
    int64_t minor_faults, major_faults, voluntary, involuntary;
    int64_t run_delay_ns;            /* runnable but waiting for a CPU; valid where delay_known */
    bool    delay_known;
};

struct thread_account account_now(void);
/* The same of the whole process, threads that ended included; the delay is not known then. */
struct thread_account account_of_process(void);
struct thread_account account_difference(struct thread_account after, struct thread_account before);

/* Totals of the machine's CPU time in clock ticks (/proc/stat). */
struct machine_account { uint64_t steal, total; bool known; };
struct machine_account machine_account_now(void);

/* One-minute load average, or -1. */
double load_one_minute(void);

#endif
