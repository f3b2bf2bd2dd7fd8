#!/bin/sh
# join.sh: makes one object of an allocator's static archive, for experiments/musl/musl.mk.
#
#   experiments/musl/join.sh ARCHIVE MARKS OBJECT
#
# Of the archive what serves malloc and its relatives and tells of itself, its code between the marks of MARKS, so that
# a program can prove which malloc it has. Exit 2 where the archive lacks malloc, free, calloc or realloc, or cannot be
# read.
set -u
NEEDED='malloc free calloc realloc'
MORE='aligned_alloc posix_memalign memalign malloc_usable_size mallctl mi_version tlfl_version tlfl_stat
tlfl_lock_times'

usage() { sed -n -e '1d' -e '/^#/!q' -e 's/^# \{0,1\}//p' "$0"; }
case " $* " in *" --help "* | *" -h "*) usage && exit 0 ;; esac
refuse() { printf 'musl: %s\n' "$*" >&2 && exit 2; }
[ $# -eq 3 ] || refuse "join.sh: expected ARCHIVE MARKS OBJECT"
[ -r "$1" ] || refuse "$1: no such archive"
defined=$(nm --defined-only -g "$1" 2> /dev/null | awk 'NF == 3 { print $3 }') || refuse "$1: nm cannot read it"
set -- "$1" "$2" "$3"
has() { printf '%s\n' "$defined" | grep -qx "$1"; }
take=''
for name in $NEEDED; do
  has "$name" || refuse "$1 does not define $name: expected an allocator for musl that replaces it"
  take="$take -Wl,-u,$name"
done
for name in $MORE; do
  ! has "$name" || take="$take -Wl,-u,$name"
done
here=$(dirname "$0")
# shellcheck disable=SC2086 # a list of words
musl-gcc -r -nostdlib -Wl,--strip-debug,-T,"$here/join.ld" $take "$2" "$1" -o "$3.new" && mv "$3.new" "$3"
