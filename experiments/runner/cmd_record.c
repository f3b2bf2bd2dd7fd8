/*
 * ak record - the allocation events of any program in a file (docs/traces.md), and what such a file holds.
 */
#include "../recorder/spool.h"
#include "command.h"
#include "compare_target.h"
#include "orphans.h"
#include "seal.h"
#include "trace_show.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY      "libak-record.so"
#define EXIT_NO_EXEC 127

struct request {
    const char *file, *children, *show;
    char *const *argv; /* the command */
};

static bool read_options(struct arena *a, int argc, char **argv, struct request *r, struct fault *f)
{
    const char *file = NULL, *children = NULL, *show = NULL;
    const struct command_option options[] = {
        {"-o", &file, NULL}, {"--children", &children, NULL}, {"--show", &show, NULL}, {0}};
    int left;
    if (!command_options(a, argc, argv, options, &left, f))
        return false;
    if (show && (left > 1 || file || children))
        fault_set(f, AK_USAGE, "record: --show FILE stands alone");
    else if (!show && left < 2)
        fault_set(f, AK_USAGE, "record: no command, expected ak record [-o FILE] -- COMMAND...");
    if (f->code != AK_DONE)
        return false;
    argv[left] = NULL;
    *r = (struct request){file, children ? children : "most", show, argv + 1};
    if (!show && !file)
        r->file = arena_printf(a, "%s.trace", path_name(argv[1]));
    return true;
}

/* ---- where traces go: looked at before the command is started ---- */

/* Only a regular file is replaced; a symbolic link stays, and what it leads to is replaced (output.h). */
static bool place_check(struct arena *a, const char *file, struct fault *f)
{
    struct stat there;
    const char *folder = path_folder(a, file), *real = path_real(a, file);
    if (!*path_name(file))
        return fault_set(f, AK_USAGE, "record: -o '%s': no name of a file; give -o FILE one", file);
    if (!path_is_folder(folder))
        return fault_set(f, AK_USAGE, "record: -o %s: %s is no folder; make it, or give -o another FILE",
                         file, folder);
    if (!real && lstat(file, &there) == 0)
        return fault_set(f, AK_USAGE,
                         "record: -o %s: a symbolic link that leads nowhere; give -o a regular FILE", file);
    if (real && (stat(real, &there) != 0 || !S_ISREG(there.st_mode)))
        return fault_set(f, AK_USAGE,
                         "record: -o %s: %s, and a trace replaces only regular files; give -o another FILE",
                         file, S_ISDIR(there.st_mode) ? "a folder" : "a device, a pipe or a socket");
    return true;
}

static const char *place_of_each(struct arena *a, const struct request *r, size_t number)
{
    return arena_printf(a, "%s.%zu", r->file, number);
}

static bool each(const struct request *r)
{
    return strcmp(r->children, "each") == 0;
}

/* How many there will be of each is not known yet: those that are there now, from 1 on. */
static bool places_check(struct arena *a, const struct request *r, struct fault *f)
{
    struct stat there;
    if (!each(r))
        return place_check(a, r->file, f);
    if (!*path_name(r->file))
        return place_check(a, r->file, f);
    for (size_t n = 1;; n++) {
        const char *file = place_of_each(a, r, n);
        if (!place_check(a, file, f))
            return false;
        if (lstat(file, &there) != 0)
            return true;
    }
}

/* ---- the folder of a recording, beside the file to come: on the same file system ---- */

static const char *folder_make(struct arena *a, const char *file, struct fault *f)
{
    struct spool_control control = {0};
    const char *real = path_real(a, file); /* where a symbolic link leads */
    char *folder = arena_printf(a, "%s.recording-XXXXXX", real ? real : path_absolute(a, file));
    if (!mkdtemp(folder)) {
        fault_set(f, AK_ENVIRONMENT, "%s: %s", folder, strerror(errno));
        return NULL;
    }
    const char *name = arena_printf(a, "%s/" SPOOL_CONTROL, folder);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, &control, sizeof control) == sizeof control;
    if (good && geteuid() == 0) /* a program may become another user, and then fork */
        good = fchmod(fd, 0666) == 0 && chmod(folder, 01777) == 0;
    if (!good)
        fault_set(f, AK_ENVIRONMENT, "%s: %s", name, strerror(errno));
    if (fd >= 0)
        close(fd);
    return folder;
}

