#include "result.h"
#include "csv.h"
#include "linked.h"
#include "trust.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECIMAL_MAX 1e18 /* no time, rate or load is larger */

/* ---- the row ---- */

static void put(struct result *r, const char *column, const char *value)
{
    int at = column_find(column);
    if (at >= 0)
        r->value[at] = value;
}

static const char *get(const struct result *r, const char *column)
{
    int at = column_find(column);
    return at >= 0 && r->value[at] ? r->value[at] : "";
}

static void put_number(struct arena *a, struct result *r, const char *column, uint64_t number)
{
    put(r, column, arena_printf(a, "%" PRIu64, number));
}

void result_begin(struct arena *a, const struct run_facts *run, const struct planned *p,
                  const char *started_at, struct result *r)
{
    static const char *const options[] = {"placement",   "size_min",      "size_max", "size_dist",
                                          "live_blocks", "lifetime_dist", "touch",    "heap_state"};
    const struct block *b = p->block;
    *r = (struct result){.detail = ""};
    put(r, "row_id", p->row_id);
    put(r, "run_id", run->run_id);
    put(r, "sweep", run->sweep);
    put(r, "kernel", b->kernel->name);
    put(r, "variant", b->variant);
    put(r, "allocator", b->member[p->member].allocator->name);
    unsigned cpus = b->machine ? b->machine->cores : run->cpus;
    put_number(a, r, "cpus", cpus);
    if (b->threads) {
        put_number(a, r, "threads", b->threads);
        put(r, "oversubscribed", b->threads > cpus ? "1" : "0");
    }
    if (b->machine) {
        put(r, "sim_mode", block_option(b, "sim_mode"));
        put(r, "sim_quantum", block_option(b, "sim_quantum"));
        put(r, "sim_retries", "0");
    }
    put(r, "numa_policy", block_option(b, "numa"));
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        put(r, options[i], block_option(b, options[i]));
    uint64_t total;
    if (b->threads && *block_option(b, "ops")) /* a kernel that takes its own says how it divides the work */
        put(r, "ops_per_thread", block_option(b, "ops"));
    else if (b->threads && text_uint(block_option(b, "ops_total"), 0, &total))
        put_number(a, r, "ops_per_thread", (total + b->threads - 1) / b->threads);
    put_number(a, r, "seed", p->seed);
    put_number(a, r, "rep", p->rep);
    put(r, "started_at", started_at);
    put(r, "machine_id", run->machine_id);
}

