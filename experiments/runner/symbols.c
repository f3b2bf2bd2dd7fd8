#include "symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file in memory. Nothing that stands in it is believed: whatever it points to is looked up by these two. */
struct image {
    const unsigned char *bytes;
    size_t length;
};

/* `count` elements of `size` bytes at `offset`, or NULL. */
static const void *part(const struct image *image, uint64_t offset, uint64_t count, size_t size)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || offset > image->length ||
        bytes > image->length - offset)
        return NULL;
    return image->bytes + offset;
}

/* A text that ends within the file; "" for any other. */
static const char *text_at(const struct image *image, uint64_t offset)
{
    if (offset >= image->length || memchr(image->bytes + offset, '\0', image->length - offset) == NULL)
        return "";
    return (const char *)image->bytes + offset;
}

static void take_segments(struct arena *a, const struct image *image, const Elf64_Ehdr *header,
                          struct symbols *s)
{
    const unsigned char *at = part(image, header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr));
    for (unsigned i = 0; at && i < header->e_phnum; i++) {
        Elf64_Phdr program;
        memcpy(&program, at + i * sizeof program, sizeof program);
        if (program.p_type != PT_LOAD)
            continue;
        s->segment = arena_grow(a, s->segment, s->segments, sizeof *s->segment);
        s->segment[s->segments++] = (struct segment){program.p_offset, program.p_filesz, program.p_vaddr};
    }
}

static void take_table(struct arena *a, const struct image *image, const Elf64_Shdr *table,
                       const Elf64_Shdr *names, struct symbols *s)
{
    uint64_t count = table->sh_size / sizeof(Elf64_Sym);
    const unsigned char *at = part(image, table->sh_offset, count, sizeof(Elf64_Sym));
    for (uint64_t i = 0; at && i < count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, at + i * sizeof symbol, sizeof symbol);
        unsigned type = ELF64_ST_TYPE(symbol.st_info);
        if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF ||
            symbol.st_size == 0)
            continue;
        const char *name = text_at(image, names->sh_offset + symbol.st_name);
        if (!*name)
            continue;
        s->symbol = arena_grow(a, s->symbol, s->count, sizeof *s->symbol);
        s->symbol[s->count++] = (struct symbol){symbol.st_value, symbol.st_size, arena_strdup(a, name),
                                                ELF64_ST_BIND(symbol.st_info) != STB_LOCAL};
    }
}

static void take_symbols(struct arena *a, const struct image *image, const Elf64_Ehdr *header,
                         struct symbols *s)
{
    static const unsigned kinds[] = {SHT_SYMTAB, SHT_DYNSYM};
    const unsigned char *at = part(image, header->e_shoff, header->e_shnum, sizeof(Elf64_Shdr));
    for (size_t k = 0; at && k < sizeof kinds / sizeof *kinds && s->count == 0; k++)
        for (unsigned i = 0; i < header->e_shnum; i++) {
            Elf64_Shdr table, names;
            memcpy(&table, at + i * sizeof table, sizeof table);
            if (table.sh_type != kinds[k] || table.sh_link >= header->e_shnum)
                continue;
            memcpy(&names, at + table.sh_link * sizeof names, sizeof names);
            take_table(a, image, &table, &names, s);
        }
}

bool symbols_read(struct arena *a, const char *path, struct symbols *s, const char **why)
{
    *s = (struct symbols){0};
    *why = NULL;
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool good = fd >= 0 && fstat(fd, &about) == 0;
    if (!good)
        *why = arena_strdup(a, strerror(errno));
    struct image image = {.length = good ? (size_t)about.st_size : 0};
    Elf64_Ehdr header = {0};
    if (image.length >= sizeof header) {
        void *bytes = mmap(NULL, image.length, PROT_READ, MAP_PRIVATE, fd, 0);
        image.bytes = bytes == MAP_FAILED ? NULL : bytes;
    }
    if (image.bytes)
        memcpy(&header, image.bytes, sizeof header);
    if (good && (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
                 header.e_phentsize != sizeof(Elf64_Phdr) ||
                 (header.e_shnum && header.e_shentsize != sizeof(Elf64_Shdr))))
        *why = "not a 64-bit ELF file";
    if (!*why) {
        take_segments(a, &image, &header, s);
        take_symbols(a, &image, &header, s);
    }
    if (image.bytes)
        munmap((void *)(uintptr_t)image.bytes, image.length);
    if (fd >= 0)
        close(fd);
    return !*why;
}

bool symbols_address(const struct symbols *s, uint64_t offset, uint64_t *address)
{
    for (size_t i = 0; i < s->segments; i++)
        if (offset >= s->segment[i].offset && offset - s->segment[i].offset < s->segment[i].size) {
            *address = s->segment[i].address + (offset - s->segment[i].offset);
            return true;
        }
    return false;
}

static bool is_better(const struct symbol *new, const struct symbol *old, const char *wanted)
{
    if (!old || strcmp(old->name, wanted) == 0 || strcmp(new->name, wanted) == 0)
        return !old || strcmp(old->name, wanted) != 0;
    bool new_hidden = *new->name == '_', old_hidden = *old->name == '_';
    size_t new_length = strlen(new->name), old_length = strlen(old->name);
    if (new_hidden != old_hidden)
        return old_hidden;
    return new_length != old_length ? new_length < old_length : strcmp(new->name, old->name) < 0;
}

const struct symbol *symbols_find(const struct symbols *s, uint64_t address, const char *wanted)
{
    const struct symbol *best = NULL;
    for (size_t i = 0; i < s->count; i++) {
        const struct symbol *symbol = &s->symbol[i];
        if (address >= symbol->start && address - symbol->start < symbol->size &&
            is_better(symbol, best, wanted))
            best = symbol;
    }
    return best;
}
