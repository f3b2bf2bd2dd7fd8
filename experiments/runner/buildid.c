#include "buildid.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PHDRS_MAX      1024
#define NOTE_BYTES_MAX 65536

static bool read_at(int fd, void *to, size_t length, uint64_t offset)
{
    return pread(fd, to, length, (off_t)offset) == (ssize_t)length;
}

/* The build-id among the notes of one segment, or NULL. */
static char *find_note(struct arena *a, const unsigned char *notes, size_t length, size_t align)
{
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= length;) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note;
        size_t desc = name + (note.n_namesz + align - 1) / align * align;
        if (desc + note.n_descsz > length || note.n_namesz > length)
            return NULL;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0) {
            static const char digits[] = "0123456789abcdef";
            char *hex = arena_alloc(a, 2 * (size_t)note.n_descsz + 1);
            for (size_t i = 0; i < note.n_descsz; i++) {
                hex[2 * i] = digits[notes[desc + i] >> 4];
                hex[2 * i + 1] = digits[notes[desc + i] & 15];
            }
            return hex;
        }
        at = desc + (note.n_descsz + align - 1) / align * align;
    }
    return NULL;
}

char *elf_build_id(struct arena *a, const char *path, const char **why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    Elf64_Ehdr header;
    char *id = NULL;
    *why = NULL;
    if (fd < 0)
        *why = arena_strdup(a, strerror(errno));
    else if (!read_at(fd, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
             header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
             header.e_phnum > PHDRS_MAX)
        *why = "not a 64-bit ELF file";
    else
        for (unsigned i = 0; i < header.e_phnum && !id; i++) {
            Elf64_Phdr segment;
            if (!read_at(fd, &segment, sizeof segment, header.e_phoff + i * sizeof segment))
                break;
            if (segment.p_type != PT_NOTE || segment.p_filesz > NOTE_BYTES_MAX)
                continue;
            unsigned char *notes = arena_alloc(a, segment.p_filesz + 1);
            if (read_at(fd, notes, segment.p_filesz, segment.p_offset))
                id = find_note(a, notes, segment.p_filesz, segment.p_align == 8 ? 8 : 4);
        }
    if (fd >= 0)
        close(fd);
    return *why ? NULL : id ? id : arena_strdup(a, "");
}

char *file_stamp(struct arena *a, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return arena_strdup(a, "");
    return arena_printf(a, "%lld bytes, inode %llu, changed %lld.%09ld", (long long)st.st_size,
                        (unsigned long long)st.st_ino, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}
