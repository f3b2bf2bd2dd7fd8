#!/bin/sh
# init, commit, log, status, gc, fsck, diff
# needs: git
# size: short
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='@0 +0000' GIT_COMMITTER_DATE='@0 +0000'
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.invalid GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.invalid
git init -q r && cd r || exit
for i in 1 2 3 4 5 6; do
  head -n ${i}000 "$LINES_FILE" >f$i && git add . && git commit -q -m "commit $i" || exit
done
git log --stat --format=%H && git status --short --branch && git gc -q && git fsck --full --no-progress && git diff HEAD~3 | cksum
