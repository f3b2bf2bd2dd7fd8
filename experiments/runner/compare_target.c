#include "compare_target.h"
#include "places.h"
#include "symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define HEAD_BYTES      256 /* of a script's first line: as many as Linux reads */
#define SCRIPTS_NESTED  4   /* as Linux follows them */
#define PHDRS_MAX       1024
#define INTERPRETER_MAX 4096
#define CAPABILITIES    "security.capability"

#ifdef __x86_64__
#define MACHINE EM_X86_64
#elif defined __aarch64__
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

/* Allocators that programs carry under names of their own. */
static const char *const private_names[] = {"je_malloc", "mi_malloc", "tc_malloc", "rpmalloc",
                                            "scalable_malloc"};

/* ---- finding it ---- */

static bool find_file(struct arena *a, const char *who, const char *command, const char **path,
                      struct fault *f)
{
    *path = strchr(command, '/') ? command : program_find(a, command);
    if (!*path && path_is_folder(command))
        *path = command;
    if (!*path)
        return fault_set(f, AK_USAGE, "%s: %s: command not found", who, command);
    if (path_is_folder(*path))
        return fault_set(f, AK_USAGE, "%s: %s: a folder, expected a program", who, *path);
    if (access(*path, F_OK) != 0)
        return fault_set(f, AK_USAGE, "%s: %s: %s", who, *path, strerror(errno));
    if (access(*path, R_OK) != 0)
        return fault_set(f, AK_USAGE, "%s: %s: cannot be read, so that nobody can tell what it is: %s", who,
                         *path, strerror(errno));
    if (access(*path, X_OK) != 0)
        return fault_set(f, AK_USAGE, "%s: %s: not executable: %s", who, *path, strerror(errno));
    return true;
}

static size_t read_head(const char *path, char *head, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t length = fd >= 0 ? read(fd, head, room - 1) : -1;
    if (fd >= 0)
        close(fd);
    head[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

/* The first word of `text` that env takes for a program: past its options and settings. */
static const char *env_program(struct arena *a, const char *text)
{
    for (;;) {
        text += strspn(text, " \t");
        const size_t length = strcspn(text, " \t");
        if (!length)
            return NULL;
        if (*text != '-' && !memchr(text, '=', length))
            return arena_strndup(a, text, length);
        text += length;
    }
}

/* The interpreter that a script's first line names, or NULL with *why. */
static const char *interpreter(struct arena *a, char *head, const char **why)
{
    head[strcspn(head, "\n")] = '\0';
    const char *at = head + 2 + strspn(head + 2, " \t");
    const size_t length = strcspn(at, " \t");
    const char *name = arena_strndup(a, at, length);
    *why = arena_printf(a, "its first line names %s, which is not there", *name ? name : "nothing");
    if (!length || access(name, X_OK) != 0)
        return NULL;
    if (strcmp(path_name(name), "env") != 0)
        return name;
    const char *program = env_program(a, at + length);
    if (!program)
        return name;
    const char *found = strchr(program, '/') ? program : program_find(a, program);
    if (!found)
        *why = arena_printf(a, "its first line asks env for %s, which is not found", program);
    return found;
}

/* ---- what kind of program it is ---- */

static bool read_at(int fd, void *to, size_t length, uint64_t offset)
{
    return pread(fd, to, length, (off_t)offset) == (ssize_t)length;
}

/* The loader that the file asks for; "" where it asks for none; NULL where the file is damaged. */
static const char *loader_of(struct arena *a, int fd, const Elf64_Ehdr *header)
{
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > PHDRS_MAX)
        return NULL;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_at(fd, &segment, sizeof segment, header->e_phoff + i * sizeof segment))
            return NULL;
        if (segment.p_type != PT_INTERP)
            continue;
        if (segment.p_filesz > INTERPRETER_MAX)
            return NULL;
        char *name = arena_alloc(a, segment.p_filesz + 1);
        return read_at(fd, name, segment.p_filesz, segment.p_offset) ? name : NULL;
    }
    return "";
}

