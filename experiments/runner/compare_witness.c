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
    static const char *const kinds[] = {
        [SAID_START] = "start", [SAID_END] = "end", [SAID_EXEC] = "exec", [SAID_SPAWN] = "spawn"};
    size_t kind = 0;
    while (kind < sizeof kinds / sizeof *kinds && strcmp(field[KIND], kinds[kind]) != 0)
        kind++;
    if (kind == sizeof kinds / sizeof *kinds || !number(field[PID], INT32_MAX, &pid) ||
        !number(field[PPID], INT32_MAX, &ppid) || !number(field[CPU], UINT64_MAX - 1, &cpu) ||
        !number(field[ERRORS], 3, &errors) || !pid)
        return false;
    const size_t before = t->processes;
    struct witnessed *w = process_of(a, t, (int)pid, (int)ppid);
    if (kind == SAID_SPAWN && t->processes == before)
        return true; /* it has told of itself since */
    w->last = (enum said)kind;
    if (kind == SAID_EXEC || kind == SAID_SPAWN) {
        w->became = field[PROGRAM];
        return true;
    }
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

static bool is_lost(const struct witnessed *w)
{
    return w->last == SAID_EXEC || w->last == SAID_SPAWN;
}

static bool same_object(struct arena *a, const struct witnessed *w, const char *real, const char *build_id)
{
    return strcmp(real_of(a, w->object), real) == 0 && (!*build_id || strcmp(w->build_id, build_id) == 0);
}

/* The object with the most CPU time of the processes that count. */
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

/* One that was not served, in words. */
static const char *unserved_words(struct arena *a, const struct witnessed *w)
{
    if (is_lost(w))
        return arena_printf(
            a,
            "%s, which loaded nothing that was preloaded: it is static or privileged, or its environment was "
            "cleared",
            w->became);
    return arena_printf(a, "%s, whose malloc is of %s%s", w->program,
                        strcmp(real_of(a, w->object), real_of(a, w->program)) == 0 ? "its own" : w->object,
                        w->disagreeing ? " and its free of another object" : "");
}

/* The command itself, where it told: whether its last word can be taken for what it was to its end. One that a signal
 * ended could say no end, but what it ran at last has to be what it said at its start; one that ended in order and
 * said none became another program, or is no better known. */
static bool main_known(const struct witnessed *w, const struct tree *tree)
{
    if (!w || is_lost(w))
        return false;
    return w->last == SAID_END ||
           (tree->main_killed && (!tree->main_program || strcmp(tree->main_program, w->program) == 0));
}

void testimony_judge(struct arena *a, const struct testimony *t, const struct tree *tree, const char *real,
                     const char *build_id, struct reach *r)
{
    *r = (struct reach){.processes = t->processes};
    uint64_t *cpu = arena_alloc(a, (t->processes + 1) * sizeof *cpu), told = 0;
    bool *counts = arena_alloc(a, (t->processes + 1) * sizeof *counts);
    const struct witnessed *main_process = NULL;
    size_t ended = 0, open = 0;
    for (size_t i = 0; i < t->processes; i++)
        if (t->process[i].pid == tree->main_pid)
            main_process = &t->process[i];
    r->main_seen = main_process ? main_process->program : NULL;
    r->main_became = main_process && is_lost(main_process) ? main_process->became : NULL;
    r->main_lost = !main_known(main_process, tree);
    for (size_t i = 0; i < t->processes; i++) {
        const struct witnessed *w = &t->process[i];
        counts[i] = !is_lost(w) && !(w == main_process && r->main_lost);
        cpu[i] = w->last == SAID_END ? w->cpu_us : 0;
        told += cpu[i];
        ended += w->last == SAID_END;
    }
    open = t->processes - ended;
    /* Who said no end gets an equal part of what nobody told of; without such, it is of processes without a line. */
    const uint64_t allowance =
        UNSEEN_US_PER_PROCESS * ended + UNSEEN_US_PER_MIB * (tree->largest_bytes >> 20);
    uint64_t unseen = tree->cpu_us > told + allowance ? tree->cpu_us - told - allowance : 0;
    if (open) {
        for (size_t i = 0; i < t->processes; i++)
            if (t->process[i].last != SAID_END)
                cpu[i] = unseen / open;
        told += unseen / open * open;
        unseen = 0;
    }
    find_object(a, t, cpu, counts, r);
    if (!real) {
        real = r->object;
        build_id = r->build_id;
    }
    uint64_t served = 0, costliest = 0, largest = 0;
    for (size_t i = 0; i < t->processes; i++) {
        const struct witnessed *w = &t->process[i];
        if (real && counts[i] && same_object(a, w, real, build_id) && !w->disagreeing) {
            served += cpu[i];
            r->served++;
            if (!r->program || cpu[i] > largest) {
                r->program = w->program;
                largest = cpu[i];
            }
        } else if ((counts[i] || is_lost(w)) && (!r->other || cpu[i] > costliest)) {
            costliest = cpu[i];
            r->other = unserved_words(a, w);
        }
    }
    if (told + unseen)
        r->share = as_double(served) / as_double(told + unseen);
    else
        r->share = r->processes ? as_double(r->served) / as_double(r->processes) : 0;
}
