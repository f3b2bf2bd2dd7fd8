/* main.c - runs the cases of one category and decides their outcomes.
 *
 *   CATEGORY CASE                              the case, in this process: for a debugger, or with LD_PRELOAD=...
 *   CATEGORY --each [--runs N] [LIBRARY]       every case in processes of its own, under LIBRARY; a line for each:
 *                                              case, outcome, detail, by tabs
 *   CATEGORY --list                            case, defence, what, by tabs
 *   CATEGORY --who                             the file that serves malloc
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "misuse.h"

#define SECONDS_MAX  20 /* of one process */
#define RUNS_DEFAULT 3  /* an odd number has no ties between two outcomes */
#define DETAIL_MAX   160

/* From worst to best. Of several runs the most frequent outcome counts; of two, the worse. */
enum outcome { BROKEN, MISSED, CRASHED, HARMLESS, ABSENT, CAUGHT, OUTCOMES };
static const char *const outcome_names[] = {"broken", "missed", "crashed", "harmless", "absent", "caught"};

static const struct misuse *case_find(const char *name)
{
    for (const struct misuse *m = misuses; m->name != NULL; m++)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

static int case_here(const struct misuse *m)
{
    static const struct rlimit no_core;
    setrlimit(RLIMIT_CORE, &no_core);
    alarm(SECONDS_MAX);
    _exit(m->body(m)); /* no exit handlers on a heap that is broken */
}

/* The first line that was said and is no rule, without what would break a table. */
static void detail_clean(char *text)
{
    size_t rule = strspn(text, "=\n");
    memmove(text, text + rule, strlen(text + rule) + 1);
    text[strcspn(text, "\n")] = '\0';
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '|')
            *text = '\'';
}

/* Starts a process for the case; what it says on stderr is in `said`. Returns its wait status. */
static int case_run(const struct misuse *m, const char *library, char said[DETAIL_MAX])
{
    int tube[2], status = 0;
    if (pipe(tube) != 0) {
        perror("pipe");
        exit(3);
    }
    pid_t child = fork();
    if (child == 0) {
        dup2(tube[1], STDERR_FILENO);
        close(tube[0]);
        close(tube[1]);
        if (library != NULL)
            setenv("LD_PRELOAD", library, 1);
        execl("/proc/self/exe", "misuse", m->name, (char *)NULL);
        _exit(END_BROKEN);
    }
    close(tube[1]);
    size_t length = 0;
    ssize_t got;
    char rest[512];
    while ((got = read(tube[0], rest, sizeof rest)) > 0)
        for (ssize_t i = 0; i < got && length < DETAIL_MAX - 1; i++)
            said[length++] = rest[i];
    said[length] = '\0';
    detail_clean(said);
    close(tube[0]);
    waitpid(child, &status, 0);
    return status;
}

static enum outcome outcome_of(int status, char said[DETAIL_MAX])
{
    bool spoke = said[0] != '\0';
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        if (spoke && (number == SIGABRT || number == SIGILL || number == SIGTRAP))
            return CAUGHT;
        snprintf(said, DETAIL_MAX, "%s, without a word",
                 number == SIGALRM ? "did not end" : strsignal(number));
        return CRASHED;
    }
    switch (WEXITSTATUS(status)) {
    case END_MISSED:
        return MISSED;
    case END_HARMLESS:
        return spoke ? CAUGHT : HARMLESS;
    case END_PREVENTED:
        if (!spoke)
            strcpy(said, "prevented");
        return CAUGHT;
    case END_TRAPPED:
        strcpy(said, "the access faulted");
        return CAUGHT;
    case END_ABSENT:
        return ABSENT;
    case END_BROKEN:
        return BROKEN;
    default: /* ended by the allocator */
        return spoke ? CAUGHT : CRASHED;
    }
}

static void cases_run(const char *library, int runs)
{
    for (const struct misuse *m = misuses; m->name != NULL; m++) {
        char said[OUTCOMES][DETAIL_MAX];
        int count[OUTCOMES] = {0}, most = 0;
        for (int i = 0; i < runs; i++) {
            char line[DETAIL_MAX];
            enum outcome now = outcome_of(case_run(m, library, line), line);
            memcpy(said[now], line, sizeof line);
            count[now]++;
        }
        for (int o = 1; o < OUTCOMES && count[BROKEN] == 0; o++)
            if (count[o] > count[most])
                most = o;
        printf("%s\t%s\t%s", m->name, outcome_names[most], said[most]);
        if (count[most] < runs)
            printf(" (%d of %d runs)", count[most], runs);
        putchar('\n');
        fflush(stdout);
    }
}

static int usage(const char *trouble)
{
    fprintf(stderr, "misuse: %s: want CASE, --list, --who or --each [--runs N] [LIBRARY]\n", trouble);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return usage("no argument");
    if (strcmp(argv[1], "--list") == 0) {
        for (const struct misuse *m = misuses; m->name != NULL; m++)
            printf("%s\t%s\t%s\n", m->name, m->stop, m->what);
        return 0;
    }
    if (strcmp(argv[1], "--who") == 0) {
        Dl_info in;
        return dladdr(dlsym(RTLD_DEFAULT, "malloc"), &in) != 0 && puts(in.dli_fname) >= 0 ? 0 : 3;
    }
    if (strcmp(argv[1], "--each") == 0) {
        int runs = RUNS_DEFAULT, next = 2;
        if (argc > 3 && strcmp(argv[2], "--runs") == 0) {
            runs = atoi(argv[3]);
            next = 4;
        }
        if (runs < 1 || argc > next + 1)
            return usage(argv[argc - 1]);
        cases_run(argc > next ? argv[next] : NULL, runs);
        return 0;
    }
    const struct misuse *m = case_find(argv[1]);
    return argc == 2 && m != NULL ? case_here(m) : usage(argv[1]);
}
