#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

const char *duration_text(double seconds, char text[32])
{
    uint64_t s = seconds > 0 ? (uint64_t)(seconds + 0.5) : 0;
    if (s > 8640000)
        snprintf(text, 32, "over 100 days");
    else if (s >= 3600)
        snprintf(text, 32, "%" PRIu64 " h %02" PRIu64 " min", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(text, 32, "%" PRIu64 " min %02" PRIu64 " s", s / 60, s % 60);
    else
        snprintf(text, 32, "%" PRIu64 " s", s);
    return text;
}

void progress_start(struct progress *g, const struct plan *plan, const bool *done, size_t done_count)
{
    *g = (struct progress){.plan = plan,
                           .terminal = isatty(STDOUT_FILENO) == 1,
                           .start_ms = now_ms(),
                           .first = done_count,
                           .rows = plan->rows,
                           .done = done_count};
    for (size_t i = 0; i < plan->rows; i++)
        if (!done[i])
            g->cost_all += plan_row_ns(&plan->row[i]);
}

static void name_row(const struct planned *p, char *text, size_t size)
{
    const struct block *b = p->block;
    char threads[48] = "";
    if (b->threads)
        snprintf(threads, sizeof threads, " threads=%" PRIu64, b->threads);
    snprintf(text, size, "%s%s%s %s%s rep=%" PRIu64, b->kernel->name, *b->variant ? "/" : "", b->variant,
             b->member[p->member].allocator->name, threads, p->rep);
}

/* Rewrite the terminal's line, cut to its width. */
static void show(struct progress *g, const char *text)
{
    struct winsize size;
    int width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
    int length = (int)strlen(text) < width ? (int)strlen(text) : width;
    int blanks = (int)g->width > length ? (int)g->width - length : 0;
    printf("\r%.*s%*s", length, text, blanks, "");
    fflush(stdout);
    g->width = (size_t)length;
}

void progress_row(struct progress *g, const struct planned *p)
{
    char row[160], line[320], left[32];
    g->row_ms = now_ms();
    if (!g->terminal)
        return;
    name_row(p, row, sizeof row);
    double spent = (double)(g->row_ms - g->start_ms) / 1000;
    if (g->cost_done > 0)
        snprintf(line, sizeof line, "%zu/%zu  %s  %s left", g->done, g->rows, row,
                 duration_text(spent * (g->cost_all - g->cost_done) / g->cost_done, left));
    else
        snprintf(line, sizeof line, "%zu/%zu  %s", g->done, g->rows, row);
    show(g, line);
}

void progress_done(struct progress *g, const struct planned *p, const struct result *r)
{
    char row[160];
    g->done++;
    g->cost_done += plan_row_ns(p);
    bool bad = r->status != STATUS_OK && r->status != STATUS_SKIPPED;
    if (g->terminal && !bad)
        return;
    if (g->terminal)
        show(g, "");
    name_row(p, row, sizeof row);
    printf("%s%zu/%zu %s %s %.2f s%s%s\n", g->terminal ? "\r" : "", g->done, g->rows, row,
           status_names[r->status], (double)(now_ms() - g->row_ms) / 1000, *r->detail ? ": " : "", r->detail);
    fflush(stdout);
    g->width = 0;
}

void progress_spare(struct progress *g, const struct planned *p)
{
    g->rows--;
    g->cost_all -= plan_row_ns(p);
}

void progress_end(struct progress *g)
{
    if (g->terminal && g->width)
        show(g, "");
    if (g->terminal)
        fputs("\r", stdout);
}
