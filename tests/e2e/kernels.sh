#!/bin/sh
# The kernel programs by themselves: each verifies under each allocator, numbers agree with each other, the harness
# allocates nothing while it measures, and misuse ends in the right exit code. Prints TAP.
# shellcheck disable=SC2317 # functions that check calls by name
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"

# shellcheck source=fixtures/kernel_rows.sh
. "$root/tests/e2e/fixtures/kernel_rows.sh"

exits() { # exits CODE COMMAND...
  want=$1
  shift
  "$@" > "$dir/out" 2>&1
  got=$?
  [ "$got" -eq "$want" ] || { echo "exit $got, expected $want: $*"; cat "$dir/out"; return 1; }
}

# ---- every kernel, every allocator that is here ----

library() { # library SONAME: as the loader finds it
  for d in "$build/lib" /usr/lib/"$(uname -m)"-linux-gnu /usr/lib64 /usr/lib /lib; do
    [ -e "$d/$1" ] && { echo "$d/$1"; return; }
  done
}

ok_row() { # ok_row KERNEL OPTIONS...: ok, and ops = threads x ops_per_thread, and the RSS identity
  run "$@" || { cat "$dir/err"; return 1; }
  awk '
    { v[$1] = $2 }
    END {
      if (v["status"] != "ok") { print "status " v["status"]; exit 1 }
      if (v["ops"] != v["threads"] * v["ops_per_thread"]) { print "ops " v["ops"]; exit 1 }
      rate = v["ops"] / v["wall_ns"] * 1e9
      if (rate < v["ops_per_s"] * 0.999 || rate > v["ops_per_s"] * 1.001) { print "ops_per_s " v["ops_per_s"]; exit 1 }
      if (v["rss_overhead_bytes"] != "" && v["rss_overhead_bytes"] != "-" &&
          v["rss_overhead_bytes"] != v["rss_peak_bytes"] - v["live_peak_bytes"] - v["rss_baseline_bytes"]) {
        print "rss_overhead_bytes " v["rss_overhead_bytes"]; exit 1 }
    }' "$dir/row"
}

