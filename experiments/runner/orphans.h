/*
 * orphans.h - what an ak-launch left behind because it was killed itself.
 *
 * ak-launch ends everything that its program started. Where it is killed before it can, those processes come
 * to ak (subreaper), and ak ends them. Only processes that are ak's by that way are touched: an ak that had
 * children before it began (a shell's `exec ak` behind a background job) adopts nobody, since it could not
 * tell whose an orphan is.
 */
#ifndef AK_ORPHANS_H
#define AK_ORPHANS_H

/* From now on orphans of ak's children come to ak. To be called before the first child is started. */
void orphans_adopt(void);
/* End and reap all that is left, while no child of ak's is meant to run. */
void orphans_end(void);

#endif
