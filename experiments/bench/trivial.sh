#!/bin/sh
# trivial.sh [ALLOCATOR...]: what preloading an allocator costs a program that does nothing, beside an empty library.
#
#   ALLOCATOR   as instructions.sh has it; default: tlfl and the registry's others that are here
#
# $LAUNCHES starts with each (default 60), in a new random order each round. Rows go to build/bench/trivial.csv.
set -u
. "$(dirname "$0")/common.sh"

[ $# -gt 0 ] || set -- tlfl glibc jemalloc mimalloc tcmalloc tbbmalloc
LAUNCHES=${LAUNCHES:-60}
SEED=${SEED:-1}
count_check LAUNCHES "$LAUNCHES"
count_check SEED "$SEED"
programs_build launches libempty.so
table=$(allocators "$@") || exit $?
provenance trivial "LAUNCHES=$LAUNCHES SEED=$SEED" "$0" "$@"
libraries=$(printf '%s\n' "$table" | while IFS=$fs read -r name library _; do
  case $library in
    '!'*) say "$name: skipped, ${library#!}" ;;
    # What an allocator has in its environment costs nothing by itself.
    *) echo "$name=$(loadable "$library")" ;;
  esac
done)
IFS='
'
# shellcheck disable=SC2086 # a word a line
"$build/bench/launches" "$LAUNCHES" "$SEED" true "empty=$(loadable "$build/bench/libempty.so")" $libraries \
  > "$out/trivial.csv" || die 1 "a launch failed: no rows to go by in $out/trivial.csv"
