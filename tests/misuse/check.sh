#!/bin/sh
# check.sh [--record] rules | ALLOCATOR: TAP: is every misuse that expected.csv says is caught still caught, and no other?
#
# ALLOCATOR is a column of expected.csv; its library is $BUILD/lib/libALLOCATOR.so. What is not caught may end in any
# way. --record writes what is found into the column instead. `rules` tests the driver itself.
set -u

root=$(cd "$(dirname "$0")/../.." && pwd) || exit 3
# shellcheck source=../../experiments/common.sh
. "$root/experiments/common.sh"
here=$root/tests/misuse
expected=$here/expected.csv

record=no
wanted="want [--record] and one of rules, tlfl, tlfl-hardened"
[ "${1:-}" = --record ] && record=yes && shift
[ $# -eq 1 ] || die 2 "$wanted"
case $1 in -*) die 2 "unknown option '$1': $wanted" ;; esac
name=$1
# The column of the allocator: a number, or nothing.
column=$(awk -F , -v name="$name" 'NR == 1 { for (i = 3; i <= NF; i++) if ($i == name) print i }' "$expected")
[ -n "$column" ] || [ "$name" = rules ] || die 2 "no column '$name' in $expected: $wanted"
[ -x "$build/tests/misuse/rules" ] || die 3 "$build/tests/misuse/rules is not built: run make tests"

if [ "$name" = rules ]; then
  MISUSE_RULES_FILE=$dir/first "$build/tests/misuse/rules" --each --runs 2 |
    awk -F '\t' '
      { good = index($1, $2) == 1; failed += !good; print (good ? "ok " : "not ok ") NR " - " $1 " is " $2 }
      END { print "1.." NR; exit failed > 0 || NR == 0 }'
  exit
fi

library=$build/lib/lib$name.so
[ -e "$library" ] || die 3 "no $library: run make"
library=$(loadable "$library")
for source in "$here"/*.c; do
  category=$(basename "$source" .c)
  [ "$category" = rules ] || "$build/tests/misuse/$category" --each "$library" | sed "s/^/$category	/"
done > "$dir/found"

if [ $record = yes ]; then
  awk -F '[\t,]' -v OFS=, -v column="$column" '
    NR == FNR && FNR == 1 { header = $0; width = split($0, unused, ","); next }
    NR == FNR { line[$1, $2] = $0; next }
    FNR == 1 { print header }
    {
      split(line[$1, $2], cell, ",")
      cell[1] = $1; cell[2] = $2; cell[column] = $3
      out = cell[1]
      for (i = 2; i <= width; i++) out = out "," cell[i]
      print out
    }' "$expected" "$dir/found" > "$dir/new" && cp "$dir/new" "$expected"
  exit
fi

awk -F '[\t,]' -v column="$column" '
  NR == FNR { if (FNR > 1) want[$1 "/" $2] = $column; next }
  {
    case_name = $1 "/" $2
    good = want[case_name] != "" && $3 != "broken" && (want[case_name] == "caught") == ($3 == "caught")
    printf "%s %d - %s is %s\n", good ? "ok" : "not ok", ++count, case_name, $3
    if (!good)
      printf "#   expected: %s; found: %s. When this is meant: tests/misuse/check.sh --record\n", want[case_name], $4
    failed += !good
    delete want[case_name]
  }
  END {
    for (case_name in want) {
      printf "not ok %d - %s is no case any more\n", ++count, case_name
      failed++
    }
    print "1.." count
    exit failed > 0 || count == 0
  }' "$expected" "$dir/found"
