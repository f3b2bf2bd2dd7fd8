#!/bin/sh
# A run survives any death of ak: kill -9 at random moments, signals, a full disk; resuming repeats and loses nothing. TAP.
set -u
# shellcheck source=tests/e2e/fixtures/runner_suite.sh
. "$(dirname "$0")/fixtures/runner_suite.sh"
cd "$dir" || exit 1
count_check DEATHS "${DEATHS:-10}"

printf 'kernel = misbehave, null\nallocators = glibc, wrapper\nact = slow\nreps = 12\nthreads = 1, 2\n' > slow.sweep
run() { ak run slow.sweep --preset smoke --out run "$@"; }
set -- run slow.sweep --preset smoke --out run

# ten deaths (DEATHS sets another number), at moments drawn from 0 to about 0.8 s; the first ones fall into the start
kills=0
awk -v n="${DEATHS:-10}" 'BEGIN { srand(); for (i = 0; i < n; i++) printf "%.3f\n", rand() * (0.1 + i % 10 * 0.07) }' > moments
while read -r moment; do
  "$ak" "$@" --resume > out.txt 2>&1 < /dev/null &
  pid=$!
  sleep "$moment"
  kill -KILL $pid 2>/dev/null && kills=$((kills + 1))
  wait $pid 2>/dev/null
  [ -f run/runs.csv ] && cp run/runs.csv "before.$kills"
done < moments
check "ak was killed many times" test $kills -ge 5
check "nothing runs after ak was killed" wait_until 5 nothing_left
is "the rest: exit 0" "$(code run --resume)" 0
check "every planned row exactly once" planned_once run
is "all ok" "$(statuses run)" "ok 72"
is "ak verify: exit 0" "$(code ak verify run)" 0
check "what was written before a kill still stands" sh -c '
  for old in before.*; do
    whole=$(wc -l < "$old")
    [ "$whole" -lt 1 ] || head -n "$whole" "$old" | cmp - run/runs.csv 2>&1 | grep -q differ && exit 1
  done
  exit 0'
is "resuming a finished run: exit 0" "$(code run --resume)" 0
is "and it adds nothing" "$(wc -l < run/runs.csv)" 73
check "each start is recorded" sh -c '[ "$(jq ".starts | length" run/meta.json)" -ge 2 ]'

is "a second run into the folder: exit 2" "$(code run)" 2
check "it names --resume" grep -q -- --resume "$dir/err"
is "another seed: exit 2" "$(code run --resume --seed 9)" 2
check "it says which" grep -q "seed 1, now it is 9" "$dir/err"
is "another preset: exit 2" "$(code ak run slow.sweep --preset quick --out run --resume)" 2
check "it says which" grep -q "preset 'smoke', now it is 'quick'" "$dir/err"
is "other allocators: exit 2" "$(code run --resume --allocators glibc)" 2
is "other repetitions: exit 2" "$(code run --resume --reps 3)" 2
is "a folder with other files: exit 2" "$(mkdir other; echo x > other/notes; code ak run slow.sweep --preset smoke --out other)" 2
check "they are untouched" test -f other/notes
is "refusals changed nothing" "$(code ak verify run)" 0

# torn ends of every file
cp -r run torn
head -c -40 run/runs.csv > torn/runs.csv
printf '0123456789abcdef,malloc,1' >> torn/hist.csv
printf 'half a li' >> torn/metrics.csv
is "resuming after torn lines: exit 0" "$(code ak run slow.sweep --preset smoke --out torn --resume)" 0
check "every planned row exactly once" planned_once torn
is "ak verify: exit 0" "$(code ak verify torn)" 0
rm torn/meta.json
cp torn/runs.csv kept.csv
is "rows without meta.json: exit 2" "$(code ak run slow.sweep --preset smoke --out torn --resume --reps 1)" 2
check "it says why" grep -q 'holds rows, but meta.json is missing' "$dir/err"
check "the rows stand" cmp kept.csv torn/runs.csv
head -n 1 kept.csv > torn/runs.csv
is "a folder that was never complete: refused without --resume" "$(code ak run slow.sweep --preset smoke --out torn)" 2
is "a folder that was never complete: begun anew with it" "$(code ak run slow.sweep --preset smoke --out torn --resume --reps 1)" 0

