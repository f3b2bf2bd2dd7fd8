/* class.c - see class.h. */
#include "class.h"

/* The four classes of a doubling whose quarter is `unit` times CLASS_WIDE. */
/* clang-format off */
#define CLASS_DOUBLING(unit, class) \
    [4 * (unit) + 1 ... 5 * (unit)] = (class),     [5 * (unit) + 1 ... 6 * (unit)] = (class) + 1, \
    [6 * (unit) + 1 ... 7 * (unit)] = (class) + 2, [7 * (unit) + 1 ... 8 * (unit)] = (class) + 3
/* clang-format on */

const uint8_t tlfl__class_wide[CLASS_MAX / CLASS_WIDE + 1] = {
    CLASS_DOUBLING(1, 20), CLASS_DOUBLING(2, 24),  CLASS_DOUBLING(4, 28),
    CLASS_DOUBLING(8, 32), CLASS_DOUBLING(16, 36), CLASS_DOUBLING(32, 40),
};
