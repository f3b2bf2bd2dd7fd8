#include "merged.h"
#include "places.h"

#include <limits.h>
#include <stdio.h>

bool folder_is_merged(const char *folder)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, MERGED_PARTS) < (int)sizeof path &&
           path_is_folder(path);
}
