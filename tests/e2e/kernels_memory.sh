#!/bin/sh
# The kernels of thread deaths, growth, large blocks and fragmentation: every variant verifies, live bytes and calls are
# exactly what the parameters say, metrics are there or say why not, and a faulty allocator is refused. Prints TAP.
# (tests/e2e/kernels.sh runs them, as all kernels, under every allocator.)
# shellcheck disable=SC2317 # functions that check calls by name
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"

# shellcheck source=fixtures/kernel_rows.sh
. "$root/tests/e2e/fixtures/kernel_rows.sh"

# ok KERNEL OPTIONS...: an ok row whose ops are threads x ops_per_thread
ok() {
  run "$@" || { cat "$dir/err"; return 1; }
  [ "$(column status)" = ok ] && [ "$(column ops)" -eq $(($(column threads) * $(column ops_per_thread))) ]
}

exits() { # exits CODE WORDS COMMAND...: ends with CODE, and says WORDS
  want=$1 words=$2
  shift 2
  "$@" > "$dir/out" 2>&1
  got=$?
  [ "$got" -eq "$want" ] && grep -q -e "$words" "$dir/out" || { echo "exit $got, expected $want: $*"; cat "$dir/out"; return 1; }
}

# ---- every variant, ends of the parameters, the stub ----

for threads in 1 2 5; do
  check "bleed on $threads threads" ok bleed --threads $threads --ops 5000 --generation 700
  check "thread_churn on $threads threads" ok thread_churn --threads $threads --ops 30
  check "fragment on $threads threads" ok fragment --threads $threads --ops 5000 --blocks 600
done
check "bleed where each generation replaces one object" ok bleed --ops 3000 --live-blocks 5 --share 1 --generation 10
check "bleed where each replaces all" ok bleed --ops 3000 --share 100
check "bleed untouched, from 1 B" ok bleed --ops 3000 --touch none --size-min 1
for variant in free leave; do
  check "thread_churn $variant" ok thread_churn --variant $variant --ops 30 --objects 500 --threads 2
done
check "thread_churn without objects" ok thread_churn --objects 0 --ops 20
for variant in byte half double; do
  for touch in none line page; do
    check "realloc_grow $variant, touch $touch" ok realloc_grow --variant $variant --touch $touch --ops 3000 --threads 2
  done
done
check "realloc_grow of one block to 512 MiB" ok realloc_grow --start 64K --end 512M --blocks 1 --touch page --ops 26 --passes throughput
check "realloc_grow from an odd size to an odd size" ok realloc_grow --variant half --start 9 --end 70001 --ops 3000
for variant in pair batch; do
  for touch in none line page all; do
    check "large $variant, touch $touch" ok large --variant $variant --touch $touch --ops 60 --threads 2 --return-limit-ms 0
  done
done
check "large of 1 GiB, untouched" ok large --size-dist fixed --size-min 1G --touch none --ops 5 --passes throughput --return-limit-ms 0
for keep in 1 2 7 33 10000; do
  check "fragment that keeps 1 in $keep" ok fragment --keep $keep --ops 7001 --blocks 600 --mem-steps 3
done
for kernel in bleed thread_churn realloc_grow large fragment; do
  check "$kernel with a stub" ok $kernel --no-alloc --ops 100 --threads 2
done
check "realloc_grow and large with a stub, larger than its pool" \
  sh -c '"$1/realloc_grow" --no-alloc --end 64M --touch page --ops 1000 && "$1/large" --no-alloc --size-max 64M --touch all --ops 50' sh "$build/kernels"

# ---- what the numbers must say ----

live_is() { # live_is BYTES KERNEL OPTIONS...
  want=$1
  shift
  run "$@" || return 1
  echo "live $(column live_peak_bytes), expected $want"
  [ "$(column live_peak_bytes)" -eq "$want" ] \
    && [ "$(column rss_overhead_bytes)" -eq $(($(column rss_peak_bytes) - want - $(column rss_baseline_bytes))) ]
}
fixed='--size-dist fixed --size-min 1000'
# shellcheck disable=SC2086 # a list of options
{
  check "bleed: live bytes are what its objects hold" live_is 154000 bleed $fixed --live-blocks 77 --threads 2 --ops 2000
  check "thread_churn: nothing is live at a look" live_is 0 thread_churn $fixed --threads 2 --ops 20
  check "large: nothing is live at a look" live_is 0 large --threads 2 --ops 20
  # the rows of two phases are full: 600 blocks of the phase at hand, 2 x 60 kept ones
  check "fragment: live bytes are a full phase and the kept rows" live_is 720000 fragment $fixed --blocks 600 --keep 10 --hold 2 --ops 9000
  # 16 B to 64 KiB in 12 growths, 2 of which are the warm-up
  check "realloc_grow: live bytes are the block's size" live_is 65536 realloc_grow --blocks 1 --ops 10 --passes throughput
}

