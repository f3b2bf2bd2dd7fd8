#!/bin/sh
# determinism.sh [LAUNCHES]: 64 threads, 4 kernels x 4 allocators, LAUNCHES of each with one seed: every count the same, or the
# row says that it was stirred, which may be one in a hundred. Without a number a sample: 2 launches of two kernels. Prints TAP.
set -u
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"

launches=${1:-2} kernels=$([ $# -gt 0 ] && echo 4 || echo 2) stirred=0 made=0
words="$epyc,mode=weave,quantum=1000"
KERNELS="churn --ops 200
remote_free --ops 200
false_passive --ops 100 --object 8
fragment --ops 400 --blocks 100"

# What has to be the same: the whole row and its metrics, but for when it was and how busy the host was.
counts() { jq -S 'del(.row.load_1min) | .metrics |= map(select(.name | test("load|time|host") | not))' "$dir/row"; }

for allocator in glibc jemalloc mimalloc tlfl; do
  if [ "$allocator" != glibc ] && [ -z "$(library_of $allocator)" ]; then
    skip "$allocator" "it is not installed"
    continue
  fi
  printf '%s\n' "$KERNELS" | head -n "$kernels" > "$dir/kernels"
  while read -r name options; do
    same=yes
    for launch in $(seq "$launches"); do
      # shellcheck disable=SC2086 # words
      kernel $allocator "$words" "$name" --threads 64 $options
      made=$((made + 1))
      [ -n "$(column ops)" ] || { same=no && continue; }
      if [ "$(jq '[.metrics[] | select(.name == "sim_stirred") | .value] | add // 0' "$dir/row")" != 0 ]; then
        stirred=$((stirred + 1))
        continue
      fi
      counts > "$dir/counts.$launch"
      [ -e "$dir/first" ] || cp "$dir/counts.$launch" "$dir/first"
      cmp -s "$dir/first" "$dir/counts.$launch" || { same=no; diff "$dir/first" "$dir/counts.$launch" | head -n 10 > "$dir/said"; }
    done
    check "$name, $allocator: $launches launches, the same counts" [ $same = yes ] && rm -f "$dir/first"
  done < "$dir/kernels"
done
below "launches whose order could not be kept, of $made" $stirred $((made / 100))
finish
