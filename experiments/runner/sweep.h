/*
 * sweep.h - what a .sweep file asks, before it is expanded.
 *
 * A setting is one `key = value` with the place it came from. Keys are the runner's (sweep_key below) or a
 * kernel's parameters; `kernel.key` sets it for that kernel alone. Four levels, later ones win:
 *
 *   presets/PRESET.ini < the sweep's keys before any section < the sweep's [PRESET] < the command line
 *
 * Within the sweep file a setting for one kernel beats one for all, whatever the section.
 */
#ifndef AK_SWEEP_H
#define AK_SWEEP_H

#include "arena.h"
#include "fault.h"
#include "kernels.h"
#include "places.h"
#include "registry.h"
#include "text.h"

#include <stdbool.h>
#include <stdint.h>

#define PRESET_DEFAULT "quick"

enum level { LEVEL_PRESET_FILE, LEVEL_BASE, LEVEL_SECTION, LEVEL_COMMAND_LINE };

struct setting {
    enum level level;
    const char *kernel; /* NULL: all of the sweep's */
    const char *key, *value;
    const char *file; /* LEVEL_COMMAND_LINE: NULL */
    unsigned line;
    bool chosen; /* of the chosen preset; others are only checked */
};

struct sweep {
    const char *name, *path, *preset;
    const char *what; /* one line; "" if it says none */
    const char *text; /* the file as it is */
    size_t length;
    struct setting *setting;
    size_t settings;
    struct words presets; /* names that a section may have */
};

/* What a key admits: a runner's key or a kernel's parameter. KEY_FILES: names, or paths of files; what is the path of a file
 * as a whole is no list. */
enum key_kind { KEY_TEXT, KEY_NAMES, KEY_FILES, KEY_NUMBER, KEY_SHARE, KEY_WORD };
struct sweep_key {
    const char *name;
    enum key_kind kind;
    bool list;
    unsigned kilo;     /* of the suffixes K, M, G; 0: none */
    uint64_t min, max; /* KEY_NUMBER */
    const char *words; /* KEY_WORD: "a|b|node:#|file:*", # a number, * anything; NULL: any */
};
/* A runner's key by name, or NULL. */
const struct sweep_key *sweep_key(const char *name);
/* The key that a kernel's parameter makes. */
struct sweep_key sweep_key_of(struct arena *, const struct kernel_param *);

/* The file of a sweep given by name or path; NULL with AK_USAGE and the nearest name. */
const char *sweep_locate(struct arena *, const struct paths *, const char *name_or_path, struct fault *);
/* Names of the sweeps that come with the suite, sorted. */
struct words sweep_names(struct arena *, const struct paths *);
/* The names of presets/, sorted. */
struct words sweep_presets(struct arena *, const struct paths *);
/* Read the file and the preset; kernels and values are checked by sweep_check. */
bool sweep_read(struct arena *, const struct paths *, const char *path, const char *preset, struct sweep *,
                struct fault *);
/* A setting of the command line. */
void sweep_override(struct arena *, struct sweep *, const char *key, const char *value);
/* Every setting of every preset: keys known, values in range, kernels and allocators there. */
bool sweep_check(struct arena *, const struct sweep *, const struct kernels *, const struct registry *,
                 struct fault *);
/* The kernels of the chosen preset, in the order of the sweep. */
struct words sweep_kernels(struct arena *, const struct sweep *);

/* What holds for a kernel (NULL: for none in particular): the winning setting, or NULL. */
const struct setting *sweep_get(const struct sweep *, const char *kernel, const char *key);
/* The folder from which a setting's paths are taken: that of its file, or "." */
const char *setting_folder(struct arena *, const struct setting *);
/* The values of a setting, numbers in plain decimals. False with the place and what was expected. */
bool setting_values(struct arena *, const struct setting *, const struct sweep_key *, struct words *,
                    struct fault *);
/* "file:line: ..." or "--key: ...": always false, with AK_USAGE. */
bool setting_fault(struct fault *, const struct setting *, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
