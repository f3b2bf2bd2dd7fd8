#include "compare_plot.h"
#include "child.h"
#include "output.h"
#include "places.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLOT_BYTES_MAX ((size_t)64 << 20)
#define PLOT_MS        60000
#define ROOM           0.15 /* beside the longest interval, as a share of the width */

static bool ends_in(const char *file, const char *suffix)
{
    const char *dot = strrchr(file, '.');
    return dot && strcmp(dot, suffix) == 0;
}

bool compare_plot_check(struct arena *a, const char *file, struct fault *f)
{
    if (!ends_in(file, ".svg") && !ends_in(file, ".pdf"))
        return fault_set(f, AK_USAGE, "compare: --plot %s: expected a name that ends in .svg or .pdf", file);
    if (!program_find(a, "gnuplot"))
        return fault_set(f, AK_ENVIRONMENT,
                         "compare: --plot: gnuplot is not on PATH: apt install gnuplot-nox");
    return true;
}

/* A file's name, within single quotes of gnuplot. */
static const char *quoted_name(struct arena *a, const char *name)
{
    char *to = arena_alloc(a, 2 * strlen(name) + 3), *at = to;
    *at++ = '\'';
    for (; *name; name++) {
        *at++ = *name;
        if (*name == '\'')
            *at++ = '\'';
    }
    *at = '\'';
    return to;
}

/* A text within double quotes of gnuplot; enhanced mode's signs are ordinary ones. */
static const char *quoted(struct arena *a, const char *text)
{
    char *to = arena_alloc(a, 4 * strlen(text) + 3), *at = to;
    *at++ = '"';
    for (; *text; text++) {
        if (strchr("_^@&{}~", *text)) {
            *at++ = '\\';
            *at++ = '\\';
        } else if (*text == '\\') { /* of both */
            memset(at, '\\', 3);
            at += 3;
        } else if (strchr("\"`", *text)) {
            *at++ = '\\';
        }
        *at++ = *text;
    }
    *at = '"';
    return to;
}

/* One block of lines: place, ratio, low, high; without an interval the point alone. */
static void add_points(struct buffer *b, const char *block, const struct ratio *ratios, size_t count,
                       double shift)
{
    buffer_addf(b, "%s << END\n", block);
    for (size_t i = 1; i < count; i++) {
        const struct ratio *r = &ratios[i];
        if (isnan(r->value))
            continue;
        buffer_addf(b, "%.2f %.6f %.6f %.6f\n", -(double)i + shift, r->value,
                    isnan(r->low) ? r->value : r->low, isnan(r->high) ? r->value : r->high);
    }
    buffer_addf(b, "0 NaN NaN NaN\nEND\n"); /* a block is never empty */
}