# calls KERNEL OPTIONS...: mallocs (with callocs and reallocs) and frees of a whole launch
calls() {
  program=$build/kernels/$1
  shift
  COUNT_MALLOC_FILE=$dir/calls LD_PRELOAD=$dir/count.so "$program" "$@" --passes throughput --counters none > "$dir/row" || return 1
  cat "$dir/calls"
}

# differ MALLOCS FREES A -- B: B makes so many more calls than A
differ() {
  mallocs=$1 frees=$2
  # shellcheck disable=SC2086 # a list of options
  short=$(calls $3) && long=$(calls $4) || return 1
  echo "$short / $long, expected $mallocs and $frees more"
  [ $((${long% *} - ${short% *})) -eq "$mallocs" ] && [ $((${long#* } - ${short#* })) -eq "$frees" ]
}
if ${CC:-gcc} -shared -fPIC -O1 -fno-builtin "$root/tests/e2e/fixtures/count_malloc.c" -o "$dir/count.so" 2> "$dir/said"; then
  # long enough for both to report the same columns: stolen time is counted in ticks of 10 ms. 2500 lives (a fifth of them
  # is the warm-up) with 10 objects more each
  check "thread_churn makes one malloc and one free an object" differ 25000 25000 "thread_churn --ops 2000" "thread_churn --ops 2000 --objects 110"
  # beyond the warm-up's limit; each life of pthread's own is one call and one free more
  check "bleed makes one malloc and one free an op" differ 2010 2010 "bleed --ops 800000 --generation 200" "bleed --ops 802000 --generation 200"
  # 8 blocks, 12 growths each: 960 reallocs are 80 mallocs and frees
  check "realloc_grow makes one realloc an op" differ 1040 80 "realloc_grow --ops 800640" "realloc_grow --ops 801600"
  check "large makes one malloc and one free an op" differ 100 100 "large --ops 800000 --touch none --return-limit-ms 0" "large --ops 800100 --touch none --return-limit-ms 0"
  # ten phases of 600 ops, thinned: 600 mallocs, and as many frees once the rows are full
  check "fragment makes one malloc and one free an op" differ 6000 6000 "fragment --ops 810000 --blocks 600" "fragment --ops 816000 --blocks 600"
else
  skip "calls of the kernels" "the counting library does not compile here"
fi

metric() { awk -v name="$1" '$1 == name { print $2; exit }' "$dir/row"; }

ratios_follow_from_the_looks() { # the six looks of the memory pass follow those of start, warm-up and three passes
  "$build/kernels/fragment" --ops 20000 --blocks 1000 --mem-steps 6 --json > "$dir/json" || return 1
  jq -e '
    def near(b): . - b | fabs < 1e-6;
    def same($m; $name; $look; $base):
      ($m["internal_\($name)_ratio"] | near(($look[3] - $look[2]) / $look[2]))
      and ($m["external_\($name)_ratio"] | near(($look[1] - $base - $look[3]) / $look[3]))
      and ($m["rss_over_live_\($name)"] | near(($look[1] - $base) / $look[2]));
    (.metrics | map({key: .name, value: .value}) | from_entries) as $m
    | .timeline[0][1] as $base
    | .timeline[5:11] as $looks
    | same($m; "peak"; $looks | max_by(.[2]); $base) and same($m; "end"; $looks[4:6] | min_by(.[2]); $base)' "$dir/json" && return
  jq -c '.timeline, (.metrics | map(select(.name | test("ratio|over"))))' "$dir/json"
  return 1
}
if has jq; then
  check "fragment: internal and external are what the looks say" ratios_follow_from_the_looks
else
  skip "fragment: internal and external are what the looks say" "no jq: make deps installs it"
fi

check "fragment: a moment that was not looked at has no ratio, and says why" sh -c '
  "$1" --ops 5000 --blocks 1000 --mem-steps 1 | grep -E "^external_(peak|end)_ratio  *-  .no such look"' sh "$build/kernels/fragment"
check "fragment: no ratios with a stub" sh -c '"$1" --no-alloc --ops 5000 | grep -q "^external_peak_ratio  *-  .a stub served"' sh "$build/kernels/fragment"

idle_gives_back() { # jemalloc gives dirty pages back with time, and only when it is called
  preload=$jemalloc
  MALLOC_CONF=dirty_decay_ms:100,muzzy_decay_ms:0 run fragment --keep 10000 --ops 8000 --mem-steps 4
  busy=$(metric rss_over_live_end)
  MALLOC_CONF=dirty_decay_ms:100,muzzy_decay_ms:0 run fragment --keep 10000 --ops 8000 --mem-steps 4 --mem-idle-ms 700
  idle=$(metric rss_over_live_end)
  preload=
  echo "resident over live bytes: $busy at once, $idle after an idle time"
  awk -v busy="$busy" -v idle="$idle" 'BEGIN { exit !(idle > 0 && idle < busy / 2) }'
}
jemalloc=
for d in /usr/lib/"$(uname -m)"-linux-gnu /usr/lib64 /usr/lib; do
  [ -e "$d/libjemalloc.so.2" ] && jemalloc=$d/libjemalloc.so.2
done
if [ -n "$jemalloc" ]; then
  check "fragment: an idle time before a look lets an allocator give memory back" idle_gives_back
else
  skip "fragment: an idle time before a look lets an allocator give memory back" "jemalloc is not installed"
fi

left_behind() {
  run thread_churn --ops 100 --threads 2 && [ "$(metric left_per_life_bytes)" != - ] || return 1
  # of each thread 25 lives are the warm-up, 100, 50 and 100 the timed passes, 16 the looks
  awk '{ v[$1] = $2 } END {
    lives = (v["rss_end_bytes"] - v["rss_baseline_bytes"]) / v["left_per_life_bytes"]
    print lives " lives"; exit !(lives > 2 * 290 && lives < 2 * 292) }' "$dir/row"
}
check "thread_churn: what a life leaves behind" left_behind

returned() { # the C library maps 64 MiB apart and unmaps them in free
  run large --size-dist fixed --size-min 64M --ops 2 --return-limit-ms 60000 && [ "$(metric return_ms)" != - ]
}
check "large: the time until memory is back at the system" returned
never_returned() {
  preload=$build/lib/libbump.so
  run large --size-max 128K --ops 3 --return-limit-ms 20 && grep '^return_ms  *- ms (not within 20 ms)' "$dir/row"
  code=$?
  preload=
  return "$code"
}
check "large: an allocator that keeps it has no time, and a reason" never_returned
check "large: no time with a stub" sh -c '"$1" --no-alloc --ops 5 | grep -q "^return_ms  *- ms (a stub served)"' sh "$build/kernels/large"

realloc_latencies() {
  run realloc_grow --ops 4000 --lat-gap 2 && [ "$(metric realloc_p50_ns)" != - ] && [ "$(column lat_samples)" -lt 1000 ]
}
check "realloc_grow: reallocs have latencies of their own" realloc_latencies

uncounted() { # schedstat and counters know only the living
  run thread_churn --ops 50 --passes throughput --counters auto || return 1
  [ "$(column run_delay_ns)" = - ] && [ "$(column cycles)" = - ] && [ "$(column counters)" = none ] \
    && grep -q '^counters_reason .*threads that this kernel makes' "$dir/row"
}
check "thread_churn: what cannot be counted of threads that are gone says why" uncounted

# ---- allocators that are wrong ----

# refused STATUS SO KERNEL OPTIONS...: exit 1 with that status
refused() {
  want=$1 preload=$2
  shift 2
  run "$@"
  code=$?
  preload=
  echo "exit $code, $(column status), $(cat "$dir/err")"
  [ "$code" -eq 1 ] && [ "$(column status)" = "$want" ]
}
fixture() { ${CC:-gcc} -shared -fPIC -O1 -fno-builtin -D"FAULT_$2" "$root/tests/e2e/fixtures/$1.c" -o "$dir/$2.so" 2> "$dir/said"; }

if fixture bad_realloc lost && fixture bad_realloc cut && fixture bad_realloc null; then
  for touch in none line page; do
    check "a realloc that loses what a block held is refused, touch $touch" refused verify_failed "$dir/lost.so" realloc_grow --touch $touch --ops 100
    check "a realloc that loses the last byte is refused, touch $touch" refused verify_failed "$dir/cut.so" realloc_grow --touch $touch --ops 100
  done
  check "a realloc that returns NULL is no memory" refused oom "$dir/null.so" realloc_grow --ops 100
else
  skip "kernels refuse a faulty realloc" "the library does not compile here"
fi
if fixture bad_malloc overlap && fixture bad_malloc misaligned; then
  for kernel in bleed thread_churn fragment; do
    for fault in overlap misaligned; do
      check "$kernel refuses a malloc with the fault: $fault" refused verify_failed "$dir/$fault.so" $kernel --threads 2 --ops 100 --size-min 64
    done
  done
  # every block starts in the middle of the last one
  for touch in none page all; do
    check "large refuses a malloc with the fault: overlap, touch $touch" \
      refused verify_failed "$dir/overlap.so" large --variant batch --size-max 128K --ops 50 --touch $touch --passes throughput
  done
else
  skip "kernels refuse a faulty malloc" "the library does not compile here"
fi

# ---- misuse ----

check "growth that ends where it begins: exit 2" exits 2 'start is not below --end' "$build/kernels/realloc_grow" --start 64K --end 64K
check "an odd number of blocks: exit 2" exits 2 'blocks is odd' "$build/kernels/fragment" --blocks 601
check "large blocks that are small: exit 2" exits 2 'this kernel needs 65536' "$build/kernels/large" --size-min 4K
check "touched blocks too small for a tag: exit 2" exits 2 'this kernel needs 8' "$build/kernels/bleed" --size-min 1
check "counters that cannot follow threads: exit 2" exits 2 'threads that this kernel makes' "$build/kernels/bleed" --counters perf

finish
