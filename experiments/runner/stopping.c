#include "stopping.h"
#include "columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RISK 0.05 /* that the intervals of all looks may share */
#define RULE "width"

/* ---- intervals ---- */

/* Largest k with P(at most k - 1 of n fair coins) <= tail: the k-th smallest and the k-th largest bound the median. */
static size_t order_rank(size_t n, double tail)
{
    double sum = 0;
    size_t k = 0;
    while (k < n) {
        sum += exp(lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) -
                   (double)n * M_LN2);
        if (sum > tail)
            break;
        k++;
    }
    return k;
}

bool order_interval(const double *sorted, size_t count, double confidence, double *low, double *high)
{
    const size_t k = order_rank(count, (1 - confidence) / 2);
    if (!k)
        return false;
    *low = sorted[k - 1];
    *high = sorted[count - k];
    return true;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double stopping_width(const struct stopping *s, const double *ns_per_op, uint64_t known)
{
    double *sorted = malloc((known + 1) * sizeof *sorted), low, high, width = INFINITY;
    size_t n = 0;
    for (uint64_t i = 0; sorted && i < known; i++)
        if (isfinite(ns_per_op[i]))
            sorted[n++] = ns_per_op[i];
    if (n) {
        qsort(sorted, n, sizeof *sorted, by_size);
        const double median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
        if (median > 0 && order_interval(sorted, n, s->confidence, &low, &high))
            width = (high - low) / median;
    }
    free(sorted);
    return width;
}

/* ---- looks ---- */

/* Each look is at two thirds of the next one's. */
static uint64_t earlier(uint64_t look)
{
    return (2 * look + 2) / 3;
}

bool stopping_plan(struct stopping *s, double width, uint64_t least, uint64_t most)
{
    *s = (struct stopping){.width = width};
    if (most < least)
        return false;
    for (uint64_t n = most;
         s->looks < STOPPING_LOOKS_MAX && (n == most || (n >= least && n >= STOPPING_LEAST)); n = earlier(n))
        s->look[s->looks++] = n;
    for (size_t i = 0; i < s->looks / 2; i++) {
        const uint64_t kept = s->look[i];
        s->look[i] = s->look[s->looks - 1 - i];
        s->look[s->looks - 1 - i] = kept;
    }
    /* A look at too few has no interval and would cost the others some of theirs. */
    s->confidence = 1 - RISK / (double)s->looks;
    while (s->looks && !order_rank(s->look[0], (1 - s->confidence) / 2)) {
        memmove(s->look, s->look + 1, --s->looks * sizeof *s->look);
        s->look[s->looks] = 0;
        s->confidence = 1 - RISK / (double)s->looks;
    }
    return s->looks > 0;
}

uint64_t stopping_last(const struct stopping *s, const double *ns_per_op, uint64_t known)
{
    for (size_t i = 0; i < s->looks && s->look[i] <= known; i++) {
        bool any = false;
        for (uint64_t rep = 0; rep < s->look[i]; rep++)
            any |= isfinite(ns_per_op[rep]);
        if (!any || stopping_width(s, ns_per_op, s->look[i]) <= s->width)
            return s->look[i];
    }
    return s->looks ? s->look[s->looks - 1] : UINT64_MAX;
}

/* ---- as text ---- */

json_t *stopping_json(const struct stopping *s)
{
    if (s->width <= 0)
        return json_null();
    json_t *at = json_array();
    for (size_t i = 0; i < s->looks; i++)
        json_array_append_new(at, json_integer((json_int_t)s->look[i]));
    return json_pack("{s:s, s:f, s:I, s:f, s:o}", "rule", RULE, "width", s->width, "looks",
                     (json_int_t)s->looks, "confidence", s->confidence, "at", at);
}

bool stopping_read(const json_t *json, struct stopping *s)
{
    const json_t *rule = json_object_get(json, "rule"), *at = json_object_get(json, "at");
    *s = (struct stopping){0};
    if (!json || json_is_null(json))
        return true;
    if (!json_is_string(rule) || strcmp(json_string_value(rule), RULE) != 0)
        return false;
    s->width = json_number_value(json_object_get(json, "width"));
    s->confidence = json_number_value(json_object_get(json, "confidence"));
    s->looks = json_array_size(at);
    if (!(s->width > 0) || !s->looks || s->looks > STOPPING_LOOKS_MAX ||
        (json_int_t)s->looks != json_integer_value(json_object_get(json, "looks")) ||
        fabs(s->confidence - (1 - RISK / (double)s->looks)) > 1e-12)
        return false;
    for (size_t i = 0; i < s->looks; i++) {
        s->look[i] = (uint64_t)json_integer_value(json_array_get(at, i));
        if (s->look[i] < 1 || s->look[i] > UINT32_MAX || (i && s->look[i] <= s->look[i - 1]) ||
            (i && s->look[i - 1] != earlier(s->look[i])))
            return false;
    }
    return true;
}

double stopping_value(const char *kernel, const char *status, const char *wall_ns, const char *ops)
{
    const double wall = strtod(wall_ns, NULL), count = strtod(ops, NULL);
    const bool counts = strcmp(kernel, "null") != 0 && strcmp(status, status_names[STATUS_OK]) == 0;
    return counts && *wall_ns && wall > 0 && count > 0 ? wall / count : NAN;
}
