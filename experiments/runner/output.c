#include "output.h"
#include "child.h"
#include "places.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool broken(const struct output *o, struct fault *f)
{
    int error = errno;
    if (child_interrupts)
        return fault_set(f, AK_FAILED, "interrupted");
    return fault_set(f, AK_ENVIRONMENT, "%s: %s", o->path, strerror(error));
}

/* A symbolic link stays one: what it leads to is replaced. */
static bool open_beside(struct arena *a, struct output *o, const char *path, struct fault *f)
{
    struct stat there;
    const char *real = path_real(a, path);
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    if (!real && errno != ENOENT)
        return broken(o, f);
    if (!real && lstat(path, &there) == 0)
        return fault_set(f, AK_USAGE, "%s: a symbolic link that leads nowhere, expected a file", path);
    if (real && stat(real, &there) == 0 && S_ISDIR(there.st_mode))
        return fault_set(f, AK_USAGE, "%s: a folder, expected a file", path);
    bool plain = !real || S_ISREG(there.st_mode);
    if (plain) {
        o->target = real ? real : path;
        o->temporary = arena_printf(a, "%s.new-%d", o->target, (int)getpid());
        flags |= O_EXCL;
    }
    int fd = open(plain ? o->temporary : real, flags, 0666);
    if (fd >= 0 && plain && real)
        fchmod(fd, there.st_mode & 07777); /* as it was; the umask's otherwise */
    if (fd < 0) {
        o->temporary = NULL;
        return broken(o, f);
    }
    o->file = fdopen(fd, "w");
    if (!o->file)
        close(fd);
    return o->file || broken(o, f);
}

bool output_open(struct arena *a, struct output *o, const char *path, struct fault *f)
{
    *o = (struct output){.path = path ? path : "standard output"};
    if (path)
        return open_beside(a, o, path, f);
    o->file = stdout;
    return true;
}

bool output_write(struct output *o, struct buffer *b, struct fault *f)
{
    size_t length = b->length;
    b->length = 0;
    return fwrite(length ? b->data : "", 1, length, o->file) == length || broken(o, f);
}

static void close_file(struct output *o)
{
    if (o->file && o->file != stdout)
        fclose(o->file);
    o->file = NULL;
}

bool output_commit(struct output *o, struct fault *f)
{
    bool good = fflush(o->file) == 0 && (!o->target || fsync(fileno(o->file)) == 0) &&
                (!o->target || rename(o->temporary, o->target) == 0);
    if (!good)
        broken(o, f);
    else
        o->temporary = NULL;
    output_discard(o);
    return good;
}

void output_discard(struct output *o)
{
    close_file(o);
    if (o->temporary)
        unlink(o->temporary);
    o->temporary = NULL;
}