static void add_script(struct arena *a, const struct comparison *cmp, const char *file, const char *target,
                       struct buffer *b)
{
    const size_t n = cmp->contenders;
    struct ratio *time = arena_alloc(a, n * sizeof *time), *memory = arena_alloc(a, n * sizeof *memory);
    double low = 1, high = 1;
    for (size_t i = 1; i < n; i++) {
        struct compare_summary s;
        compare_summarise(a, cmp, i, &s);
        time[i] = s.wall;
        memory[i] = s.memory;
        low = fmin(low, fmin(fmin(s.wall.value, s.wall.low), fmin(s.memory.value, s.memory.low)));
        high = fmax(high, fmax(fmax(s.wall.value, s.wall.high), fmax(s.memory.value, s.memory.high)));
    }
    const double margin = (high - low) * ROOM + 0.01;
    buffer_addf(b, "set terminal ");
    const int rows = (int)n;
    if (ends_in(file, ".svg"))
        buffer_addf(b, "svg size 900,%d enhanced font 'sans,14' background 'white'\n", 160 + 50 * rows);
    else
        buffer_addf(b, "pdfcairo size 18cm,%dcm enhanced font 'sans,11'\n", 4 + rows);
    buffer_addf(b, "set output %s\n", quoted_name(a, target));
    char *title = arena_strdup(a, compare_command_text(a, cmp));
    if (strlen(title) > 80) {
        char *cut = title + 77;
        while ((*cut & 0xc0) == 0x80) /* not within a character */
            cut--;
        memcpy(cut, "...", 4);
    }
    buffer_addf(b, "set title %s\n", quoted(a, title));
    buffer_addf(b, "set xlabel %s\n",
                quoted(a, arena_printf(a, "ratio to %s, median and 95 %% interval of paired launches",
                                       cmp->contender[0].name)));
    buffer_addf(
        b, "set xrange [%.6f:%.6f]\nset yrange [%.1f:0]\nset grid x\nset key outside top right vertical\n",
        low - margin, high + margin, -(double)n);
    buffer_addf(b, "set arrow from 1, graph 0 to 1, graph 1 nohead dashtype 2\nset ytics (");
    for (size_t i = 1; i < n; i++)
        buffer_addf(b, "%s%s %d", i > 1 ? ", " : "", quoted(a, cmp->contender[i].name), -(int)i);
    buffer_addf(b, ")\n");
    add_points(b, "$time", time, n, 0.12);
    add_points(b, "$memory", memory, n, -0.12);
    buffer_addf(b, "plot $time using 2:1:3:4 with xerrorbars pt 7 lc rgb '#0072b2' title 'time', "
                   "$memory using 2:1:3:4 with xerrorbars pt 5 lc rgb '#d55e00' title 'peak memory'\n");
}

static bool run_gnuplot(struct arena *a, const char *launcher, const char *script, struct fault *f)
{
    const char *argv[] = {program_find(a, "gnuplot"), script, NULL};
    struct words kept = {0};
    const struct child_request r = {
        .argv = argv, .env = child_environment(a, &kept), .timeout_ms = PLOT_MS, .out_max = PLOT_BYTES_MAX};
    struct child_outcome o;
    if (!argv[0])
        return fault_set(f, AK_ENVIRONMENT, "gnuplot is not on PATH any more");
    if (!child_run(launcher, &r, &o, f))
        return false;
    if (o.end != CHILD_EXITED || o.code != 0)
        fault_set(f, AK_ENVIRONMENT, "gnuplot: %s: %s", child_end_words(a, &o),
                  text_last_line(a, o.err.data, TEXT_CLEAN_MAX));
    child_outcome_free(&o);
    return f->code == AK_DONE;
}

static bool copy_file(struct arena *a, const char *from, const char *to, struct fault *f)
{
    struct output out;
    FILE *drawn = fopen(from, "re");
    char bytes[65536];
    size_t got;
    if (!drawn)
        return fault_set(f, AK_ENVIRONMENT, "gnuplot drew nothing");
    bool good = output_open(a, &out, to, f);
    while (good && (got = fread(bytes, 1, sizeof bytes, drawn)) > 0) {
        struct buffer b = {0};
        buffer_add(&b, bytes, got);
        good = output_write(&out, &b, f);
        buffer_free(&b);
    }
    fclose(drawn);
    good = good && output_commit(&out, f);
    if (!good)
        output_discard(&out);
    return good;
}

bool compare_plot(struct arena *a, const char *launcher, const char *folder, const struct comparison *cmp,
                  const char *file, struct fault *f)
{
    const char *script = arena_printf(a, "%s/plot.gp", folder),
               *drawn = arena_printf(a, "%s/plot.out", folder);
    struct buffer text = {0};
    struct output out;
    add_script(a, cmp, file, drawn, &text);
    bool good = output_open(a, &out, script, f) && output_write(&out, &text, f) && output_commit(&out, f);
    if (!good)
        output_discard(&out);
    good = good && run_gnuplot(a, launcher, script, f) && copy_file(a, drawn, file, f);
    unlink(script);
    unlink(drawn);
    buffer_free(&text);
    return good;
}
