/*
 * fragmentation.h - what fragment and replay tell of a look: resident and usable bytes over live ones.
 */
#ifndef AK_FRAGMENTATION_H
#define AK_FRAGMENTATION_H

#include <stdio.h>

#include "kernel.h"

/* Metrics internal_MOMENT_ratio, external_MOMENT_ratio and rss_over_live_MOMENT; `baseline`: resident bytes of the first look.
 * Empty for the reason `why` where that is not NULL, for `no_look` where nothing is live in it. */
static void fragmentation_report(const struct look *at, double baseline, const char *moment, const char *why,
                                 const char *no_look)
{
    const char *unknown = why != NULL ? why
                        : at->live == 0 ? no_look
                        : at->rss == 0 ? "the resident size cannot be read" : NULL;
    const char *no_usable = unknown != NULL ? unknown : at->usable < at->live ? "no malloc_usable_size" : NULL;
    double rss = (double)at->rss - baseline, live = (double)at->live, usable = (double)at->usable;
    char name[48];

    snprintf(name, sizeof name, "internal_%s_ratio", moment);
    ak_metric(name, "", no_usable ? 0 : (usable - live) / live, no_usable);
    snprintf(name, sizeof name, "external_%s_ratio", moment);
    ak_metric(name, "", no_usable ? 0 : (rss - usable) / usable, no_usable);
    snprintf(name, sizeof name, "rss_over_live_%s", moment);
    ak_metric(name, "", unknown ? 0 : rss / live, unknown);
}

#endif
