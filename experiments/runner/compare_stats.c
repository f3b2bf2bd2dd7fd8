#include "compare_stats.h"
#include "stopping.h"

#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_of(double *value, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(value[i]))
            value[n++] = value[i];
    if (!n)
        return NAN;
    qsort(value, n, sizeof *value, by_size);
    return (value[(n - 1) / 2] + value[n / 2]) / 2;
}

static double spread_of(const double *value, size_t count)
{
    double mean = 0, squares = 0;
    if (count < 2)
        return NAN;
    for (size_t i = 0; i < count; i++)
        mean += value[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (value[i] - mean) * (value[i] - mean);
    return sqrt(squares / (double)(count - 1));
}

struct ratio ratio_of(const double *mine, const double *base, size_t rounds)
{
    struct ratio r = {.value = NAN, .low = NAN, .high = NAN, .spread = NAN};
    double *log_ratio = calloc(rounds + 1, sizeof *log_ratio);
    for (size_t i = 0; log_ratio && i < rounds; i++)
        if (isfinite(mine[i]) && isfinite(base[i]) && mine[i] > 0 && base[i] > 0)
            log_ratio[r.pairs++] = log(mine[i] / base[i]);
    if (r.pairs) {
        double low, high;
        r.spread = spread_of(log_ratio, r.pairs);
        r.value = exp(median_of(log_ratio, r.pairs)); /* sorts */
        if (r.pairs >= PAIRS_LEAST && order_interval(log_ratio, r.pairs, RATIO_CONFIDENCE, &low, &high)) {
            r.low = exp(low);
            r.high = exp(high);
        }
    }
    free(log_ratio);
    return r;
}

uint64_t ratio_pairs_needed(const struct ratio *r, double bound)
{
    if (r->pairs < PAIRS_LEAST)
        return PAIRS_LEAST - r->pairs;
    const double half = 1.96 * sqrt(M_PI / 2) * r->spread, away = fabs(log(r->value / bound));
    const double need = ceil(half * half / (away * away));
    if (!(need <= PAIRS_MOST)) /* no distance at all, too */
        return UINT64_MAX;
    if (need > (double)r->pairs)
        return (uint64_t)need - r->pairs;
    return r->pairs < PAIRS_TRIMMED ? PAIRS_TRIMMED - r->pairs : 1;
}
