#!/bin/sh
# What programs may do besides what the suite's kernels do (calls.c), in both modes: bad pointers, forks, sleeps, waits with an
# end, a first thread that leaves, a change of core. A hang shows as a signal. Prints TAP.
set -u
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"

calls() { in_machine "$epyc,mode=$mode" "$build/tests/sim/calls" "$1" > "$dir/figures" 2> "$dir/said"; }
ends() { # ends WHAT CASE: it ends as a program should, and came to its end
  calls "$2"
  is "$mode: $1" "$? $(figure alive)" "0 1"
}

for mode in weave timed; do
  ends "pointers that lead nowhere end no simulation" bad
  is "$mode: they are refused as the kernel refuses them" \
    "$(for what in wait wait-until wake write action affinity get-affinity time munmap; do figure $what; done | sort | uniq -c | xargs)" \
    "8 EFAULT 1 EINVAL"
  ends "forks beside threads at work" fork
  is "$mode: the children end as they should" "$(awk '$1 == "child" { print $2 }' "$dir/figures" | xargs)" "40 41 42"
  above "$mode: and the row will say that the order was not kept" "$(figure stirred)" 1
  ends "a process that is started beside them" spawn
  is "$mode: it ends as it should" "$(figure child)" 0
  calls leave
  is "$mode: a first thread that leaves can be waited for" "$? $(figure joined)" "0 0"
  ends "a sleep of constant length" constant
  is "$mode: it is over" "$(figure constant)" 0
  for case in timeouts alone; do
    ends "waits that nobody ends, $case" $case
    is "$mode: $case: they end for want of time" \
      "$(for clock in monotonic realtime relative; do figure $clock; done | xargs)" "ETIMEDOUT ETIMEDOUT ETIMEDOUT"
    is "$mode: $case: sleeps end" "$(figure sleep) $(figure sleep-until)" "0 0"
    is "$mode: $case: what was changed for that is as it was" "$(figure word) $(figure span)" "7 100000"
    is "$mode: $case: none is shorter than it should be" "$(awk '/-us / && $2 < 100' "$dir/figures")" ""
    is "$mode: $case: the order was the simulator's" "$(figure stirred)" 0
    cp "$dir/figures" "$dir/before"
    calls $case
    check "$mode: $case: the same again" cmp "$dir/before" "$dir/figures"
  done
  calls move
  near "$mode: who goes to another core takes the counts along" "$(figure stores)" 30000 1
  is "$mode: it is there" "$(figure core)" 1
  calls make
  near "$mode: threads that are made in a timed region are counted with it" "$(figure stores)" 400000 5
  above "$mode: their instructions, too" "$(figure instructions)" 1200000
done
mode=weave
ends "more threads in turn than there may be at a time" many
mode=timed
calls timeouts
is "a wait of 100 us beside others takes little more" "$(awk '/-us / && $2 > 110' "$dir/figures")" ""
finish
