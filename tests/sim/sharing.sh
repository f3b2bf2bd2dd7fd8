#!/bin/sh
# Who makes threads share lines? 64 threads with objects of 8 bytes on the simulated machine: what is known of the allocators,
# and what tlfl's variants plant. Yes is a false-sharing miss in ten ops or more; no, one in a thousand or less.
# Prints TAP.
set -u
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"

threads=64
words="$epyc,mode=weave,quantum=1000"

# shares KERNEL ALLOCATOR yes|no
shares() {
  if [ "$2" != glibc ] && [ -z "$(library_of "$2")" ]; then
    skip "$1, $2" "it is not installed"
    return
  fi
  case $3 in yes) ops=200 ;; no) ops=1000 ;; esac
  kernel "$2" "$words" "$1" --threads $threads --ops "$ops" --object 8
  misses=$(column sim_false_sharing) done=$(column ops)
  if [ -z "$done" ]; then
    check "$1, $2: the launch is good" false
    return
  fi
  case $3 in
    yes) above "$1: $2 has false sharing, misses" "$misses" $((done / 10)) ;;
    no) below "$1: $2 has none to speak of, misses" "$misses" $((done / 1000)) ;;
  esac
}

for allocator in glibc jemalloc tcmalloc; do
  shares false_passive $allocator yes
done
for allocator in mimalloc tlfl; do
  shares false_passive $allocator no
  shares false_active $allocator no
done
shares false_active tcmalloc yes
shares false_active jemalloc no
shares false_active glibc no
shares false_active tlfl-packed yes
shares false_passive tlfl-packed yes

# what the harness makes: nothing
kernel glibc "$words" null --threads $threads --ops 200
is "null: the harness makes no false sharing, misses" "$(column sim_false_sharing)" 0
is "null: nor true sharing, misses" "$(column sim_true_sharing)" 0

# memory of the own node, of another: one thread a core of two nodes
for allocator in tlfl tlfl-remote; do
  kernel $allocator "$words" churn --threads 32 --ops 2000
  eval "remote_$(echo $allocator | tr - _)=$(column sim_dram_remote) local_$(echo $allocator | tr - _)=$(column sim_dram_local)"
done
# shellcheck disable=SC2154 # by eval
below "tlfl: lines from another node's memory" "$remote_tlfl" $((local_tlfl / 20))
# shellcheck disable=SC2154
above "tlfl-remote: lines from another node's memory" "$remote_tlfl_remote" $((local_tlfl / 2))
finish
