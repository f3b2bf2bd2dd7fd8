#!/bin/sh
# The instruments of the cost model, natively: lock_hold proves that its locks exclude and counts who takes them, churn plants
# lines that move, and the variants of tlfl that clock their lock count every call. (What each costs is asked in simulated
# time: tests/sim/terms.sh.) Prints TAP.
# shellcheck disable=SC2317 # functions that check calls by name
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"

# shellcheck source=fixtures/kernel_rows.sh
. "$root/tests/e2e/fixtures/kernel_rows.sh"

# that CONDITION: of the columns as v["name"]
that() { awk "{ v[\$1] = \$2 } END { exit !($1) }" "$dir/row" || { cat "$dir/err" "$dir/row"; return 1; }; }

ok() { # ok KERNEL OPTIONS...
  run "$@"
  that 'v["status"] == "ok" && v["ops"] == v["threads"] * v["ops_per_thread"]'
}

refused() { # refused CODE WORDS KERNEL OPTIONS...
  code=$1 words=$2
  shift 2
  run "$@"
  is "$*: exit $code" $? "$code"
  check "it says: $words" grep -q -e "$words" "$dir/err"
}

# ---- locks -----------------------------------------------------------------------------------------

for variant in spin ticket mcs mutex parking; do
  check "lock_hold $variant, one thread" ok lock_hold --variant $variant --ops 3000
  check "nothing is handed over" that 'v["handovers"] == 0 && v["handover_ratio"] == 0 && v["step_ns"] > 0'
  for lines in 0 4; do
    check "lock_hold $variant, 3 threads, $lines lines" ok lock_hold --variant $variant --threads 3 --ops 700 --lines $lines
  done
  check "and it is handed over, at most once an op" that 'v["handovers"] > 1 && v["handover_ratio"] <= 1'
  check "lock_hold $variant, nothing under it and nothing between" ok lock_hold --variant $variant --threads 2 --ops 700 --hold 0 --think 0
done
for placement in compact scatter none; do
  check "lock_hold, placement $placement" ok lock_hold --placement $placement --threads 2 --ops 500
done
if [ "$(nproc)" -lt 2 ]; then
  skip "lock_hold refuses a mutex that locks nothing" "one CPU"
elif ${CC:-gcc} -shared -fPIC -O1 "$root/tests/e2e/fixtures/no_mutex.c" -o "$dir/no_mutex.so" 2> "$dir/said"; then
  preload=$dir/no_mutex.so
  refused 1 "the lock was taken 4000000 times and counts" lock_hold --variant mutex --threads 2 --ops 2000000 --lines 0 --hold 0 --think 0
  preload=
else
  skip "lock_hold refuses a mutex that locks nothing" "the library does not compile here"
fi
refused 2 "lines" lock_hold --lines 17

# ---- planted migrations ----------------------------------------------------------------------------

check "none is planted unless asked for" ok churn --threads 2 --ops 2000
check "and nothing is said of it" that '!("planted_moved_ratio" in v)'
for threads in 2 3 8; do
  check "churn with 4 planted lines, $threads threads" ok churn --threads $threads --ops 3000 --planted 4
  check "some were another thread's" that 'v["planted_moved_ratio"] > 0 && v["planted_moved_ratio"] <= 1'
done
check "churn with 4 planted lines, a stub" ok churn --threads 2 --ops 3000 --planted 4 --no-alloc
check "the control, one thread" ok churn --ops 3000 --planted 4 --planted-ring own
check "the control, 3 threads" ok churn --threads 3 --ops 3000 --planted 4 --planted-ring own
check "moves nothing" that 'v["planted_moved_ratio"] == 0'
refused 2 "--planted-ring: .bad. is not one of shared|own" churn --planted-ring bad
refused 2 "--planted wants lines that another thread wrote, and with --threads 1 there is none" churn --planted 1

# ---- the lock inside tlfl --------------------------------------------------------------------------

# clocked NAME KERNEL OPTIONS...: under libtlfl-NAME.so, the throughput pass alone
clocked() {
  preload=$build/lib/libtlfl-$1.so
  shift
  ok "$@" --passes throughput
  code=$?
  preload=
  return "$code"
}
times_hold='v["lock_wait_ns"] > 0 && v["lock_hold_ns"] > 0 &&
  (v["lock_wait_ns"] + v["lock_hold_ns"]) * v["lock_clocked"] / v["lock_takes"] <= v["threads"] * v["wall_ns"]'

for threads in 1 3; do
  check "tlfl-locked-clocked, churn, $threads threads" clocked locked-clocked churn --threads $threads --ops 4000
  check "it takes its lock at every malloc and every free" that 'v["lock_takes"] == 2 * v["ops"]'
  check "clocks some, about one in 16" that 'v["lock_clocked"] > v["lock_takes"] / 20 && v["lock_clocked"] < v["lock_takes"] / 13'
  check "and tells what that costs" that 'v["lock_clock_ns"] > 0'
  check "those waited and held no longer than there was time" that "$times_hold"
done
check "tlfl-locked-clocked, one thread" clocked locked-clocked churn --ops 4000
check "no lock that one thread wants is contended" that 'v["lock_contended"] == 0'
check "tlfl-clocked, the fast path" clocked clocked fastpath --threads 2 --ops 4000
check "no fast path takes the central lock: the housekeeping may" that 'v["lock_takes"] < v["ops"] / 100'
check "tlfl-clocked, blocks of megabytes" clocked clocked large --touch none --threads 2 --ops 4000 --return-limit-ms 0
check "they take it, less often than they are asked for" that 'v["lock_takes"] > 0 && v["lock_takes"] < 2 * v["ops"]'
check "and waited and held no longer than there was time" that "$times_hold"
check "tlfl-locked-clocked, few ops" clocked locked-clocked churn --ops 100
check "times of few takes stand for nothing" that 'v["lock_wait_ns"] == "-"'
check "and it says why" grep -q 'takes were clocked, 100 needed' "$dir/row"
for name in tlfl tlfl-locked; do
  preload=$build/lib/lib$name.so
  check "$name says nothing of its lock" ok churn --ops 2000
  check "and its row neither" that '!("lock_takes" in v)'
done
preload=
# shellcheck disable=SC2016 # for the inner shell
check "nor does a stub" sh -c 'LD_PRELOAD=$1 "$2" --no-alloc --ops 2000 > "$3" && ! grep "^lock_" "$3"' sh \
  "$build/lib/libtlfl-locked-clocked.so" "$build/kernels/churn" "$dir/row"
finish
