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
is "bad kernels: statuses" "$(statuses bad)" "crash 3, error 5, verify_failed 1, wrong_allocator 1"
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
is "a kernel killed from outside: no out-of-memory kill" "$(statuses killed)" "crash 1"
check "it says so" grep -q 'SIGKILL (signal 9), which ak did not send; no out-of-memory kill was counted' killed/runs.csv

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
printf 'kernel = misbehave\nallocators = glibc\npasses = throughput, latency, memory\nops = 3000\nlat_gap = 1\n' > whole.sweep
is "a run with all passes: exit 0" "$(code ak run whole.sweep --preset smoke --out whole)" 0
is "ak verify accepts it: exit 0" "$(code ak verify whole)" 0

# put FILE COLUMN VALUE: set a column of the first row of whole/FILE in tampered/
put() {
  awk -v want="$2" -v value="$3" '
    NR == 1 { n = split($0, head, ","); for (i = 1; i <= n; i++) if (head[i] == want) at = i }
    NR == 2 {
      out = ""; field = 1; quoted = 0; done = 0
      for (i = 1; i <= length($0); i++) {
        c = substr($0, i, 1)
        if (c == "\"") quoted = !quoted
        if (c == "," && !quoted) { if (field == at) out = out value; field++; out = out c; continue }
        if (field != at) out = out c
      }
      if (field == at) out = out value
      $0 = out
    }
    { print }' "whole/$1" > "tampered/$1"
}
# notices FILE PATTERN COLUMN VALUE
notices() {
  rm -rf tampered
  cp -r whole tampered
  put "$1" "$3" "$4"
  is "ak verify sees $3 = '$4' in $1: exit 1" "$(code ak verify tampered)" 1
  check "it says: $2" grep -q -- "$2" "$dir/out"
}
notices runs.csv "cycles is 0" cycles 0
notices runs.csv "ops is empty" ops ""
notices runs.csv "wall_ns is empty" wall_ns ""
notices runs.csv "wall_ns is 0" wall_ns 0
notices runs.csv "ops_per_s is empty" ops_per_s ""
notices runs.csv "env_bytes is empty" env_bytes ""
notices runs.csv "placement 'none', planned was 'compact'" placement none
notices runs.csv "numa_policy" numa_policy interleave
notices runs.csv "touch 'all', planned was ''" touch all
notices runs.csv "size_min '1', planned was ''" size_min 1
notices runs.csv "ops_per_thread" ops_per_thread 7
notices runs.csv "lat_p50_ns .* hist.csv tells" lat_p50_ns 1.000
notices runs.csv "lat_mean_ns .* hist.csv tells" lat_mean_ns 1.000
notices runs.csv "lat_max_ns .* hist.csv tells" lat_max_ns 99999999999.000
notices runs.csv "lat_samples" lat_samples 9999
notices runs.csv "counters 'bogus'" counters bogus
notices runs.csv "status ok with status_detail" status_detail hello
notices runs.csv "started_at 'yesterday'" started_at yesterday
notices runs.csv "machine_id" machine_id 0000000000000000
notices runs.csv "rss_peak_bytes 1, but" rss_peak_bytes 1
notices runs.csv "cpus 4099, but the machine" cpus 4099
notices runs.csv "cpu_user_ns and cpu_sys_ns are" cpu_user_ns 99000000000
notices runs.csv "run_delay_ns and blocked_ns are" blocked_ns 99000000000
notices plan.csv "row_id .* expected" allocator wrapper
notices plan.csv "seed 7, expected" seed 7
edited() { # edited WHAT PATTERN SHELL-COMMAND
  rm -rf tampered
  cp -r whole tampered
  sh -c "$3"
  is "ak verify sees $1: exit 1" "$(code ak verify tampered)" 1
  check "it says: $2" grep -q -- "$2" "$dir/out"
}
edited "a planned row twice" "plan.csv:3: row .* again" 'tail -n 1 whole/plan.csv >> tampered/plan.csv'
for file in hist timeline metrics; do
  edited "a line twice in $file.csv" "$file.csv:[0-9]*: .* again" "tail -n 1 whole/$file.csv >> tampered/$file.csv"
done
edited "a NUL byte" "a NUL byte" 'tr 2 "\\000" < whole/metrics.csv > tampered/metrics.csv; head -n 1 whole/metrics.csv > h; tail -n +2 tampered/metrics.csv >> h; mv h tampered/metrics.csv'
edited "another sweep.ini" "sweep.ini: not the text" 'echo "# more" >> tampered/sweep.ini'
edited "no sweep.ini" "sweep.ini" 'rm tampered/sweep.ini'
edited "another planned_rows" "planned_rows 99" 'jq ".planned_rows = 99" whole/meta.json > tampered/meta.json'
edited "another seed" "row_id .* seed of meta.json" 'jq ".seed = 9" whole/meta.json > tampered/meta.json'
edited "another preset" "preset 'paper'" 'jq ".preset = \"paper\"" whole/meta.json > tampered/meta.json'
edited "no kernels in meta.json" "no kernel 'misbehave'" 'jq ".kernels = []" whole/meta.json > tampered/meta.json'
cp good/hist.csv tampered/hist.csv
sed '2s/,ok,/,crash,/' good/runs.csv > tampered/runs.csv
is "ak verify sees numbers in a row that is not ok: exit 1" "$(code ak verify tampered)" 1
printf 'x' >> tampered/runs.csv
is "ak verify sees a torn line: exit 1" "$(code ak verify tampered)" 1
finish
