#!/bin/sh
# splice.sh FILE PART: put PART between the lines <!-- bench:begin --> and <!-- bench:end --> of FILE.
set -u
case ${1:-} in -h | --help) sed -n '2s/^# //p' "$0" && exit ;; esac
[ $# -eq 2 ] || { echo "usage: experiments/bench/splice.sh FILE PART" >&2 && exit 2; }
[ -f "$1" ] || { echo "splice: $1: no such file" >&2 && exit 2; }
[ "$(grep -c '^<!-- bench:begin -->$\|^<!-- bench:end -->$' "$1")" -eq 2 ] || {
  echo "splice: $1: expected one line <!-- bench:begin --> and, below it, one line <!-- bench:end -->" >&2
  exit 2
}
[ -s "$2" ] || { echo "splice: $2: not there, or empty; $1 stays as it is" >&2 && exit 2; }
new=$(mktemp) || exit 3
trap 'rm -f "$new"' EXIT
awk -v part="$2" '
  /^<!-- bench:end -->$/ { inside = 0 }
  !inside { print }
  /^<!-- bench:begin -->$/ { inside = 1; print ""; while ((getline line < part) > 0) print line; print "" }' "$1" > "$new" &&
  cat "$new" > "$1"
