/* White box: size classes and rounding. */
#include "../conformance/tap.h"

#include "class.h"

static void test_classes(void)
{
    bool order = true, fit = true, waste = true, aligned = true;
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        size_t size = class_size(class);
        order &= class == 0 || size > class_size(class - 1);
        aligned &= size % BLOCK_ALIGN == 0;
        fit &= class_of(size) == class;
    }
    tap_ok(order && aligned, "classes ascend by multiples of 16");
    tap_ok(fit && class_size(CLASS_COUNT - 1) == CLASS_MAX,
           "the top class is CLASS_MAX, each size finds itself");
    fit = class_of(0) == 0;
    for (size_t size = 1; size <= CLASS_MAX; size++) {
        unsigned class = class_of(size);
        fit &= class < CLASS_COUNT && class_size(class) >= size;
        fit &= class == 0 || class_size(class - 1) < size;
        waste &= size <= CLASS_FINE_MAX || (class_size(class) - size) * 5 <= class_size(class);
    }
    tap_ok(fit, "every size gets the least class that holds it");
    fit = true;
    for (size_t size = CLASS_DIRECT_MAX + 1; size <= CLASS_MAX; size++)
        fit &= class_of_wide(size) == class_of(size);
    tap_ok(fit, "the table agrees");
    fit = true;
    for (size_t size = CLASS_MAX + 1; size <= CLASS_LARGE_MAX; size++) {
        unsigned class = CLASS_COUNT + class_of_large(size);
        fit &= class_size(class) == class_round(size) && class < CLASS_COUNT + CLASS_LARGE_COUNT;
    }
    tap_ok(fit, "large classes are the rounded sizes");
    tap_ok(waste, "above 128 bytes at most a fifth is wasted");
}

static void test_rounding(void)
{
    bool good = true;
    for (size_t size = CLASS_MAX + 1; size < (size_t)1 << 40; size += size / 7 + 1) {
        size_t round = class_round(size);
        good &= round >= size && (round - size) * 5 <= round && round % 4096 == 0;
    }
    good &= class_round((size_t)4 << 20) == (size_t)4 << 20;
    good &= class_round(((size_t)4 << 20) + 1) == (size_t)5 << 20;
    tap_ok(good, "class_round: four steps a doubling, whole pages");
}

static void test_orders(void)
{
    bool good = true;
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        unsigned order = class_order(class);
        size_t span = GRANULE_SIZE << order;
        good &= order < CLASS_ORDERS && span / class_size(class) >= CLASS_BLOCKS;
        good &= order == 0 || (span >> 1) / class_size(class) < CLASS_BLOCKS;
    }
    tap_ok(good, "a span is the shortest that holds CLASS_BLOCKS blocks");
}

int main(void)
{
    test_classes();
    test_rounding();
    test_orders();
    return tap_done();
}