static void folder_remove(struct arena *a, const char *folder)
{
    struct words names = names_in(a, folder, "");
    for (size_t i = 0; i < names.count; i++)
        unlink(arena_printf(a, "%s/%s", folder, names.word[i]));
    rmdir(folder);
}

/* The library, by a link in the folder where its own path would be parted in LD_PRELOAD; NULL with a fault. */
static const char *library_find(struct arena *a, const struct paths *paths, const char *folder,
                                struct fault *f)
{
    const char *library = arena_printf(a, "%s/" LIBRARY, paths->libraries);
    const char *link = arena_printf(a, "%s/" LIBRARY, folder);
    if (!path_is_file(library))
        fault_set(f, AK_ENVIRONMENT, "%s is missing; build it (make)", library);
    else if (!strpbrk(library, " \t\n:"))
        return library;
    else if (strpbrk(link, " \t\n:"))
        fault_set(
            f, AK_ENVIRONMENT,
            "blanks or colons in the paths of both %s and the trace, which LD_PRELOAD cannot carry: give "
            "-o a path without",
            library);
    else if (symlink(library, link) != 0)
        fault_set(f, AK_ENVIRONMENT, "%s: %s", link, strerror(errno));
    return f->code == AK_DONE ? link : NULL;
}

/* ---- the run ---- */

/*
 * ak and its keeper are two processes, so that nothing outlives ak whatever kills it: ak waits and hands signals
 * on; its child, the keeper, starts the command, adopts what that leaves behind (orphans.h), and ends it all when ak
 * is gone. Where the keeper is killed, the command dies with it, and ak ends the rest. Both stay in the process group
 * that ak was started in, with the command: it has the terminal.
 */
struct keeper {
    pid_t parent;     /* ak */
    sigset_t watched; /* and blocked, in both, to the end: a trace is written as a whole */
    sigset_t before;
};

#define KEEPER_ORDER                                                                                         \
    SIGRTMIN      /* ak to the keeper: hand the signal in si_value on. These queue, so that none is lost */
#define GRACE_S 1 /* until it is told what a silent wait waits for */

struct run {
    pid_t pid;
    int status;
    struct seal_clock from, to;
};

static _Noreturn void become(const struct target *t, const struct request *r, const char *folder,
                             const char *library, pid_t keeper, const sigset_t *mask)
{
    struct arena a = {0};
    const char *before = getenv("LD_PRELOAD");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(EXIT_NO_EXEC);
    signal(SIGPIPE, SIG_DFL); /* ak ignores both; ignored signals survive exec */
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    const char *all = before && *before ? arena_printf(&a, "%s:%s", library, before) : library;
    if (setenv("LD_PRELOAD", all, 1) == 0 && setenv(SPOOL_ENV, folder, 1) == 0)
        execv(t->path, r->argv);
    fprintf(stderr, "ak: %s: %s\n", t->path, strerror(errno));
    _exit(EXIT_NO_EXEC);
}

/* Until the last process of the command has ended. What the terminal sends has reached the command by itself; what ak
 * got alone is handed on. Once only what the command left behind runs, a signal ends that. False where ak was killed,
 * and with it all that it had started. */
