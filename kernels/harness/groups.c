/* groups.c - read the event group files. See groups.h for the format. */
#include "groups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)256 * 1024)
#define FILES_MAX      64

const char *const group_dialect_name[DIALECTS] = {"papi", "likwid", "perf", "sim"};

const char *const counter_column_name[COUNTER_COLUMNS] = {
    "cycles",  "instructions", "l1d_access",  "l1d_miss",  "l3_access",
    "l3_miss", "hitm_local",   "hitm_remote", "dtlb_miss", "migrations",
    "sim_true_sharing", "sim_false_sharing", "sim_invalidations", "sim_cross_node", "sim_dram_local", "sim_dram_remote",
    "sim_upgrades", "sim_zeroed", "sim_stirred",
};

/* Where a statement stands, for messages. */
struct place {
    const char *path;
    unsigned line;
    char *why;
};

__attribute__((format(printf, 2, 3))) static int malformed(const struct place *at, const char *format, ...)
{
    int n = snprintf(at->why, COUNTER_REASON_MAX, "%s:%u: ", at->path, at->line);
    if (n < 0 || n >= COUNTER_REASON_MAX)
        return -2;
    va_list args;
    va_start(args, format);
    vsnprintf(at->why + n, COUNTER_REASON_MAX - (size_t)n, format, args);
    va_end(args);
    return -2;
}

int counter_column_named(const char *name)
{
    for (int c = 0; c < COUNTER_COLUMNS; c++)
        if (strcmp(counter_column_name[c], name) == 0)
            return c;
    return -1;
}

/* ---- text ---- */

/* A private, zero-terminated copy of a file; freed by munmap of *bytes. NULL with errno. */
static char *read_text(const char *path, size_t *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    char *text = mmap(NULL, FILE_BYTES_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t used = 0;
    ssize_t n = -1;
    if (text != MAP_FAILED)
        while (used < FILE_BYTES_MAX - 1 && (n = read(fd, text + used, FILE_BYTES_MAX - 1 - used)) > 0)
            used += (size_t)n;
    int error = errno;
    close(fd);
    if (text == MAP_FAILED)
        return NULL;
    if (n < 0) {
        munmap(text, FILE_BYTES_MAX);
        errno = error;
        return NULL;
    }
    *bytes = FILE_BYTES_MAX;
    return text;
}

static char *trim(char *s)
{
    while (*s == ' ' || *s == '\t')
        s++;
    size_t n = strlen(s);
    while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\r'))
        s[--n] = '\0';
    return s;
}

/* Cut the next blank-separated word off *rest; NULL at the end. */
static char *word(char **rest)
{
    char *s = *rest + strspn(*rest, " \t");
    if (*s == '\0')
        return NULL;
    char *end = s + strcspn(s, " \t");
    *rest = *end ? end + 1 : end;
    *end = '\0';
    return s;
}

static bool is_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    return n > 0 && s[n] == '\0';
}

/* True if `value` is in a list such as 0x55,0x6a-0x6c; *bad where the list is not one. */
static bool in_list(const char *list, unsigned value, bool *bad)
{
    bool found = false;
    *bad = *list == '\0';
    for (const char *s = list; *s && !*bad;) {
        char *end = NULL;
        unsigned long low = strtoul(s, &end, 0), high = low;
        if (end == s || *s == '-') {
            *bad = true;
            break;
        }
        if (*end == '-') {
            s = end + 1;
            high = strtoul(s, &end, 0);
            if (end == s || high < low)
                *bad = true;
        }
        if (*end == ',' && end[1] != '\0')
            end++;
        else if (*end != '\0')
            *bad = true;
        found = found || (value >= low && value <= high);
        s = end;
    }
    return found && !*bad;
}

/* ---- who the CPU is ---- */

/* The value of `key` in the first processor's block of a cpuinfo text, or NULL. */
static const char *cpuinfo_value(const char *text, const char *key, char *value, size_t bytes)
{
    size_t n = strlen(key);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, key, n) != 0)
            continue;
        const char *s = line + n + strspn(line + n, " \t");
        if (*s != ':')
            continue;
        s += 1 + strspn(s + 1, " \t");
        snprintf(value, bytes, "%.*s", (int)strcspn(s, "\n"), s);
        return value;
    }
    return NULL;
}

static unsigned cpuinfo_number(const char *text, const char *key)
{
    char value[32];
    return cpuinfo_value(text, key, value, sizeof value) ? (unsigned)strtoul(value, NULL, 0) : 0;
}

