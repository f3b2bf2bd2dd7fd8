#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "linked.h"

#define OWN_FILE "/proc/self/exe"

/* The program itself is the first object. */
struct program { bool has_loader; ElfW(Addr) base; };

static int program_visit(struct dl_phdr_info *info, size_t size, void *user)
{
    struct program *program = user;
    (void)size;
    program->base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        program->has_loader |= info->dlpi_phdr[i].p_type == PT_INTERP;
    return 1;
}

static struct program program_look(void)
{
    struct program program = { false, 0 };
    dl_iterate_phdr(program_visit, &program);
    return program;
}

bool linked_statically(void)
{
    return !program_look().has_loader;
}

/* Where a name is, as the file's table has it; 0: nowhere. Names that the linker made local come last. */
static ElfW(Addr) value_of(const unsigned char *file, size_t bytes, const char *name)
{
    const ElfW(Ehdr) *header = (const void *)file;
    const ElfW(Shdr) *section = (const void *)(file + header->e_shoff);

    if (header->e_shoff == 0 || header->e_shoff + header->e_shnum * sizeof *section > bytes)
        return 0;
    ElfW(Addr) local = 0;
    for (unsigned s = 0; s < header->e_shnum; s++) {
        if (section[s].sh_type != SHT_SYMTAB || section[s].sh_offset + section[s].sh_size > bytes)
            continue;
        const ElfW(Sym) *symbol = (const void *)(file + section[s].sh_offset);
        const char *names = (const char *)file + section[section[s].sh_link].sh_offset;
        for (size_t i = 0; i < section[s].sh_size / sizeof *symbol; i++)
            if (symbol[i].st_shndx != SHN_UNDEF && strcmp(names + symbol[i].st_name, name) == 0) {
                if (symbol[i].st_info >> 4 != STB_LOCAL)
                    return symbol[i].st_value;
                local = symbol[i].st_value;
            }
    }
    return local;
}

void *linked_symbol(const char *name)
{
    struct stat about;
    ElfW(Addr) value = 0;
    int fd = open(OWN_FILE, O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && fstat(fd, &about) == 0) {
        size_t bytes = (size_t)about.st_size;
        void *file = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            value = value_of(file, bytes, name);
            munmap(file, bytes);
        }
    }
    if (fd >= 0)
        close(fd);
    return value != 0 ? (void *)(program_look().base + value) : NULL;
}

bool linked_holds(const void *address)
{
    const char *begin = linked_symbol("ak_linked_begin"), *end = linked_symbol("ak_linked_end"), *at = address;
    return begin != NULL && end != NULL && at > begin && at < end;
}