# side files that lost what committed rows wrote
is "a run with all passes: exit 0" "$(printf 'kernel = misbehave\nallocators = glibc, wrapper\nreps = 2\npasses = throughput, latency, memory\nops = 3000\nlat_gap = 1\n' > all.sweep; code ak run all.sweep --preset smoke --out all)" 0
is "ak verify: exit 0" "$(code ak verify all)" 0
for file in hist timeline metrics; do
  rm -rf less
  cp -r all less
  head -n 4 all/runs.csv > less/runs.csv
  head -n 3 "all/$file.csv" > "less/$file.csv"
  cp "less/$file.csv" before.csv
  is "$file.csv cut: exit 2" "$(code ak run all.sweep --preset smoke --out less --resume)" 2
  check "$file.csv cut: named" grep -q "less/$file.csv lacks lines of row" "$dir/err"
  check "$file.csv cut: untouched" cmp before.csv "less/$file.csv"
done

# closed standard files
is "stdin and stdout closed: exit 0" "$("$ak" run slow.sweep --preset smoke --out closed --reps 1 2> "$dir/err" <&- >&-; echo $?)" 0
is "all three closed: exit 0" "$("$ak" run slow.sweep --preset smoke --out closed2 --reps 1 <&- >&- 2>&-; echo $?)" 0
is "nothing was printed into the files: ak verify: exit 0" "$(code ak verify closed)$(code ak verify closed2)" 00

# another build of an allocator
cp -r run rebuilt
cp "$suite/build/lib/libwrapper.so" kept.so
${CC:-cc} -O2 -shared -fPIC -fno-builtin -Wl,--build-id -DANOTHER "$fixtures/wrapper.c" -o "$suite/build/lib/libwrapper.so"
head -n 20 run/runs.csv > rebuilt/runs.csv
is "another build of an allocator: exit 2" "$(code ak run slow.sweep --preset smoke --out rebuilt --resume)" 2
check "it names it" grep -q 'wrapper is now .*build-id' "$dir/err"
mv kept.so "$suite/build/lib/libwrapper.so"

# another build of a kernel, between two starts and in the middle
cp -r run rebuilt2
head -n 20 run/runs.csv > rebuilt2/runs.csv
cp "$suite/build/kernels/misbehave" kept.kernel
another_kernel() {
  ${CC:-cc} -O1 -g -DANOTHER -std=gnu11 -D_GNU_SOURCE -I"$root/kernels" -rdynamic "$fixtures/misbehave.c" \
    "$build/obj/libharness.a" -lhwloc -ljansson -lpthread -ldl -lm -o another.kernel && mv another.kernel "$suite/build/kernels/misbehave"
}
another_kernel
is "another build of a kernel: exit 2" "$(code ak run slow.sweep --preset smoke --out rebuilt2 --resume)" 2
check "it names it" grep -q 'kernel misbehave .*build-id' "$dir/err"
cp kept.kernel back.kernel && mv back.kernel "$suite/build/kernels/misbehave"
is "the old build again: exit 0" "$(code ak run slow.sweep --preset smoke --out rebuilt2 --resume)" 0
is "meta.json tells the kernels' builds" "$(jq -r '.kernels[] | select(.build_id == null or .path == null) | .name' rebuilt2/meta.json)" ""
"$ak" run slow.sweep --preset smoke --out rebuilt3 > out.txt 2>&1 &
pid=$!
begun() { [ "$(wc -l < rebuilt3/runs.csv)" -gt 3 ]; }
wait_until 20 begun
another_kernel
wait $pid
is "another build of a kernel in the middle: exit 3" $? 3
check "it names it" grep -q 'kernel misbehave .*another build' out.txt
cp kept.kernel back.kernel && mv back.kernel "$suite/build/kernels/misbehave"
is "the old build again: exit 0" "$(code ak run slow.sweep --preset smoke --out rebuilt3 --resume)" 0

# a library without build-id
${CC:-cc} -O1 -shared -fPIC -fno-builtin -Wl,--build-id=none "$fixtures/wrapper.c" -o bare.so
is "a library without build-id: exit 0" "$(code ak run plain --preset smoke --out bare --allocators bare=bare.so)" 0
cp -r bare bare2
head -n 2 bare/runs.csv > bare2/runs.csv
is "the same file: exit 0" "$(code ak run plain --preset smoke --out bare --allocators bare=bare.so --resume)" 0
${CC:-cc} -O2 -shared -fPIC -fno-builtin -Wl,--build-id=none "$fixtures/wrapper.c" -o bare.so
is "another file: exit 2" "$(code ak run plain --preset smoke --out bare2 --allocators bare=bare.so --resume)" 2
check "it names it" grep -q 'bare has no build-id' "$dir/err"