int cpu_identify(const char *path, struct cpu_id *cpu, char why[COUNTER_REASON_MAX])
{
    *cpu = (struct cpu_id){.family = 0};
    size_t bytes = 0;
    char *text = read_text(path, &bytes);
    if (text == NULL) {
        snprintf(why, COUNTER_REASON_MAX, "%s: %s", path, strerror(errno));
        return -1;
    }
    cpuinfo_value(text, "vendor_id", cpu->vendor, sizeof cpu->vendor);
    cpu->family = cpuinfo_number(text, "cpu family");
    cpu->model = cpuinfo_number(text, "model");
    cpu->implementer = cpuinfo_number(text, "CPU implementer");
    cpu->part = cpuinfo_number(text, "CPU part");
    munmap(text, bytes);
    return 0;
}

/* One KEY=VALUE of a match line against a CPU; *bad where it is malformed. */
static bool match_pair(const char *key, const char *value, const struct cpu_id *cpu, bool *bad)
{
    *bad = false;
    if (strcmp(key, "vendor") == 0)
        return strcmp(value, cpu->vendor) == 0;
    if (strcmp(key, "family") == 0)
        return in_list(value, cpu->family, bad);
    if (strcmp(key, "model") == 0)
        return in_list(value, cpu->model, bad);
    if (strcmp(key, "implementer") == 0)
        return in_list(value, cpu->implementer, bad);
    if (strcmp(key, "part") == 0)
        return in_list(value, cpu->part, bad);
    *bad = true;
    return false;
}

static bool match_line(const char *line, const struct cpu_id *cpu, bool *bad)
{
    char copy[GROUP_LINE_MAX];
    snprintf(copy, sizeof copy, "%s", line);
    bool all = true;
    char *rest = copy;
    *bad = false;
    for (char *pair; (pair = word(&rest)) != NULL;) {
        char *value = strchr(pair, '=');
        if (value == NULL) {
            *bad = true;
            return false;
        }
        *value++ = '\0';
        bool pair_bad = false;
        all = match_pair(pair, value, cpu, &pair_bad) && all;
        *bad = *bad || pair_bad;
    }
    return all && !*bad;
}

bool group_matches(const struct group *g, const struct cpu_id *cpu)
{
    bool bad = false;
    for (unsigned i = 0; i < g->n_matches; i++)
        if (match_line(g->matches[i], cpu, &bad))
            return true;
    return false;
}

/* ---- statements ---- */

static int event_number(const char *name, size_t n, void *user)
{
    const struct group *g = user;
    for (unsigned i = 0; i < g->n_events; i++)
        if (strlen(g->event[i].name) == n && strncmp(g->event[i].name, name, n) == 0)
            return (int)i;
    return -1;
}

static int parse_match(struct group *g, char *rest, const struct place *at)
{
    if (strcmp(rest, "any") == 0) {
        g->any = true;
        return 0;
    }
    if (strcmp(rest, "always") == 0) {
        g->always = true;
        return 0;
    }
    bool bad = *rest == '\0';
    if (!bad)
        match_line(rest, &(struct cpu_id){.family = 0}, &bad);
    if (bad)
        return malformed(at,
                         "expected 'match KEY=VALUE ...' with the keys vendor, family, model, implementer, "
                         "part, or 'match any' or 'match always'");
    if (g->n_matches == GROUP_MATCHES_MAX)
        return malformed(at, "more than %d match lines", GROUP_MATCHES_MAX);
    g->matches[g->n_matches++] = rest;
    return 0;
}

static int parse_event(struct group *g, char *rest, bool software, const struct place *at)
{
    char *name = word(&rest);
    if (name == NULL || !is_name(name) || strchr(name, '-') != NULL)
        return malformed(at, "expected 'event NAME DIALECT=SPELLING ...'");
    if (event_number(name, strlen(name), g) >= 0)
        return malformed(at, "event '%s' is defined twice", name);
    if (g->n_events == COUNTER_EVENTS_MAX)
        return malformed(at, "more than %d events", COUNTER_EVENTS_MAX);
    struct group_event *e = &g->event[g->n_events];
    *e = (struct group_event){.name = name, .software = software};
    unsigned spelled = 0;
    for (char *pair; (pair = word(&rest)) != NULL; spelled++) {
        char *spelling = strchr(pair, '=');
        int dialect = DIALECTS;
        if (spelling != NULL && spelling[1] != '\0') {
            *spelling++ = '\0';
            for (dialect = 0; dialect < DIALECTS && strcmp(group_dialect_name[dialect], pair) != 0;)
                dialect++;
        }
        if (dialect == DIALECTS)
            return malformed(
                at, "expected DIALECT=SPELLING with the dialects papi, likwid, perf, sim, not '%s'", pair);
        if (e->spelling[dialect] != NULL)
            return malformed(at, "event '%s' is spelled twice for %s", name, pair);
        e->spelling[dialect] = spelling;
    }
    if (spelled == 0)
        return malformed(at, "event '%s' has no spelling in any dialect", name);
    g->n_events++;
    return 0;
}