void result_fail(struct arena *a, struct result *r, enum status status, const char *format, ...)
{
    char detail[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    text_one_line(detail);
    r->status = status;
    r->detail = arena_strdup(a, detail);
    for (size_t i = 0; i < column_count; i++)
        if (columns[i].role == ROLE_MEASURED ||
            (columns[i].role == ROLE_SERVED && status != STATUS_WRONG_ALLOCATOR))
            r->value[i] = NULL;
    for (int s = 0; s < SIDES; s++)
        buffer_free(&r->side[s]);
}

void result_csv(const struct result *r, struct buffer *out)
{
    for (size_t i = 0; i < column_count; i++) {
        const char *value = r->value[i] ? r->value[i] : "";
        if (strcmp(columns[i].name, "status") == 0)
            value = status_names[r->status];
        else if (strcmp(columns[i].name, "status_detail") == 0)
            value = r->detail;
        csv_field(out, value);
    }
    csv_end_row(out);
}

void result_free(struct result *r)
{
    for (int s = 0; s < SIDES; s++)
        buffer_free(&r->side[s]);
}

/* ---- reading what a kernel printed ---- */

static bool decimal(const json_t *value, double *number)
{
    *number = json_number_value(value);
    return json_is_number(value) && isfinite(*number) && fabs(*number) <= DECIMAL_MAX;
}

/* A value as its column wants it, or NULL with *expected. */
static const char *as_column(struct arena *a, const struct column *c, const json_t *value,
                             const char **expected)
{
    double number;
    *expected = NULL;
    switch (c->type) {
    case COLUMN_TEXT:
        if (json_is_string(value))
            return text_clean(a, json_string_value(value));
        *expected = "text";
        return NULL;
    case COLUMN_COUNT:
    case COLUMN_SIGNED:
        if (json_is_integer(value) && (c->type == COLUMN_SIGNED || json_integer_value(value) >= 0))
            return arena_printf(a, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        *expected = "a whole number";
        return NULL;
    case COLUMN_NS:
    case COLUMN_RATE:
    case COLUMN_LOAD:
        if (decimal(value, &number) && number >= 0)
            return arena_printf(a, c->type == COLUMN_LOAD ? "%.2f" : "%.3f", number);
        *expected = "a number from 0";
        return NULL;
    case COLUMN_RATIO:
        if (decimal(value, &number) && number >= 0 && number <= 1)
            return arena_printf(a, "%.6f", number);
        *expected = "a ratio from 0 to 1";
        return NULL;
    }
    return NULL;
}

/* True if the kernel's answer for a planned column may stand. A kernel that takes its own threads, and
 * sizes from a file, answer for themselves. */
static bool agrees(const struct planned *p, const struct column *c, const char *planned, const char *answer)
{
    if (!planned || !*planned || strcmp(planned, answer) == 0)
        return true;
    bool from_file = strncmp(block_option(p->block, "size_dist"), "file:", 5) == 0;
    if (from_file && strncmp(c->name, "size_", 5) == 0)
        return true; /* the table tells */
    if (p->block->machine && strcmp(c->name, "cpus") == 0)
        return false; /* the kernel did not see the simulated machine */
    return strcmp(c->name, "machine_id") == 0 ||
           (!p->block->threads && strcmp(c->name, "ops_per_thread") == 0) ||
           (strcmp(c->name, "size_max") == 0 && strcmp(block_option(p->block, "size_dist"), "fixed") == 0) ||
           strcmp(c->name, "cpus") == 0 || strcmp(c->name, "oversubscribed") == 0;
}

/* Take all columns of the row; false after result_fail. */
static bool take_row(struct arena *a, struct result *r, const struct planned *p, const json_t *row)
{
    for (size_t i = 0; i < column_count; i++) {
        const struct column *c = &columns[i];
        const json_t *value = json_object_get(row, c->name);
        const char *expected;
        if (c->role == ROLE_RUNNER || !value || json_is_null(value))
            continue;
        const char *text = as_column(a, c, value, &expected);
        if (!text) {
            char *shown = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
            result_fail(a, r, STATUS_ERROR, "the kernel's %s is %.100s, expected %s", c->name,
                        shown ? shown : "?", expected);
            free(shown);
            return false;
        }
        if (c->role == ROLE_PLANNED && !agrees(p, c, r->value[i], text)) {
            result_fail(a, r, STATUS_ERROR, "the kernel answered for %s '%s', planned was '%s'", c->name,
                        text, r->value[i]);
            return false;
        }
        r->value[i] = text;
    }
    return true;
}

/* The runner's own proof: the object that served is the file that was resolved, with that file's build-id. It is
 * the kernel's bytes that are compared: the row's text is made harmless and may be cut. */
static bool served_as_expected(struct arena *a, struct result *r, const json_t *row,
                               const struct allocator *al, const char *kernel)
{
    const struct linked_program *program = linked_program(al, kernel);
    const char *real = program ? program->path : al->real,
               *build_id = program ? program->build_id : al->build_id;
    const char *path = json_string_value(json_object_get(row, "allocator_path"));
    const char *id = json_string_value(json_object_get(row, "allocator_build_id"));
    path = path ? path : "";
    id = id ? id : "";
    if (strcmp(path, real) != 0)
        result_fail(a, r, STATUS_WRONG_ALLOCATOR, "malloc was served by %s, expected %s",
                    *path ? path : "(not told)", real);
    else if (strcmp(id, build_id) != 0)
        result_fail(a, r, STATUS_WRONG_ALLOCATOR, "%s served with build-id %s, but the run began with %s",
                    path, *id ? id : "(none)", *build_id ? build_id : "(none)");
    else
        return true;
    return false;
}

/* ---- side rows ---- */

static void add_decimal(struct buffer *b, double number)
{
    if (number == floor(number) && fabs(number) < 1e15)
        buffer_addf(b, "%.0f", number);
    else
        buffer_addf(b, "%.9g", number);
}

static bool take_hist(struct arena *a, struct result *r, const char *row_id, const json_t *hist)
{
    static const char *const calls[] = {"malloc",  "free",       "touch",   "pair",
                                        "realloc", "sim_malloc", "sim_free"};
    struct buffer *b = &r->side[SIDE_HIST];
    size_t i, j;
    json_t *one, *bucket;
    json_array_foreach(hist, i, one)
    {
        const char *call = json_string_value(json_object_get(one, "call"));
        bool known = false;
        for (size_t c = 0; call && c < sizeof calls / sizeof *calls; c++)
            known |= strcmp(calls[c], call) == 0;
        if (!known) {
            result_fail(a, r, STATUS_ERROR,
                        "a histogram of call '%.40s', expected malloc, free, touch, pair, realloc, "
                        "sim_malloc or sim_free",
                        call ? call : "");
            return false;
        }
        json_array_foreach(json_object_get(one, "buckets"), j, bucket)
        {
            double lower, upper;
            const json_t *count = json_array_get(bucket, 2);
            if (!decimal(json_array_get(bucket, 0), &lower) || !decimal(json_array_get(bucket, 1), &upper) ||
                lower < 0 || upper < lower || !json_is_integer(count) || json_integer_value(count) < 1) {
                result_fail(a, r, STATUS_ERROR, "a histogram bucket that is not [lower, upper, count]");
                return false;
            }
            buffer_addf(b, "%s,%s,%.3f,%.3f,%" JSON_INTEGER_FORMAT "\n", row_id, call, lower, upper,
                        json_integer_value(count));
        }
    }
    return true;
}

static bool take_timeline(struct arena *a, struct result *r, const char *row_id, const json_t *timeline)
{
    struct buffer *b = &r->side[SIDE_TIMELINE];
    size_t i;
    json_t *sample;
    json_array_foreach(timeline, i, sample)
    {
        buffer_addf(b, "%s", row_id);
        for (size_t v = 0; v < 4; v++) {
            const json_t *value = json_array_get(sample, v);
            if (!json_is_integer(value) || json_integer_value(value) < 0) {
                result_fail(a, r, STATUS_ERROR, "a sample of the timeline that is not four whole numbers");
                return false;
            }
            buffer_addf(b, ",%" JSON_INTEGER_FORMAT, json_integer_value(value));
        }
        buffer_add(b, "\n", 1);
    }
    return true;
}

static void text_field(struct arena *a, struct buffer *b, const json_t *value)
{
    csv_field(b, text_clean(a, json_string_value(value) ? json_string_value(value) : ""));
}

/* Why a metric may not be trusted in the mode of its row, or NULL. */
static const char *untrusted(const struct planned *p, const char *name)
{
    const struct trust_metric *m = p->block->machine ? trust_find(name) : NULL;
    return m && trust_in(m, block_option(p->block, "sim_mode")) == TRUST_NONE ? m->why : NULL;
}

static bool take_metrics(struct arena *a, struct result *r, const struct planned *p, const json_t *metrics)
{
    struct buffer *b = &r->side[SIDE_METRICS];
    size_t i;
    json_t *metric;
    json_array_foreach(metrics, i, metric)
    {
        const char *name = json_string_value(json_object_get(metric, "name"));
        const json_t *value = json_object_get(metric, "value");
        double number = 0;
        if (!name || (value && !json_is_null(value) && !json_is_string(value) && !decimal(value, &number))) {
            result_fail(a, r, STATUS_ERROR,
                        "a metric without name or with a value that is no number or text");
            return false;
        }
        buffer_addf(b, "%s,", p->row_id);
        csv_field(b, text_clean(a, name));
        text_field(a, b, json_object_get(metric, "unit"));
        if (value && !json_is_null(value) && untrusted(p, name)) {
            csv_field(b, "");
            csv_field(b, untrusted(p, name));
            csv_end_row(b);
            continue;
        }
        if (json_is_integer(value))
            buffer_addf(b, "%" JSON_INTEGER_FORMAT ",", json_integer_value(value));
        else if (json_is_real(value)) {
            add_decimal(b, number);
            buffer_add(b, ",", 1);
        } else
            text_field(a, b, value);
        text_field(a, b, json_object_get(metric, "reason"));
        csv_end_row(b);
        if (strcmp(name, RESULT_STIRRED) == 0 || strcmp(name, RESULT_LATER_STIRRED) == 0)
            r->stirred += number;
    }
    return true;
}

static bool take_matrix(struct arena *a, struct result *r, const char *row_id, const json_t *matrix)
{
    struct buffer *b = &r->side[SIDE_MATRIX];
    size_t i;
    json_t *cell;
    json_array_foreach(matrix, i, cell)
    {
        const json_t *from = json_object_get(cell, "from_cpu"), *to = json_object_get(cell, "to_cpu");
        double ns;
        if (!json_is_integer(from) || !json_is_integer(to) || !decimal(json_object_get(cell, "ns"), &ns) ||
            ns < 0) {
            result_fail(a, r, STATUS_ERROR, "a cell of the matrix without from_cpu, to_cpu or ns");
            return false;
        }
        buffer_addf(b, "%s,%" JSON_INTEGER_FORMAT ",%" JSON_INTEGER_FORMAT ",", row_id,
                    json_integer_value(from), json_integer_value(to));
        text_field(a, b, json_object_get(cell, "state"));
        buffer_addf(b, "%.3f,", ns);
        text_field(a, b, json_object_get(cell, "distance"));
        csv_end_row(b);
    }
    return true;
}

void result_launched(struct result *r, const struct planned *p, const struct child_outcome *o)
{
    struct buffer *b = &r->side[SIDE_METRICS];
    if (r->status != STATUS_OK)
        return;
    buffer_addf(b, "%s,launch_wall_ns,ns,%" PRIu64 ",\n", p->row_id, o->wall_ns);
    buffer_addf(b, "%s," RESULT_LAST_METRIC ",bytes,%" PRIu64 ",\n", p->row_id, o->maxrss_bytes);
}

/* ---- profiled rows ---- */

/* Where the throughput pass lies on the clock of perf's samples, and whose they are. */
static void take_profile(struct arena *a, struct result *r, const json_t *profile)
{
    const json_t *pids = json_object_get(profile, "pids");
    r->from_ns = (uint64_t)json_integer_value(json_object_get(profile, "from_ns"));
    r->to_ns = (uint64_t)json_integer_value(json_object_get(profile, "to_ns"));
    r->pids = json_array_size(pids);
    r->pid = arena_alloc(a, (r->pids + 1) * sizeof *r->pid);
    for (size_t i = 0; i < r->pids; i++)
        r->pid[i] = (uint64_t)json_integer_value(json_array_get(pids, i));
}

void result_share_scope(struct arena *a, const struct result *r, const struct planned *p,
                        struct share_scope *scope)
{
    const struct allocator *al = p->block->member[p->member].allocator;
    *scope = (struct share_scope){.pid = r->pid,
                                  .pids = r->pids,
                                  .from_ns = r->from_ns,
                                  .to_ns = r->to_ns,
                                  .user_ns = strtod(get(r, "cpu_user_ns"), NULL),
                                  .system_ns = strtod(get(r, "cpu_sys_ns"), NULL)};
    if (*al->preload)
        words_add(a, &scope->objects, al->real);
    for (size_t i = 0; i < al->parts.count; i++)
        words_add(a, &scope->objects, al->parts.word[i]);
}

static void add_share(struct buffer *b, const char *row_id, const char *name, double value, const char *why)
{
    buffer_addf(b, "%s,%s,0..1,", row_id, name);
    if (!why)
        buffer_addf(b, "%.6f", value);
    buffer_add(b, ",", 1);
    csv_field(b, why ? why : "");
    csv_end_row(b);
}

void result_share(struct result *r, const struct planned *p, const struct share *s)
{
    struct buffer *b = &r->side[SIDE_METRICS];
    const char *hidden =
        s->user_only ? "perf_event_paranoid keeps samples of the kernel from this user" : NULL;
    add_share(b, p->row_id, "malloc_share", s->malloc_share, s->why ? s->why : hidden);
    add_share(b, p->row_id, "libc_share", s->libc_share, s->libc_why ? s->libc_why : hidden);
    buffer_addf(b, "%s,share_samples,count,%" PRIu64 ",\n", p->row_id, s->samples);
    buffer_addf(b, "%s,share_rate,1/s,%d,\n", p->row_id, SHARE_RATE);
}

/* ---- simulated rows ---- */

/* Which machine it was: a parameter of the row, like a kernel's. */
static void add_machine_metrics(struct arena *a, struct result *r, const struct planned *p)
{
    struct buffer *b = &r->side[SIDE_METRICS];
    const struct simmachine *m = p->block->machine;
    buffer_addf(b, "%s,param.machine,,", p->row_id);
    csv_field(b, m->name);
    buffer_addf(b, "\n%s,sim_machine,,", p->row_id);
    csv_field(b, text_clean(a, m->words));
    buffer_addf(b, "\n");
}

/* What an allocator adds to a program that it is linked into, in thousands of bytes: both without names. */
static void add_size_metrics(struct result *r, const struct planned *p)
{
    struct buffer *b = &r->side[SIDE_METRICS];
    const struct allocator *al = p->block->member[p->member].allocator;
    const struct linked_program *program = linked_program(al, p->block->kernel->name);
    if (!program)
        return;
    const char *why = linked_is_plain(al)    ? "the C library's own: what others are compared with"
                      : program->plain_bytes ? ""
                                             : "no program with the C library's own malloc to compare with";
    buffer_addf(b, "%s,binary_kb,kB,%.3f,\n", p->row_id, (double)program->bytes / 1000);
    buffer_addf(b, "%s,binary_added_kb,kB,", p->row_id);
    if (!*why)
        buffer_addf(b, "%.3f", ((double)program->bytes - (double)program->plain_bytes) / 1000);
    buffer_add(b, ",", 1);
    csv_field(b, why);
    csv_end_row(b);
}

/* What may not be trusted in this mode is not there. */
static void drop_untrusted(struct result *r, const struct planned *p)
{
    struct buffer *b = &r->side[SIDE_METRICS];
    for (size_t at = 0; at < column_count; at++) {
        const char *why = r->value[at] ? untrusted(p, columns[at].name) : NULL;
        if (!why)
            continue;
        r->value[at] = NULL;
        buffer_addf(b, "%s,%s,,,", p->row_id, columns[at].name);
        csv_field(b, why);
        csv_end_row(b);
    }
}

void result_simulated(struct arena *a, struct result *r, unsigned retries)
{
    put_number(a, r, "sim_retries", retries);
    if (r->status == STATUS_OK && r->stirred > 0)
        r->detail = arena_printf(
            a, "counts may differ from run to run: %.0f times the order of threads could not be kept",
            r->stirred);
}

/* ---- the outcome ---- */

static bool has_pass(const struct planned *p, const char *pass)
{
    const char *passes = block_option(p->block, "passes");
    return !*passes || strstr(passes, pass);
}

static void take_ok(struct arena *a, struct result *r, const struct planned *p, const json_t *json,
                    const json_t *row)
{
    if (!take_row(a, r, p, row) ||
        !served_as_expected(a, r, row, p->block->member[p->member].allocator, p->block->kernel->name))
        return;
    const char *ops = get(r, "ops");
    if (has_pass(p, "throughput") && (!*ops || strcmp(ops, "0") == 0)) {
        result_fail(a, r, STATUS_ERROR, "the kernel says ok, but did no operation");
        return;
    }
    if (!take_hist(a, r, p->row_id, json_object_get(json, "hist")) ||
        !take_timeline(a, r, p->row_id, json_object_get(json, "timeline")) ||
        !take_metrics(a, r, p, json_object_get(json, "metrics")) ||
        !take_matrix(a, r, p->row_id, json_object_get(json, "matrix")))
        return;
    if (p->block->machine) {
        add_machine_metrics(a, r, p);
        drop_untrusted(r, p);
    }
    add_size_metrics(r, p);
    take_profile(a, r, json_object_get(json, "profile"));
    r->status = STATUS_OK;
    r->detail = "";
}

/* A kernel that exited: what it says, against its exit status. */
static void take_exit(struct arena *a, struct result *r, const struct planned *p,
                      const struct child_outcome *o)
{
    json_error_t error;
    json_t *json = json_loadb(o->out.data, o->out.length, JSON_REJECT_DUPLICATES, &error);
    const json_t *row = json_object_get(json, "row");
    const char *name = json_string_value(json_object_get(row, "status"));
    const char *said = json_string_value(json_object_get(row, "status_detail"));
    const char *last = text_last_line(a, o->err.data, TEXT_CLEAN_MAX);
    enum status status = name ? status_find(name) : STATUSES;
    if (!json_is_object(json) || !json_is_object(row)) {
        if (o->code != 0)
            result_fail(a, r, STATUS_ERROR, "exit status %d%s%s", o->code, *last ? ": " : "", last);
        else
            result_fail(a, r, STATUS_ERROR, "no result: %s at byte %d of %zu",
                        json ? "no row in the JSON" : error.text, json ? 0 : error.position, o->out.length);
    } else if (json_integer_value(json_object_get(json, "schema")) != 1) {
        result_fail(a, r, STATUS_ERROR, "the result's schema is not 1");
    } else if (o->code == 0 && status == STATUS_OK) {
        take_ok(a, r, p, json, row);
    } else if (o->code == 3 && status == STATUS_SKIPPED) {
        result_fail(a, r, status, "%s", said && *said ? text_clean(a, said) : last);
    } else if (o->code == 1 && (status == STATUS_WRONG_ALLOCATOR || status == STATUS_VERIFY_FAILED ||
                                status == STATUS_OOM || status == STATUS_CRASH)) {
        static const char *const served[] = {"allocator_path", "allocator_build_id"};
        for (size_t i = 0; i < 2; i++) {
            const char *text = json_string_value(json_object_get(row, served[i]));
            put(r, served[i], text ? text_clean(a, text) : NULL);
        }
        result_fail(a, r, status, "%s", said && *said ? text_clean(a, said) : last);
    } else {
        result_fail(a, r, STATUS_ERROR, "exit status %d with status '%s'%s%s", o->code,
                    name ? text_clean(a, name) : "",
                    said && *said ? ": "
                    : *last       ? ": "
                                  : "",
                    said && *said ? text_clean(a, said) : last);
    }
    json_decref(json);
}

/* Threads that wait for each other may take minutes in timed mode, and are no fault of the allocator then. */
static const char *timeout_hint(struct arena *a, const struct block *b)
{
    bool waits = b->machine && b->threads != 1 && strcmp(block_option(b, "sim_mode"), "timed") == 0;
    return waits ? arena_printf(a, "; timed mode may need more for %s threads: --timeout gives it",
                                block_option(b, "threads"))
                 : "";
}

void result_take(struct arena *a, struct result *r, const struct planned *p, const struct child_outcome *o,
                 uint64_t oom_events)
{
    const char *last = text_last_line(a, o->err.data, TEXT_CLEAN_MAX), *colon = *last ? ": " : "";
    switch (o->end) {
    case CHILD_EXITED:
        take_exit(a, r, p, o);
        break;
    case CHILD_SIGNALLED:
        if (o->code == SIGKILL && oom_events)
            result_fail(a, r, STATUS_OOM,
                        "killed by SIGKILL, which ak did not send; the kernel counted an "
                        "out-of-memory kill meanwhile");
        else if (o->code == SIGKILL)
            result_fail(a, r, STATUS_CRASH,
                        "SIGKILL (signal 9), which ak did not send; no out-of-memory kill was counted%s%s",
                        colon, last);
        else
            result_fail(a, r, STATUS_CRASH, "SIG%s (%s)%s%s",
                        sigabbrev_np(o->code) ? sigabbrev_np(o->code) : "?", strsignal(o->code), colon, last);
        return;
    case CHILD_TIMED_OUT:
        result_fail(a, r, STATUS_TIMEOUT, "no result within %" PRIu64 " s%s%s%s", p->block->timeout_s,
                    timeout_hint(a, p->block), colon, last);
        return;
    case CHILD_OVERFLOW:
        result_fail(a, r, STATUS_ERROR, "printed more than a result can be; stopped");
        return;
    case CHILD_NO_EXEC:
        result_fail(a, r, STATUS_ERROR, "%s: %s", p->block->kernel->path, strerror(o->code));
        return;
    case CHILD_STOPPED:
    case CHILD_LOST:
        result_fail(a, r, STATUS_ERROR, "%s%s%s", child_end_words(a, o), colon, last);
        return;
    }
    if (oom_events && r->status != STATUS_OK && r->status != STATUS_WRONG_ALLOCATOR)
        result_fail(a, r, STATUS_OOM, "an out-of-memory kill was counted; %s", r->detail);
}
