#include "cells.h"
#include "columns.h"
#include "csv.h"
#include "results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *times_of(const struct cells *c, const struct planned *p)
{
    const size_t cell = c->first[p->block - c->plan->block] + p->member;
    return c->ns_per_op + cell * c->plan->reps;
}

struct by_id {
    const char *row_id;
    const struct planned *planned;
};

static int by_row_id(const void *a, const void *b)
{
    return strcmp(((const struct by_id *)a)->row_id, ((const struct by_id *)b)->row_id);
}

static bool learn(struct arena *a, struct cells *c, const char *folder, struct fault *f)
{
    struct csv_table runs;
    const int status = column_find("status"), wall = column_find("wall_ns"), ops = column_find("ops");
    const struct plan *plan = c->plan;
    struct by_id *by_id = arena_alloc(a, (plan->rows + 1) * sizeof *by_id);
    if (!csv_read(a, arena_printf(a, "%s/" FILE_RUNS, folder), &runs, f))
        return false;
    for (size_t i = 0; i < plan->rows; i++)
        by_id[i] = (struct by_id){plan->row[i].row_id, &plan->row[i]};
    qsort(by_id, plan->rows, sizeof *by_id, by_row_id);
    for (size_t i = 0; i < runs.rows; i++) {
        const char **field = runs.row[i].field;
        const struct by_id key = {.row_id = field[0]};
        const struct by_id *found = bsearch(&key, by_id, plan->rows, sizeof *by_id, by_row_id);
        if (found)
            times_of(c, found->planned)[found->planned->rep - 1] =
                stopping_value(found->planned->block->kernel->name, field[status], field[wall], field[ops]);
    }
    return true;
}

bool cells_open(struct arena *a, struct cells *c, const struct plan *plan, const char *folder,
                struct fault *f)
{
    struct arena memory = {0};
    *c = (struct cells){.plan = plan};
    if (plan->stopping.width <= 0)
        return true;
    c->first = arena_alloc(a, plan->blocks * sizeof *c->first);
    for (size_t b = 0; b < plan->blocks; b++) {
        c->first[b] = c->count;
        c->count += plan->block[b].members;
    }
    c->ns_per_op = arena_alloc(a, c->count * plan->reps * sizeof *c->ns_per_op);
    for (size_t i = 0; i < c->count * plan->reps; i++)
        c->ns_per_op[i] = NAN;
    bool good = learn(&memory, c, folder, f);
    arena_free(&memory);
    return good;
}

void cells_take(struct cells *c, const struct planned *p, const struct result *r)
{
    const char *wall = r->value[column_find("wall_ns")], *ops = r->value[column_find("ops")];
    if (c->count)
        times_of(c, p)[p->rep - 1] =
            stopping_value(p->block->kernel->name, status_names[r->status], wall ? wall : "", ops ? ops : "");
}

bool cells_need(const struct cells *c, const struct planned *p)
{
    return !c->count || p->rep <= stopping_last(&c->plan->stopping, times_of(c, p), p->rep - 1);
}

static double width_of(const struct cells *c, size_t cell)
{
    const double *times = c->ns_per_op + cell * c->plan->reps;
    return stopping_width(&c->plan->stopping, times, stopping_last(&c->plan->stopping, times, c->plan->reps));
}

static bool is_null(const struct block *b)
{
    return strcmp(b->kernel->name, "null") == 0;
}

size_t cells_narrow(const struct cells *c, size_t *compared)
{
    size_t narrow = 0;
    *compared = 0;
    for (size_t b = 0; c->count && b < c->plan->blocks; b++)
        for (size_t m = 0; m < c->plan->block[b].members && !is_null(&c->plan->block[b]); m++) {
            ++*compared;
            narrow += width_of(c, c->first[b] + m) <= c->plan->stopping.width;
        }
    return narrow;
}

/* Whether another block of the kernel has another value: only such options tell cells apart. */
static bool varies(const struct plan *plan, const struct block *b, const struct option_pair *o)
{
    for (size_t i = 0; i < plan->blocks; i++)
        if (plan->block[i].kernel == b->kernel &&
            strcmp(block_option(&plan->block[i], o->key), o->stable) != 0)
            return true;
    return false;
}

void cells_print_wide(const struct cells *c, size_t most)
{
    const struct plan *plan = c->plan;
    size_t wide = 0;
    for (size_t b = 0; c->count && b < plan->blocks; b++)
        for (size_t m = 0; m < plan->block[b].members && !is_null(&plan->block[b]); m++) {
            const struct block *block = &plan->block[b];
            const double width = width_of(c, c->first[b] + m);
            if (width <= plan->stopping.width || wide++ >= most)
                continue;
            printf("  %s %s", block->kernel->name, block->member[m].allocator->name);
            for (size_t o = 0; o < block->options; o++)
                if (varies(plan, block, &block->option[o]))
                    printf(" %s=%s", block->option[o].key, block->option[o].stable);
            printf(isfinite(width) ? ": width %.3g\n" : ": too few times for an interval\n", width);
        }
    if (wide > most)
        printf("  and %zu more\n", wide - most);
}
