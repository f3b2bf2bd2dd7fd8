#!/bin/sh
# The runner under valgrind: no invalid access, nothing lost. Prints TAP.
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
cd "$root" || exit 3
skip_without "ak under valgrind" valgrind
ak=$build/bin/ak

# clean EXIT COMMAND...: ends with EXIT, and valgrind finds nothing
clean() {
  want=$1
  shift
  valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite,indirect --error-exitcode=99 --child-silent-after-fork=yes \
    "$@" > "$dir/said" 2>&1
  got=$?
  [ "$got" -eq "$want" ] || { echo "exit $got, expected $want: $*"; return 1; }
}

printf 'kernel = churn\nallocators = glibc, tlfl\nthreads = 1, 2\nops = 500\n' > "$dir/small.sweep"
printf 'kernel = chrun\nallocators = glibc\n' > "$dir/bad.sweep"
check "ak list --json" clean 0 "$ak" list --json
check "ak doctor" clean 0 "$ak" doctor
check "ak run --dry-run" clean 0 "$ak" run paper --preset quick --dry-run
check "ak run" clean 0 "$ak" run "$dir/small.sweep" --preset smoke --out "$dir/out"
check "ak run --resume" clean 0 "$ak" run "$dir/small.sweep" --preset smoke --out "$dir/out" --resume
check "ak verify" clean 0 "$ak" verify "$dir/out"
check "a sweep with a slip" clean 2 "$ak" run "$dir/bad.sweep"
check "a folder that is none" clean 2 "$ak" verify "$dir"
finish
