#!/bin/sh
# Every way in which a launch can end has its status, its one line of why, and no numbers. Prints TAP.
set -u
# shellcheck source=tests/e2e/fixtures/runner_suite.sh
. "$(dirname "$0")/fixtures/runner_suite.sh"
cd "$dir" || exit 1

acts ok
is "a good kernel: exit 0" "$(code ak run acts.sweep --preset smoke --out good)" 0
is "a good kernel: ok" "$(statuses good)" "ok 1"
is "ak verify accepts it: exit 0" "$(code ak verify good)" 0
is "meta.json says that it finished" "$(jq -r '.finished_at | type' good/meta.json)" string
is "meta.json knows the allocator's build" "$(jq -r '.allocators[0].build_id' good/meta.json)" "$(column good/runs.csv allocator_build_id)"

acts "crash, abort, verify, garbage, truncated, nan, lie, silent, words, kill"
is "bad kernels: exit 1" "$(code ak run acts.sweep --preset smoke --out bad)" 1
is "bad kernels: statuses" "$(statuses bad)" "crash 2, error 5, oom 1, verify_failed 1, wrong_allocator 1"
check "failed rows are listed" grep -q '^failed:' "$dir/out"
check "no row of them has numbers" no_numbers bad
column bad/runs.csv status_detail > why
check "the signal is named" grep -q SIGSEGV why
check "verification's own words are kept" grep -q 'told to fail, with a "quote", and a comma' why
check "the last line of stderr is kept, made harmless" grep -q 'exit status 3: .31mred, "quoted" and bytes' why
check "the wrong object is named" grep -q /nowhere/libother.so why
check "a row is one line" sh -c '[ "$(wc -l < bad/runs.csv)" -eq 11 ]'
is "ak verify accepts the folder: exit 0" "$(code ak verify bad)" 0
is "nothing stands in the side files" "$(cat bad/hist.csv bad/timeline.csv bad/metrics.csv bad/matrix.csv | wc -l)" 4

acts "hang, family" "timeout = 1"
is "a kernel that hangs: exit 1" "$(code ak run acts.sweep --preset smoke --out hang)" 1
is "a kernel that hangs: timeout" "$(statuses hang)" "timeout 2"
check "its whole family is gone" nothing_left
acts flood
is "a kernel that never stops printing: exit 1" "$(code ak run acts.sweep --preset smoke --out flood)" 1
is "a kernel that never stops printing: error" "$(statuses flood)" "error 1"
check "it is gone too" nothing_left

# a kernel that is killed from outside
acts hang
"$ak" run acts.sweep --preset smoke --out killed > out.txt 2>&1 &
pid=$!
running() { pgrep -f "^$suite/build/kernels/misbehave .*--act hang" > pids; }
check "a hanging kernel runs" wait_until 10 running
kill -KILL "$(head -n 1 pids)"
wait $pid
is "a kernel killed from outside: oom, with a word on the evidence" "$(statuses killed)" "oom 1"

# the launcher between them is killed
"$ak" run acts.sweep --preset smoke --out launcher > out.txt 2>&1 &
pid=$!
check "a hanging kernel runs again" wait_until 10 running
kill -KILL "$(pgrep -f "^$suite/build/bin/ak-launch ")"
wait $pid
is "the launcher killed: exit 1" $? 1
is "the launcher killed: error" "$(statuses launcher)" "error 1"
check "the launcher killed: its kernel is gone" wait_until 5 nothing_left

acts family
"$ak" run acts.sweep --preset smoke --out family > out.txt 2>&1 &
pid=$!
running() { pgrep -f "^$suite/build/kernels/misbehave .*--act family" > pids && [ "$(wc -l < pids)" -eq 3 ]; }
check "a family runs" wait_until 10 running
kill -KILL "$(pgrep -f "^$suite/build/bin/ak-launch ")"
wait $pid
check "the launcher killed: its kernel's family is gone" nothing_left

# min_threads, threads and allocators that cannot be
is "picky allocator left out by the sweep: exit 0" "$(printf 'kernel = misbehave, null\nallocators = glibc, picky\nnull.allocators = glibc, picky\n' > p.sweep; code ak run p.sweep --preset smoke --out picky)" 0
is "picky allocator left out by the sweep: rows" "$(statuses picky)" "ok 3"
is "picky allocator asked for: exit 0" "$(code ak run p.sweep --preset smoke --out picky2 --allocators picky)" 0
is "picky allocator asked for: skipped with the reason" "$(statuses picky2)" "ok 1, skipped 1"
check "skipped row says why" sh -c 'grep -q "does not run in misbehave" picky2/runs.csv'

# tampering is seen
cp -r good tampered
awk -F, -v OFS=, 'NR == 2 { $23 = $23 + 1 } { print }' good/runs.csv > tampered/runs.csv
is "ak verify sees a changed count: exit 1" "$(code ak verify tampered)" 1
check "it says where" grep -q 'tampered/runs.csv:2: ops' "$dir/out"
cp good/runs.csv tampered/runs.csv
tail -n 1 good/runs.csv >> tampered/runs.csv
is "ak verify sees a row twice: exit 1" "$(code ak verify tampered)" 1
head -n 1 good/runs.csv > tampered/runs.csv
is "ak verify sees a missing row: exit 1" "$(code ak verify tampered)" 1
cp good/runs.csv tampered/runs.csv
echo "0000000000000000,malloc,1.000,2.000,3" >> tampered/hist.csv
is "ak verify sees a side row of nobody: exit 1" "$(code ak verify tampered)" 1
cp good/hist.csv tampered/hist.csv
sed '2s/,ok,/,crash,/' good/runs.csv > tampered/runs.csv
is "ak verify sees numbers in a row that is not ok: exit 1" "$(code ak verify tampered)" 1
printf 'x' >> tampered/runs.csv
is "ak verify sees a torn line: exit 1" "$(code ak verify tampered)" 1
finish