/* Split "NAME <mark> REST" in place; the column's number, or -2. */
static int column_and(char *text, char mark, char **rest, const char *form, const struct place *at)
{
    char *cut = strchr(text, mark);
    if (cut == NULL || *trim(cut + 1) == '\0')
        return malformed(at, "expected '%s'", form);
    *cut = '\0';
    *rest = trim(cut + 1);
    char *name = trim(text);
    int column = counter_column_named(name);
    if (column < 0)
        return malformed(at, "unknown column '%s'", name);
    return column;
}

static int parse_column(struct group *g, char *rest, const struct place *at)
{
    static const char form[] = "column NAME = FORMULA | MEANING";
    char *formula = rest, why[FORMULA_WHY_MAX] = "";
    int column = column_and(rest, '=', &formula, form, at);
    if (column < 0)
        return column;
    char *meaning = strchr(formula, '|');
    if (meaning == NULL || *trim(meaning + 1) == '\0')
        return malformed(at, "expected '%s'", form);
    *meaning = '\0';
    if (g->n_columns == GROUP_COLUMNS_MAX)
        return malformed(at, "more than %d column lines", GROUP_COLUMNS_MAX);
    struct group_column *c = &g->column[g->n_columns];
    c->column = (enum counter_column)column;
    c->meaning = trim(meaning + 1);
    if (strcmp(c->meaning, "same") == 0) {
        unsigned before = g->n_columns;
        while (before > 0 && g->column[before - 1].column != c->column)
            before--;
        if (before == 0)
            return malformed(at, "'same' without a line for '%s' before it", counter_column_name[column]);
        c->meaning = g->column[before - 1].meaning;
    }
    if (formula_compile(&c->formula, formula, event_number, g, why) != 0)
        return malformed(at, "%s", why);
    if (c->formula.events == 0)
        return malformed(at, "the formula of '%s' names no event", counter_column_name[column]);
    g->n_columns++;
    return 0;
}

static int parse_absent(struct group *g, char *rest, const struct place *at)
{
    char *reason = rest;
    int column = column_and(rest, '|', &reason, "absent NAME | REASON", at);
    if (column < 0)
        return column;
    g->absent[column] = reason;
    return 0;
}

static int parse_set(struct group *g, char *rest, const struct place *at)
{
    char *list = strchr(rest, '=');
    if (list != NULL)
        *list++ = '\0';
    char *name = trim(rest);
    if (list == NULL || !is_name(name))
        return malformed(at, "expected 'set NAME = COLUMN ...'");
    if (g->n_sets == GROUP_SETS_MAX)
        return malformed(at, "more than %d sets", GROUP_SETS_MAX);
    struct group_set *s = &g->set[g->n_sets];
    *s = (struct group_set){.name = name};
    for (char *item; (item = word(&list)) != NULL;) {
        int column = counter_column_named(item);
        if (column < 0)
            return malformed(at, "unknown column '%s'", item);
        if (s->columns >> column & 1)
            return malformed(at, "column '%s' stands twice in the set", item);
        s->columns |= UINT32_C(1) << column;
        s->order[s->n++] = (uint8_t)column;
    }
    if (s->n == 0)
        return malformed(at, "set '%s' is empty", name);
    g->n_sets++;
    return 0;
}

static int parse_statement(struct group *g, char *line, const struct place *at)
{
    char *rest = line, *keyword = word(&rest);
    if (keyword == NULL)
        return 0;
    rest = trim(rest);
    if (strcmp(keyword, "match") == 0)
        return parse_match(g, rest, at);
    if (strcmp(keyword, "event") == 0 || strcmp(keyword, "software") == 0)
        return parse_event(g, rest, keyword[0] == 's', at);
    if (strcmp(keyword, "column") == 0)
        return parse_column(g, rest, at);
    if (strcmp(keyword, "absent") == 0)
        return parse_absent(g, rest, at);
    if (strcmp(keyword, "set") == 0)
        return parse_set(g, rest, at);
    bool is_family = strcmp(keyword, "family") == 0;
    if (!is_family && strcmp(keyword, "what") != 0)
        return malformed(at,
                         "unknown statement '%s' (family, what, match, event, software, column, absent, set)",
                         keyword);
    if (*rest == '\0')
        return malformed(at, "expected text after '%s'", keyword);
    const char **field = is_family ? &g->family : &g->what;
    if (*field == NULL) /* of several files the first one names the group */
        *field = rest;
    return 0;
}

/* ---- files ---- */

/* The text of FILE of .../FILE.txt equals the family's name. */
static bool named_as_file(const char *family, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(family);
    return strncmp(base, family, n) == 0 && strcmp(base + n, ".txt") == 0;
}

