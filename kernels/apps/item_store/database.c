#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "database.h"
#include "kernel.h"
#include "memory.h"

#define DEBIANS_FOLDER "/usr/lib/postgresql" /* a folder for each version; its programs are in bin */
#define MAKE_MS        120000
#define READY_MS       60000
#define STOP_MS        10000
#define LOOK_NS        5000000
#define OWN_BYTES      (100ull << 20) /* of a database without an item */
#define PATH_BYTES     200
#define SHM_LINE       7 /* of postmaster.pid: "key id" of its segment of System V */
#define STATUS_LINE    8

/* The folder of the newest PostgreSQL's programs, or NULL. */
static const char *programs_find(void)
{
    static char bin[PATH_BYTES];
    struct dirent *entry;
    DIR *versions = opendir(DEBIANS_FOLDER);
    long newest = 0;

    while (versions != NULL && (entry = readdir(versions)) != NULL) {
        long version = strtol(entry->d_name, NULL, 10);
        if (version > newest) {
            newest = version;
            snprintf(bin, sizeof bin, DEBIANS_FOLDER "/%.100s/bin", entry->d_name);
        }
    }
    if (versions != NULL)
        closedir(versions);
    return newest > 0 ? bin : NULL;
}

/* Of PATH, else of Debian's folders. */
static int program_find(const char *name, char path[PATH_BYTES], char why[SERVICE_WHY])
{
    const char *const more[] = {programs_find(), NULL};
    const char *found = service_find(name, more);

    if (found != NULL && snprintf(path, PATH_BYTES, "%s", found) < PATH_BYTES)
        return 0;
    snprintf(why, SERVICE_WHY, "%s is not there: install postgresql (make deps-apps)", name);
    return -1;
}

/* Who it runs as where this process is root's: PostgreSQL refuses to be. */
static int user_find(uid_t *user, gid_t *group, char why[SERVICE_WHY])
{
    const struct passwd *entry = getpwnam("postgres");

    *user = 0;
    *group = 0;
    if (geteuid() != 0)
        return 0;
    if (entry == NULL || entry->pw_uid == 0)
        entry = getpwnam("nobody");
    if (entry == NULL || entry->pw_uid == 0) {
        snprintf(why, SERVICE_WHY,
                 "PostgreSQL does not run as root, and there is neither a user postgres nor nobody");
        return -1;
    }
    *user = entry->pw_uid;
    *group = entry->pw_gid;
    return 0;
}

static int room_check(const char *folder, uint64_t bytes, char why[SERVICE_WHY])
{
    struct statvfs disk;
    uint64_t needed = bytes + OWN_BYTES, room;

    if (statvfs(folder, &disk) != 0)
        return 0;
    room = (geteuid() == 0 ? disk.f_bfree : disk.f_bavail) * disk.f_frsize;
    if (room >= needed)
        return 0;
    snprintf(why, SERVICE_WHY,
             "%s: %llu MB free, about %llu MB needed: set TMPDIR to a folder on a larger disk", folder,
             (unsigned long long)(room >> 20), (unsigned long long)(needed >> 20));
    return -1;
}

/* "WHAT: what LOG complains of" */
static int complaint(const char *what, const char *log, char why[SERVICE_WHY])
{
    char line[300];
    service_complaint(log, line, sizeof line);
    snprintf(why, SERVICE_WHY, "%s: %s", what, line[0] ? line : "it says nothing");
    return -1;
}

/* To its end. */
static int initdb_run(const struct service_request *request, const char *log, char why[SERVICE_WHY])
{
    struct service initdb;

    if (service_start(&initdb, request, why) != 0)
        return -1;
    if (service_wait(&initdb, MAKE_MS) != 0) {
        service_stop(&initdb, SIGTERM, STOP_MS);
        snprintf(why, SERVICE_WHY, "initdb takes longer than %d s", MAKE_MS / 1000);
        return -1;
    }
    return initdb.status == 0 ? 0 : complaint("initdb", log, why);
}

