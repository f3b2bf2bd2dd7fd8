#!/bin/sh
# instructions.sh [--cells | --cliff] [ALLOCATOR...]: what a pair of malloc and free costs, counted and not timed.
#
#   ALLOCATOR   a name of the registry, a path of a library, or NAME=PATH; without any, all of the registry
#   --cells     only the table: three loops, 0, 1 and 300 live blocks, six sizes
#   --cliff     only the scan: pairs with one live block at four sizes a doubling, 8 B to 4 MiB
#
# Instructions are callgrind's, of a loop (loop and PLT included) twice as long less one of $OPS ops (default 20480);
# system calls are strace's, page faults the kernel's, both of the longer loop, and with each block touched. Rows go to
# build/bench/instructions.csv, which this replaces; a table and the scan's worst step are printed.
# What cannot be counted is empty and has a reason. Exit 3 where the programs are not built.
set -u
. "$(dirname "$0")/common.sh"

OPS=${OPS:-20480}
ops_check "$OPS"
SIZES="16 64 512 4096 32768 262144"
LIVE="0 1 300"
SCAN_LEAST=8
SCAN_MOST=4194304

cells() {
  for loop in pair lifo fifo; do
    for live in $LIVE; do
      for size in $SIZES; do echo "$loop:$size:$live"; done
    done
  done
}

# Quarters of a doubling; pairs with one live block.
scan() {
  awk -v least=$SCAN_LEAST -v most=$SCAN_MOST 'BEGIN {
    for (base = least; base < most; base *= 2)
      for (quarter = 4; quarter < 8; quarter++) print "pair:" base * quarter / 4 ":1"
    print "pair:" most ":1" }'
}

what=all
case ${1:-} in
  --cells | --cliff) what=${1#--} && shift ;;
  -*) die 2 "unknown option '$1': expected --cells or --cliff" ;;
esac
case $what in
  cells) list=$(cells) ;;
  cliff) list=$(scan) ;;
  all) list=$({ cells && scan; } | awk '!seen[$0]++') ;;
esac

loops=$build/bench/loops
programs_build loops
table=$(allocators "$@") || exit $?
work=$dir/count
mkdir "$work" || exit 3

# watched NAME WATCHER... -- ENV LIBRARY [--touch]: the loops under a watcher; sets `trouble`, "" where all is well.
# What the watcher and the loops said is in $work/NAME.
watched() {
  name=$1
  shift
  watcher=
  while [ "$1" != -- ]; do
    watcher="$watcher $1"
    shift
  done
  # shellcheck disable=SC2086 # words
  env $2 ${3:+LD_PRELOAD="$(loadable "$3")"} $watcher "$loops" "$OPS" ${4:-} $list > "$work/$name" 2> "$work/$name.err"
  code=$?
  served=$(sed -n 's/^malloc //p' "$work/$name")
  trouble=
  if [ $code -ne 0 ]; then
    trouble="$name: $(reason_text "$(grep -v '^==' "$work/$name.err" | tail -n 1)")"
  elif [ -n "$3" ] && [ "$(realpath "$served")" != "$(realpath "$3")" ]; then
    trouble="$name: malloc is served by $served"
  fi
}

# One allocator: rows of CSV.
count() {
  rm -rf "${work:?}"/*
  watched native -- "$2" "$1" --touch
  native_trouble=$trouble
  if lacks valgrind; then
    callgrind_trouble=$lacking
  elif [ ! -e /usr/include/valgrind/callgrind.h ]; then
    callgrind_trouble="no header valgrind/callgrind.h"
  else
    watched callgrind valgrind --tool=callgrind --combine-dumps=yes --callgrind-out-file="$work/counts.%p" -- "$2" "$1"
    callgrind_trouble=$trouble
  fi
  if lacks strace; then
    strace_trouble=$lacking
  else
    watched strace strace -f -o "$work/calls" -- "$2" "$1" --touch
    strace_trouble=$trouble
  fi
  printf '%s\n' "$list" > "$work/list"
  touch "$work/counts." "$work/calls" "$work/native"
  awk -v allocator="$name_of" -v library="$1" -v ops="$OPS" -v no_instructions="$callgrind_trouble" \
    -v no_calls="$strace_trouble" -v no_faults="$native_trouble" '
    FILENAME ~ /\/list$/ { cell[++cells] = $1; next }
    FILENAME ~ /\/native$/ { faults[$1] = $3; next }
    FILENAME ~ /\/counts\./ {
      if ($0 ~ /^desc: Trigger: Client Request: mark/) { at = $6; number = $7 }
      else if ($0 ~ /^desc: Trigger/) at = ""
      else if ($0 ~ /^totals:/ && at != "") instructions[at, number] = $2
      next
    }
    # strace: what lies between marks 1 and 2 of a cell, less the getrusage of mark 1.
    match($0, /"mark [^"]*/) {
      split(substr($0, RSTART + 1, RLENGTH - 1), mark, " ")
      if (mark[3] == 2) calls[mark[2]] = seen
      seen = -1
      next
    }
    { seen++ }
    END {
      for (i = 1; i <= cells; i++) {
        c = cell[i]; split(c, part, ":"); why = ""
        one = two = called = fault = ""
        if (no_instructions == "" && (c, 2) in instructions) { one = instructions[c, 1]; two = instructions[c, 2] }
        else why = why (no_instructions == "" ? "callgrind showed no count" : no_instructions) "; "
        if (no_calls == "" && c in calls) called = calls[c]; else why = why (no_calls == "" ? "strace showed no mark" : no_calls) "; "
        if (no_faults == "" && c in faults) fault = faults[c]; else why = why no_faults "; "
        sub(/; $/, "", why)
        printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n", allocator, library, part[1], part[2], part[3], ops, one, two, called, fault, why
      }
    }' "$work/list" "$work/native" "$work"/counts.* "$work/calls"
}

