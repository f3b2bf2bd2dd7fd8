#include "merged.h"
#include "meta.h"
#include "places.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define RUN_ID_MAX 128

bool folder_is_merged(const char *folder)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, MERGED_PARTS) < (int)sizeof path &&
           path_is_folder(path);
}

const char *merged_part(struct arena *a, const char *folder, const char *run_id)
{
    return arena_printf(a, "%s/" MERGED_PARTS "/%s", folder, run_id);
}

bool run_id_is_name(const char *run_id)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strlen(run_id);
    return length && length <= RUN_ID_MAX && *run_id != '.' && strspn(run_id, good) == length;
}

bool merged_runs(struct arena *a, const char *folder, const json_t *meta, struct words *run_ids,
                 struct fault *f)
{
    const char *path = arena_printf(a, "%s/meta.json", folder);
    size_t i;
    json_t *run;
    *run_ids = (struct words){0};
    json_array_foreach(json_object_get(meta, "merged"), i, run)
    {
        const char *id = meta_text(run, "run_id");
        if (!run_id_is_name(id) || words_have(run_ids, id))
            return fault_at(f, path, 0, "merged run %zu has run_id '%s', expected a name that no other has",
                            i + 1, id);
        words_add(a, run_ids, arena_strdup(a, id));
    }
    return run_ids->count ||
           fault_at(f, path, 0, "no list of merged runs, which its folder %s goes with", MERGED_PARTS);
}