for soname in libc libjemalloc.so.2 libmimalloc.so.2.0 libtcmalloc_minimal.so.4 libtbbmalloc_proxy.so.2 libtlfl.so libtlfl-locked.so libtlfl-packed.so; do
  lib=$(library $soname)
  [ $soname = libc ] && lib=
  if [ $soname != libc ] && [ -z "$lib" ]; then
    skip "all kernels under $soname" "not installed"
    continue
  fi
  for path in "$root"/kernels/*.c; do
    kernel=$(basename "$path" .c)
    [ "$kernel" = c2c ] && continue # by itself below: it calls no allocator
    ops=3000
    case $kernel in thread_churn | large) ops=100 ;; esac # a thread's life, faults of megabytes
    preload=$lib
    check "$kernel under $soname" ok_row "$kernel" --threads 3 --ops $ops --lat-ops $ops --mem-steps 2 --expect "${lib:-libc}"
    preload=
  done
done

# ---- every variant, thread counts, distributions ----

for variant in pair lifo fifo; do
  for state in empty one warm; do
    check "fastpath $variant with a heap that is $state" ok_row fastpath --variant $variant --heap-state $state --ops 5000
  done
done
check "fastpath of 1 MiB" ok_row fastpath --size-min 1M --variant fifo --batch 8 --ops 100 --lat-ops 100
check "fastpath in the dependent form" ok_row fastpath --form dependent --touch line --ops 5000
for variant in pairs one_to_n n_to_one rotating; do
  for threads in 2 3 5; do
    check "remote_free $variant on $threads threads" ok_row remote_free --variant $variant --threads $threads --ops 4000
  done
done
for lifetime in random fifo bimodal; do
  for touch in none line page all; do
    check "churn $lifetime, touch $touch" ok_row churn --lifetime-dist $lifetime --touch $touch --threads 2 --ops 4000
  done
done
check "churn on 64 threads" ok_row churn --threads 64 --ops 500 --live-blocks 50
check "churn on 1024 threads" ok_row churn --threads 1024 --ops 50 --lat-ops 50 --live-blocks 10 --mem-steps 1
check "a fixed total is divided by the threads" ok_row churn --threads 3 --ops-total 3000
printf '# two sizes\n24 3\n4000 1\n' > "$dir/sizes"
check "churn with sizes from a file" ok_row churn --size-dist "file:$dir/sizes" --ops 3000
for placement in compact scatter none node:0; do
  check "placement $placement" ok_row churn --placement $placement --threads 2 --ops 3000
done
if [ "$(nproc)" -ge 2 ]; then
  check "c2c between all CPUs" ok_row c2c --ops 4
else
  skip "c2c between all CPUs" "one CPU"
fi

# ---- what the numbers must say ----

null_is_free_of_overhead() {
  run null --threads 2 --ops 2000 && [ "$(column rss_overhead_bytes)" -eq 0 ] && [ "$(column live_peak_bytes)" -eq 0 ]
}
check "null has no resident overhead at all" null_is_free_of_overhead

live_bytes_are_known() { # fixed sizes: live bytes are exact
  run churn --size-dist fixed --size-min 1000 --live-blocks 77 --threads 2 --ops 2000 && [ "$(column live_peak_bytes)" -eq $((2 * 77 * 1000)) ] \
    && [ "$(column usable_peak_bytes)" -ge "$(column live_peak_bytes)" ]
}
check "live bytes are what the live set holds" live_bytes_are_known

quantiles_need_samples() { # 100 samples beyond
  run churn --ops 2000 --lat-ops 2000 --lat-gap 2 && [ "$(column lat_p50_ns)" != - ] && [ "$(column lat_p999_ns)" = - ] \
    && [ "$(column lat_p9999_ns)" = - ]
}
check "no quantile without 100 samples beyond it" quantiles_need_samples

passes_are_chosen() {
  run churn --ops 2000 --passes throughput && [ -n "$(column ops_per_s)" ] && [ "$(column lat_samples)" = - ]
}
check "a pass that was not asked for has no numbers" passes_are_chosen

false_sharing_by_address() { # one thread allocates all blocks: neighbours of two threads share lines under the C library
  run false_passive --threads 4 --ops 200 --object 8 && [ "$(column lines_shared | cut -d. -f1)" -gt 0 ]
}
check "false_passive finds shared lines by address" false_sharing_by_address

stub_claims_nothing() {
  run churn --no-alloc --ops 1000 && [ -z "$(column allocator_path)" ] && [ "$(column rss_overhead_bytes)" = - ]
}
check "a stub claims neither an allocator nor memory" stub_claims_nothing

memory_comes_back() { # jemalloc gives dirty pages back with time, and only when it is called
  preload=$(library libjemalloc.so.2)
  MALLOC_CONF=dirty_decay_ms:200,muzzy_decay_ms:0 run churn --ops 20000 --settle-ms 3000
  preload=
  peak=$(column rss_peak_bytes) base=$(column rss_baseline_bytes) end=$(column rss_end_bytes)
  echo "peak $peak, baseline $base, end $end"
  [ $((end - base)) -lt $(((peak - base) / 2)) ]
}
if [ -n "$(library libjemalloc.so.2)" ]; then
  check "settling lets an allocator give memory back" memory_comes_back
else
  skip "settling lets an allocator give memory back" "jemalloc is not installed"
fi

# ---- the timed region holds no allocation of the harness ----

calls() { # calls KERNEL OPTIONS...: mallocs and frees of a whole launch
  program=$build/kernels/$1
  shift
  COUNT_MALLOC_FILE=$dir/calls LD_PRELOAD=$dir/count.so "$program" "$@" > "$dir/row" || return 1
  cat "$dir/calls"
}

same_calls_however_long() { # null never calls malloc: what is counted is start-up and the printing of the result
  # long enough for both to report the same columns: stolen time is counted in ticks of 10 ms
  short=$(calls null --ops 30000000 --passes throughput --counters none) || return 1
  long=$(calls null --ops 60000000 --passes throughput --counters none) || return 1
  echo "$short / $long"
  [ "$short" = "$long" ]
}

exact_calls() { # two launches that differ by 1000 ops of the throughput pass and nothing else
  short=$(calls churn --ops 801000 --passes throughput --counters none) || return 1
  long=$(calls churn --ops 802000 --passes throughput --counters none) || return 1
  echo "$short / $long"
  [ $((${long% *} - ${short% *})) -eq 1000 ] && [ $((${long#* } - ${short#* })) -eq 1000 ]
}

if ${CC:-gcc} -shared -fPIC -O1 -fno-builtin "$root/tests/e2e/fixtures/count_malloc.c" -o "$dir/count.so" 2> "$dir/said"; then
  check "the harness allocates nothing in the timed region of null" same_calls_however_long
  check "churn makes one malloc and one free an op, the harness none" exact_calls
else
  skip "allocations of the harness" "the counting library does not compile here"
fi

# ---- allocators that are wrong ----

# bad NAME CODE: each kernel that keeps or hands over blocks must refuse such a malloc
bad() {
  preload=$dir/bad_$1.so
  for kernel in churn fastpath remote_free; do
    run $kernel --threads 2 --ops 3000 --size-min 64 --size-max "$([ "$kernel" = fastpath ] && echo 64 || echo 1024)"
    [ $? -eq 1 ] && grep -qE "verify_failed|oom" "$dir/row" || { echo "$kernel took it"; preload=; return 1; }
  done
  preload=
}
for fault in overlap misaligned null; do
  if ${CC:-gcc} -shared -fPIC -O1 -fno-builtin -DFAULT_$fault "$root/tests/e2e/fixtures/bad_malloc.c" -o "$dir/bad_$fault.so" 2> "$dir/said"; then
    check "kernels refuse a malloc with the fault: $fault" bad $fault
  else
    skip "kernels refuse a malloc with the fault: $fault" "the library does not compile here"
  fi
done

# ---- provenance and exit codes ----

wrong_allocator_has_no_numbers() {
  "$build/kernels/churn" --ops 1000 --expect /nonexistent/libx.so --json > "$dir/json" 2>/dev/null
  [ $? -eq 1 ] && grep -q '"status":"wrong_allocator"' "$dir/json" && ! grep -q 'wall_ns' "$dir/json"
}
check "the wrong allocator: exit 1, no numbers" wrong_allocator_has_no_numbers
check "an unknown option: exit 2" exits 2 "$build/kernels/churn" --live-block 3
check "a number out of range: exit 2" exits 2 "$build/kernels/churn" --threads 0
check "sizes for a kernel without: exit 2" exits 2 "$build/kernels/null" --size-min 3
check "a range for a kernel of one size: exit 2" exits 2 "$build/kernels/fastpath" --size-min 16 --size-max 32
check "too few threads: exit 2" exits 2 "$build/kernels/remote_free" --threads 1
check "a distribution that is none: exit 2" exits 2 "$build/kernels/churn" --size-dist gauss
check "a placement that is none: exit 2" exits 2 "$build/kernels/churn" --placement foo
check "a policy that is none: exit 2" exits 2 "$build/kernels/churn" --numa foo
check "no pass: exit 2" exits 2 "$build/kernels/churn" --passes ""
printf '16 1\n\0 32 1\n' > "$dir/nul"
check "a size file with a NUL byte: exit 2" exits 2 "$build/kernels/churn" --size-dist "file:$dir/nul"
check "a size file that is a folder: exit 2" exits 2 "$build/kernels/churn" --size-dist "file:$dir"
full_disk() { "$build/kernels/churn" --ops 1000 --json > /dev/full; [ $? -eq 3 ]; }
check "a result that cannot be written: exit 3" full_disk
no_memory() { exits 1 prlimit --as=60000000 timeout 60 "$build/kernels/remote_free" --threads 2 --ops 100000 --size-min 1M --size-max 1M; }
check "no memory for a partner: an end, not a hang" no_memory
check "a node that is not there: exit 3" exits 3 "$build/kernels/churn" --placement node:99
check "touched blocks too small for a tag: exit 2" exits 2 "$build/kernels/churn" --size-min 1 --size-max 4
check "the same without touching: exit 0" exits 0 "$build/kernels/churn" --size-min 1 --size-max 4 --touch none --ops 1000
check "--check of what goes together: exit 0" exits 0 "$build/kernels/realloc_grow" --check --start 16 --end 32
check "--check of what does not: exit 2" exits 2 "$build/kernels/realloc_grow" --check --start 32 --end 16
check "--check of too few threads: exit 2" exits 2 "$build/kernels/remote_free" --check --threads 1
check "--check asks nothing of the machine: exit 0" exits 0 "$build/kernels/c2c" --check --placement node:99
check "help: exit 0" exits 0 "$build/kernels/churn" --help
check "help: every name as it is given, with dashes" sh -c '"$1" --help > "$2" && grep -q "^  --no-alloc " "$2" && ! grep "^  --[a-z-]*_" "$2"' sh "$build/kernels/churn" "$dir/help"
check "an underscore does too" exits 0 "$build/kernels/churn" --no_alloc --ops 1000

finish