static bool wait_for_all(struct run *run, const struct keeper *k, struct fault *f)
{
    static const struct timespec grace = {GRACE_S, 0};
    bool ended = false, told_end = false, told_signal = false;
    int handed = 0; /* the last signal that the command got */
    for (;;) {
        int status;
        pid_t gone = waitpid(-1, &status, WNOHANG);
        if (gone == run->pid) {
            run->status = status;
            ended = true;
        }
        if (gone > 0)
            continue;
        if (gone < 0 && errno == ECHILD)
            return true;
        if (getppid() != k->parent) {
            if (!ended)
                kill(run->pid, SIGKILL);
            orphans_end();
            return fault_set(f, AK_FAILED,
                             "record: ak was killed, and all that it had started; no trace is kept");
        }
        siginfo_t info;
        bool tell = ended ? !told_end : handed && !told_signal;
        int number = sigtimedwait(&k->watched, &info, tell ? &grace : NULL);
        if (number < 0 && errno == EAGAIN && ended) {
            fputs("ak: record: the command has ended, but processes that it started still run; waiting for "
                  "them, a "
                  "signal (Ctrl-C, TERM) ends them\n",
                  stderr);
            told_end = true;
        } else if (number < 0 && errno == EAGAIN) {
            fprintf(stderr,
                    "ak: record: the command still runs after signal %d (%s); waiting for it, SIGKILL to ak "
                    "record ends it\n",
                    handed, strsignal(handed));
            told_signal = true;
        }
        if (number < 0 || number == SIGCHLD)
            continue;
        bool order = number == KEEPER_ORDER && info.si_code == SI_QUEUE && info.si_pid == k->parent;
        if (!order && (number == KEEPER_ORDER || info.si_code <= 0))
            continue; /* sent to the whole group: ak has it too, and hands it on */
        number = order ? info.si_value.sival_int : number;
        if (ended)
            orphans_end();
        else if (order)
            kill(run->pid, number);
        handed = number;
    }
}

static bool run_command(const struct target *t, const struct request *r, const char *folder,
                        const char *library, const struct keeper *k, struct run *run, struct fault *f)
{
    pid_t self = getpid();
    run->from = seal_clock_now();
    run->pid = fork();
    if (run->pid == 0)
        become(t, r, folder, library, self, &k->before);
    if (run->pid < 0)
        return fault_set(f, AK_ENVIRONMENT, "fork: %s", strerror(errno));
    bool good = wait_for_all(run, k, f);
    run->to = seal_clock_now();
    return good;
}

/* ---- which processes are kept ---- */

static const char *program_of(struct arena *a, const struct recorded *p)
{
    return path_name(arena_strndup(a, p->facts.command, strcspn(p->facts.command, " ")));
}

static bool wanted(struct arena *a, const struct request *r, const struct run *run, const struct recorded *p)
{
    if (p->events == 0)
        return false;
    if (strcmp(r->children, "first") == 0)
        return p->facts.pid == (uint64_t)run->pid;
    return strcmp(r->children, "most") == 0 || strcmp(r->children, "each") == 0 ||
           strcmp(r->children, program_of(a, p)) == 0;
}

/* Programs that made a call, each once. */
static const char *programs(struct arena *a, const struct recording *rec)
{
    struct words names = {0};
    const char *all = "";
    for (size_t i = 0; i < rec->count; i++) {
        const char *name = program_of(a, &rec->process[i]);
        bool told = rec->process[i].events == 0;
        for (size_t n = 0; n < names.count; n++)
            told |= strcmp(names.word[n], name) == 0;
        if (told)
            continue;
        words_add(a, &names, name);
        all = arena_printf(a, "%s%s%s", all, *all ? ", " : "", name);
    }
    return all;
}

static struct recorded *busiest(struct arena *a, const struct request *r, const struct run *run,
                                const struct recording *rec)
{
    struct recorded *most = NULL;
    for (size_t i = 0; i < rec->count; i++)
        if (wanted(a, r, run, &rec->process[i]) && (!most || rec->process[i].facts.calls > most->facts.calls))
            most = &rec->process[i];
    return most;
}

/* How it ended. Only the command's own status is known here, and that is the last image's of its process. */
static const char *end_of(struct arena *a, const struct run *run, const struct recording *rec,
                          const struct recorded *p)
{
    bool last = p->facts.pid == (uint64_t)run->pid;
    for (const struct recorded *q = p + 1; q < rec->process + rec->count; q++)
        last = last && q->facts.pid != p->facts.pid;
    if (last && WIFSIGNALED(run->status))
        return arena_printf(a, "signal %d (%s)", WTERMSIG(run->status), strsignal(WTERMSIG(run->status)));
    if (last)
        return arena_printf(a, "exit status %d%s", WEXITSTATUS(run->status),
                            p->ended == SPOOL__EXIT ? " by _exit" : "");
    return p->ended == SPOOL_EXIT ? "by exit" : p->ended == SPOOL__EXIT ? "by _exit" : "by exec or a signal";
}

