#include "compare_witness.h"
#include "places.h"

#include <stdlib.h>
#include <string.h>

enum { KIND, PID, PPID, CPU, ERRORS, OBJECT, BUILD_ID, PROGRAM, FIELDS };

static struct witnessed *process_of(struct arena *a, struct testimony *t, int pid, int ppid)
{
    for (size_t i = t->processes; i-- > 0;)
        if (t->process[i].pid == pid)
            return &t->process[i];
    t->process = arena_grow(a, t->process, t->processes, sizeof *t->process);
    struct witnessed *w = &t->process[t->processes++];
    *w = (struct witnessed){.pid = pid, .ppid = ppid};
    return w;
}

static bool number(const char *text, uint64_t most, uint64_t *value)
{
    char *end;
    *value = strtoull(text, &end, 10);
    return end != text && !*end && *text != '-' && *value <= most;
}

static bool take_line(struct arena *a, char *line, struct testimony *t)
{
    char *field[FIELDS];
    uint64_t pid, ppid, cpu, errors;
    for (int i = 0; i < FIELDS; i++) {
        field[i] = line;
        line = i + 1 < FIELDS ? strchr(line, '\t') : NULL;
        if (!line && i + 1 < FIELDS)
            return false;
        if (line)
            *line++ = '\0';
    }
    const bool start = strcmp(field[KIND], "start") == 0;
    if ((!start && strcmp(field[KIND], "end") != 0) || !number(field[PID], INT32_MAX, &pid) ||
        !number(field[PPID], INT32_MAX, &ppid) || !number(field[CPU], UINT64_MAX - 1, &cpu) ||
        !number(field[ERRORS], 3, &errors) || !pid)
        return false;
    struct witnessed *w = process_of(a, t, (int)pid, (int)ppid);
    w->ended = !start;
    w->cpu_us = cpu;
    w->disagreeing = (unsigned)errors;
    w->object = field[OBJECT];
    w->build_id = field[BUILD_ID];
    w->program = field[PROGRAM];
    return true;
}

void testimony_read(struct arena *a, const char *text, size_t length, struct testimony *t)
{
    *t = (struct testimony){0};
    const char *end = text + length;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const size_t size = (size_t)((stop ? stop : end) - text);
        if (!stop || memchr(text, '\0', size) || !take_line(a, arena_strndup(a, text, size), t))
            t->torn++;
        text += size + 1;
    }
}

/* The file that a name in a line is, whatever links lead to it. */
static const char *real_of(struct arena *a, const char *object)
{
    const char *real = path_real(a, object);
    return real ? real : object;
}

static bool same_object(struct arena *a, const struct witnessed *w, const char *real, const char *build_id)
{
    return strcmp(real_of(a, w->object), real) == 0 && (!*build_id || strcmp(w->build_id, build_id) == 0);
}

/* The object with the most CPU time of processes that ended; of all where none did. */
static void find_object(struct arena *a, const struct testimony *t, const uint64_t *cpu, const bool *counts,
                        struct reach *r)
{
    uint64_t most = 0;
    for (size_t i = 0; i < t->processes; i++) {
        uint64_t sum = 0;
        for (size_t j = 0; counts[i] && j < t->processes; j++)
            if (counts[j] && strcmp(t->process[i].object, t->process[j].object) == 0)
                sum += cpu[j] + 1;
        if (sum <= most)
            continue;
        most = sum;
        r->object = real_of(a, t->process[i].object);
        r->build_id = strcmp(t->process[i].build_id, "-") == 0 ? "" : t->process[i].build_id;
    }
}

static double as_double(uint64_t us)
{
    return (double)us;
}

void testimony_judge(struct arena *a, const struct testimony *t, const struct tree *tree, const char *real,
                     const char *build_id, struct reach *r)
{
    *r = (struct reach){.processes = t->processes};
    uint64_t *cpu = arena_alloc(a, (t->processes + 1) * sizeof *cpu), told = 0, ended = 0;
    bool *counts = arena_alloc(a, (t->processes + 1) * sizeof *counts);
    const struct witnessed *main_process = NULL;
    size_t main_at = 0;
    for (size_t i = 0; i < t->processes; i++) {
        const struct witnessed *w = &t->process[i];
        counts[i] = w->ended;
        cpu[i] = w->ended ? w->cpu_us : 0;
        told += cpu[i];
        ended += w->ended;
        if (w->pid == tree->main_pid) {
            main_process = w;
            main_at = i;
        }
    }
    r->main_seen = main_process ? main_process->program : NULL;
    r->main_lost = !main_process || !main_process->ended;
    /* One that a signal ended could not say so: what it ran at last has to be what it said at its start. The rest of
     * the tree's time is then taken for its own. */
    if (main_process && !main_process->ended && tree->main_killed &&
        (!tree->main_program || strcmp(tree->main_program, main_process->program) == 0)) {
        r->main_lost = false;
        counts[main_at] = true;
        cpu[main_at] = tree->cpu_us > told ? tree->cpu_us - told : 0;
        told += cpu[main_at];
    }
    find_object(a, t, cpu, counts, r);
    if (!real) {
        real = r->object;
        build_id = r->build_id;
    }
    uint64_t served = 0, costliest = 0, largest = 0;
    for (size_t i = 0; real && i < t->processes; i++) {
        const struct witnessed *w = &t->process[i];
        if (!counts[i])
            continue;
        if (same_object(a, w, real, build_id) && !w->disagreeing) {
            served += cpu[i];
            r->served++;
            if (!r->program || cpu[i] > largest) {
                r->program = w->program;
                largest = cpu[i];
            }
        } else if (!r->other || cpu[i] > costliest) {
            costliest = cpu[i];
            r->other = arena_printf(a, "%s, whose malloc is of %s%s", w->program,
                                    strcmp(real_of(a, w->object), real_of(a, w->program)) == 0 ? "its own"
                                                                                               : w->object,
                                    w->disagreeing ? " and its free of another object" : "");
        }
    }
    const uint64_t allowance =
        UNSEEN_US_PER_PROCESS * ended + UNSEEN_US_PER_MIB * (tree->largest_bytes >> 20);
    const uint64_t unseen = tree->cpu_us > told + allowance ? tree->cpu_us - told - allowance : 0;
    if (told + unseen)
        r->share = as_double(served) / as_double(told + unseen);
    else
        r->share = r->processes ? as_double(r->served) / as_double(r->processes) : 0;
}
