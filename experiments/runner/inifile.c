#include "inifile.h"
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (1 << 20)
#define LINE_BYTES_MAX 4000 /* of a file; inih's buffer is set larger, so it never cuts a line */
#define NAME_BYTES_MAX 49   /* inih's MAX_SECTION and MAX_NAME less the NUL; it cuts longer ones silently */

char *file_read(struct arena *a, const char *path, size_t max, size_t *length, struct fault *f)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        fault_at(f, path, 0, "%s, expected a readable file", fd < 0 ? strerror(errno) : "not a regular file");
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    if ((uint64_t)st.st_size > max) {
        fault_at(f, path, 0, "%lld bytes, expected at most %zu", (long long)st.st_size, max);
        close(fd);
        return NULL;
    }
    char *text = arena_alloc(a, (size_t)st.st_size + 1);
    size_t have = 0;
    ssize_t got;
    while (have < (size_t)st.st_size && (got = read(fd, text + have, (size_t)st.st_size - have)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            fault_at(f, path, 0, "cannot be read: %s", strerror(errno));
            close(fd);
            return NULL;
        }
        have += (size_t)got;
    }
    close(fd);
    text[have] = '\0';
    *length = have;
    return text;
}

/* What inih's callbacks see. */
struct parse {
    struct arena *arena;
    struct ini_file *file;
    struct fault *fault;
    const char *next; /* the unread text */
    unsigned line;
};

/* inih's reader: one line of the text, counted, since its handler is not told the line. */
static char *next_line(char *to, int room, void *user)
{
    struct parse *p = user;
    if (!*p->next)
        return NULL;
    size_t length = strcspn(p->next, "\n");
    length += p->next[length] == '\n';
    if (length >= (size_t)room)
        length = (size_t)room - 1; /* excluded by check_lines */
    memcpy(to, p->next, length);
    to[length] = '\0';
    p->next += length;
    p->line++;
    return to;
}

static int take_entry(void *user, const char *section, const char *name, const char *value)
{
    struct parse *p = user;
    struct ini_file *file = p->file;
    for (size_t i = 0; i < file->entries; i++)
        if (strcmp(file->entry[i].section, section) == 0 && strcmp(file->entry[i].name, name) == 0) {
            fault_at(p->fault, file->path, p->line, "'%s' again, expected once%s%s%s (first at line %u)",
                     name, *section ? " in [" : "", section, *section ? "]" : "", file->entry[i].line);
            return 0;
        }
    file->entry = arena_grow(p->arena, file->entry, file->entries, sizeof *file->entry);
    file->entry[file->entries++] =
        (struct ini_entry){arena_strdup(p->arena, section), arena_strdup(p->arena, name),
                           arena_strdup(p->arena, value), p->line};
    return 1;
}

/* A [section] line: its name is kept, since inih does not report empty sections. */
static bool check_section(struct parse *p, const char *text, size_t length, unsigned line)
{
    const char *end = memchr(text, ']', length);
    if (!end)
        return fault_at(p->fault, p->file->path, line, "section without ']', expected [name]");
    char *name = arena_strndup(p->arena, text + 1, (size_t)(end - text) - 1);
    const char *rest = end + 1;
    while (rest < text + length && isspace((unsigned char)*rest))
        rest++;
    if (rest < text + length && *rest != '#')
        return fault_at(p->fault, p->file->path, line, "text after [%s], expected nothing or a comment",
                        name);
    if (!*name || strlen(name) > NAME_BYTES_MAX || strpbrk(name, " \t#="))
        return fault_at(p->fault, p->file->path, line,
                        "section name '%s', expected 1 to %d bytes without blanks", name, NAME_BYTES_MAX);
    struct ini_file *file = p->file;
    for (size_t i = 0; i < file->sections; i++)
        if (strcmp(file->section[i].name, name) == 0)
            return fault_at(p->fault, file->path, line,
                            "section [%s] again, expected once (first at line %u)", name,
                            file->section[i].line);
    file->section = arena_grow(p->arena, file->section, file->sections, sizeof *file->section);
    file->section[file->sections++] = (struct ini_section){name, line};
    return true;
}

/* Everything that inih would accept or cut without a word. */
static bool check_lines(struct parse *p)
{
    const char *path = p->file->path, *text = p->file->text, *end = text + p->file->length;
    if (p->file->length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    for (unsigned line = 1; text < end; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = newline ? (size_t)(newline - text) : (size_t)(end - text), at;
        if (length > LINE_BYTES_MAX)
            return fault_at(p->fault, path, line, "a line of %zu bytes, expected at most %d", length,
                            LINE_BYTES_MAX);
        if (!text_is_utf8(text, length, &at))
            return fault_at(p->fault, path, line, "byte %zu is not UTF-8 text, expected UTF-8", at + 1);
        size_t start = 0;
        while (start < length && isspace((unsigned char)text[start]))
            start++;
        const char *first = text + start, *equals = memchr(first, '=', length - start);
        if (start < length && *first == '[') {
            if (!check_section(p, first, length - start, line))
                return false;
        } else if (start < length && *first != '#') {
            if (!equals)
                return fault_at(p->fault, path, line, "'%.*s', expected key = value",
                                (int)(length - start < 60 ? length - start : 60), first);
            size_t name = 0;
            while (first + name < equals && !isspace((unsigned char)first[name]) && first[name] != ':')
                name++;
            size_t rest = name;
            while (first + rest < equals && isspace((unsigned char)first[rest]))
                rest++;
            if (!name || name > NAME_BYTES_MAX || first + rest != equals)
                return fault_at(p->fault, path, line,
                                "'%.*s' before '=', expected a key of 1 to %d bytes without blanks or ':'",
                                (int)(equals - first < 60 ? equals - first : 60), first, NAME_BYTES_MAX);
        }
        text = newline ? newline + 1 : end;
    }
    return true;
}

bool inifile_read(struct arena *a, const char *path, struct ini_file *file, struct fault *f)
{
    *file = (struct ini_file){.path = arena_strdup(a, path)};
    file->text = file_read(a, path, FILE_BYTES_MAX, &file->length, f);
    if (!file->text)
        return false;
    struct parse p = {.arena = a, .file = file, .fault = f, .next = file->text};
    if (!check_lines(&p))
        return false;
    ini_allow_multiline = false;
    ini_start_comment_prefixes = "#";
    ini_inline_comment_prefixes = "#";
    ini_max_line = LINE_BYTES_MAX + 8;
    ini_stop_on_first_error = true;
    int line = ini_parse_stream(next_line, &p, take_entry, &p);
    if (f->code != AK_DONE)
        return false;
    if (line != 0)
        return fault_at(f, path, line > 0 ? (unsigned)line : 0, "not an INI line, expected key = value");
    return true;
}

const struct ini_entry *inifile_find(const struct ini_file *file, const char *section, const char *name)
{
    for (size_t i = 0; i < file->entries; i++)
        if (strcmp(file->entry[i].section, section) == 0 && strcmp(file->entry[i].name, name) == 0)
            return &file->entry[i];
    return NULL;
}