int group_parse(const char *path, struct group *g, char why[COUNTER_REASON_MAX])
{
    struct place at = {.path = path, .line = 0, .why = why};
    size_t bytes = 0;
    char *text = read_text(path, &bytes);
    if (text == NULL)
        return malformed(&at, "%s", strerror(errno));
    if (g->n_texts == sizeof g->text / sizeof g->text[0]) {
        munmap(text, bytes);
        return malformed(&at, "too many files in one group");
    }
    g->text[g->n_texts] = text;
    g->text_bytes[g->n_texts++] = bytes;

    const char *family_before = g->family, *what_before = g->what;
    g->family = g->what = NULL;
    unsigned matches_before = g->n_matches;
    bool any_before = g->any, always_before = g->always;
    for (char *line = text, *next; *line; line = next) {
        size_t length = strcspn(line, "\n");
        next = line + length + (line[length] == '\n');
        line[length] = '\0';
        at.line++;
        if (length >= GROUP_LINE_MAX)
            return malformed(&at, "line of more than %d characters", GROUP_LINE_MAX - 1);
        line[strcspn(line, "#")] = '\0';
        int rc = parse_statement(g, trim(line), &at);
        if (rc != 0)
            return rc;
    }
    if (g->family == NULL || g->what == NULL)
        return malformed(&at, "the file ends without '%s'", g->family == NULL ? "family NAME" : "what TEXT");
    if (!named_as_file(g->family, path))
        return malformed(&at, "family '%s' is not what the file is called", g->family);
    if (g->n_matches == matches_before && g->any == any_before && g->always == always_before)
        return malformed(&at, "the file ends without a match line");
    if (family_before != NULL) {
        g->family = family_before;
        g->what = what_before;
    }
    return 0;
}

void group_drop(struct group *g)
{
    for (unsigned i = 0; i < g->n_texts; i++)
        munmap(g->text[i], g->text_bytes[i]);
    *g = (struct group){.n_texts = 0};
}

/* Names of the .txt files of `dir`, sorted, in `names` (PATH: dir/name). Their number, or -3 with `why`. */
static int list_files(const char *dir, char names[FILES_MAX][NAME_MAX + 1], char why[COUNTER_REASON_MAX])
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(why, COUNTER_REASON_MAX, "event groups in %s: %s", dir, strerror(errno));
        return -3;
    }
    /* getdents64 instead of opendir, which would take its buffer from the allocator under test. */
    int n = 0;
    _Alignas(struct dirent64) char buffer[8192];
    for (ssize_t got; (got = getdents64(fd, (void *)buffer, sizeof buffer)) > 0;)
        for (ssize_t i = 0; i < got;) {
            struct dirent64 *d = (struct dirent64 *)(void *)(buffer + i);
            i += d->d_reclen;
            size_t length = strlen(d->d_name);
            if (d->d_name[0] == '.' || length < 5 || strcmp(d->d_name + length - 4, ".txt") != 0 ||
                n == FILES_MAX)
                continue;
            int at = n++;
            for (; at > 0 && strcmp(names[at - 1], d->d_name) > 0; at--)
                memcpy(names[at], names[at - 1], sizeof names[at]);
            snprintf(names[at], sizeof names[at], "%s", d->d_name);
        }
    close(fd);
    if (n == 0) {
        snprintf(why, COUNTER_REASON_MAX, "no event groups (*.txt) in %s", dir);
        return -3;
    }
    return n;
}

int group_choose(const char *dir, const struct cpu_id *cpu, struct group *g, char why[COUNTER_REASON_MAX])
{
    static char names[FILES_MAX][NAME_MAX + 1]; /* main thread only */
    static struct group candidate;
    char path[PATH_MAX];
    int n = list_files(dir, names, why), fits = -1, any = -1;
    if (n < 0)
        return n;
    bool always[FILES_MAX] = {false};
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        candidate = (struct group){.n_texts = 0};
        int rc = group_parse(path, &candidate, why);
        if (rc == 0 && group_matches(&candidate, cpu)) {
            if (fits >= 0) {
                snprintf(why, COUNTER_REASON_MAX, "%.300s:1: this CPU is matched by %.100s as well", path,
                         names[fits]);
                rc = -2;
            }
            fits = i;
        } else if (rc == 0 && candidate.any) {
            any = i;
        }
        always[i] = rc == 0 && candidate.always;
        group_drop(&candidate);
        if (rc != 0)
            return rc;
    }
    if (fits < 0)
        fits = any;
    *g = (struct group){.n_texts = 0};
    if (fits < 0) {
        snprintf(why, COUNTER_REASON_MAX, "no family in %s matches this CPU, and none says 'match any'", dir);
        return -3;
    }
    for (int i = -1; i < n; i++) {
        int file = i < 0 ? fits : i;
        if (i >= 0 && (!always[i] || i == fits))
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, names[file]);
        int rc = group_parse(path, g, why);
        if (rc != 0) {
            group_drop(g);
            return rc;
        }
    }
    return 0;
}
