#!/bin/sh
# ak run --ci-width: repetitions go on for the cells whose interval is too wide, and for no others; resumed, checked. Prints TAP.
set -u
# shellcheck source=tests/e2e/fixtures/runner_suite.sh
. "$(dirname "$0")/fixtures/runner_suite.sh"
cd "$dir" || exit 1

refused() { # refused WHAT PATTERN OPTION...
  what=$1 pattern=$2
  shift 2
  is "$what: exit 2" "$(code ak run cells.sweep --preset smoke --out none "$@")" 2
  check "$what: says why in one line" sh -c 'grep -q -- "$1" err && [ "$(wc -l < err)" -eq 1 ]' sh "$pattern"
}
# reps FOLDER ACT ALLOCATOR: how many launches its cell has
reps() {
  column "$1/plan.csv" row_id > ids
  column "$1/plan.csv" options | grep -o 'act=[a-z]*' | paste -d ' ' ids - > acts
  column "$1/runs.csv" row_id > ids
  column "$1/runs.csv" allocator | paste -d ' ' ids - |
    awk -v act="act=$2" -v allocator="$3" 'NR == FNR { of[$1] = $2; next } of[$1] == act && $2 == allocator { n++ } END { print n + 0 }' acts -
}
# timed FOLDER: the walls of glibc's ok rows become all the same, those of wrapper's a wild mixture
timed() {
  awk -F, -v OFS=, '
    NR > 1 && $21 == "ok" { $24 = $23 * ($6 == "glibc" ? 7 : $20 % 2 ? 5 : 50); $25 = sprintf("%.3f", $23 / $24 * 1e9) }
    { print }' "$1/runs.csv" > timed.csv && mv timed.csv "$1/runs.csv"
}

printf 'kernel = misbehave\nallocators = glibc, wrapper, absent\nact = ok, verify\n' > cells.sweep
refused "a width that is none" "ci_width = 'x'" --ci-width x
refused "a width of nothing" "ci_width = '0'" --ci-width 0
refused "a width above 1" "ci_width = '5'" --ci-width 5
refused "a width in percent" "ci_width = '5%'" --ci-width 5%
refused "repetitions without a width" "max_reps without ci_width" --max-reps 20
refused "too few for an interval" "at most 5 repetitions, expected at least 6" --ci-width 0.1 --max-reps 5
refused "fewer than the least" "no fewer than reps = 30" --ci-width 0.1 --reps 30 --max-reps 20
printf 'kernel = misbehave\nallocators = glibc\nmisbehave.ci_width = 0.1\n' > one.sweep
is "a width for one kernel: exit 2" "$(code ak run one.sweep --preset smoke --dry-run)" 2
check "it says where" grep -q "one.sweep:3: .*whole sweep" err
printf 'kernel = misbehave\nallocators = glibc, wrapper\nci_width = 0.5\nmax_reps = 6\n' > keys.sweep
is "as keys of a sweep: exit 0" "$(code ak run keys.sweep --preset smoke --out keys)" 0
is "meta.json tells the rule" "$(jq -c '.stopping | del(.width)' keys/meta.json)" '{"rule":"width","looks":1,"confidence":0.95,"at":[6]}'
is "ak verify accepts it: exit 0" "$(code ak verify keys)" 0
printf 'kernel = misbehave, null\nallocators = glibc\nci_width = 0.000001\nmax_reps = 14\n' > null.sweep
is "the null kernel ends at the first look: exit 0" "$(code ak run null.sweep --preset smoke --out null)" 0
check "it is no cell to be narrow" grep -q '^[01] of 1 cells' out
is "it has its launches" "$(column null/runs.csv kernel | sort | uniq -c | tr -s ' \n' ' ')" " 14 misbehave 10 null "
is "ak verify accepts it: exit 0" "$(code ak verify null)" 0
is "without a width there is no rule" "$(ak run keys.sweep --preset smoke --dry-run | grep -c '^at most 12 launches')" 1

