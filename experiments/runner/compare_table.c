#include "compare_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CELL 40

enum column {
    NAME,
    RUNS,
    WALL_TIME,
    RATIO,
    INTERVAL,
    USER_TIME,
    SYS_TIME,
    CPU_RATIO,
    PEAK,
    PEAK_RATIO,
    FAULTS,
    SWITCHED,
    SHARE,
    COLUMNS
};
static const char *const titles[COLUMNS] = {"allocator", "runs",     "time",  "ratio",    "95 % interval",
                                            "user",      "sys",      "ratio", "peak RSS", "ratio",
                                            "faults",    "switches", "malloc"};

static void cell_ratio(char *cell, double value)
{
    if (isnan(value))
        snprintf(cell, CELL, "-");
    else
        snprintf(cell, CELL, "%.3f", value);
}

static void cell_count(char *cell, double value)
{
    if (isnan(value))
        snprintf(cell, CELL, "-");
    else
        snprintf(cell, CELL, "%.0f", value);
}

static void fill_row(struct arena *a, const struct comparison *cmp, size_t i, char row[COLUMNS][CELL])
{
    const struct contender *c = &cmp->contender[i];
    struct compare_summary s;
    char text[32];
    compare_summarise(a, cmp, i, &s);
    snprintf(row[NAME], CELL, "%s", c->label);
    if (s.failed)
        snprintf(row[RUNS], CELL, "%zu of %zu", s.ok, s.ok + s.failed);
    else
        snprintf(row[RUNS], CELL, "%zu", s.ok);
    snprintf(row[WALL_TIME], CELL, "%s", compare_time_text(s.wall_ns, text));
    snprintf(row[USER_TIME], CELL, "%s", compare_time_text(s.user_ns, text));
    snprintf(row[SYS_TIME], CELL, "%s", compare_time_text(s.system_ns, text));
    snprintf(row[PEAK], CELL, "%s", compare_bytes_text(s.rss_peak_bytes, text));
    cell_count(row[FAULTS], s.minor_faults + s.major_faults);
    cell_count(row[SWITCHED], s.switches);
    if (c->no_share)
        snprintf(row[SHARE], CELL, "-");
    else
        snprintf(row[SHARE], CELL, "%.1f %%", c->share.malloc_share * 100);
    if (i == 0) {
        snprintf(row[RATIO], CELL, s.ok ? "1" : "-");
        snprintf(row[INTERVAL], CELL, "the default");
        snprintf(row[CPU_RATIO], CELL, s.ok ? "1" : "-");
        snprintf(row[PEAK_RATIO], CELL, s.ok ? "1" : "-");
        return;
    }
    cell_ratio(row[RATIO], s.wall.value);
    cell_ratio(row[CPU_RATIO], s.cpu.value);
    cell_ratio(row[PEAK_RATIO], s.memory.value);
    if (isnan(s.wall.low))
        snprintf(row[INTERVAL], CELL, "-");
    else
        snprintf(row[INTERVAL], CELL, "%.3f to %.3f", s.wall.low, s.wall.high);
}

/* Names to the left, numbers to the right. */
static void add_line(struct buffer *b, char row[COLUMNS][CELL], const size_t width[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++)
        buffer_addf(b, i == NAME ? "%-*s" : "  %*s", (int)width[i], row[i]);
    buffer_add(b, "\n", 1);
}

static void add_table(const struct comparison *cmp, struct buffer *b)
{
    struct arena a = {0};
    char(*row)[COLUMNS][CELL] = arena_alloc(&a, (cmp->contenders + 1) * sizeof *row);
    size_t width[COLUMNS] = {0};
    for (int i = 0; i < COLUMNS; i++)
        snprintf(row[0][i], CELL, "%s", titles[i]);
    for (size_t c = 0; c < cmp->contenders; c++)
        fill_row(&a, cmp, c, row[c + 1]);
    for (size_t r = 0; r <= cmp->contenders; r++)
        for (int i = 0; i < COLUMNS; i++)
            width[i] = strlen(row[r][i]) > width[i] ? strlen(row[r][i]) : width[i];
    for (size_t r = 0; r <= cmp->contenders; r++)
        add_line(b, row[r], width);
    arena_free(&a);
}

/* ---- while it is measured ---- */

void compare_view_open(struct compare_view *v, const struct comparison *cmp)
{
    *v = (struct compare_view){.terminal = !cmp->options.json && isatty(STDOUT_FILENO) == 1};
}

/* Each line cut to the terminal's width; none wraps, or the next drawing would not find its place. */
static void draw(struct compare_view *v, const char *text)
{
    struct winsize size;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    const size_t width = known ? size.ws_col - 1u : 79;
    const size_t rows = known && size.ws_row > 2 ? size.ws_row - 1u : 23;
    if (v->lines)
        printf("\033[%zuA", v->lines);
    size_t lines = 0;
    for (; *text && lines < rows; lines++) {
        const size_t length = strcspn(text, "\n");
        printf("\r\033[K%.*s\n", (int)(length < width ? length : width), text);
        text += length + (text[length] == '\n');
    }
    printf("\033[J");
    fflush(stdout);
    v->lines = lines;
}

void compare_view_show(struct compare_view *v, const struct comparison *cmp, const char *doing)
{
    struct buffer b = {0};
    if (!v->terminal)
        return;
    if (doing) {
        add_table(cmp, &b);
        buffer_addf(&b, "%s\n", doing);
    }
    draw(v, doing ? b.data : "");
    buffer_free(&b);
}

/* ---- at the end ---- */

