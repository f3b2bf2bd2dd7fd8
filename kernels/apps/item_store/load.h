/*
 * load.h - what the kernel and its load generator (ak-item-load) say to each other, over a Unix socket that keeps
 * messages apart (SOCK_SEQPACKET): the kernel sends an order, the load does it and answers with a report.
 */
#ifndef AK_ITEM_LOAD_H
#define AK_ITEM_LOAD_H

#include <stdint.h>

#define LOAD_TROUBLE 256

enum load_what {
    LOAD_WARM_UP,    /* insert items; each must be accepted */
    LOAD_INSERT,     /* the same; latencies are kept, over all such orders */
    LOAD_DUPLICATES, /* insert items that are there; each must be refused for that */
    LOAD_WRONG,      /* send each of a list of wrong requests once; each must be refused by its own name */
};

/* Items first, first + step, ...: `count` of them. */
struct load_order {
    enum load_what what;
    uint64_t first, step, count;
};

struct load_report {
    uint64_t answered; /* and checked */
    uint64_t
        latencies; /* how many; what follows is over them, in ms, from the send of a request to its whole answer */
    double mean, p50, p90, p99, max;
    char trouble[LOAD_TROUBLE]; /* why fewer were answered than ordered; "" where all were */
};

#endif
