#include "text.h"
#include "fault.h"
#include "nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_add(struct buffer *b, const void *bytes, size_t length)
{
    if (b->room - b->length <= length) {
        size_t room = b->room ? b->room : 256;
        while (room - b->length <= length)
            room *= 2;
        char *data = realloc(b->data, room);
        if (!data) {
            fputs("ak: out of memory\n", stderr);
            exit(AK_ENVIRONMENT);
        }
        b->data = data;
        b->room = room;
    }
    memcpy(b->data + b->length, bytes, length);
    b->length += length;
    b->data[b->length] = '\0';
}

void buffer_addf(struct buffer *b, const char *format, ...)
{
    char small[512], *text = small;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (length >= (int)sizeof small) {
        text = malloc((size_t)length + 1);
        if (text)
            vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    if (length > 0 && text)
        buffer_add(b, text, (size_t)length);
    if (text != small)
        free(text);
}

void buffer_free(struct buffer *b)
{
    free(b->data);
    *b = (struct buffer){0};
}

/* Length of the well-formed UTF-8 sequence at `s`, 0 if it is none (overlong, surrogate, cut, too large). */
static size_t utf8_length(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

bool text_is_utf8(const char *bytes, size_t length, size_t *at)
{
    const unsigned char *s = (const unsigned char *)bytes;
    for (size_t i = 0; i < length;) {
        size_t n = s[i] ? utf8_length(s + i, length - i) : 0;
        if (!n) {
            *at = i;
            return false;
        }
        i += n;
    }
    return true;
}

void text_one_line(char *text)
{
    size_t length = strlen(text), out = 0;
    bool blank = true; /* trims the start */
    for (size_t i = 0; i < length;) {
        const unsigned char *s = (const unsigned char *)text + i;
        size_t n = utf8_length(s, length - i);
        if (!n || s[0] <= ' ' || s[0] == 0x7f || (n == 2 && s[0] == 0xc2 && s[1] < 0xa0)) {
            if (!blank)
                text[out++] = ' ';
            blank = true;
            i += n ? n : 1;
            continue;
        }
        memmove(text + out, s, n);
        out += n;
        i += n;
        blank = false;
    }
    while (out && text[out - 1] == ' ')
        out--;
    text[out] = '\0';
}

char *text_clean(struct arena *a, const char *text)
{
    char *line = arena_strndup(a, text, strnlen(text, TEXT_CLEAN_MAX));
    text_one_line(line);
    return line;
}

char *text_last_line(struct arena *a, const char *text, size_t max)
{
    size_t end = strlen(text);
    while (end) {
        size_t start = end;
        while (start && text[start - 1] != '\n')
            start--;
        char *line = arena_strndup(a, text + start, end - start < max ? end - start : max);
        text_one_line(line);
        if (*line)
            return line;
        end = start ? start - 1 : 0;
    }
    return arena_strdup(a, "");
}

void words_add(struct arena *a, struct words *w, const char *word)
{
    w->word = arena_grow(a, w->word, w->count, sizeof *w->word);
    w->word[w->count++] = word;
}

bool words_have(const struct words *w, const char *word)
{
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->word[i], word) == 0)
            return true;
    return false;
}

struct words text_list(struct arena *a, const char *text)
{
    struct words list = {0};
    for (;;) {
        const char *end = text + strcspn(text, ","), *last = end;
        while (text < last && isspace((unsigned char)*text))
            text++;
        while (last > text && isspace((unsigned char)last[-1]))
            last--;
        words_add(a, &list, arena_strndup(a, text, (size_t)(last - text)));
        if (!*end)
            return list;
        text = end + 1;
    }
}

struct words text_list_loose(struct arena *a, const char *text)
{
    static const char separators[] = ", \t\n";
    struct words list = {0};
    while (*(text += strspn(text, separators))) {
        size_t length = strcspn(text, separators);
        words_add(a, &list, arena_strndup(a, text, length));
        text += length;
    }
    return list;
}

bool text_uint(const char *text, unsigned kilo, uint64_t *value)
{
    uint64_t number = 0;
    if (!isdigit((unsigned char)*text))
        return false;
    for (; isdigit((unsigned char)*text); text++)
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
            return false;
    if (*text && kilo) {
        static const char suffixes[] = "KMG";
        const char *suffix = strchr(suffixes, toupper((unsigned char)*text));
        if (!suffix || text[1])
            return false;
        for (const char *step = suffixes; step <= suffix; step++)
            if (__builtin_mul_overflow(number, kilo, &number))
                return false;
        text++;
    }
    *value = number;
    return !*text;
}

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *s = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ s[i]) * 0x100000001b3u;
    return hash;
}

uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text, strlen(text) + 1);
}

uint64_t hash_mix(uint64_t hash)
{
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 33;
    hash *= 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 33;
}

const char *nearest_hint(struct arena *a, const char *word, const struct words *candidates)
{
    const char **names = arena_alloc(a, (candidates->count + 1) * sizeof *names);
    const char *list = "";
    for (size_t i = 0; i < candidates->count; i++) {
        names[i] = candidates->word[i];
        list = arena_printf(a, "%s%s%s", list, i ? ", " : "", names[i]);
    }
    const char *near = nearest(word, names);
    if (near)
        return arena_printf(a, " (did you mean '%s'?)", near);
    return candidates->count ? arena_printf(a, " (there are: %s)", list) : " (there are none)";
}
