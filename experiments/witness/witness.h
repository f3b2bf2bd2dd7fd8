/*
 * witness.h - what a process says of its allocator, in lines of a log that many processes append to.
 *
 * A line is a word and fields, separated by tabs:
 *
 *   KIND PID PPID CPU_US ERRORS OBJECT BUILD_ID PROGRAM
 *
 *   KIND      start: a program began in this process; end: the process ends by exit or _exit
 *   PPID      of the process at that moment
 *   CPU_US    user and system time of the process so far, without its children
 *   ERRORS    objects that malloc, free, calloc and realloc resolve to, less one: 0 where all four agree
 *   OBJECT    the file that malloc resolves to
 *   BUILD_ID  of that object, as it lies in memory, in hexadecimal; - where it has none
 *   PROGRAM   path of the program (/proc/self/exe)
 *
 * Tabs and line ends in names become question marks. A process that a signal ends, that becomes another program, or that
 * calls the kernel itself to end says no end.
 */
#ifndef AK_WITNESS_H
#define AK_WITNESS_H

#define WITNESS_VARIABLE "AK_WITNESS" /* path of the log; absent: the witness says nothing */
#define WITNESS_LIBRARY  "libak-witness.so"

#endif
