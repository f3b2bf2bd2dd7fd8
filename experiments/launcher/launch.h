/*
 * launch.h - what ak and ak-launch tell each other.
 *
 * ak-launch PARENT REPORT_FD TIMEOUT_MS DIRECTORY PRELOAD PROGRAM ARGUMENTS...
 *   runs PROGRAM in its own process group and writes one struct launch_report to REPORT_FD.
 *   PARENT      process id of ak; ak-launch ends, with everything it started, when that one is gone
 *   TIMEOUT_MS  0: none
 *   DIRECTORY   where PROGRAM starts; "": here
 *   PRELOAD     LD_PRELOAD of PROGRAM alone; "" leaves it empty, which the loader reads as none
 *   SIGUSR1 with a value (sigqueue) makes it send the signal of that number to PROGRAM, and wait on.
 * ak-launch --where
 *   prints the path of every object that the loader mapped into this process, one a line: with LD_PRELOAD set
 *   it tells what the loader made of it.
 *
 * It is a program of its own, and small, because a child inherits its parent's size in ru_maxrss.
 */
#ifndef AK_LAUNCH_H
#define AK_LAUNCH_H

#include <stdint.h>

#define LAUNCH_MAGIC 0x616b6c31u /* "akl1" */

enum launch_end {
    LAUNCH_EXITED,    /* code: exit status */
    LAUNCH_SIGNALLED, /* code: signal number */
    LAUNCH_TIMED_OUT, /* killed when TIMEOUT_MS had passed */
    LAUNCH_STOPPED,   /* killed because ak asked or was gone */
    LAUNCH_NO_EXEC,   /* code: errno; PROGRAM was never entered */
};

struct launch_report {
    uint32_t magic;
    int32_t end, code;
    int32_t pid; /* of PROGRAM */
    uint64_t wall_ns;
    /* Of PROGRAM and of those of its descendants that were waited for; maxrss of the largest of them. */
    uint64_t user_us, system_us;
    uint64_t maxrss_bytes;
    uint64_t minor_faults, major_faults;
    uint64_t voluntary_switches, involuntary_switches;
};

#endif