static const char *refuse_kind(struct arena *a, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    Elf64_Ehdr header;
    const char *refusal = NULL;
    if (fd < 0)
        return arena_printf(a, "cannot be read: %s", strerror(errno));
    if (!read_at(fd, &header, sizeof header, 0))
        refusal = "is damaged: it ends within its header";
    else if (header.e_ident[EI_CLASS] == ELFCLASS32)
        refusal = "is a 32-bit program, and the allocators here are of 64 bits";
    else if (header.e_ident[EI_CLASS] != ELFCLASS64 || (MACHINE && header.e_machine != MACHINE))
        refusal = "is a program for another kind of machine";
    else {
        const char *loader = loader_of(a, fd, &header);
        if (!loader)
            refusal = "is damaged: its program headers cannot be read";
        else if (!*loader)
            refusal = "is a static program: no loader runs, so nothing can be preloaded; link it with the "
                      "allocator instead";
        else if (strstr(path_name(loader), "ld-musl"))
            refusal = "runs on musl, and the allocators here are built for glibc";
    }
    close(fd);
    return refusal;
}

static const char *refuse_privilege(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return NULL;
    if (st.st_mode & S_ISUID)
        return "is a set-uid program: for any but its owner the loader ignores preloaded libraries";
    if (st.st_mode & S_ISGID)
        return "is a set-gid program: for any but its group the loader ignores preloaded libraries";
    if (getxattr(path, CAPABILITIES, NULL, 0) > 0)
        return "has file capabilities: the loader ignores preloaded libraries in it";
    return NULL;
}

static void look_at_names(struct arena *a, struct target *t)
{
    const char *why;
    struct symbols s = {0};
    if (!symbols_read(a, t->program, &s, &why))
        return;
    for (size_t i = 0; i < s.count; i++) {
        if (strcmp(s.symbol[i].name, "malloc") == 0)
            t->refusal = "brings its own malloc, which comes before every library's";
        for (size_t n = 0; n < sizeof private_names / sizeof *private_names; n++)
            if (strcmp(s.symbol[i].name, private_names[n]) == 0)
                t->note =
                    arena_printf(a,
                                 "%s has %s of its own: what goes through that is not exchanged, and not "
                                 "counted as malloc",
                                 path_name(t->program), private_names[n]);
    }
}

bool target_find(struct arena *a, const char *who, const char *command, struct target *t, struct fault *f)
{
    *t = (struct target){.note = ""};
    if (!find_file(a, who, command, &t->path, f))
        return false;
    const char *file = t->path, *why;
    for (int depth = 0;; depth++) {
        char head[HEAD_BYTES];
        const size_t length = read_head(file, head, sizeof head);
        if (length >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0)
            break;
        if (length < 2 || memcmp(head, "#!", 2) != 0)
            return fault_set(f, AK_USAGE,
                             "%s: %s: neither an ELF program nor a script that begins with #!", who, file);
        const char *next = depth < SCRIPTS_NESTED ? interpreter(a, head, &why) : NULL;
        if (!next)
            return fault_set(f, AK_USAGE, "%s: %s: cannot be run: %s", who, file,
                             depth < SCRIPTS_NESTED ? why : "scripts that run scripts, too deep");
        file = next;
    }
    const char *real = path_real(a, file);
    t->program = real ? real : file;
    t->refusal = refuse_privilege(t->program);
    if (!t->refusal)
        t->refusal = refuse_kind(a, t->program);
    if (!t->refusal)
        look_at_names(a, t);
    if (t->refusal)
        t->refusal = file == t->path
                         ? arena_printf(a, "%s %s", t->path, t->refusal)
                         : arena_printf(a, "%s is run by %s, which %s", t->path, file, t->refusal);
    return true;
}
