#include "sharing.h"

size_t sharing_bytes(unsigned cores)
{
    size_t bytes = sizeof(struct sharing) + cores * sizeof(words_t);
    return (bytes + 15) / 16 * 16;
}

void sharing_write(struct sharing *sharing, unsigned cores, unsigned writer, words_t words)
{
    words &= (words_t)~sharing->noted;
    if (words == 0)
        return;
    sharing->noted |= words;
    words_t own = sharing->written[writer];
    for (unsigned core = 0; core < cores; core++)
        sharing->written[core] |= words;
    sharing->written[writer] = own;
}
