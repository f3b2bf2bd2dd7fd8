#!/bin/sh
# The whole tree builds without a warning under each compiler that is here. Prints TAP.
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
cd "$root" || exit 3

for compiler in gcc clang; do
  if has $compiler; then
    check "make CC=$compiler, warnings as errors" make --no-print-directory -j2 CC=$compiler BUILD="$dir/$compiler" OPT=-O1 tests
  else
    skip "make CC=$compiler" "no $compiler: make deps installs it"
  fi
done
finish
