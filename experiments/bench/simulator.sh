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

# cost NAME THREADS COMMAND...: a row of the round
cost() {
  name=$1 threads=$2
  shift 2
  say "round $round: $name, $threads threads"
  row=$("$build/bench/cost" "$@") || die 1 "$name with $threads threads failed"
  echo "$round,$name,$threads,$row" >> "$out/simulator.csv"
}

native() { cost "$1" "$2" env HWLOC_SYNTHETIC="NUMANode:4 L3Cache:1 Core:16 PU:1" HWLOC_THISSYSTEM=0 \
  valgrind --tool=cachegrind --cache-sim=yes --cachegrind-out-file=/dev/null \
  "$churn" --placement none --counters none --passes throughput --threads "$2" --ops $((cycles / $2)) --json; }

simulated() {
  cost "$1" "$2" timeout -s KILL 600 setarch -R env -i "$(command -v qemu-x86_64)" -L "$dir/root" -seed 1 \
    -plugin "$plugin,$epyc,$3" -E HWLOC_SYNTHETIC="NUMANode:4 L3Cache:1 Core:16 PU:1" -E HWLOC_THISSYSTEM=1 \
    "$churn" --counters sim --threads "$2" --ops $((cycles / $2)) --json
}

echo "round,what,threads,wall_ns,cpu_ns,rss_kib" > "$out/simulator.csv"
for round in $(seq "$ROUNDS"); do
  for threads in 8 64; do
    native cachegrind "$threads"
    simulated weave "$threads" mode=weave,quantum=1000
    simulated timed "$threads" mode=timed
  done
done
Rscript "$root/analysis/bench_simulator.R" "$out" || exit $?
"$root/experiments/bench/splice.sh" "$root/docs/simulator.md" "$out/simulator.md"
