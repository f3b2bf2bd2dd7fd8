#!/bin/sh
# The simulated clock of timed mode: how long malloc and free take, and how many ops a second that makes, where arithmetic or
# the anatomy of the same call knows. Prints TAP.
set -u
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"

mhz=2000
words="$epyc,mhz=$mhz,mode=timed"

metric() { jq -r --arg name "$1" '.metrics[] | select(.name == $name) | .value // empty' "$dir/row"; }
reason() { jq -r --arg name "$1" '.metrics[] | select(.name == $name) | .reason // empty' "$dir/row"; }
cycles() { metric "$1" | awk -v mhz=$mhz '{ printf "%.0f", $1 * mhz / 1000 }'; }
histogram() { jq -c '[.hist[] | select(.call | startswith("sim_"))]' "$dir/row"; }

# ---- a call that misses nothing takes its instructions, and the caller's one ---------------------

for allocator in bump glibc tlfl; do
  kernel $allocator "$words,watch=/dev/null" anatomy --size-min 64 --ops 500 --passes throughput
  malloc=$(metric malloc_instructions) free=$(metric free_instructions)
  kernel $allocator "$words" fastpath --size-min 64 --ops 2000
  is "$allocator: cycles of malloc are its instructions, and the call" "$(cycles sim_lat_malloc_p50_ns)" $((malloc + 1))
  is "$allocator: so are those of free" "$(cycles sim_lat_free_p50_ns)" $((free + 1))
  is "$allocator: every call is a sample" "$(metric sim_lat_samples)" 2000
  is "$allocator: an empty call takes itself and its return" "$(cycles sim_lat_overhead_ns)" 2
done
is "too few samples for a quantile" "$(metric sim_lat_malloc_p999_ns) $(reason sim_lat_malloc_p999_ns)" " 2000 samples, 100000 needed"

# ---- ops a second: the clock's rate, shared by the cycles of an op --------------------------------

for threads in 1 4; do
  kernel glibc "$words" fastpath --size-min 64 --ops 2000 --threads $threads --passes throughput
  near "$threads threads: ops a second, by the cycles of an op" "$(metric sim_ops_per_s)" \
    "$(column sim_cycles_per_op | awk -v mhz=$mhz -v threads=$threads '{ print threads * mhz * 1e6 / $1 }')" 5
  is "$threads threads: no latencies without the pass" "$(reason sim_lat_malloc_p50_ns)" "the latency pass was not asked for"
done

# ---- one lock: who waits shows in the tail ---------------------------------------------------------

before=
for threads in 1 8 16; do
  kernel tlfl-locked "$words" fastpath --size-min 64 --lat-ops $((10400 / threads)) --ops 100 --threads $threads --passes latency
  tail=$(cycles sim_lat_malloc_p99_ns)
  [ -z "$before" ] || above "tlfl-locked, $threads threads: p99 of malloc in cycles, more than with fewer" "$tail" $((before + 1))
  before=${tail:-0}
done
is "and the order was the simulator's" "$(metric sim_lat_stirred)" 0

# ---- the same again ---------------------------------------------------------------------------------

for seed in 1 1 2; do
  kernel glibc "$words" churn --threads 4 --ops 500 --live-blocks 100 --seed $seed --passes latency
  histogram > "$dir/histogram.$seed.new"
  [ -s "$dir/histogram.$seed" ] || cp "$dir/histogram.$seed.new" "$dir/histogram.$seed"
done
check "one seed, one histogram" cmp "$dir/histogram.1" "$dir/histogram.1.new"
check "with samples in it" grep -q sim_malloc "$dir/histogram.1"
# shellcheck disable=SC2016 # for the inner shell
check "another seed, another one" sh -c '! cmp -s "$0" "$1"' "$dir/histogram.1" "$dir/histogram.2"

# ---- no clock, no times ------------------------------------------------------------------------------

kernel glibc "$epyc,mode=weave" fastpath --ops 500
for name in sim_ops_per_s sim_lat_malloc_p50_ns sim_lat_free_max_ns sim_lat_samples; do
  is "weave mode: no $name" "$(metric $name)" ""
  is "weave mode: why" "$(reason $name)" "weave mode of the simulated machine has no clock: use timed mode"
done
kernel glibc "$epyc,mode=weave" fastpath --ops 500 --passes latency
is "weave mode: a latency pass alone is refused" $? 2
check "and why" grep -q "a latency pass needs timed mode, since weave mode has no clock" "$dir/said"
finish
