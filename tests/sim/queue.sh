#!/bin/sh
# What tlfl-locked plants: one lock around malloc and free. In simulated time its ops have to take as long as in a closed queue
# (machine repairman): N threads, one server, a think time Z outside the lock, a service time S under it. Both come from one
# thread alone; the queue says what 2, 4 and 16 cost (exact mean value analysis; Reiser and Lavenberg 1980). Prints TAP.
set -u
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"

words="$epyc,mode=timed"
pair="fastpath --variant pair --size-min 64 --size-max 64"

# cycles ALLOCATOR SEED THREADS OPS OPTION...: of one thread and one op
cycles() {
  allocator=$1 seed=$2 n=$3 each=$4
  shift 4
  # shellcheck disable=SC2086 # words
  kernel "$allocator" "$words,seed=$seed" $pair --threads "$n" --ops "$each" "$@"
  column sim_cycles_per_op
}

# By two lengths: what happens once in a run is not of each op.
alone() { awk -v short="$(cycles "$@" 1 2000)" -v long="$(cycles "$@" 1 4000)" 'BEGIN { print 2 * long - short }'; }

in_all=$(alone tlfl-locked 1)
think=$(cycles tlfl-locked 1 1 2000 --no-alloc)
for n in 2 4 16; do
  for seed in 1 2; do cycles tlfl-locked $seed $n 3000; done > "$dir/cycles"
  each=$(awk '{ sum += $1 } END { if (NR == 2) printf "%.0f", sum / NR }' "$dir/cycles")
  queue=$(awk -v all="$in_all" -v think="$think" -v n="$n" 'BEGIN {
    service = all - think; queue = 0
    for (k = 1; k <= n; k++) { there = service * (1 + queue); queue = k * there / (there + think) }
    printf "%.0f", there + think }')
  near "tlfl-locked, $n threads: cycles an op, as in a closed queue" "$each" "$queue" 15
done
below "tlfl, 16 threads: nothing of the kind, cycles an op" "$(cycles tlfl 1 16 1000)" \
  "$(awk -v all="$in_all" 'BEGIN { printf "%.0f", 2 * all }')"
finish
