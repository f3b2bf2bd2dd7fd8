#!/bin/sh
# run.sh [--long] LIBRARY [CASE...]: real programs under an allocator. Prints TAP. A CASE is a name or a path.
#
# Each file in cases/ is a shell script that uses one program and prints what does not differ from run to run. It runs twice
# in a folder of its own, without and with the library preloaded: both must end with status 0 and print the same, and a
# witness (experiments/witness) must have seen the library serve the program. The head of a case says what it does, and
#
#   # needs: PROGRAM...     the first is the one under test; missing ones make a skip, under --long a failure
#   # size: short | long    long cases run under --long only
#   # limit: SECONDS        optional
#
# and it finds in the environment: TREE, a copy of this project's files; REPOSITORY, where they come from; LINES_FILE,
# 300,000 lines of numbers; FULL, "yes" under --long and empty otherwise; GUARD, a command that runs another one as a user
# who is not root.
set -u

# shellcheck source=../e2e/fixtures/tap.sh
. "$(dirname "$0")/../e2e/fixtures/tap.sh"
here=$root/tests/programs
LIMIT=120 # seconds for a run, where a case does not say otherwise
wanted="want [--long] LIBRARY [CASE...]"

FULL=
if [ "${1:-}" = --long ]; then
  FULL=yes
  shift
fi
[ $# -ge 1 ] || die 2 "no library: $wanted"
library=$1
shift

case $library in
  -*) die 2 "unknown option '$library': $wanted" ;;
  */*) ;;
  *) # a soname: where the loader finds it
    library=$(LC_ALL=C ldconfig -p 2>/dev/null | awk -v name="$library" '$1 == name { print $NF; exit }')
    ;;
esac
[ -f "$library" ] || die 2 "${library:-the library}: no such file: $wanted"
# case_file CASE
case_file() {
  case $1 in
    /*) printf '%s' "$1" ;;
    */*) printf '%s/%s' "$PWD" "$1" ;;
    *) printf '%s/cases/%s.sh' "$here" "$1" ;;
  esac
}
for case; do
  [ -f "$(case_file "$case")" ] || die 2 "no case '$case' in $here/cases: $wanted"
done

# What other users have to read lies where they can; their way to it may be closed in the tree.
chmod 755 "$dir"
served=$dir/$(basename "$library")
witness=$dir/witness.so
need "$build/lib/libak-witness.so"
cp -L "$library" "$served" && cp "$build/lib/libak-witness.so" "$witness" || exit 3
TREE=$dir/tree
LINES_FILE=$dir/lines
mkdir "$TREE" && (cd "$root" && cp -R Makefile config.mk allocators kernels experiments analysis tests docs paper .lintr "$TREE") || exit 3
awk 'BEGIN { x = 12345; for (i = 0; i < 300000; i++) { x = (x * 1103515245 + 12345) % 2147483648; print x, i % 977, "line" } }' \
  >"$LINES_FILE"
GUARD=
[ "$(id -u)" -ne 0 ] || GUARD='setpriv --reuid=nobody --regid=nogroup --clear-groups'
REPOSITORY=$root
export FULL REPOSITORY TREE LINES_FILE GUARD
for folder in /usr/lib/postgresql/*/bin; do # Debian keeps the server out of PATH
  PATH=$PATH:$folder
done
export LC_ALL=C TZ=UTC HOME="$dir/home"
mkdir "$HOME"

# run CASE PRELOAD NAME: the case in a fresh folder, always the same one, since paths may show in its output.
run() {
  rm -rf "$dir/case"
  mkdir "$dir/case" && chmod 777 "$dir/case"
  : >"$dir/$3.seen"
  chmod 666 "$dir/$3.seen"
  (cd "$dir/case" && AK_WITNESS=$dir/$3.seen LD_PRELOAD=$2 timeout -k 5 "$limit" sh -u "$1") >"$dir/$3.out" 2>"$dir/$3.err" </dev/null
}

head_of() { # head_of CASE KEY
  sed -n "s/^# $2: //p" "$1" | head -n 1
}

# good TEXT, bad TEXT [FILE]
good() { checks=$((checks + 1)) && echo "ok $checks - $1"; }
bad() {
  checks=$((checks + 1))
  failed=1
  echo "not ok $checks - $1"
  [ $# -lt 2 ] || tail -n 8 "$2" | cut -c 1-200 | sed 's/^/#   /'
}

# seen PROGRAM: the objects that served it, one a line. A name may be a link's, as awk is mawk's.
seen() {
  awk -F '\t' -v name="$(basename "$1")" -v file="$(basename "$(readlink -f "$(command -v "$1")")")" '
    $1 == "start" { program = $8; sub(/.*\//, "", program)
      if (index(program, name) == 1 || index(program, file) == 1) print $6 }' "$dir/loaded.seen"
}

one_case() {
  name=$(basename "$1" .sh)
  what="$name: $(sed -n '2s/^# //p' "$1")"
  needs=$(head_of "$1" needs)
  limit=$(head_of "$1" limit)
  limit=${limit:-$LIMIT}

  for need in $needs; do
    command -v "$need" >/dev/null 2>&1 && continue
    if [ -n "$FULL" ]; then
      bad "$what: $need is not installed (make deps-long)"
    else
      skip "$what" "no $need"
    fi
    return
  done
  if ! run "$1" "$witness" plain; then
    bad "$what: fails without the library too" "$dir/plain.err"
    return
  fi
  run "$1" "$witness $served" loaded
  status=$?
  if [ $status -ne 0 ]; then
    bad "$what: status $status" "$dir/loaded.err"
  elif ! cmp -s "$dir/plain.out" "$dir/loaded.out"; then
    diff "$dir/plain.out" "$dir/loaded.out" >"$dir/diff"
    bad "$what: prints something else" "$dir/diff"
  elif ! seen "${needs%% *}" | grep -qxF "$served"; then
    seen "${needs%% *}" >"$dir/diff"
    bad "$what: the library did not serve it" "$dir/diff"
  else
    good "$what"
  fi
}

[ $# -gt 0 ] || set -- "$here"/cases/*.sh
for case; do
  case=$(case_file "$case")
  [ "$(head_of "$case" size)" = short ] || [ -n "$FULL" ] || continue
  one_case "$case"
done
finish