static void add_heading(struct arena *a, const struct comparison *cmp, struct buffer *b)
{
    const struct compare_options *o = &cmp->options;
    buffer_addf(b, "%s\n", compare_command_text(a, cmp));
    buffer_addf(b,
                "medians of %s launch%s under each allocator, interleaved in random order (seed %" PRIu64
                "), after %" PRIu64 " warm-up%s\n",
                cmp->stopped ? "the" : arena_printf(a, "%" PRIu64, o->runs),
                o->runs == 1 && !cmp->stopped ? "" : "es", o->seed, o->warmup, o->warmup == 1 ? "" : "s");
    buffer_addf(b, "ratios to the default are paired by round; intervals by exact order statistics%s\n",
                o->runs < PAIRS_LEAST ? arena_printf(a, ", and none from fewer than %d launches", PAIRS_LEAST)
                                      : "");
    if (o->load)
        buffer_addf(
            b, "time: of the load; user, sys, peak RSS, faults and switches: of the server, start and end "
               "included\n");
    buffer_addf(b, "peak RSS: of the largest process of the command (ru_maxrss), not of all together\n\n");
}

/* What the published rule says, and what of the samples is behind it. */
static void add_rule(const struct comparison *cmp, struct buffer *b)
{
    const struct contender *base = &cmp->contender[0];
    if (base->no_share)
        buffer_addf(b, "share in malloc and free: not known: %s\n", base->no_share);
    else
        buffer_addf(b,
                    "malloc and free take %.1f %% of %" PRIu64 " CPU samples under %s: a swap is %s "
                    "(the rule: from 10 %% on)\n",
                    base->share.malloc_share * 100, base->share.samples, base->name,
                    base->share.malloc_share >= VERDICT_SHARE ? "worth trying" : "not likely to pay");
}

static void add_verdicts(struct arena *a, const struct comparison *cmp, struct buffer *b)
{
    int width = 0;
    for (size_t i = 1; i < cmp->contenders; i++) {
        const int length = (int)strlen(cmp->contender[i].name);
        width = length > width ? length : width;
    }
    for (size_t i = 1; i < cmp->contenders; i++) {
        struct compare_summary s;
        const struct contender *c = &cmp->contender[i];
        compare_summarise(a, cmp, i, &s);
        if (c->gone && !s.ok) {
            buffer_addf(b, "%-*s  %s: %s\n", width, c->name, verdict_words[VERDICT_NONE], c->gone);
            continue;
        }
        buffer_addf(b, "%-*s  %s: %s", width, c->name, verdict_words[s.given.verdict], s.given.words);
        if (s.reach < 0.9)
            buffer_addf(b, "; it reached about %.0f %% of the CPU time", s.reach * 100);
        buffer_addf(b, "\n");
    }
}

/* A cause is told once, with its count. */
static void add_failures(const struct comparison *cmp, struct buffer *b)
{
    for (size_t i = 0; i < cmp->launches; i++) {
        const struct compare_launch *l = &cmp->launch[i];
        size_t times = 0, earlier = 0;
        for (size_t j = 0; l->status != COMPARE_OK && j < cmp->launches; j++) {
            const struct compare_launch *m = &cmp->launch[j];
            const bool same =
                m->contender == l->contender && m->status == l->status && strcmp(m->detail, l->detail) == 0;
            times += same;
            earlier += same && j < i;
        }
        if (!times || earlier)
            continue;
        buffer_addf(b, "failed: %s, %zu launch%s: %s\n", cmp->contender[l->contender].name, times,
                    times == 1 ? "" : "es", l->detail);
        for (const char *at = l->said; *at;) {
            const size_t length = strcspn(at, "\n");
            buffer_addf(b, "  | %.*s\n", (int)length, at);
            at += length + (at[length] == '\n');
        }
    }
}

/* Trees in which some processes had another allocator. */
static void add_reach(const struct comparison *cmp, struct buffer *b)
{
    for (size_t c = 1; c < cmp->contenders; c++)
        for (size_t i = cmp->launches; i-- > 0;) {
            const struct compare_launch *l = &cmp->launch[i];
            if (l->contender != c || l->kind != KIND_TIMED || l->status != COMPARE_OK)
                continue;
            if (l->served < l->processes || l->reach < 0.9)
                buffer_addf(b,
                            "%s served %zu of the %zu processes that the witness saw, and about %.0f %% of "
                            "the CPU time%s%s%s\n",
                            cmp->contender[c].name, l->served, l->processes, l->reach * 100,
                            l->other ? " (not served: " : "", l->other ? l->other : "", l->other ? ")" : "");
            break;
        }
}

void compare_print(const struct comparison *cmp, struct buffer *b)
{
    struct arena a = {0};
    if (cmp->launches && cmp->launch[0].status != COMPARE_OK) {
        buffer_addf(b, "%s\nnothing was compared: the command fails by itself\n",
                    compare_command_text(&a, cmp));
        add_failures(cmp, b);
        arena_free(&a);
        return;
    }
    add_heading(&a, cmp, b);
    add_table(cmp, b);
    buffer_addf(b, "\n");
    add_rule(cmp, b);
    add_verdicts(&a, cmp, b);
    add_reach(cmp, b);
    add_failures(cmp, b);
    for (size_t i = 0; i < cmp->notes.count; i++)
        buffer_addf(b, "note: %s\n", cmp->notes.word[i]);
    for (size_t i = 0; i < cmp->skipped.count; i++)
        buffer_addf(b, "not here: %s\n", cmp->skipped.word[i]);
    if (cmp->stopped)
        buffer_addf(b, "stopped: this is what was measured until then\n");
    arena_free(&a);
}
