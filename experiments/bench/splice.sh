#!/bin/sh
# splice.sh FILE PART [NAME]: put PART between the lines <!-- NAME:begin --> and <!-- NAME:end --> of FILE (NAME: bench).
set -u
case ${1:-} in -h | --help) sed -n '2s/^# //p' "$0" && exit ;; esac
{ [ $# -ge 2 ] && [ $# -le 3 ]; } || { echo "usage: experiments/bench/splice.sh FILE PART [NAME]" >&2 && exit 2; }
name=${3:-bench}
case $name in '' | *[!a-z]*) echo "splice: '$name': expected a name of small letters" >&2 && exit 2 ;; esac
[ -f "$1" ] || { echo "splice: $1: no such file" >&2 && exit 2; }
[ "$(grep -c "^<!-- $name:begin -->\$\|^<!-- $name:end -->\$" "$1")" -eq 2 ] || {
  echo "splice: $1: expected one line <!-- $name:begin --> and, below it, one line <!-- $name:end -->" >&2
  exit 2
}
[ -s "$2" ] || { echo "splice: $2: not there, or empty; $1 stays as it is" >&2 && exit 2; }
new=$(mktemp) || exit 3
trap 'rm -f "$new"' EXIT
awk -v part="$2" -v name="$name" '
  $0 == "<!-- " name ":end -->" { inside = 0 }
  !inside { print }
  $0 == "<!-- " name ":begin -->" { inside = 1; print ""; while ((getline line < part) > 0) print line; print "" }' "$1" > "$new" &&
  cat "$new" > "$1"
