#!/bin/sh
# long.sh: the campaigns that take too long for `make check`: many deaths and resumptions of a run, the conformance tests
# again and again, every kernel for long under every allocator, real programs, other machines. Prints TAP lines; the last line counts them.
set -u

root=$(cd "$(dirname "$0")/.." && pwd) || exit 3
# shellcheck source=../experiments/common.sh
. "$root/experiments/common.sh"
cd "$root" || exit 3
rounds=${ROUNDS:-20}
ops=${OPS:-2000000}
[ $# -eq 0 ] || die 2 "'$1': expected no arguments"
count_check ROUNDS "$rounds"
count_check OPS "$ops"
[ -d "$build/tests/conformance" ] || die 3 "$build/tests/conformance is not there: run make tests"
log=$dir/log
passed=0
failed=0
skipped=0

# try WHAT COMMAND...
try() {
  what=$1
  shift
  if "$@" > "$log" 2>&1; then
    passed=$((passed + 1))
    echo "ok - $what"
  else
    failed=$((failed + 1))
    echo "not ok - $what"
    tail -n 20 "$log" | sed 's/^/#   /'
  fi
}

# tap WHAT COMMAND...: a command that prints TAP itself; its lines are counted and shown.
tap() {
  what=$1
  shift
  "$@" > "$log" 2>&1
  code=$?
  sed "s/^\(not \)\{0,1\}ok [0-9]*/\1ok/; /^1\.\./d; s/^\(not ok\|ok\) - /&$what: /" "$log"
  bad=$(grep -c '^not ok' "$log")
  skips=$(grep -c '^ok.*# SKIP' "$log")
  passed=$((passed + $(grep -c '^ok' "$log") - skips))
  skipped=$((skipped + skips))
  if ! grep -q '^1\.\.' "$log" || { [ $code -ne 0 ] && [ "$bad" -eq 0 ]; }; then
    bad=$((bad + 1))
    echo "not ok - $what: ended with status $code before its plan"
  fi
  failed=$((failed + bad))
}

try "a run that dies 100 times" env DEATHS=100 sh tests/e2e/runner_resume.sh

round=1
while [ $round -le "$rounds" ]; do
  for t in "$build"/tests/conformance/*; do
    [ -x "$t" ] && [ -f "$t" ] || continue
    for lib in "$build"/lib/libtlfl*.so; do
      try "conformance round $round: ${t##*/} under ${lib##*/}" env CONFORMANCE_LONG=1 LD_PRELOAD="$(loadable "$lib")" "$t"
    done
  done
  round=$((round + 1))
done

for lib in "" libjemalloc.so.2 libmimalloc.so.2.0 libtcmalloc_minimal.so.4 libtbbmalloc_proxy.so.2 "$build"/lib/libtlfl*.so; do
  for kernel in churn fastpath remote_free false_active false_passive; do
    for threads in 2 16 64; do
      try "$kernel, $threads threads, long, ${lib:-libc}" env LD_PRELOAD="$(loadable "$lib")" "$build/kernels/$kernel" --threads $threads \
        --ops-total "$ops" --counters none
    done
  done
done

# Real programs: all cases under tlfl and tlfl-hardened, the short ones under the variants that plant a cost.
for lib in "$build"/lib/libtlfl*.so; do
  size=
  case $lib in
    */libtlfl.so | */libtlfl-hardened.so) size=--long ;;
  esac
  # shellcheck disable=SC2086 # a word or nothing
  tap "programs under $(basename "$lib" .so)" tests/programs/run.sh $size "$lib"
done
tap "other machines" tests/cross/run.sh
tap "error rates over 2000 data sets" env AK_DRAWS=2000 Rscript tests/R/run.R "rates|contention"
for t in "$build"/tests/tlfl/stress*; do
  tap "${t##*/}, long" env CONFORMANCE_LONG=1 "$t"
done
tap "the simulated machine, 20 launches a row" tests/sim/determinism.sh 20
tap "models" tests/model/run.sh --long
tap "memory by node" tests/guest/run.sh --fetch

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
