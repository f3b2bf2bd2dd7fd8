#!/bin/sh
# long.sh: the campaigns that take too long for `make check`: many deaths and resumptions of a run, the conformance tests
# again and again, every kernel for long under every allocator. Prints TAP lines; the last line counts them.
set -u

cd "$(dirname "$0")/.." || exit 3
build=${BUILD:-build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
rounds=${ROUNDS:-20}
ops=${OPS:-2000000}
log=$(mktemp)
trap 'rm -f "$log"' EXIT INT TERM
passed=0
failed=0

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

try "a run that dies 100 times" env DEATHS=100 sh tests/e2e/runner_resume.sh

round=1
while [ $round -le "$rounds" ]; do
  for t in "$build"/tests/conformance/*; do
    [ -x "$t" ] && [ -f "$t" ] || continue
    for lib in "$build"/lib/libtlfl*.so; do
      try "conformance round $round: ${t##*/} under ${lib##*/}" env CONFORMANCE_LONG=1 LD_PRELOAD="$lib" "$t"
    done
  done
  round=$((round + 1))
done

for lib in "" libjemalloc.so.2 libmimalloc.so.2.0 libtcmalloc_minimal.so.4 libtbbmalloc_proxy.so.2 "$build"/lib/libtlfl*.so; do
  for kernel in churn fastpath remote_free false_active false_passive; do
    for threads in 2 16 64; do
      try "$kernel, $threads threads, long, ${lib:-libc}" env LD_PRELOAD="$lib" "$build/kernels/$kernel" --threads $threads \
        --ops-total "$ops" --counters none
    done
  done
done

echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