/* The folder of initdb's input files, as it says itself. */
static bool share_find(const char *log, char share[PATH_BYTES])
{
    static const char key[] = "share_path=";
    size_t length;
    char *text = service_text(log, &length), *at = text != NULL ? strstr(text, key) : NULL;
    bool found = false;

    if (at != NULL) {
        at += sizeof key - 1;
        found =
            snprintf(share, PATH_BYTES, "%.*s", (int)strcspn(at, "\n"), at) < PATH_BYTES && share[0] == '/';
    }
    if (text != NULL)
        ak_unmap(text, length + 1);
    return found;
}

/* A copy of FROM with one line more: the last one of a parameter counts. */
static bool settings_copy(const char *from, const char *to)
{
    size_t length;
    char *text = service_text(from, &length);
    FILE *f = text != NULL ? fopen(to, "w") : NULL;
    bool well = f != NULL && fprintf(f, "%s\ndynamic_shared_memory_type = mmap\n", text) > 0;

    if (f != NULL)
        well = fclose(f) == 0 && well;
    if (text != NULL)
        ak_unmap(text, length + 1);
    return well;
}

/* initdb's input files again in a folder of their own, but for the settings. The servers that it runs would have
 * shared memory in /dev/shm, where a killed one leaves it; as files of the cluster it goes with the folder. */
static bool share_make(const char *from, const char *to)
{
    static const char settings[] = "postgresql.conf.sample";
    char target[2 * PATH_BYTES], link[2 * PATH_BYTES];
    struct dirent *entry;
    DIR *files = mkdir(to, 0755) == 0 ? opendir(from) : NULL;
    bool well = files != NULL;

    while (well && (entry = readdir(files)) != NULL) {
        const char *name = entry->d_name;
        if (name[0] == '.')
            continue;
        well = snprintf(target, sizeof target, "%s/%s", from, name) < (int)sizeof target &&
               snprintf(link, sizeof link, "%s/%s", to, name) < (int)sizeof link;
        if (well && strcmp(name, settings) == 0)
            well = settings_copy(target, link);
        else if (well)
            well = symlink(target, link) == 0;
    }
    if (files != NULL)
        closedir(files);
    return well;
}

/* A new cluster in FOLDER/data. Anyone who can enter the folder, which is its user's alone, may connect. */
static int cluster_make(const struct database *d, uid_t user, gid_t group, char why[SERVICE_WHY])
{
    char program[PATH_BYTES], data[PATH_BYTES], log[PATH_BYTES], from[PATH_BYTES] = "", share[PATH_BYTES];
    const char *const show[] = {program, "--show", "-D", data, "-U", "ak", NULL};
    const char *const argv[] = {program,
                                "-D",
                                data,
                                "-L",
                                share,
                                "-A",
                                "trust",
                                "-U",
                                "ak",
                                "-E",
                                "UTF8",
                                "--locale=C",
                                "--no-sync",
                                "--no-instructions",
                                "--wal-segsize=4",
                                NULL};
    const char *const env[] = {"TZ=UTC", NULL}; /* else it tries every time zone there is */
    struct service_request request = {
        .argv = show, .env = env, .directory = d->folder, .err = log, .user = user, .group = group};

    snprintf(data, sizeof data, "%s/data", d->folder);
    snprintf(log, sizeof log, "%s/initdb.log", d->folder);
    snprintf(share, sizeof share, "%s/share", d->folder);
    if (program_find("initdb", program, why) != 0 || initdb_run(&request, log, why) != 0)
        return -1;
    if (!share_find(log, from) || !share_make(from, share)) {
        snprintf(why, SERVICE_WHY, "initdb's input files cannot be copied from %.100s to %.150s: %s", from,
                 share, strerror(errno));
        return -1;
    }
    request.argv = argv;
    return initdb_run(&request, log, why);
}

