/*
 * witness.h - what a process says of its allocator, in lines of a log that many processes append to.
 *
 * A line is a word and fields, separated by tabs:
 *
 *   KIND PID PPID CPU_US ERRORS OBJECT BUILD_ID PROGRAM
 *
 *   KIND      start: a program began in this process, or a fork of it, or goes on after an exec that failed
 *             exec: it is about to become PROGRAM; if that has the witness too, its start follows
 *             spawn: it was started as PROGRAM by posix_spawn; the line may come after its own start
 *             end: the process ends by exit or _exit
 *   PPID      of the process at that moment
 *   CPU_US    user and system time of the process so far, without its children
 *   ERRORS    objects that malloc, free, calloc and realloc resolve to, less one: 0 where all four agree
 *   OBJECT    the file that malloc resolves to; of exec and spawn: in the process that says so
 *   BUILD_ID  of that object, as it lies in memory, in hexadecimal; - where it has none
 *   PROGRAM   path of the program (/proc/self/exe); of exec and spawn: as the call names it
 *
 * Tabs and line ends in names become question marks. A process that a signal ends, or that calls the kernel itself to
 * end, says no end; one that calls the kernel itself to exec says no exec.
 */
#ifndef AK_WITNESS_H
#define AK_WITNESS_H

#define WITNESS_VARIABLE "AK_WITNESS" /* path of the log; absent: the witness says nothing */
#define WITNESS_LIBRARY  "libak-witness.so"

#endif