provenance instructions "OPS=$OPS" "$0" "--$what" "$@"
rows=$out/instructions.csv
echo allocator,library,loop,size,live,ops,instructions_1,instructions_2,syscalls_2,faults_2,reason > "$rows"
printf '%s\n' "$table" | while IFS=$fs read -r name_of library settings; do
  case $library in
    '!'*)
      say "$name_of: skipped, ${library#!}"
      printf '%s\n' "$list" | tr ':' ' ' | while read -r loop size live; do
        echo "$name_of,,$loop,$size,$live,$OPS,,,,,$(reason_text "${library#!}")"
      done >> "$rows"
      ;;
    *) count "$library" "$settings" >> "$rows" ;;
  esac
done

awk -F , -v scanned="$what" '
  NR == 1 { next }
  !($1 in seen) { order[++n] = $1; seen[$1] = 1 }
  { key = $1 SUBSEP $3 SUBSEP $5 SUBSEP $4
    if ($8 != "") cost[key] = ($8 - $7) / $6
    if (($9 > 2 * FEW * $6 || $10 > 2 * FEW * $6) && $1 == FLOOR) floored++
    else if ($9 > 2 * FEW * $6 || $10 > 2 * FEW * $6)
      kernel[++kernels] = sprintf("%-24s %-5s %4d %9d %s %.4f system calls, %.4f page faults", $1, $3, $5, $4, ":",
                                  $9 / $6 / 2, $10 / $6 / 2)
    if ($11 != "") why[$1] = $11 }
  BEGIN { FEW = 0.001; FLOOR = "bump"; split("pair lifo fifo", loop, " "); split("0 1 300", live, " "); sizes = split("16 64 512 4096 32768 262144", size, " ") }
  END {
    printf "%-24s %-5s %4s", "instructions a pair", "loop", "live"
    for (s = 1; s <= sizes; s++) printf " %9d", size[s]
    print ""
    for (i = 1; i <= n; i++) for (l = 1; l <= 3; l++) for (v = 1; v <= 3; v++) {
      line = ""; any = 0
      for (s = 1; s <= sizes; s++) {
        key = order[i] SUBSEP loop[l] SUBSEP live[v] SUBSEP size[s]
        any += key in cost
        line = line sprintf(" %9s", key in cost ? sprintf("%.1f", cost[key]) : "-")
      }
      if (any) printf "%-24s %-5s %4d%s\n", order[i], loop[l], live[v], line
    }
    printf "\nloops with more than one system call or page fault in %d pairs%s\n", 1 / FEW, kernels + floored ? ":" : ": none"
    for (i = 1; i <= kernels; i++) print kernel[i]
    if (floored) printf "%-24s %d loops, as a floor that never frees has them\n", FLOOR, floored
    if (scanned != "cells") print "\nsizes that cost more than twice what half the size costs (pair, one live block):"
    for (i = 1; i <= n && scanned != "cells"; i++) {
      line = ""; any = 0
      for (base = 8; base <= 4194304; base *= 2) for (quarter = 4; quarter < 8; quarter++) {
        s = base * quarter / 4; key = order[i] SUBSEP "pair" SUBSEP 1 SUBSEP s; half = order[i] SUBSEP "pair" SUBSEP 1 SUBSEP s / 2
        if (!(key in cost) || !(half in cost)) continue
        any = 1
        if (cost[key] > 2 * cost[half]) line = line sprintf(" %d (%.0f after %.0f)", s, cost[key], cost[half])
      }
      if (any) printf "%-24s%s\n", order[i], line == "" ? " none" : line
    }
    for (a in why) printf "not counted: %s: %s\n", a, why[a]
  }' "$rows"
say "rows: $rows"
