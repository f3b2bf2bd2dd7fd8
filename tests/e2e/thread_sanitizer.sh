#!/bin/sh
# The harness, the kernels and the inside of tlfl built with ThreadSanitizer: a data race ends a launch with a non-zero status.
# (The kernels' allocator is the sanitizer's own.) Prints TAP.
set -u

# shellcheck source=fixtures/tap.sh
. "$(dirname "$0")/fixtures/tap.sh"
cd "$root" || exit 3
tsan=$BUILD/tsan
log=$dir/log
count=0

if ! make --no-print-directory -j2 BUILD="$tsan" SANITIZE=thread OPT='-O1 -g' kernels unit-tests \
    "$tsan/tests/tlfl/remote" "$tsan/tests/tlfl/stress" > "$log" 2>&1; then
  echo "1..1"
  echo "not ok 1 - the suite builds with -fsanitize=thread"
  tail -n 5 "$log" | sed 's/^/#   /'
  exit 1
fi

while read -r program options; do
  count=$((count + 1))
  # shellcheck disable=SC2086 # a list of options
  timeout 120 "$tsan/$program" $options > "$log" 2>&1
  status=$?
  if [ $status -eq 0 ]; then
    echo "ok $count - $program $options"
  elif grep -q 'unexpected memory mapping' "$log"; then
    echo "ok $count - $program $options # SKIP ThreadSanitizer cannot map its shadow on this kernel"
  else
    echo "not ok $count - $program $options"
    # The first race, and how it ended: a crash inside the sanitizer's own runtime is no WARNING.
    {
      echo "status $status"
      grep -A 8 WARNING "$log" | head -n 20
      echo "the end of its output:"
      tail -n 20 "$log"
    } | sed 's/^/#   /'
    failed=1
  fi
done <<'LIST'
tests/unit/test_harness
tests/tlfl/remote
tests/tlfl/stress
kernels/null --threads 3 --ops 2000 --counters none
kernels/churn --threads 3 --ops 2000 --counters none
kernels/fastpath --threads 2 --ops 2000 --counters none
kernels/false_active --threads 3 --ops 500 --counters none
kernels/false_passive --threads 3 --ops 500 --counters none
kernels/remote_free --threads 4 --ops 2000 --variant rotating --counters none
kernels/remote_free --threads 4 --ops 2000 --variant one_to_n --counters none
kernels/remote_free --threads 4 --ops 2000 --variant n_to_one --counters none
kernels/remote_free --threads 5 --ops 2000 --variant pairs --counters none
kernels/churn --threads 3 --ops 2000 --counters perf
kernels/bleed --threads 3 --ops 3000
kernels/thread_churn --threads 3 --ops 30
kernels/thread_churn --threads 3 --ops 30 --variant leave
kernels/realloc_grow --threads 3 --ops 2000
kernels/large --threads 3 --ops 60 --variant batch
kernels/fragment --threads 3 --ops 6000 --blocks 500
kernels/churn --threads 3 --ops 2000 --planted 2 --counters none
kernels/lock_hold --threads 3 --ops 500 --variant spin --counters none
kernels/lock_hold --threads 3 --ops 500 --variant ticket --counters none
kernels/lock_hold --threads 3 --ops 500 --variant mcs --counters none
kernels/lock_hold --threads 3 --ops 500 --variant mutex --counters none
kernels/lock_hold --threads 3 --ops 500 --variant parking --counters none
LIST
echo "1..$count"
exit $failed