# no cell of real times is that narrow: all that have times take every repetition, the others stop at the first look
run() { ak run cells.sweep --preset smoke --ci-width 0.000001 --max-reps 14 --out run "$@"; }
is "a run: exit 1, since rows fail" "$(code run)" 1
is "its looks" "$(jq -c '.stopping' run/meta.json)" '{"rule":"width","width":1e-06,"looks":2,"confidence":0.975,"at":[10,14]}'
is "wide cells: all repetitions" "$(reps run ok glibc) $(reps run ok wrapper)" "14 14"
is "cells without a time: up to the first look" "$(reps run ok absent) $(reps run verify glibc) $(reps run verify wrapper)" "10 10 10"
check "it says how it ended" grep -q '^0 of 6 cells within 1e-06 of their median' out
is "and how far off each is" "$(grep -c '^  misbehave glibc act=ok: width [0-9]' out) $(grep -c ': too few times' out)" "1 4"
is "ak verify accepts it: exit 0" "$(code ak verify run)" 0
is "ak verify counts the plan" "$(tail -n 1 out)" "run: 68 rows (28 ok), 84 planned, 0 violations"
is "resuming what is finished: exit 1, as it was" "$(code run --resume)" 1
is "it adds nothing" "$(wc -l < run/runs.csv)" 69
is "resuming with another width: exit 2" "$(code run --resume --ci-width 0.1)" 2

# ten repetitions are done, one cell is steady by then, the other is not: the rest is the other's
cp -r run half
awk -F, 'NR == 1 || $20 <= 10' run/runs.csv > half/runs.csv
timed half
is "resuming in the middle: exit 1, since rows fail" "$(code ak run cells.sweep --preset smoke --ci-width 0.000001 --max-reps 14 --out half --resume)" 1
is "the narrow cell ends, the wide one goes on" "$(reps half ok glibc) $(reps half ok wrapper)" "10 14"
check "it says so" grep -q '^1 of 6 cells within' out
is "ak verify accepts it: exit 0" "$(code ak verify half)" 0
is "a merge of both: exit 2, since they are one run with other rows" "$(code ak merge run half --out merged)" 2
is "a merge with another: exit 0" "$(code ak merge half keys --out merged)" 0
is "ak verify accepts it: exit 0" "$(code ak verify merged)" 0

cp -r run tampered
timed tampered
is "ak verify sees launches that were not needed: exit 1" "$(code ak verify tampered)" 1
is "each of them" "$(grep -c 'runs.csv:[0-9]*: row .* its cell was done after 10' out)" 4
sed -i '$d' half/runs.csv
is "ak verify sees that a needed one is missing: exit 1" "$(code ak verify half)" 1
check "it says so" grep -q 'is planned, but not in runs.csv' out
jq '.stopping.confidence = 0.95' run/meta.json > tampered/meta.json
cp run/runs.csv tampered/runs.csv
is "ak verify sees a level without the correction: exit 1" "$(code ak verify tampered)" 1
check "it says so" grep -q 'meta.json: stopping is none that this ak writes' out

# stopping EDIT PATTERN: tampered by jq
stopping() {
  jq "$1" run/meta.json > tampered/meta.json
  is "ak verify of a folder with $1: exit 1" "$(code timeout 20 "$ak" verify tampered)" 1
  check "it says so" grep -q "meta.json: $2" out
}
stopping '.stopping.at = [10,1000000000]' 'stopping is none that this ak writes'
stopping '.stopping.at = [666666667,1000000000]' 'stopping is none that this ak writes: the last of at is 1000000000, expected 14'
stopping '.stopping.width = 0.5' 'stopping.width is 0.5, expected that of --ci-width'

# a death in the middle changes nothing
printf 'kernel = misbehave\nallocators = glibc, wrapper\nact = slow\n' > slow.sweep
set -- run slow.sweep --preset smoke --ci-width 1 --max-reps 20 --out killed
for signal in INT KILL; do
  "$ak" "$@" --resume > out 2> err &
  pid=$!
  wait_until 20 sh -c '[ "$(wc -l < killed/runs.csv)" -gt '"$([ $signal = INT ] && echo 3 || echo 9)"' ]'
  kill -$signal $pid
  wait $pid
done
is "the rest after two deaths: exit 0" "$(code ak "$@" --resume)" 0
is "ak verify accepts it: exit 0" "$(code ak verify killed)" 0
if command -v Rscript > /dev/null; then
  cat > level.R <<'EOR'
args <- commandArgs(TRUE)
for (file in c("main.R", setdiff(list.files(args[1], "[.]R$"), "main.R"))) source(file.path(args[1], file))
runs <- read_results("run", read_contract(args[2]))$runs
cat(unique(runs$confidence))
EOR
  is "R takes the intervals of such a run at the corrected level" \
    "$(Rscript --vanilla level.R "$root/analysis/R" "$root/experiments/schema.md")" 0.975
else
  skip "R takes the intervals of such a run at the corrected level" "Rscript is not installed"
fi
finish
