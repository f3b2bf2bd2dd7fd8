/*
 * text.h - text that came from elsewhere: checking, cutting, reading numbers from it.
 */
#ifndef AK_TEXT_H
#define AK_TEXT_H

#include "arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing byte string; `data` is NUL-terminated once anything was added. Free with buffer_free. */
struct buffer {
    char *data;
    size_t length, room;
};
void buffer_add(struct buffer *, const void *bytes, size_t length);
void buffer_addf(struct buffer *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buffer_free(struct buffer *);

/* A list of words in an arena. */
struct words {
    const char **word;
    size_t count;
};

/* Make one line of it in place: control characters and broken UTF-8 become blanks, runs of blanks one blank,
 * ends are trimmed. */
void text_one_line(char *);
/* A copy in one line, cut at TEXT_CLEAN_MAX bytes: the form in which results carry what others said. */
#define TEXT_CLEAN_MAX 1000
char *text_clean(struct arena *, const char *);
/* True if `bytes` are well-formed UTF-8 without NUL; else *at is the offset of the first bad byte. */
bool text_is_utf8(const char *bytes, size_t length, size_t *at);
/* The last line of `text` that is not blank, in one line of at most `max` bytes; "" if there is none. */
char *text_last_line(struct arena *, const char *text, size_t max);
/* Split at commas and trim. An empty item keeps its place as "", so that callers can refuse it. */
struct words text_list(struct arena *, const char *);
/* The same, but blanks separate too, and empty items vanish (command line: "1 2 4" or "1,2,4"). */
struct words text_list_loose(struct arena *, const char *);
bool words_have(const struct words *, const char *word);
void words_add(struct arena *, struct words *, const char *word);

/* A whole number from 0 to UINT64_MAX, decimal digits and at most one suffix K, M or G, of powers of `kilo`
 * (1000 or 1024; 0: no suffix allowed). False for anything else, overflow included. */
bool text_uint(const char *, unsigned kilo, uint64_t *value);

/* FNV-1a over bytes, to be started with HASH_START; and a last mixing that spreads every bit. */
#define HASH_START 0xcbf29ce484222325u
uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length);
uint64_t hash_text(uint64_t hash,
                   const char *text); /* with the NUL, so that "ab","c" differs from "a","bc" */
uint64_t hash_mix(uint64_t hash);

/* " (did you mean 'x'?)" or, where nothing is near, " (there are: a, b, c)". In the arena. */
const char *nearest_hint(struct arena *, const char *word, const struct words *candidates);

#endif