# the folder goes away in the middle
for how in renamed removed; do
  "$ak" run slow.sweep --preset smoke --out away > out.txt 2>&1 &
  pid=$!
  begun() { [ "$(wc -l < away/runs.csv)" -gt 3 ]; }
  wait_until 20 begun
  if [ $how = renamed ]; then mv away went; else rm -r away; fi
  wait $pid
  is "the folder $how: exit 3" $? 3
  check "the folder $how: said so" grep -q "away was $how" out.txt
  check "the folder $how: no word of results there" sh -c '! grep -q "^results in" out.txt'
done
is "the renamed one can be gone on with: exit 0" "$(code ak run slow.sweep --preset smoke --out went --resume)" 0

# an interrupt before anything runs
${CC:-cc} -O1 -shared -fPIC -fno-builtin -DSLOW_START "$fixtures/wrapper.c" -o sleepy.so
"$ak" run plain --preset smoke --out early --allocators sleepy=sleepy.so > out.txt 2>&1 &
pid=$!
looking() { pgrep -f "^$suite/build/bin/ak-launch .* $dir/sleepy.so .*--where" && sleep 0.3; }
check "an allocator is looked for" wait_until 10 looking
kill -TERM $pid
wait $pid
is "an interrupt while allocators are looked for: exit 1" $? 1
is "it says that alone" "$(cat out.txt)" "ak: interrupted"
check "nothing was made" test ! -e early/runs.csv

# an interrupt at the moment when a process is started for a look at a kernel
tries=0
while [ $tries -lt 8 ]; do
  tries=$((tries + 1))
  "$ak" run plain --preset smoke --out "early$tries" --allocators glibc > "out.$tries" 2>&1 &
  pid=$!
  until pgrep -P $pid > pids || ! kill -0 $pid 2> /dev/null; do :; done
  kill -TERM $pid 2> /dev/null
  wait $pid
  echo $? >> early
done
is "interrupts while kernels are described: exit 1" "$(sort -u early)" 1
is "they blame no kernel" "$(grep -l 'cannot be used\|without a report' out.[0-9])" ""

# two at once
acts hang "timeout = 20"
"$ak" run acts.sweep --preset smoke --out busy > out.txt 2>&1 &
pid=$!
check "the first one is at it" wait_until 10 test -f busy/meta.json
is "a second ak on the folder: exit 2" "$(code ak run acts.sweep --preset smoke --out busy --resume)" 2
check "it says so" grep -q 'another ak' "$dir/err"
kill -TERM $pid # a shell has its background ignore INT, and ak leaves it so
sleep 0.3
check "one interrupt waits for the row" kill -0 $pid
kill -TERM $pid
wait $pid
is "two interrupts: exit 1" $? 1
check "they tell how to go on" grep -q -- --resume out.txt
check "the kernel is gone" wait_until 5 nothing_left
is "its row was not written" "$(wc -l < busy/runs.csv)" 1

# one interrupt in the middle
rm -rf run
"$ak" "$@" > out.txt 2>&1 &
pid=$!
some() { [ "$(wc -l < run/runs.csv)" -gt 3 ]; }
wait_until 20 some
kill -TERM $pid
wait $pid
is "an interrupt: exit 1" $? 1
is "no row is torn" "$(tail -c 1 run/runs.csv | od -An -c | tr -d ' ')" '\n'
is "meta.json: not finished" "$(jq -r .finished_at run/meta.json)" null
is "ak verify sees that rows are missing: exit 1" "$(code ak verify run)" 1
is "going on: exit 0" "$(code run --resume)" 0
check "every planned row exactly once" planned_once run

# no room: a limit on the size of files stands for a full disk
is "a disk that is full: exit 3" "$( (ulimit -f 24; code ak run slow.sweep --preset smoke --out full) )" 3
check "one line that says how to go on" sh -c '[ "$(wc -l < "$1")" -eq 1 ] && grep -q -- --resume "$1"' sh "$dir/err"
is "with room again: exit 0" "$(code ak run slow.sweep --preset smoke --out full --resume)" 0
check "every planned row exactly once" planned_once full
is "ak verify: exit 0" "$(code ak verify full)" 0
is "a folder that cannot be made: exit 3" "$(code ak run slow.sweep --preset smoke --out /proc/none/x)" 3
finish
