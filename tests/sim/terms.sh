#!/bin/sh
# The instruments of the cost model where their answers are known: what a lock's hand-over costs by the number of waiters and
# by distance (lock_hold, timed mode), and lines that move by the dose that was planted (churn --planted). Prints TAP.
set -u
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
skip_without "the terms of the cost model" jq

# ---- locks -----------------------------------------------------------------------------------------

timed="$epyc,mode=timed"
metric() { jq -r --arg name "$1" '.metrics[] | select(.name == $name) | .value // empty' "$dir/row"; }

# section VARIANT THREADS OPTION...: $cycles of a critical section with its hand-over: simulated time of all threads, which
# take turns, over threads and ops
section() {
  variant=$1 threads=$2
  shift 2
  kernel glibc "$timed" lock_hold --variant "$variant" --threads "$threads" "$@"
  cycles=$(column sim_cycles_per_op)
  cycles=$(awk -v c="$cycles" -v n="$threads" 'BEGIN { if (c != "") printf "%.1f", c / n }')
}

# alone: what is worked is what is asked for, three cycles a step, and a lock costs little
for variant in spin ticket mcs mutex parking; do
  section "$variant" 1 --ops 500 --hold 0 --think 0 --lines 0
  least=$cycles
  below "$variant, one thread: cycles of an uncontended lock" "$least" 150
  section "$variant" 1 --ops 500 --hold 70 --think 30 --lines 0
  near "$variant, one thread: 100 steps more, cycles" "$(awk "BEGIN { print $cycles - ${least:-0} }")" 300 2
  is "$variant, one thread: nothing is handed over" "$(metric handovers)" 0
done

# all want it all the time: queues hand over to the next in line at a price that does not know how many wait
for variant in ticket mcs; do
  section $variant 2 --ops 150 --hold 100 --think 0 --lines 0
  two=$cycles
  above "$variant, 2 threads: cycles beyond hold, a line's way at least" "$(awk "BEGIN { print ${two:-0} - 300 }")" 64
  for n in 4 16; do
    section "$variant" "$n" --ops 150 --hold 100 --think 0 --lines 0
    near "$variant, $n threads want it: cycles of a critical section as with 2" "$cycles" "$two" 20
    above "$variant, $n threads: handed over at nearly every op" "$(metric handover_ratio)" 0.95
    eval "cycles_$n=$cycles"
  done
  # shellcheck disable=SC2154 # by eval
  near "$variant, 16 threads as 4" "$cycles_16" "$cycles_4" 3
done
# each line more that is written under the lock moves with it: a load that misses and a store that takes the line alone
section mcs 4 --ops 150 --hold 100 --think 0 --lines 1
one=$cycles one_moves=$(($(column hitm_local) + 0))
section mcs 4 --ops 150 --hold 100 --think 0 --lines 4
near "mcs, 4 threads: 3 lines more, lines that move more an op" \
  "$(awk "BEGIN { print ($(column hitm_local) - $one_moves) / $(column ops) }")" 3 2
above "and cycles, as for 3 transfers at least" "$(awk "BEGIN { print $cycles - $one }")" $((3 * 64))
# all who spin on one word ask for it when it is free; the more do, the later its owner gets it back
section spin 4 --ops 150 --hold 100 --think 50 --lines 0
four=$cycles
section spin 16 --ops 150 --hold 100 --think 50 --lines 0
above "spin, 16 threads: dearer than with 4" "$cycles" "$(awk "BEGIN { print int(${four:-0} * 1.2) }")"
# one of each node: the lock's lines come from farther away
section ticket 4 --ops 150 --hold 100 --think 0 --lines 0 --placement scatter
# shellcheck disable=SC2154 # by eval
is "ticket, 4 threads on 4 nodes: no line comes from a core nearby" "$(column hitm_local)" 0
above "and lines come from other nodes, two an op at least" "$(column hitm_remote)" $((4 * 150 * 2 - 20))

# ---- planted migrations ----------------------------------------------------------------------------

# moves MODE THREADS DOSE [OPTION...]: $moved lines an op that came changed from another core
moves() {
  words=$epyc,mode=$1 of=$2 dose=$3
  shift 3
  kernel tlfl "$words" churn --threads "$of" --planted "$dose" "$@" \
    --size-min 64 --size-max 64 --touch line --live-blocks 50 --ops 1000
  local_=$(column hitm_local) remote=$(column hitm_remote) ops=$(column ops)
  moved=$(awk "BEGIN { if (\"$ops\" != \"\") print (${local_:-0} + ${remote:-0}) / ${ops:-1} }")
}

for run in "timed 2" "timed 16" "weave,quantum=1000 8"; do
  mode=${run% *} threads=${run#* }
  moves "$mode" "$threads" 0
  none=$moved
  below "$mode, $threads threads, none planted: lines moved an op" "$none" 0.1
  for dose in 1 2 4; do
    moves "$mode" "$threads" "$dose"
    near "$mode, $threads threads, $dose planted: lines moved an op more" "$(awk "BEGIN { print $moved - ${none:-0} }")" "$dose" 5
  done
done
moves timed 16 4 --planted-ring own
below "the control, visits to own lines: lines moved an op" "$moved" 0.1
moves timed 4 4 --placement scatter
near "4 threads on 4 nodes, 4 planted: all come from other nodes" "$(awk "BEGIN { print ${remote:-0} / ${ops:-1} }")" 4 5
finish