static bool keep(struct arena *a, const struct run *run, const struct recording *rec, struct recorded *p,
                 const char *file, struct fault *f)
{
    if (!place_check(a, file, f) ||
        !recorded_seal(a, p, end_of(a, run, rec, p), &run->from, &run->to, file, f))
        return false;
    fprintf(stderr, "%s: %" PRIu64 " calls of %s (process %" PRIu64 "), %s\n", file, p->facts.calls,
            program_of(a, p), p->facts.pid, p->facts.end);
    return true;
}

static bool keep_wanted(struct arena *a, const struct request *r, const struct run *run,
                        const struct recording *rec, struct fault *f)
{
    struct recorded *most = busiest(a, r, run, rec);
    uint64_t others = 0, calls = 0;
    const struct request any = {.children = "most"};
    bool found = most != NULL;
    if (!found) /* a run may be long: it is not lost by a name */
        most = busiest(a, &any, run, rec);
    if (!most)
        return fault_set(f, AK_FAILED, "no recorded process made a call; no trace is kept");
    if (each(r)) {
        for (size_t i = 0, n = 0; i < rec->count; i++)
            if (wanted(a, r, run, &rec->process[i])) /* one that fails does not take the others along */
                keep(a, run, rec, &rec->process[i], place_of_each(a, r, ++n), f);
        return f->code == AK_DONE;
    }
    for (size_t i = 0; i < rec->count; i++)
        if (&rec->process[i] != most) {
            others++;
            calls += rec->process[i].facts.calls;
        }
    if (!keep(a, run, rec, most, r->file, f))
        return false;
    if (others)
        fprintf(stderr,
                "%" PRIu64 " other %s of the command made %" PRIu64 " calls: --children each keeps theirs\n",
                others, others == 1 ? "process" : "processes", calls);
    return found ||
           fault_set(
               f, AK_FAILED,
               "--children %s: no such process made a call, and %s is the busiest one's; there were: %s",
               r->children, r->file, programs(a, rec));
}

/* ---- the whole ---- */

static bool check_recording(const struct run *run, const struct recording *rec, struct fault *f)
{
    const struct recorded *last = NULL; /* image of the command's own process */
    for (size_t i = 0; i < rec->count; i++) {
        if (rec->process[i].own)
            return fault_set(
                f, AK_ENVIRONMENT,
                "%s is not recorded: it brings its own malloc (%s), which comes before every library's",
                rec->process[i].facts.command, rec->process[i].facts.served);
        if (rec->process[i].facts.pid == (uint64_t)run->pid)
            last = &rec->process[i];
    }
    if (rec->error)
        return fault_set(f, AK_ENVIRONMENT, "the recording failed in process %d: %s: %s; no trace is kept",
                         rec->failed_pid, rec->what, strerror(rec->error));
    if (WIFEXITED(run->status) && WEXITSTATUS(run->status) == EXIT_NO_EXEC && !last)
        return fault_set(f, AK_USAGE, "the command could not be started");
    if (!last || (last->ended == 0 && WIFEXITED(run->status)))
        return fault_set(
            f, AK_ENVIRONMENT,
            "%s%s: the recorder was not loaded into it; it is static or privileged, or %s clears the "
            "environment; no trace is kept",
            last ? last->facts.command : "the command",
            last ? " became a program that is not recorded" : " is not recorded",
            last ? "what started it" : "it");
    return true;
}

/* The command's failure and calls that are missing are told last, with the traces in place. */
static bool tell_failures(const struct run *run, const struct recording *rec, struct fault *f)
{
    for (size_t i = 0; i < rec->count; i++)
        if (rec->process[i].facts.unseen)
            return fault_set(f, AK_FAILED,
                             "process %" PRIu64 ": %" PRIu64
                             " calls came from a signal handler in the middle of "
                             "another call, and are not in the trace",
                             rec->process[i].facts.pid, rec->process[i].facts.unseen);
    if (WIFSIGNALED(run->status))
        return fault_set(f, AK_FAILED, "the command was ended by signal %d (%s)", WTERMSIG(run->status),
                         strsignal(WTERMSIG(run->status)));
    return WEXITSTATUS(run->status) == 0 ||
           fault_set(f, AK_FAILED, "the command ended with exit status %d", WEXITSTATUS(run->status));
}

