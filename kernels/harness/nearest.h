/* nearest.h - the name that was probably meant. */
#ifndef AK_NEAREST_H
#define AK_NEAREST_H

/* The entry of the NULL-terminated list with the smallest edit distance (Levenshtein) to `word`, or NULL where
 * even that needs more changes than half of the word's letters, rounded up. Ties go to the first. */
const char *nearest(const char *word, const char *const *names);

#endif
