/*
 * quantum.h - what a turn is where nobody says: the one place where the numbers stand, for the runner and the plugin.
 */
#ifndef AK_SIM_QUANTUM_H
#define AK_SIM_QUANTUM_H

#define WEAVE_QUANTUM 1000 /* accesses */
#define TIMED_QUANTUM 50   /* cycles by which a core may run ahead */
#define QUANTUM_MAX   1000000

#endif
