#!/bin/sh
# simulator.sh [ROUNDS]: what a simulated run costs, beside the same run under valgrind's cachegrind (one core, no coherence).
#
#   ROUNDS  of all the commands, in turn (default 6, the least that an interval needs)
#
# The run is churn: 160,000 cycles in all, of 8 threads and of 64, under the C library's malloc. Rows go to
# build/bench/simulator.csv, the table to the standard output and between <!-- bench:begin --> and <!-- bench:end --> of
# docs/simulator.md.
set -u
. "$(dirname "$0")/common.sh"
# shellcheck source=../simulated.sh
. "$root/experiments/simulated.sh"

ROUNDS=${1:-6}
cycles=160000
count_check ROUNDS "$ROUNDS"
need valgrind qemu-x86_64 Rscript
[ -e "$plugin" ] || die 3 "no $plugin: make builds it, on x86-64"
programs_build cost
provenance simulator "$0" "$ROUNDS"

churn=$build/kernels/churn

# row NAME THREADS COMMAND...: of the round; the command prints what $measure does
measure=$build/bench/cost
row() {
  name=$1 threads=$2
  shift 2
  say "round $round: $name, $threads threads"
  cost=$("$@") || die 1 "$name with $threads threads failed"
  echo "$round,$name,$threads,$cost" >> "$out/simulator.csv"
}

native() {
  row cachegrind "$1" "$measure" env HWLOC_SYNTHETIC="$shape" HWLOC_THISSYSTEM=0 \
    valgrind --tool=cachegrind --cache-sim=yes --cachegrind-out-file=/dev/null \
    "$churn" --placement none --counters none --passes throughput --threads "$1" --ops $((cycles / $1)) --json
}

simulated() {
  row "$1" "$2" in_machine "$epyc,$3" "$churn" --counters sim --threads "$2" --ops $((cycles / $2)) --json
}

echo "round,what,threads,wall_ns,cpu_ns,rss_kib" > "$out/simulator.csv"
for round in $(seq "$ROUNDS"); do
  for threads in 8 64; do
    native "$threads"
    simulated weave "$threads" mode=weave,quantum=1000
    simulated timed "$threads" mode=timed
  done
done
Rscript "$root/analysis/bench_simulator.R" "$out" || exit $?
"$root/experiments/bench/splice.sh" "$root/docs/simulator.md" "$out/simulator.md"