static bool record(struct arena *a, const struct paths *paths, const struct request *r,
                   const struct keeper *k, struct fault *f)
{
    struct target target;
    struct run run = {0};
    struct recording rec;
    if (!target_find(a, "record", r->argv[0], &target, f))
        return false;
    if (target.refusal)
        return fault_set(f, AK_ENVIRONMENT, "record: %s", target.refusal);
    if (!places_check(a, r, f))
        return false;
    const char *folder = folder_make(a, r->file, f);
    const char *library = folder && f->code == AK_DONE ? library_find(a, paths, folder, f) : NULL;
    bool good = library && run_command(&target, r, folder, library, k, &run, f) &&
                recording_read(a, folder, &rec, f) && check_recording(&run, &rec, f) &&
                keep_wanted(a, r, &run, &rec, f) && tell_failures(&run, &rec, f);
    if (folder)
        folder_remove(a, folder);
    return good;
}

/* Signals that whoever started ak had ignored stay so (nohup). */
static void keeper_watch(struct keeper *k)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    struct sigaction was;
    k->parent = getpid();
    sigemptyset(&k->watched);
    sigaddset(&k->watched, SIGCHLD);
    sigaddset(&k->watched, KEEPER_ORDER);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            sigaddset(&k->watched, signals[i]);
    sigprocmask(SIG_BLOCK, &k->watched, &k->before);
}

/* In ak. The keeper has said why where it failed. */
static int keeper_wait(const struct keeper *k, pid_t keeper, struct fault *f)
{
    int status;
    while (waitpid(keeper, &status, WNOHANG) != keeper) {
        siginfo_t info;
        int number = sigwaitinfo(&k->watched, &info);
        if (number > 0 && number != SIGCHLD && number != KEEPER_ORDER && info.si_code <= 0)
            sigqueue(keeper, KEEPER_ORDER, (union sigval){.sival_int = number});
    }
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    orphans_end();
    fault_set(f, AK_ENVIRONMENT, "record: its second process was ended by signal %d (%s); no trace is kept",
              WTERMSIG(status), strsignal(WTERMSIG(status)));
    return fault_print(f);
}

static int record_kept(struct arena *a, const struct paths *paths, const struct request *r, struct fault *f)
{
    struct keeper k;
    keeper_watch(&k);
    pid_t keeper = fork();
    if (keeper > 0)
        return keeper_wait(&k, keeper, f);
    if (keeper < 0) {
        fault_set(f, AK_ENVIRONMENT, "fork: %s", strerror(errno));
        return fault_print(f);
    }
    prctl(PR_SET_PDEATHSIG, KEEPER_ORDER);
    orphans_adopt();
    _exit(getppid() == k.parent && record(a, paths, r, &k, f) ? AK_DONE : fault_print(f));
}

static int cmd_record(int argc, char **argv)
{
    struct arena arena = {0};
    struct fault fault = {0};
    struct paths paths;
    struct request request;
    bool good = read_options(&arena, argc, argv, &request, &fault) && paths_find(&arena, &paths, &fault);
    if (good)
        good = !request.show || trace_show(&arena, request.show, &fault);
    int code = !good          ? fault_print(&fault)
               : request.show ? AK_DONE
                              : record_kept(&arena, &paths, &request, &fault);
    arena_free(&arena);
    return code;
}

AK_COMMAND(
    command_record, "record", "[-o FILE] [--children WHICH] -- COMMAND... | --show FILE",
    "the allocation events of a program, into a file that the kernel replay plays back",
    "  -o FILE           the trace; default: the command's name with .trace, in this folder\n"
    "  --children WHICH  of the processes that the command starts: most (default), the one with the most "
    "calls;\n"
    "                    first, the command itself; NAME, the busiest with that program; each, all of them, "
    "into\n"
    "                    FILE.1, FILE.2, ... in the order in which they began\n"
    "  --show FILE       what a trace holds\n\n"
    "The recording ends when the last process of the command has; once the command itself has, a signal ends "
    "the\n"
    "others. docs/traces.md says what it costs.\n",
    cmd_record);
