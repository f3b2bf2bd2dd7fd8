#!/bin/sh
# One worker's misses beside those that valgrind's cache simulation counts, of the same caches and the same pass of the same
# kernels: within 1 %. (An L2 is not known there; and lines of memory that was given back and came again are hits there,
# so the kernels are ones that keep what they have.) Prints TAP.
set -u
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"

if ! command -v valgrind > /dev/null; then
  skip "misses beside those of valgrind" "valgrind is not installed"
  finish
fi
shape="NUMANode:1 L3Cache:1 Core:1 PU:1"
words="nodes=1,cores_per_node=1,l1=32768:8:4,l2=0:1:14,l3=8388608:16:46,mode=weave"

# told PROGRAM ARGUMENT...: first and last level data misses of the timed pass
told() {
  HWLOC_SYNTHETIC=$shape valgrind --tool=callgrind --cache-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=8388608,16,64 \
    --collect-atstart=no --toggle-collect=pass_throughput --callgrind-out-file="$dir/counts" "$@" \
    --counters none --passes throughput --json > "$dir/native" 2> "$dir/said"
  awk '/^events:/ { for (i = 2; i <= NF; i++) place[$i] = i }
    /^(totals|summary):/ && NF > 2 { print $place["D1mr"] + $place["D1mw"], $place["DLmr"] + $place["DLmw"]; exit }' "$dir/counts"
}

while read -r name options; do
  # shellcheck disable=SC2086,SC2046 # words
  set -- $(told "$build/kernels/$name" --threads 1 $options)
  # shellcheck disable=SC2086
  kernel glibc "$words" "$name" --threads 1 $options
  near "$name: misses of the first level" "$(column l1d_miss)" "${1:-}" 1
  near "$name: misses of the last level" "$(column l3_miss)" "${2:-}" 1
done <<'KERNELS'
churn --ops 20000
fragment --ops 20000 --blocks 2000
chase --ops 400000 --set 16M --pages base
KERNELS
finish