/* A line of postmaster.pid, from 1 on, or NULL. */
static const char *pid_file_line(const struct database *d, unsigned line)
{
    static char text[1024];
    char path[PATH_BYTES];
    char *at = text;

    snprintf(path, sizeof path, "%s/data/postmaster.pid", d->folder);
    if (proc_read(path, text, sizeof text) <= 0)
        return NULL;
    for (; at != NULL && line > 1; line--)
        at = (at = strchr(at, '\n')) != NULL ? at + 1 : NULL;
    return at;
}

static int ready_await(struct database *d, const char *log, char why[SERVICE_WHY])
{
    static const struct timespec look = {0, LOOK_NS};

    for (unsigned waited = 0; waited < READY_MS / (LOOK_NS / 1000000); waited++) {
        const char *status = pid_file_line(d, STATUS_LINE);
        if (status != NULL && strncmp(status, "ready", 5) == 0)
            return 0;
        if (service_ended(&d->postmaster))
            return complaint("postgres", log, why);
        nanosleep(&look, NULL);
    }
    snprintf(why, SERVICE_WHY, "postgres is not ready after %d s", READY_MS / 1000);
    return -1;
}

/* Its one segment of System V goes with its last process from here on; a killed one would leave it. */
static void shared_memory_mark(const struct database *d)
{
    const char *line = pid_file_line(d, SHM_LINE);
    int id;

    if (line != NULL && sscanf(line, "%*d %d", &id) == 1)
        shmctl(id, IPC_RMID, NULL);
}

static int server_run(struct database *d, unsigned connections, bool fsync, uid_t user, gid_t group,
                      char why[SERVICE_WHY])
{
    char program[PATH_BYTES], data[PATH_BYTES], log[PATH_BYTES], most[40], durable[40], committed[40],
        pages[40];
    /* Neither clean-up nor a check point of its own choosing falls into one window and not into another. */
    const char *const argv[] = {program,
                                "-D",
                                data,
                                "-k",
                                d->folder,
                                "-h",
                                "",
                                "-p",
                                "5432",
                                "-c",
                                most,
                                "-c",
                                durable,
                                "-c",
                                committed,
                                "-c",
                                pages,
                                "-c",
                                "autovacuum=off",
                                "-c",
                                "checkpoint_timeout=1h",
                                "-c",
                                "max_wal_size=16GB",
                                "-c",
                                "shared_buffers=128MB",
                                "-c",
                                "huge_pages=off",
                                "-c",
                                "dynamic_shared_memory_type=mmap",
                                "-c",
                                "max_logical_replication_workers=0",
                                "-c",
                                "unix_socket_permissions=0700",
                                "-c",
                                "restart_after_crash=off",
                                NULL};
    struct service_request request = {
        .argv = argv, .directory = d->folder, .out = log, .err = log, .user = user, .group = group};

    snprintf(data, sizeof data, "%s/data", d->folder);
    snprintf(log, sizeof log, "%s/postgres.log", d->folder);
    snprintf(most, sizeof most, "max_connections=%u", connections + 10);
    snprintf(durable, sizeof durable, "fsync=%s", fsync ? "on" : "off");
    snprintf(committed, sizeof committed, "synchronous_commit=%s", fsync ? "on" : "off");
    snprintf(pages, sizeof pages, "full_page_writes=%s", fsync ? "on" : "off");
    if (program_find("postgres", program, why) != 0 || service_start(&d->postmaster, &request, why) != 0 ||
        ready_await(d, log, why) != 0)
        return -1;
    shared_memory_mark(d);
    return 0;
}

int database_start(struct database *d, unsigned connections, bool fsync, uint64_t bytes,
                   char why[SERVICE_WHY])
{
    char program[PATH_BYTES];
    uid_t user;
    gid_t group;

    if (program_find("postgres", program, why) != 0 || program_find("initdb", program, why) != 0 ||
        user_find(&user, &group, why) != 0 || service_folder(d->folder, user, group, why) != 0 ||
        room_check(d->folder, bytes, why) != 0 || cluster_make(d, user, group, why) != 0)
        return -1;
    return server_run(d, connections, fsync, user, group, why);
}

void database_stop(struct database *d)
{
    service_stop(&d->postmaster, SIGQUIT, STOP_MS);
}
