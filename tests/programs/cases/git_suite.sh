#!/bin/sh
# a clone of this repository: log, blame, fsck, gc with threads, status
# needs: git
# size: long
# limit: 600
# The files without their history, where the project is not a repository.
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
export GIT_AUTHOR_DATE='@0 +0000' GIT_COMMITTER_DATE='@0 +0000'
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.invalid GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.invalid
if ! git clone -q --no-hardlinks "$REPOSITORY" r 2>/dev/null; then
  cp -R "$TREE" r && (cd r && git init -q && git add . && git commit -q -m all) || exit
fi
cd r || exit
git log --stat --format='%H %s' | cksum && git log -p | cksum && git shortlog -s HEAD && git blame Makefile | cksum &&
  git fsck --full --no-progress && git -c pack.threads=4 gc -q --aggressive && git fsck --full --no-progress &&
  git grep -c malloc && git status --short --branch
