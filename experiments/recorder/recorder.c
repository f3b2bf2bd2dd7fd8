/*
 * recorder.c - libak-record.so, preloaded by `ak record`: where it begins and ends.
 *
 * The linker flag initfirst has it begin before every other object of the program.
 */
#include "journal.h"

static __attribute__((constructor)) void begin(int argc, char **argv, char **environment)
{
    journal_begin(argc, argv, environment);
}

static __attribute__((destructor)) void end(void)
{
    journal_end();
}
